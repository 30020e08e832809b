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
	"GatherElements":  gatherElements,
	"Reshape":         reshape,
	"Squeeze":         squeeze,
	"Transpose":       transpose,
	"Unsqueeze":       unsqueeze,
}

func constantOfShape(r *recorder) []batch.Value {
	t := r.c.Node.Attributes["value"].Tensor
	if t == nil {
		return one(r.Const(0, r.host(0)...))
	}
	return one(r.Cast(r.Const(float32(t.Data[0]), r.host(0)...), t.Type.DType()))
}

func flatten(r *recorder) []batch.Value {
	s, axis := r.shape(0), r.int("axis", 1)
	if axis < 0 {
		axis += len(s)
	}
	return one(r.Reshape(r.x(0), product(s[:axis]), product(s[axis:])))
}

// ids returns operand i, indices of n places, the negative ones counted from the end.
func (r *recorder) ids(i, n int) batch.Value {
	x := r.x(i)
	return r.Where(r.Less(x, r.whole(0)), r.Add(x, r.whole(n)), x)
}

// gather takes rows of what follows the axis: those of each outer place stand n rows
// behind those of the one before.
func gather(r *recorder) []batch.Value {
	s, ids := r.shape(0), r.shape(1)
	axis := r.axis(r.int("axis", 0), len(s))
	outer, n, inner := around(s, axis, axis+1)
	k := product(ids)
	rows := r.number(op.Shape{outer, k}, func(i int) int { return i / k * n })
	rows = r.Add(rows, r.Reshape(r.ids(1, n), k))
	out := slices.Concat(s[:axis], ids, s[axis+1:])
	return one(r.Reshape(r.Gather(r.Reshape(r.x(0), outer*n, inner), rows), out...))
}

// gatherElements takes one element for each index, at its place but along the axis.
func gatherElements(r *recorder) []batch.Value {
	s, ids := r.shape(0), r.shape(1)
	axis := r.axis(r.int("axis", 0), len(s))
	stride := make([]int, len(s))
	for i, step := len(s)-1, 1; i >= 0; i, step = i-1, step*s[i] {
		stride[i] = step
	}
	place := r.number(ids, func(at int) int {
		p := 0
		for i := len(ids) - 1; i >= 0; i-- {
			if i != axis {
				p += at % ids[i] * stride[i]
			}
			at /= ids[i]
		}
		return p
	})
	return one(r.pick(r.x(0), r.Add(place, r.Mul(r.ids(1, s[axis]), r.whole(stride[axis])))))
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
