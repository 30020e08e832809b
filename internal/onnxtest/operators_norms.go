package onnxtest

import (
	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var normOperators = map[string]mapping{
	"BatchNormalization":    batchNorm,
	"GroupNormalization":    groupNorm,
	"InstanceNormalization": groupNorm,
}

// channel returns operand i, one number a channel, so that it spreads over [n c rest].
func (r *recorder) channel(i int) batch.Value { return r.Reshape(r.x(i), product(r.shape(i)), 1) }

func batchNorm(r *recorder) []batch.Value {
	if r.int("training_mode", 0) != 0 {
		return r.refuse("training")
	}
	s := r.shape(0)
	x := r.Reshape(r.x(0), s[0], s[1], product(s[2:]))
	scale := r.Mul(r.channel(1), r.Rsqrt(r.AddScalar(r.channel(4), r.float("epsilon", 1e-5))))
	return one(r.Reshape(r.Add(r.Mul(r.Sub(x, r.channel(3)), scale), r.channel(2)), s...))
}

// groupNorm normalises groups of channels, by default each channel alone.
func groupNorm(r *recorder) []batch.Value {
	s := r.shape(0)
	groups := r.int("num_groups", s[1])
	rows := r.Reshape(r.x(0), s[0]*groups, product(s[1:])/groups)
	y := r.LayerNorm(rows, batch.Value{}, batch.Value{}, op.NormOpts{Eps: r.float("epsilon", 1e-5)})
	y = r.Reshape(y, s[0], s[1], product(s[2:]))
	return one(r.Reshape(r.Add(r.Mul(y, r.channel(1)), r.channel(2)), s...))
}
