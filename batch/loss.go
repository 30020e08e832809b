package batch

import (
	"math"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// losing checks the operands and the options of a loss.
func (b *Batch) losing(name string, opts []op.LossOpts, in ...Value) (o op.LossOpts, ok bool) {
	if !b.takes(name, in...) {
		return o, false
	}
	o, err := op.OptionOf(opts)
	if err == nil && o.Reduce > op.ReduceNone {
		b.refuse(name, in, "reduction %d: %w", o.Reduce, device.ErrUnsupported)
		return o, false
	}
	if err != nil {
		b.refuse(name, in, "%w", err)
	}
	return o, b.err == nil
}

// pair checks the operands of a loss of two operands of one shape.
func (b *Batch) pair(name string, opts []op.LossOpts, x, y Value) (op.LossOpts, bool) {
	o, ok := b.losing(name, opts, x, y)
	if ok && !x.Shape().Equal(y.Shape()) {
		b.refuse(name, []Value{x, y}, "operands of shapes %v and %v: expected the same shape: %w", x.Shape(), y.Shape(), device.ErrShape)
		return o, false
	}
	return o, ok
}

// lost reduces the losses of the elements according to the options.
func (b *Batch) lost(o op.LossOpts, loss Value) Value {
	switch o.Reduce {
	case op.ReduceSum:
		return b.Sum(loss, op.Axes())
	case op.ReduceMean:
		return b.Mean(loss, op.Axes())
	}
	return loss
}

// MSE returns the mean squared error of x and y, of one shape, as one element: Σ (x-y)²/n.
//
// Execute or Compile returns [op.ErrShape] for other shapes.
func (b *Batch) MSE(x, y Value, opts ...op.LossOpts) Value {
	o, ok := b.pair("mse", opts, x, y)
	if !ok {
		return Value{}
	}
	return b.lost(o, b.Square(b.Sub(x, y)))
}

// Huber returns the mean Huber loss of x and y, of one shape, as one element. The loss of a
// difference d is d²/2 if |d| ≤ Delta, else Delta·(|d| - Delta/2).
//
// Execute or Compile returns [op.ErrShape] for other shapes, or a Delta that is not above 0.
func (b *Batch) Huber(x, y Value, opts ...op.LossOpts) Value {
	o, ok := b.pair("huber", opts, x, y)
	if !ok {
		return Value{}
	}
	delta := float64(or(o.Delta, 1))
	if !(delta > 0) {
		return b.refuse("huber", []Value{x, y}, "delta %v: %w", delta, device.ErrShape)
	}
	// With c = min(|d|, delta) both are c·(|d| - c/2).
	d, t := b.Abs(b.Sub(x, y)), x.Type()
	c := b.Minimum(d, b.scalar(t, delta))
	return b.lost(o, b.Mul(c, b.Sub(d, b.Mul(c, b.scalar(t, 0.5)))))
}

// BCE returns the mean binary cross entropy of probabilities p and targets y, of one shape,
// as one element: -y·log p - (1-y)·log(1-p). It limits both logarithms to -100 from below.
// If p is a sigmoid, [Batch.BCEWithLogits] is more accurate.
//
// Execute or Compile returns [op.ErrShape] for other shapes.
func (b *Batch) BCE(p, y Value, opts ...op.LossOpts) Value {
	o, ok := b.pair("bce", opts, p, y)
	if !ok {
		return Value{}
	}
	t := p.Type()
	least, one := b.scalar(t, -100), b.scalar(t, 1)
	yes, no := b.Maximum(b.Log(p), least), b.Maximum(b.Log1p(b.Neg(p)), least)
	return b.lost(o, b.Neg(b.Add(b.Mul(y, yes), b.Mul(b.Sub(one, y), no))))
}

// BCEWithLogits returns [Batch.BCE] of sigmoid(x) and targets y, as log(1 + e^x) - x·y. It
// does not overflow for large x.
//
// Execute or Compile returns [op.ErrShape] for other shapes.
func (b *Batch) BCEWithLogits(x, y Value, opts ...op.LossOpts) Value {
	o, ok := b.pair("bce_with_logits", opts, x, y)
	if !ok {
		return Value{}
	}
	return b.lost(o, b.Sub(b.Softplus(x), b.Mul(x, y)))
}

// KLDiv returns the mean Kullback-Leibler divergence as one element: the mean of p·(log p -
// logq), and 0 where p is 0. p are probabilities, and logq the logarithms of the
// probabilities that are compared with them. Both have one shape.
//
// Execute or Compile returns [op.ErrShape] for other shapes.
func (b *Batch) KLDiv(logq, p Value, opts ...op.LossOpts) Value {
	o, ok := b.pair("kl_div", opts, logq, p)
	if !ok {
		return Value{}
	}
	zero := b.scalar(p.Type(), 0)
	each := b.Mul(p, b.Sub(b.Log(p), logq))
	return b.lost(o, b.Where(b.Equal(p, zero), zero, each))
}

// CrossEntropy returns the mean cross entropy of logits [n c ...] and labels [n ...] of i32
// as one element. The loss of a label is the negative logarithm of its softmax along the
// second axis, times the weight of its class in weight [c]. The mean divides by the sum of
// the weights. None means weights of 1. Labels listed in Ignore have no loss
// and do not count:
//
//	loss := b.CrossEntropy(logits, labels, batch.None, op.LossOpts{Ignore: []int{-100}})
//
// Another label outside [0, c) gives NaN, and so does the mean of no labels.
//
// Execute or Compile returns [op.ErrShape] for other shapes.
func (b *Batch) CrossEntropy(logits, labels, weight Value, opts ...op.LossOpts) Value {
	if !b.labelled("cross_entropy", logits, labels, weight) {
		return Value{}
	}
	return b.NLLLoss(b.LogSoftmax(logits, op.Axes(1)), labels, weight, opts...)
}

// NLLLoss returns the mean negative log-likelihood of labels. It is [Batch.CrossEntropy]
// for logarithms of probabilities logp [n c ...], as [Batch.LogSoftmax] returns them.
func (b *Batch) NLLLoss(logp, labels, weight Value, opts ...op.LossOpts) Value {
	const name = "nll_loss"
	if !b.labelled(name, logp, labels, weight) {
		return Value{}
	}
	o, ok := b.losing(name, opts, logp, labels)
	if !ok {
		return Value{}
	}
	t, s := logp.Type(), logp.Shape()
	var ignored Value
	for _, label := range o.Ignore {
		if int(int32(label)) != label {
			return b.refuse(name, []Value{logp, labels}, "ignored label %d is outside the range of i32: %w", label, device.ErrShape)
		}
		is := b.Equal(labels, b.whole(label))
		if ignored.given() {
			is = b.Or(ignored, is)
		}
		ignored = is
	}
	at := labels
	if ignored.given() {
		at = b.Where(ignored, b.whole(0), labels) // any valid label, because the loss is 0
	}
	loss := b.Neg(b.pickLabels(logp, at))
	each := b.scalar(t, 1)
	if weight.given() {
		each = b.Reshape(b.Gather(b.Reshape(weight, s[1], 1), at), labels.Shape()...)
		loss = b.Mul(loss, each)
	}
	if ignored.given() {
		zero := b.scalar(t, 0)
		loss, each = b.Where(ignored, zero, loss), b.Where(ignored, zero, each)
	}
	if o.Reduce != op.ReduceMean || !weight.given() && !ignored.given() {
		return b.lost(o, loss)
	}
	return b.Div(b.Sum(loss, op.Axes()), b.Sum(each, op.Axes()))
}

// labelled checks the operands of losses of labels.
func (b *Batch) labelled(name string, logp, labels, weight Value) bool {
	in := []Value{logp, labels}
	if weight.given() {
		in = append(in, weight)
	}
	if !b.takes(name, in...) {
		return false
	}
	s, t := logp.Shape(), labels.Shape()
	switch {
	case labels.Type() != op.I32:
		b.refuse(name, in, "labels of type %v: expected i32: %w", labels.Type(), device.ErrUnsupported)
	case len(s) < 2 || !t.Equal(append(op.Shape{s[0]}, s[2:]...)):
		b.refuse(name, in, "labels of shape %v for %v: expected its shape without the second axis, the classes: %w", t, s, device.ErrShape)
	case product(s) > math.MaxInt32 || s[1] < 1:
		b.refuse(name, in, "%d classes of %v: %w", s[1], s, device.ErrShape)
	case weight.given() && !weight.Shape().Equal(op.Shape{s[1]}):
		b.refuse(name, in, "weights %v for %d classes: %w", weight.Shape(), s[1], device.ErrShape)
	}
	return b.err == nil
}

// pickLabels returns the element of x [n c ...] at each label [n ...] along the second
// axis, NaN for labels outside.
func (b *Batch) pickLabels(x, labels Value) Value {
	s := x.Shape()
	inner := product(s[2:])
	// Element (n, label, i) of x as one row is n·c·inner + label·inner + i.
	rows := b.table(op.I32, op.Shape{s[0], 1}, func(i int) float64 { return float64(i * s[1] * inner) })
	columns := b.table(op.I32, op.Shape{inner}, func(i int) float64 { return float64(i) })
	at := b.Reshape(labels, s[0], inner)
	place := b.Add(b.Add(rows, columns), b.Mul(at, b.whole(inner)))
	inside := b.And(b.GreaterEqual(at, b.whole(0)), b.Less(at, b.whole(s[1])))
	place = b.Where(inside, place, b.whole(-1))
	return b.Reshape(b.Gather(b.Reshape(x, product(s), 1), place), labels.Shape()...)
}
