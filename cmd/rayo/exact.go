package main

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/op"
)

// exact records operations by computing their references in float64. For each element
// it also computes a bound of the error of a device that keeps the tolerance of every
// operation. It counts the arithmetic operations.
type exact struct {
	flops float64
	err   error
}

// value is an array and, for each element, a bound of the error of a device. A nil bound
// means that the device has the exact numbers.
type value struct {
	*op.Array
	bound []float64
}

func (e *exact) Upload(data []float32, shape ...int) value {
	s := op.Shape(shape)
	if len(s) == 0 {
		s = op.Shape{len(data)}
	}
	a := op.NewArray(s)
	for i, v := range data {
		a.Data[i] = float64(v)
	}
	return value{Array: a}
}

func (e *exact) Reshape(x value, shape ...int) value {
	a, err := op.ReshapeTo(shape...)
	if err != nil {
		e.fail(op.Reshape, err)
		return x
	}
	y := e.reference(op.Reshape, a, x)
	return value{y, x.bound}
}

// MatMul computes a product. The pipeline adds no bias.
func (e *exact) MatMul(a, b, _ value, opts ...op.MatMulOpts) value {
	var o op.MatMulOpts
	if len(opts) > 0 {
		o = opts[0]
	}
	return e.linear(op.MatMul, o.Attrs(), a, b)
}

// Conv2D computes a convolution. The pipeline adds no bias.
func (e *exact) Conv2D(x, w, _ value, opts ...op.Conv2DOpts) value {
	var o op.Conv2DOpts
	if len(opts) > 0 {
		o = opts[0]
	}
	return e.linear(op.Conv2D, o.Attrs(), x, w)
}

func (e *exact) Abs(x value) value              { return e.elementwise(op.Abs, op.Attrs{}, x) }
func (e *exact) Relu(x value) value             { return e.elementwise(op.Relu, op.Attrs{}, x) }
func (e *exact) Scale(x value, s float32) value { return e.elementwise(op.Scale, op.Floats(s), x) }
func (e *exact) Add(x, y value) value           { return e.elementwise(op.Add, op.Attrs{}, x, y) }
func (e *exact) Axpy(x, y value, a float32) value {
	return e.elementwise(op.Axpy, op.Floats(a), x, y)
}
func (e *exact) Clip(x value, lo, hi float32) value {
	return e.elementwise(op.Clip, op.Floats(lo, hi), x)
}

func (e *exact) fail(o *op.Operation, err error) {
	if e.err == nil {
		e.err = fmt.Errorf("reference of %s: %w", o, err)
	}
}

// reference computes o. After an error it returns an empty array.
func (e *exact) reference(o *op.Operation, a op.Attrs, in ...value) *op.Array {
	var arrays []*op.Array
	var types []op.DType
	var shapes []op.Shape
	for _, v := range in {
		arrays, types, shapes = append(arrays, v.Array), append(types, op.F32), append(shapes, v.Shape)
	}
	if e.err != nil {
		return op.NewArray(op.Shape{0})
	}
	out, err := o.Reference(&a, arrays, types)
	if err != nil {
		e.fail(o, err)
		return op.NewArray(op.Shape{0})
	}
	e.flops += o.Flops(&a, shapes, []op.Shape{out[0].Shape})
	return out[0]
}

// bounded adds the operation's own tolerance to the error that comes from its operands.
func bounded(o *op.Operation, y *op.Array, inherited []float64) value {
	t := o.Tolerance()
	v := value{y, make([]float64, len(y.Data))}
	for i, want := range y.Data {
		mag, from := 0.0, 0.0
		if y.Mag != nil {
			mag = y.Mag[i]
		}
		if inherited != nil {
			from = inherited[i]
		}
		v.bound[i] = from + t.Bound(math.Abs(want)+from, mag, op.F32)
	}
	return v
}

// linear computes an operation that is linear in each of its two operands. One operand must be exact.
// The error of the result is the error of the other operand, multiplied by the magnitudes of the exact
// one.
func (e *exact) linear(o *op.Operation, a op.Attrs, x, w value) value {
	y := e.reference(o, a, x, w)
	if x.bound == nil && w.bound == nil {
		return bounded(o, y, nil)
	}
	if x.bound != nil && w.bound != nil {
		e.fail(o, fmt.Errorf("both operands are results of operations; one must be uploaded data: %w", op.ErrUnsupported))
	}
	flops := e.flops
	inherited := e.reference(o, a, x.spread(), w.spread())
	e.flops = flops
	return bounded(o, y, inherited.Data)
}

// spread returns the bounds of v, or its magnitudes if it is exact.
func (v value) spread() value {
	s := op.NewArray(v.Shape)
	for i := range s.Data {
		if v.bound != nil {
			s.Data[i] = v.bound[i]
		} else {
			s.Data[i] = math.Abs(v.Data[i])
		}
	}
	return value{Array: s}
}

// elementwise computes o. It finds the error of the result by moving all operands to
// the ends of their bounds.
func (e *exact) elementwise(o *op.Operation, a op.Attrs, in ...value) value {
	y := e.reference(o, a, in...)
	flops := e.flops
	inherited := make([]float64, len(y.Data))
	for corner := range 1 << len(in) {
		moved := make([]value, len(in))
		for j, v := range in {
			moved[j] = v.moved(corner>>j&1 == 1)
		}
		for i, w := range e.reference(o, a, moved...).Data {
			inherited[i] = max(inherited[i], math.Abs(w-y.Data[i]))
		}
	}
	e.flops = flops
	return bounded(o, y, inherited)
}

// moved returns v with every element at the upper or lower end of its bounds.
func (v value) moved(up bool) value {
	if v.bound == nil {
		return v
	}
	m := op.NewArray(v.Shape)
	for i, b := range v.bound {
		if !up {
			b = -b
		}
		m.Data[i] = v.Data[i] + b
	}
	return value{Array: m}
}

// comparison is the comparison of a device's result with the reference.
type comparison struct {
	err   float64 // the greatest error
	share float64 // the greatest quotient of an error and its bound
}

func (v comparison) ok() bool { return v.share <= 1 }

// compare compares a device's result with the reference.
func compare(got []float32, want value) comparison {
	if len(got) != len(want.Data) {
		return comparison{math.Inf(1), math.Inf(1)}
	}
	var v comparison
	for i, g := range got {
		d := math.Abs(float64(g) - want.Data[i])
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		v.err = max(v.err, d)
		if d > 0 {
			v.share = max(v.share, d/want.bound[i])
		}
	}
	return v
}
