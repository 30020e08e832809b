package ptxgen

import (
	"fmt"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// ConvertLanes is how many elements a workgroup of the kernels of [Convert] converts.
const ConvertLanes = 256

// conversion is how one element goes between memory and 32 bits.
type conversion struct {
	size          int // bytes of an element
	widen, narrow func(k *ptx.Kernel, from, to ptx.Global[ptx.F32], i ptx.U32)
}

// conversions are those of the types that programs do not have.
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

// Convert adds a kernel that converts between elements of a type that programs do not
// have, BF16, U8 or I8, and those of 32 bits, of F32, U32 or I32: buffer 1 gets the elements
// of buffer 0. Numbers of float32 are rounded to nearest even, and of integers the low bits
// stay. The length of the buffer of 32 bits says how many they are.
func Convert(m *ptx.Module, name string, t op.DType, narrow bool) (*Entry, error) {
	c, is := conversions[t]
	if !is {
		return nil, fmt.Errorf("conversion of elements of type %v: %w", t, op.ErrUnsupported)
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
	// A NaN stays one, whichever of its bits are lost.
	return ptx.Select(x.IsNaN(x), high.Or(ptx.U(0x40)), even).BrainBits()
}
