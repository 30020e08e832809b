package batch

import (
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// cell computes the next h and c. For each gate, x has the product of the step's operand with the
// weights, and w the weights of the state h.
type cell func(x, w []Value, h, c Value) (Value, Value)

// recurrence is one call of a recurrent network.
type recurrence struct {
	name                string
	gates               int
	x, w, r, bias, h, c Value
	peephole            Value
	o                   op.RecurrentOpts
	steps, n, in, width int // steps of x, rows, elements of a row, elements of a state
	directions          int
}

// RNN returns the states of a recurrent network at all steps, y [t d n h], and the last
// state, last [d n h]. Each step computes h' = tanh(w·x + r·h + bias).
//
// The operands are x [t n i] with t steps, w [d h i], r [d h h], bias [d 2h], and the first
// state h [d n h]. The first half of bias is added to the product with w, the second half
// to the product with r. d is the number of directions: 1, or 2 if the network also runs
// backwards. None means a bias or a state of 0. The steps are unrolled.
//
// Execute or Compile returns [op.ErrShape] for other shapes, or no steps.
func (b *Batch) RNN(x, w, r, bias, h Value, opts ...op.RecurrentOpts) (y, last Value) {
	c := recurrence{name: "rnn", gates: 1, x: x, w: w, r: r, bias: bias, h: h}
	y, last, _ = b.recur(&c, opts, func(int) cell {
		return func(x, w []Value, h, c Value) (Value, Value) { return b.Tanh(b.gate(x[0], h, w[0])), c }
	})
	return y, last
}

// GRU returns the states of gated recurrent units at all steps, and the last state. The
// operands are those of [Batch.RNN], but w is [d 3h i], r [d 3h h] and bias [d 6h]. w, r
// and each half of bias have the update gate z first, then the reset gate r, then the new
// state n. Each step computes n = tanh(w·x + r·(r∘h) + bias), h' = (1-z)∘n + z∘h. With
// ResetAfter, the reset gate multiplies the product with the state and its bias instead of
// the state, as in PyTorch.
//
// The errors are those of RNN.
func (b *Batch) GRU(x, w, r, bias, h Value, opts ...op.RecurrentOpts) (y, last Value) {
	c := recurrence{name: "gru", gates: 3, x: x, w: w, r: r, bias: bias, h: h}
	y, last, _ = b.recur(&c, opts, func(direction int) cell {
		after := b.biasAfter(&c, direction)
		return func(x, w []Value, h, c Value) (Value, Value) {
			update, reset := b.Sigmoid(b.gate(x[0], h, w[0])), b.Sigmoid(b.gate(x[1], h, w[1]))
			var next Value
			if after != nil {
				next = b.Tanh(b.Add(x[2], b.Mul(reset, after(h, w[2]))))
			} else {
				next = b.Tanh(b.gate(x[2], b.Mul(reset, h), w[2]))
			}
			return b.Add(next, b.Mul(update, b.Sub(h, next))), c
		}
	})
	return y, last
}

// LSTM returns the states of long short-term memory at all steps, the last state, and the
// last cell. The operands are those of [Batch.RNN], but w is [d 4h i], r [d 4h h] and bias
// [d 8h]. w, r and each half of bias have the input gate i first, then the output gate o,
// the forget gate f, and the cell gate g. c [d n h] is the first cell. peephole [d 3h]
// holds the weights of the cell in the gates i, o and f. Each step computes c' = f∘c + i∘g,
// h' = o∘tanh(c'). None means an absent operand.
//
// The errors are those of RNN.
func (b *Batch) LSTM(x, w, r, bias, h, c, peephole Value, opts ...op.RecurrentOpts) (y, last, lastCell Value) {
	k := recurrence{name: "lstm", gates: 4, x: x, w: w, r: r, bias: bias, h: h, c: c, peephole: peephole}
	return b.recur(&k, opts, func(direction int) cell {
		var peep []Value
		if peephole.given() {
			peep = b.Split(b.row(peephole, direction), 0, k.width, k.width, k.width)
		}
		return func(x, w []Value, h, c Value) (Value, Value) {
			in, out, forget := b.gate(x[0], h, w[0]), b.gate(x[1], h, w[1]), b.gate(x[2], h, w[2])
			if peep != nil {
				in, forget = b.Add(in, b.Mul(peep[0], c)), b.Add(forget, b.Mul(peep[2], c))
			}
			c = b.Add(b.Mul(b.Sigmoid(forget), c), b.Mul(b.Sigmoid(in), b.Tanh(b.gate(x[3], h, w[3]))))
			if peep != nil {
				out = b.Add(out, b.Mul(peep[1], c))
			}
			return b.Mul(b.Sigmoid(out), b.Tanh(c)), c
		}
	})
}

// gate returns x + h·wᵀ.
func (b *Batch) gate(x, h, w Value) Value {
	return b.Add(x, b.MatMul(h, w, None, op.MatMulOpts{TransB: true}))
}

// row returns element i of the first axis.
func (b *Batch) row(x Value, i int) Value { return b.Squeeze(b.Slice(x, 0, i, i+1, 1), 0) }

// biasAfter returns a function that computes the product of the state with the weights of the last
// gate, plus its bias, for the option ResetAfter, with which the reset gate multiplies both. It
// returns nil without the option.
func (b *Batch) biasAfter(k *recurrence, direction int) func(h, w Value) Value {
	if !k.o.ResetAfter {
		return nil
	}
	var bias Value
	if k.bias.given() {
		bias = b.Slice(b.row(k.bias, direction), 0, 5*k.width, 6*k.width, 1)
	}
	return func(h, w Value) Value {
		y := b.MatMul(h, w, None, op.MatMulOpts{TransB: true})
		if bias.given() {
			y = b.Add(y, bias)
		}
		return y
	}
}

// recur records a recurrent network. of returns the cell for a direction.
func (b *Batch) recur(k *recurrence, opts []op.RecurrentOpts, of func(direction int) cell) (y, h, c Value) {
	if !b.recurs(k, opts) {
		return Value{}, None, Value{}
	}
	x := k.x
	if k.o.BatchFirst {
		x = b.SwapAxes(x, 0, 1)
	}
	var ys, hs, cs []Value
	for d := range k.directions {
		y, h, c := b.direction(k, x, d, of(d))
		if b.err != nil {
			return Value{}, None, Value{}
		}
		ys, hs, cs = append(ys, y), append(hs, h), append(cs, c)
	}
	y, h, c = b.Stack(1, ys...), b.Stack(0, hs...), b.Stack(0, cs...)
	if k.o.BatchFirst {
		y, h, c = b.Permute(y, 2, 0, 1, 3), b.SwapAxes(h, 0, 1), b.SwapAxes(c, 0, 1)
	}
	return y, h, c
}

// recurs checks operands and options and reads the sizes.
func (b *Batch) recurs(k *recurrence, opts []op.RecurrentOpts) bool {
	in := []Value{k.x, k.w, k.r}
	for _, v := range []Value{k.bias, k.h, k.c, k.peephole} {
		if v.given() {
			in = append(in, v)
		}
	}
	if !b.takes(k.name, in...) {
		return false
	}
	var err error
	if k.o, err = op.OptionOf(opts); err != nil {
		b.refuse(k.name, in, "%w", err)
		return false
	}
	s, t := k.x.Shape(), k.r.Shape()
	if len(s) != 3 || len(t) != 3 || t[0] < 1 || t[0] > 2 || k.o.Reverse && t[0] != 1 {
		b.refuse(k.name, in, "operand %v, weights %v and %v: expected [t n i], [d h i] and [d h h], where d is 1 or 2, and 1 in reverse: %w", s, k.w.Shape(), t, device.ErrShape)
		return false
	}
	k.steps, k.n, k.in, k.directions, k.width = s[0], s[1], s[2], t[0], t[2]
	if k.o.BatchFirst {
		k.steps, k.n = k.n, k.steps
	}
	state := op.Shape{k.directions, k.n, k.width}
	if k.o.BatchFirst {
		state[0], state[1] = state[1], state[0]
	}
	for _, c := range []struct {
		what string
		v    Value
		want op.Shape
	}{
		{"weights", k.w, op.Shape{k.directions, k.gates * k.width, k.in}},
		{"weights of the state", k.r, op.Shape{k.directions, k.gates * k.width, k.width}},
		{"bias", k.bias, op.Shape{k.directions, 2 * k.gates * k.width}},
		{"state", k.h, state},
		{"cell", k.c, state},
		{"peephole", k.peephole, op.Shape{k.directions, 3 * k.width}},
	} {
		if c.v.given() && !c.v.Shape().Equal(c.want) {
			b.refuse(k.name, in, "%s of %v, not %v: %w", c.what, c.v.Shape(), c.want, device.ErrShape)
			return false
		}
	}
	if k.steps < 1 || k.n < 1 || k.in < 1 || k.width < 1 {
		b.refuse(k.name, in, "an operand of shape %v has no elements: %w", s, device.ErrShape)
		return false
	}
	return true
}

// direction records the steps of one direction over x [t n i].
func (b *Batch) direction(k *recurrence, x Value, d int, next cell) (y, h, c Value) {
	x = b.MatMul(x, b.row(k.w, d), None, op.MatMulOpts{TransB: true})
	if k.bias.given() {
		x = b.Add(x, b.before(k, d))
	}
	each := slices.Repeat([]int{k.width}, k.gates)
	w := b.Split(b.row(k.r, d), 0, each...)
	h, c = b.first(k, k.h, d), b.first(k, k.c, d)
	all := make([]Value, k.steps)
	backwards := k.o.Reverse || d == 1
	for i := range all {
		t := i
		if backwards {
			t = k.steps - 1 - i
		}
		h, c = next(b.Split(b.row(x, t), -1, each...), w, h, c)
		if all[t] = h; b.err != nil {
			break
		}
	}
	return b.Stack(0, all...), h, c
}

// before returns the summand of the products with x: both halves of the bias, without the bias of
// the last gate that the reset gate multiplies.
func (b *Batch) before(k *recurrence, d int) Value {
	n := k.gates * k.width
	halves := b.Split(b.row(k.bias, d), 0, n, n)
	if k.o.ResetAfter && k.gates == 3 {
		halves[1] = b.Pad(b.Slice(halves[1], 0, 0, 2*k.width, 1), 0, 0, k.width, 0)
	}
	return b.Add(halves[0], halves[1])
}

// first returns the first state of a direction, zeros if it is absent.
func (b *Batch) first(k *recurrence, v Value, d int) Value {
	if !v.given() {
		return b.Expand(b.scalar(k.x.Type(), 0), k.n, k.width)
	}
	if k.o.BatchFirst {
		v = b.SwapAxes(v, 0, 1)
	}
	return b.row(v, d)
}
