package onnxtest

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var attentionOperators = map[string]mapping{
	"Attention":       attention,
	"RotaryEmbedding": rotary,
}

// heads returns x [b t h·d] as [b h t d].
func (r *recorder) heads(x batch.Value, h int) batch.Value {
	s := x.Shape()
	return r.SwapAxes(r.Reshape(x, s[0], s[1], h, -1), 1, 2)
}

// merged returns x [b h t d] as [b t h·d].
func (r *recorder) merged(x batch.Value) batch.Value {
	s := x.Shape()
	return r.Reshape(r.SwapAxes(x, 1, 2), s[0], s[2], -1)
}

// attention uses the operation; where the scores are asked for, or queries stand
// neither at the start nor at the end of the keys, it is two products and a softmax.
func attention(r *recorder) []batch.Value {
	q, k, v := r.x(0), r.x(1), r.x(2)
	flat := len(r.shape(0)) == 3
	if flat {
		q = r.heads(q, r.int("q_num_heads", 1))
		k, v = r.heads(k, r.int("kv_num_heads", 1)), r.heads(v, r.int("kv_num_heads", 1))
	}
	past := 0
	if r.has(4) {
		past = r.shape(4)[2]
		k, v = r.Concat(2, r.x(4), k), r.Concat(2, r.x(5), v)
	}
	o := op.AttentionOpts{Causal: r.int("is_causal", 0) != 0, Scale: r.float("scale", 0), Softcap: r.float("softcap", 0), FromStart: past == 0}
	var y, scores batch.Value
	s, t := q.Shape(), k.Shape()
	if len(r.c.Out) < 4 && (past == 0 || s[2]+past == t[2] && !r.has(6)) {
		y = r.Attention(q, k, v, r.attentionInputs(t[2]), o)
	} else {
		if o.Scale == 0 {
			o.Scale = float32(1 / math.Sqrt(float64(s[3])))
		}
		y, scores = r.scored(q, k, v, o.Scale, o.Causal)
	}
	if flat {
		y = r.merged(y)
	}
	return []batch.Value{y, r.Reshape(k, t...), r.Reshape(v, v.Shape()...), scores}
}

// scored is attention step by step. It returns the scores too, as they are after the
// step that the node names: the product, the cap, the mask, the softmax.
func (r *recorder) scored(q, k, v batch.Value, scale float32, causal bool) (y, scores batch.Value) {
	s, t := q.Shape(), k.Shape()
	groups := op.Shape{s[0], t[1], s[1] / t[1], s[2]}
	q = r.Reshape(q, append(groups, s[3])...)
	k, v = r.Unsqueeze(k, 2), r.Unsqueeze(v, 2)
	var steps [4]batch.Value
	x := r.Scale(r.MatMul(q, k, batch.None, op.MatMulOpts{TransB: true}), scale)
	steps[0] = x
	if limit := r.float("softcap", 0); limit != 0 {
		x = r.Scale(r.Tanh(r.Scale(x, 1/limit)), limit)
	}
	steps[1] = x
	x = r.masked(x, groups, causal)
	steps[2] = x
	x = r.Softmax(x)
	steps[3] = x
	y = r.Reshape(r.MatMul(x, v, batch.None), s[0], s[1], s[2], -1)
	mode := r.int("qk_matmul_output_mode", 0)
	return y, r.Reshape(steps[mode], s[0], s[1], s[2], t[2])
}

// mask returns the operand of bools or of addends, which may be shorter than the keys.
func (r *recorder) mask(keys int) (mask batch.Value) {
	if !r.has(3) {
		return mask
	}
	mask = r.x(3)
	if n := mask.Shape(); n[len(n)-1] < keys {
		mask = r.Pad(mask, -1, 0, keys-n[len(n)-1], float32(math.Inf(-1)))
	}
	return mask
}

// attentionInputs returns the mask and the lengths.
func (r *recorder) attentionInputs(keys int) (in batch.AttentionInputs) {
	in.Mask = r.mask(keys)
	if r.has(6) {
		in.Lengths = r.x(6)
	}
	return in
}

// masked hides scores [b h g tq tk] of keys: by the operand of bools or of addends,
// which may be shorter than the keys; by how many keys there are; and of keys behind
// the query, the first of which stands behind the past.
func (r *recorder) masked(x batch.Value, groups op.Shape, causal bool) batch.Value {
	keys := x.Shape()[4]
	hidden := r.Cast(r.Const(float32(math.Inf(-1))), x.Type())
	if mask := r.mask(keys); r.has(3) {
		if n := mask.Shape(); len(n) == 4 {
			if n[1] == 1 {
				mask = r.Unsqueeze(mask, 1)
			} else {
				mask = r.Reshape(mask, append(slices.Clone(groups), keys)...)
			}
		}
		if mask.Type() == op.Bool {
			x = r.Where(mask, x, hidden)
		} else {
			x = r.Add(x, mask)
		}
	}
	at := r.number(op.Shape{keys}, func(i int) int { return i })
	if r.has(6) {
		x = r.Where(r.Less(at, r.Reshape(r.x(6), -1, 1, 1, 1, 1)), x, hidden)
	}
	if causal {
		past := 0
		if r.has(4) {
			past = r.shape(4)[2]
		}
		x = r.Where(r.LessEqual(at, r.number(op.Shape{groups[3], 1}, func(i int) int { return i + past })), x, hidden)
	}
	return x
}

// rotary turns pairs of elements by angles whose cosines and sines are operands: for
// each element, or rows of a table that positions name.
func rotary(r *recorder) []batch.Value {
	x := r.x(0)
	flat := len(r.shape(0)) == 3
	if flat {
		x = r.heads(x, r.int("num_heads", 1))
	}
	cos, sin := r.x(1), r.x(2)
	if r.has(3) {
		cos, sin = r.Gather(cos, r.x(3)), r.Gather(sin, r.x(3))
	}
	cos, sin = r.Unsqueeze(cos, 1), r.Unsqueeze(sin, 1)
	d := x.Shape()[3]
	turned := r.int("rotary_embedding_dim", 0)
	if turned == 0 {
		turned = d
	}
	parts := r.Split(x, -1, turned, d-turned)
	half := turned / 2
	var y batch.Value
	if r.int("interleaved", 0) != 0 {
		u, v := r.Slice(parts[0], -1, 0, op.End, 2), r.Slice(parts[0], -1, 1, op.End, 2)
		u, v = r.turn(u, v, cos, sin)
		y = r.Reshape(r.Stack(-1, u, v), parts[0].Shape()...)
	} else {
		uv := r.Split(parts[0], -1, half, half)
		u, v := r.turn(uv[0], uv[1], cos, sin)
		y = r.Concat(-1, u, v)
	}
	if turned < d {
		y = r.Concat(-1, y, parts[1])
	}
	if flat {
		y = r.merged(y)
	}
	return one(y)
}

func (r *recorder) turn(u, v, cos, sin batch.Value) (x, y batch.Value) {
	return r.Sub(r.Mul(u, cos), r.Mul(v, sin)), r.Add(r.Mul(u, sin), r.Mul(v, cos))
}
