package onnxtest

import (
	"math"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var recurrentOperators = map[string]mapping{
	"GRU":             gru,
	"LSTM":            lstm,
	"LinearAttention": linearAttention,
	"RNN":             rnn,
}

func (r *recorder) recurrentOpts() op.RecurrentOpts {
	if n := r.host(4); n != nil {
		for _, n := range n {
			if steps := r.shape(0)[r.int("layout", 0)]; n != steps {
				r.refuse("of sequences of different lengths")
			}
		}
	}
	return op.RecurrentOpts{Reverse: r.text("direction", "forward") == "reverse", BatchFirst: r.int("layout", 0) != 0,
		ResetAfter: r.int("linear_before_reset", 0) != 0}
}

func rnn(r *recorder) []batch.Value {
	y, h := r.RNN(r.x(0), r.x(1), r.x(2), r.x(3), r.x(5), r.recurrentOpts())
	return []batch.Value{y, h}
}

func gru(r *recorder) []batch.Value {
	y, h := r.GRU(r.x(0), r.x(1), r.x(2), r.x(3), r.x(5), r.recurrentOpts())
	return []batch.Value{y, h}
}

func lstm(r *recorder) []batch.Value {
	y, h, c := r.LSTM(r.x(0), r.x(1), r.x(2), r.x(3), r.x(5), r.x(6), r.x(7), r.recurrentOpts())
	return []batch.Value{y, h, c}
}

// linearAttention keeps a matrix for each head. A step scales the matrix by
// the decay, adds the outer product of key and value (with a delta rule, of key and the
// difference of value and the key's product with the matrix), and multiplies it with the
// queries. All values are f32, so that the state is not rounded to a narrower type at each step.
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
			add = r.Mul(r.Sub(add, r.MatMul(at(k), state, batch.None)), at(rate))
		}
		state = r.Add(state, r.Mul(r.SwapAxes(at(k), 2, 3), add))
		y := r.Scale(r.MatMul(r.Reshape(at(q), b, heads, -1, d), state, batch.None), scale)
		all = append(all, r.Reshape(y, b, 1, -1))
	}
	return []batch.Value{r.Cast(r.Concat(1, all...), r.x(0).Type()), r.Cast(state, r.x(0).Type())}
}
