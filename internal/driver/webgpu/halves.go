package webgpu

import (
	"math"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Elements of two bytes are packed two to a word. The kernels of the library do not read bfloat16,
// and read half floats only if the device supports them. Otherwise a launch widens operands to
// float32 before the kernel, and another narrows the results.
//
// The binding of an array with an odd number of half floats includes its whole last word, because
// bindings begin at words and have whole words. Other data in this word keep their value: kernels
// store single elements and get their number as a parameter. Copy commands move whole words, so a
// kernel copies such an array if data may follow it: see [preparer.copy].

// StorageType implements [driver.Arrays].
func (e *preparer) StorageType(o driver.Operand) op.DType {
	if t, is := wordOf[o.Type]; is {
		return t
	}
	if o.Type == op.BF16 || o.Type == op.F16 && !e.d.library.F16 {
		return op.F32
	}
	return o.Type
}

// Widen implements [driver.Arrays].
func (e *preparer) Widen(dst, src arrayRef, o driver.Operand) error {
	if graphs.widen == nil {
		return errNoKernel // package device calls UseGraphs before it uses other types than float32
	}
	return graphs.widen(e, dst, src, o)
}

// Narrow implements [driver.Arrays].
func (e *preparer) Narrow(dst, src arrayRef, o driver.Operand) error {
	if graphs.narrow == nil {
		return errNoKernel
	}
	return graphs.narrow(e, dst, src, o)
}

func (e *preparer) widen(dst, src arrayRef, o driver.Operand) error {
	if o.Type.Storage() {
		return e.bytes(unpackings.Of(o.Type), dst, src, o.N)
	}
	return e.convert(widenings, o.Type, dst, src, o.N)
}

func (e *preparer) narrow(dst, src arrayRef, o driver.Operand) error {
	if o.Type.Storage() {
		return e.bytes(packing, dst, src, o.N)
	}
	return e.convert(narrowings, o.Type, dst, src, o.N)
}

// minSeparate is the number of elements from which a separate launch for the last ones pays: a
// launch takes about two microseconds, as long as converting a third of this number word by word.
const minSeparate = 1 << 19

// convert adds launches of kernels of a family over n elements of src. There are several launches
// if the arrays exceed the binding limit. The kernels process vectors if the elements are whole
// vectors, otherwise words. If there are many elements, only a short tail, after the last offset
// that can be bound, is processed by words.
func (e *preparer) convert(of *kernel.Family[halvesSpec], t op.DType, dst, src arrayRef, n int) error {
	align := int(max(e.d.limits.StorageAlign, 4))
	most := int(e.d.limits.Binding / 4)
	most -= most % align
	for from := 0; from < n; {
		m := min(n-from, most)
		s := halvesSpec{t, 4}
		switch {
		case m%s.Each == 0:
		case m >= minSeparate:
			m -= m % max(align/2, s.Each)
		default:
			s.Each = 2
		}
		part := func(a arrayRef) arrayRef {
			size := a.bytes / int64(n)
			return a.part(int64(from)*size, int64(m)*size)
		}
		if err := e.halves(of.Of(s), s.Each, part(dst), part(src), m); err != nil {
			return err
		}
		from += m
	}
	return nil
}

// halves adds a launch of one of the kernels below over n elements; each lane processes the given
// number.
func (e *preparer) halves(k *kernel.Kernel, each int, dst, src arrayRef, n int) error {
	p, err := k.Program()
	if err != nil {
		return err
	}
	grid := kernel.GridFor((n+each-1)/each, halvesLanes)
	if err := grid.Err(); err != nil {
		return err
	}
	params, err := k.AppendParams(nil, halvesParams{uint32(n)})
	if err != nil {
		return err
	}
	return e.dispatch(&dispatch{grid: grid.Groups(), arrays: []arrayRef{src, dst}, dynamic: -1, static: -1}, p, params, true)
}

// halvesParams are the parameters of the kernels below.
type halvesParams struct {
	N uint32 // elements
}

// halvesSpec has the 16-bit type to convert, and the number of elements for each lane: 4 for whole
// vectors, or 2 for words, the last of which may hold only one element.
type halvesSpec struct {
	Type op.DType
	Each int
}

const halvesLanes = 128

// wide returns the two elements of a word.
func (s halvesSpec) wide(word kernel.U32) (low, high kernel.F32) {
	if s.Type == op.F16 {
		return halfFloat(word.And(kernel.U(0xffff))), halfFloat(word.Shr(kernel.U(16)))
	}
	return word.Shl(kernel.U(16)).AsF32(), word.And(kernel.U(0xffff0000)).AsF32()
}

// narrow returns the bits of an element.
func (s halvesSpec) narrow(v kernel.F32) kernel.U32 {
	if s.Type == op.F16 {
		return toHalfFloat(v)
	}
	return brain(v)
}

// widenings convert elements of a type of two bytes to float32.
var widenings *kernel.Family[halvesSpec]

func makeWidenings() *kernel.Family[halvesSpec] {
	return kernel.NewFamily("widen", func(b *kernel.Builder, p *halvesParams, s halvesSpec) {
		b.LocalSize(halvesLanes, 1, 1)
		n, i := b.U32(&p.N), b.Index()
		if s.Each == 4 {
			x, y := kernel.Input[kernel.Vec2U](b, "x"), kernel.Output[kernel.Vec4F](b, "y")
			b.If(i.Lt(n.Shr(kernel.U(2))), func() {
				words := x.At(i)
				v0, v1 := s.wide(words.X())
				v2, v3 := s.wide(words.Y())
				y.Set(i, b.Vec4F(v0, v1, v2, v3))
			})
			return
		}
		x, y := kernel.Input[kernel.U32](b, "x"), kernel.Output[kernel.F32](b, "y")
		first := i.Shl(kernel.U(1))
		b.If(first.Lt(n), func() {
			low, high := s.wide(x.At(i))
			y.Set(first, low)
			second := first.Add(kernel.U(1))
			b.If(second.Lt(n), func() { y.Set(second, high) })
		})
	})
}

// narrowings convert float32 to elements of a type of two bytes. Other data in the word of the last
// element keep their value.
var narrowings *kernel.Family[halvesSpec]

func makeNarrowings() *kernel.Family[halvesSpec] {
	return kernel.NewFamily("narrow", func(b *kernel.Builder, p *halvesParams, s halvesSpec) {
		b.LocalSize(halvesLanes, 1, 1)
		n, i := b.U32(&p.N), b.Index()
		if s.Each == 4 {
			x, y := kernel.Input[kernel.Vec4F](b, "x"), kernel.Output[kernel.Vec2U](b, "y")
			b.If(i.Lt(n.Shr(kernel.U(2))), func() {
				v := x.At(i)
				word := func(low, high kernel.F32) kernel.U32 { return s.narrow(low).Or(s.narrow(high).Shl(kernel.U(16))) }
				y.Set(i, b.Vec2U(word(v.X(), v.Y()), word(v.Z(), v.W())))
			})
			return
		}
		x, y := kernel.Input[kernel.F32](b, "x"), kernel.InOut[kernel.U32](b, "y")
		first := i.Shl(kernel.U(1))
		b.If(first.Lt(n), func() {
			word := kernel.NewVar(b, "word", s.narrow(x.At(first)))
			second := first.Add(kernel.U(1))
			b.If(second.Lt(n), func() { word.Set(word.Get().Or(s.narrow(x.At(second)).Shl(kernel.U(16)))) }).
				Else(func() { word.Set(word.Get().Or(y.At(i).And(kernel.U(0xffff0000)))) })
			y.Set(i, word.Get())
		})
	})
}

// copyBytes adds a copy of an array that does not end at a word. If the array is large, it copies
// the part that can be bound separately like any array, and only the tail by words.
func (e *preparer) copyBytes(dst, src arrayRef) error {
	align := max(e.d.limits.StorageAlign, 4)
	for dst.bytes > 0 {
		bytes := dst.bytes - dst.bytes%align
		copied := e.copy
		if bytes < minByKernel {
			bytes = min(dst.bytes, e.d.limits.Binding-e.d.limits.Binding%align)
			copied = func(dst, src arrayRef) error { return e.halves(byteCopy, 4, dst, src, int(bytes)) }
		}
		if err := copied(dst.part(0, bytes), src.part(0, bytes)); err != nil {
			return err
		}
		dst, src = dst.part(bytes, dst.bytes-bytes), src.part(bytes, dst.bytes-bytes)
	}
	return nil
}

// The kernels do not use the built-in functions that pack and unpack half floats: SwiftShader
// converts infinities to NaN, and lavapipe loses the upper half.

// toHalfFloat returns the bits of a half float, rounded to nearest even.
func toHalfFloat(v kernel.F32) kernel.U32 {
	bits := v.AsU32()
	size := bits.And(kernel.U(0x7fffffff))
	normal := size.Sub(kernel.U(0x38000000)).Add(kernel.U(0xfff)).Add(size.Shr(kernel.U(13)).And(kernel.U(1))).Shr(kernel.U(13))
	// The last bit of a sum with 1/2 has the value of the smallest half float.
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

// brain returns the upper half of a float32, rounded to nearest even. NaN stays NaN.
func brain(v kernel.F32) kernel.U32 {
	bits := v.AsU32()
	upper := bits.Shr(kernel.U(16))
	rounded := bits.Add(kernel.U(math.MaxInt16)).Add(upper.And(kernel.U(1))).Shr(kernel.U(16))
	number := bits.And(kernel.U(0x7fffffff)).Le(kernel.U(0x7f800000))
	return kernel.Select(number, rounded, upper.Or(kernel.U(0x40)))
}
