package onnxtest

import (
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var layoutOperators = map[string]mapping{
	"ConstantOfShape": constantOfShape,
	"Flatten":         flatten,
	"Gather":          gather,
	"Reshape":         reshape,
	"Squeeze":         squeeze,
	"Transpose":       transpose,
	"Unsqueeze":       unsqueeze,
}

func constantOfShape(r *recorder) []batch.Value {
	t := r.c.Node.Attributes["value"].Tensor
	if t != nil && (t.Type != Float32 || len(t.Data) != 1) {
		return r.refuse("constants of %v", t.Type)
	}
	v := float32(0)
	if t != nil {
		v = float32(t.Data[0])
	}
	return one(r.Const(v, r.host(0)...))
}

func flatten(r *recorder) []batch.Value {
	s, axis := r.shape(0), r.int("axis", 1)
	if axis < 0 {
		axis += len(s)
	}
	return one(r.Reshape(r.x(0), product(s[:axis]), product(s[axis:])))
}

// gather takes along the first axis, or along the last of what it transposes.
func gather(r *recorder) []batch.Value {
	if slices.ContainsFunc(r.host(1), func(i int) bool { return i < 0 }) {
		return r.refuse("negative indices")
	}
	s, ids := r.shape(0), r.shape(1)
	axis := r.axis(r.int("axis", 0), len(s))
	outer, n, inner := around(s, axis, axis+1)
	out := slices.Concat(s[:axis], ids, s[axis+1:])
	switch {
	case outer == 1:
		return one(r.Reshape(r.Gather(r.Reshape(r.x(0), n, inner), r.x(1)), out...))
	case inner == 1:
		table := r.Transpose(r.Reshape(r.x(0), outer, n))
		y := r.Reshape(r.Gather(table, r.x(1)), product(ids), outer)
		return one(r.Reshape(r.Transpose(y), out...))
	}
	return r.refuse("along an inner axis")
}

// reshape: an extent of 0 is that of the operand, unless the node allows zeros.
func reshape(r *recorder) []batch.Value {
	s := r.host(1)
	for i, d := range s {
		if d == 0 && r.int("allowzero", 0) == 0 {
			s[i] = r.shape(0)[i]
		}
	}
	return one(r.Reshape(r.x(0), s...))
}

func squeeze(r *recorder) []batch.Value {
	var out op.Shape
	axes, all := r.axes(), !r.has(1)
	for i, d := range r.shape(0) {
		if all && d != 1 || !all && !slices.Contains(axes, i) {
			out = append(out, d)
		}
	}
	return one(r.Reshape(r.x(0), out...))
}

func unsqueeze(r *recorder) []batch.Value {
	s, list := r.shape(0), r.host(1)
	rank := len(s) + len(list)
	var axes []int
	for _, a := range list {
		axes = append(axes, r.axis(a, rank))
	}
	var out op.Shape
	for i := range rank {
		if slices.Contains(axes, i) {
			out = append(out, 1)
		} else if len(s) > 0 {
			out, s = append(out, s[0]), s[1:]
		}
	}
	return one(r.Reshape(r.x(0), out...))
}

// transpose exchanges two blocks of axes behind those that stay.
func transpose(r *recorder) []batch.Value {
	s, perm := r.shape(0), r.ints("perm")
	if perm == nil {
		for i := range s {
			perm = append(perm, len(s)-1-i)
		}
	}
	out := op.Shape{}
	for _, p := range perm {
		out = append(out, s[p])
	}
	from := 0
	for from < len(perm) && perm[from] == from {
		from++
	}
	if from == len(perm) {
		return one(r.Reshape(r.x(0), s...))
	}
	cut := perm[from] // where the second block begins
	for i := range perm[from:] {
		if want := (cut-from+i)%(len(s)-from) + from; perm[from+i] != want {
			return r.refuse("permutation %v", perm)
		}
	}
	return one(r.Reshape(r.Transpose(r.Reshape(r.x(0), product(s[:from]), product(s[from:cut]), product(s[cut:]))), out...))
}
