//go:build !js || !nowebgpu

package portable

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// storable returns an ErrUnsupported if kernels cannot read and write arrays of type d on the
// target.
func (t *Target) storable(d op.DType) error {
	switch d {
	case op.F32, op.I32, op.U32, op.Bool:
		return nil
	case op.F16:
		if t.F16 {
			return nil
		}
	}
	return unsupported("kernels cannot read or write elements of type %v", d)
}

// nan returns the NaN that operations give as a result.
func nan() kernel.F32 { return kernel.F(float32(math.NaN())) }

// input declares a floating-point operand and returns a function that reads an element.
func input(b *kernel.Builder, name string, t op.DType) func(i kernel.U32) kernel.F32 {
	if t == op.F16 {
		x := kernel.Input[kernel.F16](b, name)
		return func(i kernel.U32) kernel.F32 { return x.At(i).F32() }
	}
	return kernel.Input[kernel.F32](b, name).At
}

// inputBits declares an operand of four bytes per element, or of half floats, and returns a
// function that reads its bits: for half floats the bits of the float32.
func inputBits(b *kernel.Builder, name string, t op.DType) func(i kernel.U32) kernel.U32 {
	if t == op.F16 {
		x := kernel.Input[kernel.F16](b, name)
		return func(i kernel.U32) kernel.U32 { return x.At(i).F32().AsU32() }
	}
	return kernel.Input[kernel.U32](b, name).At
}

// fromBits returns the value of an element of type t with the bits v: see [inputBits].
func fromBits(v kernel.U32, t op.DType) kernel.Dynamic {
	switch irhook.Register(uint8(t)) {
	case ir.I32:
		return kernel.Dyn(v.I32())
	case ir.U32:
		return kernel.Dyn(v)
	case ir.Bool:
		return kernel.Dyn(v.Ne(kernel.U(0)))
	}
	return kernel.Dyn(v.AsF32())
}

// source is an operand whose type is known only while a kernel is built.
type source struct {
	at func(i kernel.U32) kernel.Dynamic
	n  kernel.U32 // number of elements
}

func sourceOf[T kernel.Element](x kernel.Buffer[T]) source {
	return source{func(i kernel.U32) kernel.Dynamic { return kernel.Dyn(x.At(i)) }, x.Len()}
}

// inputValue declares an operand whose elements are read as values for expressions.
func inputValue(b *kernel.Builder, name string, t op.DType) source {
	switch t {
	case op.I32:
		return sourceOf(kernel.Input[kernel.I32](b, name))
	case op.U32:
		return sourceOf(kernel.Input[kernel.U32](b, name))
	case op.Bool:
		x := kernel.Input[kernel.U32](b, name)
		return source{func(i kernel.U32) kernel.Dynamic { return kernel.Dyn(x.At(i).Ne(kernel.U(0))) }, x.Len()}
	case op.F16:
		x := kernel.Input[kernel.F16](b, name)
		return source{func(i kernel.U32) kernel.Dynamic { return kernel.Dyn(x.At(i).F32()) }, x.Len()}
	}
	return sourceOf(kernel.Input[kernel.F32](b, name))
}

// spread returns x broadcast over n elements.
func (x source) spread(s op.BroadcastKind, n kernel.U32) source {
	at := x.at
	switch s {
	case op.Scalar:
		at = func(kernel.U32) kernel.Dynamic { return x.at(kernel.U(0)) }
	case op.Tiled:
		at = func(i kernel.U32) kernel.Dynamic { return x.at(i.Mod(x.n)) }
	case op.Repeated:
		at = func(i kernel.U32) kernel.Dynamic { return x.at(i.Div(n.Div(x.n))) }
	}
	return source{at, n}
}

// sink is a result whose type is known only while a kernel is built.
type sink struct {
	set func(i kernel.U32, v kernel.Dynamic)
	n   kernel.U32 // number of elements
}

// sinkOf declares a result. It converts values of type V to elements of type T when it stores them.
func sinkOf[T kernel.Element, V kernel.Value](b *kernel.Builder, name string, convert func(v V) T) sink {
	y := kernel.Output[T](b, name)
	return sink{func(i kernel.U32, v kernel.Dynamic) { y.Set(i, convert(kernel.As[V](b, v))) }, y.Len()}
}

func same[T any](v T) T { return v }

// outputValue declares a result. Its values have the type in which elements of t are computed.
func outputValue(b *kernel.Builder, name string, t op.DType) sink {
	switch t {
	case op.I32:
		return sinkOf(b, name, same[kernel.I32])
	case op.U32:
		return sinkOf(b, name, same[kernel.U32])
	case op.Bool:
		return sinkOf(b, name, kernel.Bool.U32)
	case op.F16:
		return sinkOf(b, name, kernel.F32.F16)
	}
	return sinkOf(b, name, same[kernel.F32])
}
