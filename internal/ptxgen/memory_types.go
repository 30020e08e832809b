package ptxgen

import (
	"fmt"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// ConvertLanes is the number of elements that a workgroup of a kernel of [Convert] converts.
const ConvertLanes = 256

// conversion converts an element between its type in memory and 32 bits.
type conversion struct {
	size          int // bytes of an element
	widen, narrow func(k *ptx.Kernel, from, to ptx.Global[ptx.F32], i ptx.U32)
}

// conversions has the types that programs do not support.
var conversions = map[op.DType]conversion{
	op.BF16: {2,
		func(_ *ptx.Kernel, from, to ptx.Global[ptx.F32], i ptx.U32) {
			to.At(i).Store(ptx.Cast[ptx.BF16](from).At(i).Load().F32())
		},
		func(k *ptx.Kernel, from, to ptx.Global[ptx.F32], i ptx.U32) {
			ptx.Cast[ptx.BF16](to).At(i).Store(Narrow(k, from.At(i).Load()))
		}},
	op.U8: {1,
		func(_ *ptx.Kernel, from, to ptx.Global[ptx.F32], i ptx.U32) {
			ptx.Cast[ptx.U32](to).At(i).Store(ptx.Cast[ptx.U8](from).At(i).Load().U32())
		}, lowByte},
	op.I8: {1,
		func(_ *ptx.Kernel, from, to ptx.Global[ptx.F32], i ptx.U32) {
			ptx.Cast[ptx.S32](to).At(i).Store(ptx.Cast[ptx.S8](from).At(i).Load().S32())
		}, lowByte},
}

func lowByte(_ *ptx.Kernel, from, to ptx.Global[ptx.F32], i ptx.U32) {
	ptx.Cast[ptx.U8](to).At(i).Store(ptx.Cast[ptx.U32](from).At(i).Load().U8())
}

// Convert adds a kernel that converts between a type that programs do not support (BF16, U8 or I8)
// and the 32-bit type F32, U32 or I32. It converts the elements of buffer 0 to buffer 1. Floats are
// rounded to nearest even; integers keep their low bits. The length of the 32-bit buffer is the
// number of elements.
func Convert(m *ptx.Module, name string, t op.DType, narrow bool) (*Entry, error) {
	c, is := conversions[t]
	if !is {
		return nil, fmt.Errorf("there is no conversion kernel for elements of type %v: %w", t, op.ErrUnsupported)
	}
	e := &Entry{Name: name, Local: [3]uint32{ConvertLanes, 1, 1}, Aligned: []int{c.size, 4}, Lengths: []int{1}, bindings: 2}
	convert := c.widen
	if narrow {
		e.Aligned, e.Lengths, convert = []int{4, c.size}, []int{0}, c.narrow
	}
	m.Kernel(name, func(k *ptx.Kernel) {
		k.Block(ConvertLanes, 1, 1)
		Follow(k)
		from, to := ptx.GlobalParam[ptx.F32](k, "b0"), ptx.GlobalParam[ptx.F32](k, "b1")
		n := ptx.Param[ptx.U32](k, "n0")
		i := k.Special(ptx.CtaidX).MulAdd(ptx.U(ConvertLanes), k.Special(ptx.TidX))
		k.If(i.Lt(n), func() { convert(k, from, to, i) })
	})
	if err := m.Err(); err != nil {
		return nil, err
	}
	return e, nil
}

// Narrow returns x as a bfloat16, rounded to nearest even, on any target.
func Narrow(k *ptx.Kernel, x ptx.F32) ptx.BF16 {
	if k.Target() >= ptx.SM80 {
		return x.BF16()
	}
	bits := x.Bits().U32()
	high := bits.Shr(ptx.U(16))
	even := bits.Add(ptx.U(0x7fff)).Add(high.And(ptx.U(1))).Shr(ptx.U(16))
	// Keep NaN a NaN, even if its set mantissa bits are cut off.
	return ptx.Select(x.IsNaN(x), high.Or(ptx.U(0x40)), even).BrainBits()
}
