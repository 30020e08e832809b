package ptxgen

import (
	"encoding/binary"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/ptx"
)

// Entry describes how to launch the kernel of a program.
type Entry struct {
	Name    string
	Local   [3]uint32 // threads of a block
	Dynamic int       // bytes of shared memory that the launch must request
	Static  int       // bytes of shared memory that the kernel declares
	// Aligned has the required alignment of the address of each buffer.
	Aligned []int
	// Lengths lists the buffers with lengths as parameters.
	Lengths        []int
	Checked        bool // as in Options
	ParamsInMemory bool // as in Options

	uniforms []ir.Uniform
	bindings int
}

// FaultBytes is the size of the record of a fault. The record is in device memory and must be zero
// before a launch.
const FaultBytes = 16

// Fault describes a fault of a checked kernel. Only one of several faults is recorded.
type Fault struct {
	At    ir.Value // the instruction: an access out of bounds, or a loop that reached its iteration limit
	Index uint32   // of the access
	Len   uint32   // elements of the accessed array
}

// FaultOf reads the record of a launch; ok reports whether there was a fault.
func FaultOf(record []byte) (f Fault, ok bool) {
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(record[4*i:]) }
	return Fault{ir.Value(word(0)), word(1), word(2)}, word(0) != 0
}

// ArgBytes returns the size of the block of parameters.
func (e *Entry) ArgBytes() int {
	n := 8*e.bindings + 4*len(e.Lengths) + 4*len(e.uniforms)
	if e.Checked {
		n += 8
	}
	if e.ParamsInMemory {
		n += 8 - 4*len(e.uniforms)
	}
	return n
}

// Args appends the block of parameters of a launch to dst. fault is the address of the record of a
// checked kernel. buffers has the address of each buffer, and lengths its number of elements (of
// vectors, if the elements are vectors). params is the block of parameters in the layout of package
// kernel or, with [Options].ParamsInMemory, the address of such a block in 8 bytes.
func (e *Entry) Args(dst []byte, fault uint64, buffers []uint64, lengths []uint32, params []byte) []byte {
	le := binary.LittleEndian
	if e.Checked {
		dst = le.AppendUint64(dst, fault)
	}
	for _, a := range buffers[:e.bindings] {
		dst = le.AppendUint64(dst, a)
	}
	if e.ParamsInMemory {
		dst = append(dst, params[:8]...)
	}
	for _, i := range e.Lengths {
		dst = le.AppendUint32(dst, lengths[i])
	}
	if e.ParamsInMemory {
		return dst
	}
	for _, u := range e.uniforms {
		// Parameters have the byte order of the host, which is also the device's: CUDA supports no
		// other hosts.
		dst = append(dst, params[u.Offset:u.Offset+4]...)
	}
	return dst
}

// params declares the parameters of the kernel in the order of Args.
func (g *lowering) params(e *Entry) {
	p := g.p
	if g.Checked {
		g.fault = ptx.GlobalParam[ptx.U32](g.k, "fault")
	}
	for i := range p.Bindings {
		g.bindings = append(g.bindings, g.binding(i))
		e.Aligned = append(e.Aligned, g.alignment(&p.Bindings[i]))
	}
	var params ptx.Global[ptx.U32]
	if g.ParamsInMemory {
		params = ptx.GlobalParam[ptx.U32](g.k, "params").Hint(ptx.ReadOnly)
	}
	asked := make([]bool, len(p.Bindings))
	for i := range p.Code {
		switch in := &p.Code[i]; in.Code {
		case ir.Len:
			asked[in.Imm] = true
		case ir.Load, ir.Store, ir.AtomicOp:
			asked[in.Imm] = asked[in.Imm] || g.Checked
		}
	}
	g.lens = make([]ptx.U32, len(p.Bindings))
	for i, a := range asked {
		if a {
			g.lens[i] = ptx.Param[ptx.U32](g.k, name("n", i))
			e.Lengths = append(e.Lengths, i)
		}
	}
	for i, u := range p.Uniforms {
		if g.ParamsInMemory {
			g.uniforms = append(g.uniforms, params.Offset(int(u.Offset/4)).Load())
		} else if u.Type == ir.F32 {
			g.uniforms = append(g.uniforms, ptx.U32(ptx.Param[ptx.F32](g.k, name("p", i))))
		} else {
			g.uniforms = append(g.uniforms, ptx.Param[ptx.U32](g.k, name("p", i)))
		}
	}
	e.uniforms, e.bindings = p.Uniforms, len(p.Bindings)
}

// alignment returns the required alignment of a buffer's address.
func (g *lowering) alignment(b *ir.Binding) int {
	n := 4
	if b.Type == ir.F16 {
		n = 2
	}
	if b.Type == ir.U32 && g.ElementBytes != 0 {
		return g.ElementBytes
	}
	if g.Scalar {
		return n
	}
	return n * int(b.Width)
}
