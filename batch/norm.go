package batch

import (
	"math"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// channelled checks the operand x [n c ...] of a method and its optional operands, which have one
// number for each channel. It returns the optional operands reshaped to broadcast to x.
func (b *Batch) channelled(name string, x Value, each ...Value) []Value {
	if !b.takes(name, x) {
		return nil
	}
	if len(x.Shape()) < 2 {
		b.refuse(name, []Value{x}, "operand %v has no second axis, the channels: %w", x.Shape(), device.ErrShape)
		return nil
	}
	list := make([]Value, len(each))
	for i, v := range each {
		if v.given() && b.takes(name, v) {
			list[i] = b.channels(name, x, v)
		}
		if b.err != nil {
			return nil
		}
	}
	return list
}

// affine returns x·scale + bias; scale and bias may be absent.
func (b *Batch) affine(x, scale, bias Value) Value {
	if scale.given() {
		x = b.Mul(x, scale)
	}
	if bias.given() {
		x = b.Add(x, bias)
	}
	return x
}

// BatchNorm returns (x - mean) / sqrt(variance + eps) · scale + bias for x [n c ...]. mean
// and variance are the statistics from training. mean, variance, scale and bias have one
// number for each channel. None means no scale or no bias.
//
// Execute or Compile returns [op.ErrShape] for other shapes.
func (b *Batch) BatchNorm(x, mean, variance, scale, bias Value, opts ...op.NormOpts) Value {
	const name = "batch_norm"
	if !b.takes(name, x, mean, variance) {
		return Value{}
	}
	o, err := op.OptionOf(opts)
	if err != nil {
		return b.refuse(name, []Value{x}, "%w", err)
	}
	each := b.channelled(name, x, mean, variance, scale, bias)
	if each == nil {
		return Value{}
	}
	a := o.Attrs()
	factor := b.Rsqrt(b.Add(each[1], b.scalar(variance.Type(), float64(op.NormOptsOf(&a).Eps))))
	if each[2].given() {
		factor = b.Mul(each[2], factor)
	}
	return b.affine(b.Sub(x, each[0]), factor, each[3])
}

// GroupNorm splits the channels of x [n c ...] into groups and normalises each group by its
// own mean and variance. It then multiplies by scale and adds bias, which have one number
// for each channel. None means no scale or no bias. One group normalises all
// channels together. With as many groups as channels it is [Batch.InstanceNorm].
//
// Execute or Compile returns [op.ErrShape] for a number of channels that the groups do not
// divide, or another shape. The accuracy is that of [Batch.LayerNorm].
func (b *Batch) GroupNorm(x Value, groups int, scale, bias Value, opts ...op.NormOpts) Value {
	return b.groupNorm("group_norm", x, groups, scale, bias, opts)
}

// groupNorm is GroupNorm for a method of the given name.
func (b *Batch) groupNorm(name string, x Value, groups int, scale, bias Value, opts []op.NormOpts) Value {
	if _, err := op.OptionOf(opts); err != nil {
		return b.refuse(name, []Value{x}, "%w", err)
	}
	each := b.channelled(name, x, scale, bias)
	if each == nil {
		return Value{}
	}
	s := x.Shape()
	if groups < 1 || s[1]%groups != 0 {
		return b.refuse(name, []Value{x}, "%d groups of %d channels: %w", groups, s[1], device.ErrShape)
	}
	rows := b.Reshape(x, s[0], groups, s[1]/groups*product(s[2:]))
	y := b.LayerNorm(rows, None, None, opts...)
	return b.affine(b.Reshape(y, s...), each[0], each[1])
}

// InstanceNorm returns x [n c ...] with each channel normalised by its own mean and
// variance: [Batch.GroupNorm] with a group for each channel.
func (b *Batch) InstanceNorm(x, scale, bias Value, opts ...op.NormOpts) Value {
	groups := 1
	if s := x.Shape(); len(s) > 1 && s[1] > 0 {
		groups = s[1]
	}
	return b.groupNorm("instance_norm", x, groups, scale, bias, opts)
}

// LocalResponseNorm returns x / (bias + alpha·Σ x²/size)^beta for x [n c ...]. The sum is
// over size neighbouring channels, (size-1)/2 (rounded down) before the channel and the
// rest from it on.
//
// Execute or Compile returns [op.ErrShape] for a size below 1, or an operand without channels.
func (b *Batch) LocalResponseNorm(x Value, size int, opts ...op.LRNOpts) Value {
	const name = "local_response_norm"
	if b.channelled(name, x) == nil {
		return Value{}
	}
	o, err := op.OptionOf(opts)
	if err != nil {
		return b.refuse(name, []Value{x}, "%w", err)
	}
	c := x.Shape()[1]
	if size < 1 || size > math.MaxInt16 || c < 1 {
		return b.refuse(name, []Value{x}, "%d of %d channels: %w", size, c, device.ErrShape)
	}
	w := window{axis: 1, n: c, size: size, dilation: 1, stride: 1, before: (size - 1) / 2, after: size / 2, count: c}
	sum, t := b.fold(b.Square(x), []window{w}, 0, b.Add), x.Type()
	mean := b.Mul(sum, b.scalar(t, float64(or(o.Alpha, 1e-4))/float64(size)))
	base := b.Add(mean, b.scalar(t, float64(or(o.Bias, 1))))
	return b.Div(x, b.Pow(base, b.scalar(t, float64(or(o.Beta, 0.75)))))
}

// or returns the field v of an option struct, or the default if v is 0.
func or(v, otherwise float32) float32 {
	switch v {
	case 0:
		return otherwise
	case op.Zero:
		return 0
	}
	return v
}

// Normalize returns x divided by its p-norm along axes. By default that is the Euclidean
// norm along the last axis. It divides by Eps if the norm is less, so that zeros stay
// zeros.
//
//	unit := b.Normalize(embeddings)
//
// Execute or Compile returns [op.ErrShape] for an axis that x lacks, or a P that is not above
// 0.
func (b *Batch) Normalize(x Value, opts ...op.NormalizeOpts) Value {
	const name = "normalize"
	if !b.takes(name, x) {
		return Value{}
	}
	o, err := op.OptionOf(opts)
	if err != nil {
		return b.refuse(name, []Value{x}, "%w", err)
	}
	if o.Along == (op.Along{}) {
		o.Along = op.Axes(-1)
	}
	along, p, t := o.Along.KeepDims(), or(o.P, 2), x.Type()
	var norm Value
	switch {
	case !(p > 0):
		return b.refuse(name, []Value{x}, "norm of power %v: %w", p, device.ErrShape)
	case p == 1:
		norm = b.NormL1(x, along)
	case p == 2:
		norm = b.NormL2(x, along)
	case math.IsInf(float64(p), 1):
		norm = b.NormLinf(x, along)
	default:
		norm = b.Pow(b.Sum(b.Pow(b.Abs(x), b.scalar(t, float64(p))), along), b.scalar(t, 1/float64(p)))
	}
	return b.Div(x, b.Maximum(norm, b.scalar(t, float64(or(o.Eps, 1e-12)))))
}

// Hardmax returns 1 at the first greatest element along axes and 0 elsewhere, in the type
// of x. NaN counts as the greatest. Without axes it works along the last.
//
// Execute or Compile returns [op.ErrShape] for rows without elements.
func (b *Batch) Hardmax(x Value, along ...op.Along) Value {
	if !b.takes("hardmax", x) {
		return Value{}
	}
	if len(along) == 0 {
		along = []op.Along{op.Axes(-1)}
	}
	rows, back := b.asRows(op.ArgMax, along, x)
	if b.err != nil {
		return Value{}
	}
	s := rows.Shape()
	at := b.ArgMax(rows, op.Axes(-1).KeepDims())
	ids := b.Cast(b.Iota(b.word(0), s[len(s)-1]), at.Type())
	return back(b.Cast(b.Equal(ids, at), x.Type()))
}

// GLU is the gated linear unit: it returns the first half of x along an axis times the
// sigmoid of the second half. An axis below 0 counts from the end.
//
// Execute or Compile returns [op.ErrShape] for an odd extent.
func (b *Batch) GLU(x Value, axis int) Value {
	if !b.takes("glu", x) {
		return Value{}
	}
	i, err := x.axis(axis)
	if err != nil {
		return b.refuse("glu", []Value{x}, "%w", err)
	}
	n := x.Shape()[i]
	if n%2 != 0 {
		return b.refuse("glu", []Value{x}, "axis %d of %v has no halves: %w", axis, x.Shape(), device.ErrShape)
	}
	halves := b.Split(x, i, n/2, n/2)
	return b.Mul(halves[0], b.Sigmoid(halves[1]))
}
