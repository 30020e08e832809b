package batch

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// quantizing checks the operands and options of a method. It converts scale and zero to floats that
// broadcast to x.
func (b *Batch) quantizing(name string, x, scale, zero Value, opts []op.QuantizeOpts) (o op.QuantizeOpts, s, z Value, ok bool) {
	in := []Value{x, scale}
	if zero.given() {
		in = append(in, zero)
	}
	if !b.takes(name, in...) {
		return o, s, z, false
	}
	o, err := op.OptionOf(opts)
	if err != nil {
		b.refuse(name, in, "%w", err)
		return o, s, z, false
	}
	if o.Bits == 0 {
		o.Bits = 8
	}
	if o.Bits < 1 || o.Bits > 16 {
		b.refuse(name, in, "option Bits is %d: expected 1 to 16: %w", o.Bits, device.ErrUnsupported)
		return o, s, z, false
	}
	s = b.scaling(name, x, scale, o.Axis)
	if zero.given() && b.err == nil {
		z = b.scaling(name, x, zero, o.Axis)
	}
	return o, s, z, b.err == nil
}

// scaling returns v as floats that broadcast to x: one number, or one for each element or each
// block of an axis.
func (b *Batch) scaling(name string, x, v Value, axis int) Value {
	s, t := x.Shape(), v.Shape()
	if product(t) == 1 {
		return b.Reshape(b.Cast(v, op.F32))
	}
	i, err := x.axis(axis)
	if err != nil {
		return b.refuse(name, []Value{x, v}, "%w", err)
	}
	f := b.Cast(v, op.F32)
	if len(t) == 1 && t[0] == s[i] {
		return b.Reshape(f, append([]int{t[0]}, slices.Repeat([]int{1}, len(s)-1-i)...)...)
	}
	if len(t) == len(s) && t[i] > 0 && s[i]%t[i] == 0 && len(s) < op.MaxRank {
		wide := slices.Clone(t)
		wide[i] = s[i]
		if wide.Equal(s) {
			spread := slices.Insert(slices.Clone(t), i+1, s[i]/t[i])
			return b.Reshape(b.Expand(b.Unsqueeze(f, i+1), spread...), s...)
		}
	}
	return b.refuse(name, []Value{x, v}, "a scale or zero point of shape %v for x of shape %v: expected one number, one for each element of axis %d, or one for each block of that axis: %w", t, s, i, device.ErrShape)
}

// bounds returns the least and the greatest quantised number.
func bounds(o op.QuantizeOpts) (lo, hi float32) {
	hi = float32(math.Exp2(float64(o.Bits)) - 1)
	if o.Signed {
		hi = float32(math.Exp2(float64(o.Bits-1)) - 1)
		lo = -hi - 1
	}
	return lo, hi
}

// Quantize returns round(x/scale) + zero as i32, limited to 0 to 255 or to the range that
// the options set. It rounds halves to even. scale and zero are one number, or one number
// for each element of an axis, or have the rank of x and one number for each block of the
// axis. None means a zero point of 0. NaN gives 0, or the bound nearest to
// 0.
//
//	q := b.Quantize(w, scales, batch.None, op.QuantizeOpts{Signed: true, Axis: 0})
//
// Execute or Compile returns [op.ErrShape] for other shapes.
func (b *Batch) Quantize(x, scale, zero Value, opts ...op.QuantizeOpts) Value {
	o, s, z, ok := b.quantizing("quantize", x, scale, zero, opts)
	if !ok {
		return Value{}
	}
	y := b.Round(b.Div(b.Cast(x, op.F32), s))
	if z.given() {
		y = b.Add(y, z)
	}
	lo, hi := bounds(o)
	return b.Cast(b.Clip(y, lo, hi), op.I32)
}

// Dequantize returns (x - zero)·scale as f32. It reverses [Batch.Quantize] except for the
// rounding. scale and zero are those of Quantize.
//
// Execute or Compile returns [op.ErrShape] for other shapes.
func (b *Batch) Dequantize(x, scale, zero Value, opts ...op.QuantizeOpts) Value {
	_, s, z, ok := b.quantizing("dequantize", x, scale, zero, opts)
	if !ok {
		return Value{}
	}
	y := b.Cast(x, op.F32)
	if z.given() {
		y = b.Sub(y, z)
	}
	return b.Mul(y, s)
}

// DynamicQuantize quantises x to numbers of i32 from 0 to 255, and also returns the scale,
// of f32, and the zero point, of i32, as one element each. It chooses them so that the
// range covers 0 and all elements of x: scale = (max - min)/255, zero = -min/scale,
// rounded. If x is 0, all three results are 0.
//
// Execute or Compile returns [op.ErrShape] for an operand without elements.
func (b *Batch) DynamicQuantize(x Value) (y, scale, zero Value) {
	if !b.takes("dynamic_quantize", x) {
		return Value{}, Value{}, Value{}
	}
	none := b.Const(0)
	f := b.Cast(x, op.F32)
	lo, hi := b.Minimum(b.Min(f, op.Axes()), none), b.Maximum(b.Max(f, op.Axes()), none)
	scale = b.Div(b.Sub(hi, lo), b.Const(255))
	zero = b.Cast(b.Round(b.Clip(b.Div(b.Neg(lo), scale), 0, 255)), op.I32)
	return b.Quantize(f, scale, zero), scale, zero
}
