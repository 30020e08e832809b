package cuda

import (
	"encoding/binary"
	"math"
)

// Params are the parameters of a kernel as it finds them in memory, each at a
// multiple of its size. Append them in the order of the kernel's declaration:
//
//	p = p[:0] // a Params is used again without allocating
//	p.Ptr(y)
//	p.U32(n)
type Params []byte

// align fills up to a multiple of n, a power of two, and makes room for n bytes.
func (p *Params) align(n int) {
	for len(*p)&(n-1) != 0 {
		*p = append(*p, 0)
	}
}

// Ptr appends an address.
func (p *Params) Ptr(v Ptr) { p.U64(uint64(v)) }

// U64 appends a number of 64 bits.
func (p *Params) U64(v uint64) {
	p.align(8)
	*p = binary.LittleEndian.AppendUint64(*p, v)
}

// I64 appends a signed number of 64 bits.
func (p *Params) I64(v int64) { p.U64(uint64(v)) }

// F64 appends a float64.
func (p *Params) F64(v float64) { p.U64(math.Float64bits(v)) }

// U32 appends a number of 32 bits.
func (p *Params) U32(v uint32) {
	p.align(4)
	*p = binary.LittleEndian.AppendUint32(*p, v)
}

// I32 appends a signed number of 32 bits.
func (p *Params) I32(v int32) { p.U32(uint32(v)) }

// F32 appends a float32.
func (p *Params) F32(v float32) { p.U32(math.Float32bits(v)) }

// U16 appends a number of 16 bits, or the bits of a half.
func (p *Params) U16(v uint16) {
	p.align(2)
	*p = binary.LittleEndian.AppendUint16(*p, v)
}

// U8 appends a byte.
func (p *Params) U8(v uint8) { *p = append(*p, v) }

// Bytes appends a structure at a multiple of align, which is a power of two: a
// tensor map, for one, at a multiple of 64.
func (p *Params) Bytes(b []byte, align int) {
	if align > 0 && align&(align-1) == 0 && align <= smallParams {
		p.align(align)
	}
	*p = append(*p, b...)
}

// paramMove is a parameter: its place in Params, and the one that the driver wants.
type paramMove struct{ from, to, size int }

// lay fills in the places of parameters in Params and returns the bytes of all, or
// 0 if the driver wants each just there, which is so but for tensor maps: their
// multiple of 64 is one of the address in constant memory, and parameters begin
// at 0x210 there on capability 9.0.
func lay(moves []paramMove) int {
	end, maps, moved := 0, false, false
	for i := range moves {
		m := &moves[i]
		align := 1
		switch {
		case m.size == len(TensorMap{}):
			align, maps = 64, true
		case m.size&(m.size-1) == 0:
			align = min(m.size, 8)
		case m.size%8 == 0:
			align = 8
		}
		m.from = (end + align - 1) &^ (align - 1)
		end, moved = m.from+m.size, moved || m.from != m.to
	}
	if !maps || !moved {
		return 0
	}
	return end
}
