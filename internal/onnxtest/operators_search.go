package onnxtest

import (
	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// Shapes of these operators follow from the elements: a user reads the count and takes as
// many, and the mappings take as many as the results of the case have.
var searchOperators = map[string]mapping{
	"NonZero": nonZero,
	"Unique":  unique,
}

// wanted returns the extent of an axis of result i, or otherwise if there is none.
func (r *recorder) wanted(i, axis, otherwise int) int {
	if i < len(r.c.Out) && r.c.Out[i] != nil {
		return r.c.Out[i].Shape[axis]
	}
	return otherwise
}

func nonZero(r *recorder) []batch.Value {
	at, _ := r.NonZero(r.x(0))
	return one(r.Slice(at, 1, 0, r.wanted(0, 1, 0), 1))
}

// unique returns the unique elements, in the order of their first occurrence if they are not to be sorted.
func unique(r *recorder) []batch.Value {
	axis, along := 0, op.Along{}
	x := r.x(0)
	if _, ok := r.c.Node.Attributes["axis"]; ok {
		axis = r.axis(r.int("axis", 0), len(r.shape(0)))
		along = op.Axes(axis)
	}
	u := r.Unique(x, op.UniqueOpts{Along: along})
	k := r.wanted(0, axis, 0)
	values, first, counts := r.Slice(u.Values, axis, 0, k, 1), r.Slice(u.First, 0, 0, k, 1), r.Slice(u.Counts, 0, 0, k, 1)
	inverse := r.Reshape(u.Inverse, -1)
	if r.int("sorted", 1) == 0 {
		order := r.ArgSort(first)
		values, first, counts = r.Gather(values, order, op.Axes(axis)), r.Gather(first, order), r.Gather(counts, order)
		inverse = r.Gather(r.ArgSort(order), inverse)
	}
	return []batch.Value{values, first, inverse, counts}
}
