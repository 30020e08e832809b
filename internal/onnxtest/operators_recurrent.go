package onnxtest

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var recurrentOperators = map[string]mapping{
	"GRU":             recurrent(3, gruCell),
	"LSTM":            recurrent(4, lstmCell),
	"LinearAttention": linearAttention,
	"RNN":             recurrent(1, rnnCell),
}

// cell takes the products of a step's operand with the gates' weights, and the
// weights of the state h, to the next h and c.
type cell func(r *recorder, x, w []batch.Value, h, c batch.Value) (batch.Value, batch.Value)

// recurrent maps an operator to a loop over steps.
func recurrent(gates int, step cell) mapping {
	return func(r *recorder) []batch.Value {
		x, n, rowsFirst := r.x(0), r.int("hidden_size", 0), r.int("layout", 0) != 0
		if rowsFirst {
			x = r.SwapAxes(x, 0, 1)
		}
		steps, rows := x.Shape()[0], x.Shape()[1]
		if r.text("direction", "forward") != "forward" || r.int("linear_before_reset", 0) != 0 {
			return r.refuse("backwards, or with products before the reset")
		}
		for _, n := range r.host(4) {
			if n != steps {
				return r.refuse("of sequences of different lengths")
			}
		}
		x = r.MatMul(x, r.Squeeze(r.x(1), 0), op.MatMulOpts{TransB: true})
		if r.has(3) {
			bias := r.Split(r.Squeeze(r.x(3), 0), 0, gates*n, gates*n)
			x = r.Add(x, r.Add(bias[0], bias[1]))
		}
		each := slices.Repeat([]int{n}, gates)
		w := r.Split(r.Squeeze(r.x(2), 0), 0, each...)
		h, c := r.state(5, rows, n), r.state(6, rows, n)
		var all []batch.Value
		for t := range steps {
			h, c = step(r, r.Split(r.Squeeze(r.Slice(x, 0, t, t+1, 1), 0), -1, each...), w, h, c)
			all = append(all, h)
		}
		y, h, c := r.Unsqueeze(r.Stack(0, all...), 1), r.Unsqueeze(h, 0), r.Unsqueeze(c, 0)
		if rowsFirst {
			y, h, c = r.Permute(y, 2, 0, 1, 3), r.SwapAxes(h, 0, 1), r.SwapAxes(c, 0, 1)
		}
		return []batch.Value{y, h, c}
	}
}

// state returns operand i, the state before the first step, or zeros.
func (r *recorder) state(i, rows, n int) batch.Value {
	if !r.has(i) {
		return r.Const(0, rows, n)
	}
	return r.Squeeze(r.x(i), 0)
}

// gate returns x + h·wᵀ.
func (r *recorder) gate(x, h, w batch.Value) batch.Value {
	return r.Add(x, r.MatMul(h, w, op.MatMulOpts{TransB: true}))
}

func rnnCell(r *recorder, x, w []batch.Value, h, c batch.Value) (batch.Value, batch.Value) {
	return r.Tanh(r.gate(x[0], h, w[0])), c
}

func gruCell(r *recorder, x, w []batch.Value, h, c batch.Value) (batch.Value, batch.Value) {
	update, reset := r.Sigmoid(r.gate(x[0], h, w[0])), r.Sigmoid(r.gate(x[1], h, w[1]))
	next := r.Tanh(r.gate(x[2], r.Mul(reset, h), w[2]))
	return r.Add(next, r.Mul(update, r.Sub(h, next))), c
}

// lstmCell: with peepholes the gates see the cell.
func lstmCell(r *recorder, x, w []batch.Value, h, c batch.Value) (batch.Value, batch.Value) {
	in, out, forget := r.gate(x[0], h, w[0]), r.gate(x[1], h, w[1]), r.gate(x[2], h, w[2])
	var peep []batch.Value
	if r.has(7) {
		n := h.Shape()[1]
		peep = r.Split(r.Squeeze(r.x(7), 0), 0, n, n, n)
		in, forget = r.Add(in, r.Mul(peep[0], c)), r.Add(forget, r.Mul(peep[2], c))
	}
	c = r.Add(r.Mul(r.Sigmoid(forget), c), r.Mul(r.Sigmoid(in), r.Tanh(r.gate(x[3], h, w[3]))))
	if peep != nil {
		out = r.Add(out, r.Mul(peep[1], c))
	}
	return r.Mul(r.Sigmoid(out), r.Tanh(c)), c
}

// linearAttention keeps a matrix for each head. A step lets it decay, adds the
// product of key and value, or of key and what the value differs from what the key
// finds, and multiplies it with the queries. All is f32, so that the state of many
// steps is not rounded at each.
func linearAttention(r *recorder) []batch.Value {
	heads, rule := r.int("kv_num_heads", 1), r.text("update_rule", "gated_delta")
	gated, delta := rule == "gated" || rule == "gated_delta", rule == "delta" || rule == "gated_delta"
	in := func(i, heads int) batch.Value { return r.heads(r.Cast(r.x(i), op.F32), heads) }
	q, k, v := in(0, r.int("q_num_heads", 1)), in(1, heads), in(2, heads)
	b, steps, d := k.Shape()[0], k.Shape()[2], k.Shape()[3]
	scale := r.float("scale", 0)
	if scale == 0 {
		scale = float32(1 / math.Sqrt(float64(d)))
	}
	state := r.Const(0, b, heads, d, v.Shape()[3])
	if r.has(3) {
		state = r.Cast(r.x(3), op.F32)
	}
	var decay, rate batch.Value
	if gated {
		decay = r.Exp(in(4, heads))
	}
	if delta {
		rate = in(5, r.shape(5)[2])
	}
	var all []batch.Value
	for t := range steps {
		at := func(x batch.Value) batch.Value { return r.Slice(x, 2, t, t+1, 1) }
		if gated {
			state = r.Mul(state, r.SwapAxes(at(decay), 2, 3))
		}
		add := at(v)
		if delta {
			add = r.Mul(r.Sub(add, r.MatMul(at(k), state)), at(rate))
		}
		state = r.Add(state, r.Mul(r.SwapAxes(at(k), 2, 3), add))
		y := r.Scale(r.MatMul(r.Reshape(at(q), b, heads, -1, d), state), scale)
		all = append(all, r.Reshape(y, b, 1, -1))
	}
	return []batch.Value{r.Cast(r.Concat(1, all...), r.x(0).Type()), r.Cast(state, r.x(0).Type())}
}
