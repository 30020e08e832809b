package webgpu

import (
	"math"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Elements of two bytes lie two to a word. Kernels of the library do not read
// bfloat16, and half floats only where the device has them and where arrays are
// whole words, as bindings are. All others are widened before and narrowed after.

// Stored implements [driver.Arrays].
func (e *preparer) Stored(o driver.Operand) op.DType {
	if o.Type == op.BF16 || o.Type == op.F16 && (!e.d.library.F16 || o.N%2 != 0) {
		return op.F32
	}
	return o.Type
}

// alike are the arrays of an operation whose half floats are all widened if one is.
type alike struct {
	*preparer
	widen bool
}

// alike returns the arrays of the operation of a step, whose kernel has half floats
// of one kind in all operands and results.
func (e *preparer) alike(s *driver.Step) alike {
	widen := false
	for _, os := range [][]driver.Operand{s.In, s.Out} {
		for _, o := range os {
			widen = widen || o.Slot >= 0 && o.Type == op.F16 && e.Stored(o) != op.F16
		}
	}
	return alike{e, widen}
}

// Stored implements [driver.Arrays].
func (a alike) Stored(o driver.Operand) op.DType {
	if a.widen && o.Type == op.F16 {
		return op.F32
	}
	return a.preparer.Stored(o)
}

// Widen implements [driver.Arrays].
func (e *preparer) Widen(dst, src arrayRef, o driver.Operand) error {
	return e.convert(widenings.Of(o.Type), dst, src, o.N)
}

// Narrow implements [driver.Arrays].
func (e *preparer) Narrow(dst, src arrayRef, o driver.Operand) error {
	return e.convert(narrowings.Of(o.Type), dst, src, o.N)
}

// copyHalves adds a copy of an array that is no whole number of words.
func (e *preparer) copyHalves(dst, src arrayRef) error {
	return e.convert(halfCopy, dst, src, int(dst.bytes/2))
}

type halvesParams struct {
	N uint32 // elements
}

const halvesLanes = 64

// convert adds a launch of one of the kernels below over n elements of src, in as
// many launches as the size of bindings asks for.
func (e *preparer) convert(k *kernel.Kernel, dst, src arrayRef, n int) error {
	p, err := k.Program()
	if err != nil {
		return err
	}
	most := int(e.d.limits.Binding / 4)
	most -= most % int(max(e.d.limits.StorageAlign, 4))
	for from := 0; from < n; from += most {
		m := min(n-from, most)
		part := func(a arrayRef) arrayRef {
			size := a.bytes / int64(n)
			return a.part(int64(from)*size, int64(m)*size)
		}
		grid := kernel.GridFor((m+1)/2, halvesLanes)
		if err := grid.Err(); err != nil {
			return err
		}
		params, err := k.AppendParams(nil, halvesParams{uint32(m)})
		if err != nil {
			return err
		}
		l := &dispatch{grid: grid.Groups(), arrays: []arrayRef{part(src), part(dst)}, dynamic: -1, static: -1}
		if err := e.dispatch(l, p, params, true); err != nil {
			return err
		}
	}
	return nil
}

// widenings convert elements of a type of two bytes to float32: a lane, a word.
var widenings = kernel.NewFamily("widen", func(b *kernel.Builder, p *halvesParams, t op.DType) {
	b.LocalSize(halvesLanes, 1, 1)
	x, y := kernel.Input[kernel.U32](b, "x"), kernel.Output[kernel.F32](b, "y")
	n, i := b.U32(&p.N), b.Index()
	first := i.Shl(kernel.U(1))
	b.If(first.Lt(n), func() {
		word := x.At(i)
		low, high := word.Shl(kernel.U(16)).AsF32(), word.And(kernel.U(0xffff0000)).AsF32()
		if t == op.F16 {
			low, high = halfFloat(word.And(kernel.U(0xffff))), halfFloat(word.Shr(kernel.U(16)))
		}
		y.Set(first, low)
		second := first.Add(kernel.U(1))
		b.If(second.Lt(n), func() { y.Set(second, high) })
	})
})

// narrowings convert float32 to elements of a type of two bytes. What shares a
// word with the last element keeps its value.
var narrowings = kernel.NewFamily("narrow", func(b *kernel.Builder, p *halvesParams, t op.DType) {
	b.LocalSize(halvesLanes, 1, 1)
	x, y := kernel.Input[kernel.F32](b, "x"), kernel.InOut[kernel.U32](b, "y")
	n, i := b.U32(&p.N), b.Index()
	first := i.Shl(kernel.U(1))
	b.If(first.Lt(n), func() {
		half := func(v kernel.F32) kernel.U32 { return brain(v) }
		if t == op.F16 {
			half = toHalfFloat
		}
		word := kernel.NewVar(b, "word", half(x.At(first)))
		second := first.Add(kernel.U(1))
		b.If(second.Lt(n), func() { word.Set(word.Get().Or(half(x.At(second)).Shl(kernel.U(16)))) }).
			Else(func() { word.Set(word.Get().Or(y.At(i).And(kernel.U(0xffff0000)))) })
		y.Set(i, word.Get())
	})
})

// halfCopy copies elements of two bytes. What shares a word with the last one
// keeps its value.
var halfCopy = kernel.New("copy_halves", func(b *kernel.Builder, p *halvesParams) {
	b.LocalSize(halvesLanes, 1, 1)
	x, y := kernel.Input[kernel.U32](b, "x"), kernel.InOut[kernel.U32](b, "y")
	n, i := b.U32(&p.N), b.Index()
	first := i.Shl(kernel.U(1))
	b.If(first.Lt(n), func() {
		word := kernel.NewVar(b, "word", x.At(i))
		b.If(first.Add(kernel.U(1)).Eq(n), func() {
			word.Set(word.Get().And(kernel.U(0xffff)).Or(y.At(i).And(kernel.U(0xffff0000))))
		})
		y.Set(i, word.Get())
	})
})

// What packs and unpacks half floats is not asked: SwiftShader makes NaN of
// infinities, and lavapipe loses the upper half.

// toHalfFloat returns the bits of a half float, rounded to nearest even.
func toHalfFloat(v kernel.F32) kernel.U32 {
	bits := v.AsU32()
	size := bits.And(kernel.U(0x7fffffff))
	normal := size.Sub(kernel.U(0x38000000)).Add(kernel.U(0xfff)).Add(size.Shr(kernel.U(13)).And(kernel.U(1))).Shr(kernel.U(13))
	// The last bit of a sum with 1/2 counts as the smallest half float does.
	subnormal := size.AsF32().Add(kernel.F(0.5)).AsU32().Sub(kernel.U(0x3f000000))
	h := kernel.Select(size.Lt(kernel.U(0x38800000)), subnormal, normal)
	h = kernel.Select(size.Ge(kernel.U(0x477ff000)), kernel.U(0x7c00), h)
	h = kernel.Select(size.Gt(kernel.U(0x7f800000)), kernel.U(0x7e00), h)
	return h.Or(bits.Shr(kernel.U(16)).And(kernel.U(0x8000)))
}

// halfFloat returns a half float, given by its bits.
func halfFloat(bits kernel.U32) kernel.F32 {
	sign, size := bits.And(kernel.U(0x8000)).Shl(kernel.U(16)), bits.And(kernel.U(0x7fff))
	wide := size.Shl(kernel.U(13))
	normal := wide.Add(kernel.U(0x38000000))
	special := wide.Or(kernel.U(0x7f800000))
	subnormal := size.F32().Mul(kernel.F(0x1p-24)).AsU32()
	v := kernel.Select(size.Ge(kernel.U(0x7c00)), special, kernel.Select(size.Lt(kernel.U(0x400)), subnormal, normal))
	return v.Or(sign).AsF32()
}

// brain returns the upper half of a float32, rounded to nearest even; NaN stays
// one.
func brain(v kernel.F32) kernel.U32 {
	bits := v.AsU32()
	upper := bits.Shr(kernel.U(16))
	rounded := bits.Add(kernel.U(math.MaxInt16)).Add(upper.And(kernel.U(1))).Shr(kernel.U(16))
	number := bits.And(kernel.U(0x7fffffff)).Le(kernel.U(0x7f800000))
	return kernel.Select(number, rounded, upper.Or(kernel.U(0x40)))
}
