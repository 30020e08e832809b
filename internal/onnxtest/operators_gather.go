package onnxtest

import (
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var gatherOperators = map[string]mapping{
	"Compress":        compress,
	"Gather":          gather,
	"GatherElements":  gatherElements,
	"GatherND":        gatherND,
	"ReverseSequence": reverseSequence,
	"TensorScatter":   tensorScatter,
}

// ids returns operand i, indices of n places, the negative ones counted from the end.
func (r *recorder) ids(i, n int) batch.Value {
	x := r.x(i)
	return r.Where(r.Less(x, r.whole(0)), r.Add(x, r.whole(n)), x)
}

// take returns the elements of x along an axis that ids names: the axis is brought
// to the front, so that they are rows, and back.
func (r *recorder) take(x, ids batch.Value, axis int) batch.Value {
	s := x.Shape()
	outer, n, inner := product(s[:axis]), s[axis], product(s[axis+1:])
	rows := r.Gather(r.Reshape(r.Permute(r.Reshape(x, outer, n, inner), 1, 0, 2), n, outer*inner), ids)
	out := slices.Concat(s[:axis], ids.Shape(), s[axis+1:])
	return r.Reshape(r.Permute(r.Reshape(rows, product(ids.Shape()), outer, inner), 1, 0, 2), out...)
}

func gather(r *recorder) []batch.Value {
	s := r.shape(0)
	axis := r.axis(r.int("axis", 0), len(s))
	return one(r.take(r.x(0), r.ids(1, s[axis]), axis))
}

// compress takes what a condition, which decides the shape, allows; of all elements
// if it has no axis.
func compress(r *recorder) []batch.Value {
	x, axis := r.x(0), r.int("axis", 0)
	if _, ok := r.c.Node.Attributes["axis"]; !ok {
		x = r.Reshape(x, -1)
	}
	ids := []int32{}
	for i, set := range r.c.In[1].Data {
		if set != 0 {
			ids = append(ids, int32(i))
		}
	}
	return one(r.take(x, batch.Upload(r.Batch, ids), r.axis(axis, len(x.Shape()))))
}

// places returns for each index of shape s what the strides of a table make of its
// axes but one.
func (r *recorder) places(s, table op.Shape, but int) batch.Value {
	return r.number(s, func(at int) int {
		p := 0
		for i := len(s) - 1; i >= 0; i-- {
			if i != but {
				p += at % s[i] * product(table[i+1:])
			}
			at /= s[i]
		}
		return p
	})
}

// pick returns the elements of x, counted through, that ids name.
func (r *recorder) pick(x, ids batch.Value) batch.Value {
	return r.Reshape(r.Gather(r.Reshape(x, product(x.Shape()), 1), ids), ids.Shape()...)
}

// pickAlong takes one element for each index, at its place but along the axis.
func (r *recorder) pickAlong(x, ids batch.Value, axis int) batch.Value {
	s := x.Shape()
	return r.pick(x, r.Add(r.places(ids.Shape(), s, axis), r.Mul(ids, r.whole(product(s[axis+1:])))))
}

func gatherElements(r *recorder) []batch.Value {
	s := r.shape(0)
	axis := r.axis(r.int("axis", 0), len(s))
	return one(r.pickAlong(r.x(0), r.ids(1, s[axis]), axis))
}

// gatherND takes what stands at the places that the last axis of the indices names,
// behind batch_dims axes that both operands have.
func gatherND(r *recorder) []batch.Value {
	s, t, lead := r.shape(0), r.shape(1), r.int("batch_dims", 0)
	depth := t[len(t)-1]
	inner := s[lead+depth:]
	rows := slices.Clone(t[:len(t)-1])
	// The row of the table in which the batch of each place begins.
	tail := product(rows[lead:])
	place := r.number(rows, func(i int) int { return i / tail * product(s[lead:lead+depth]) })
	for k := range depth {
		id := r.Squeeze(r.Slice(r.x(1), -1, k, k+1, 1), -1)
		id = r.Where(r.Less(id, r.whole(0)), r.Add(id, r.whole(s[lead+k])), id)
		place = r.Add(place, r.Mul(id, r.whole(product(s[lead+k+1:lead+depth]))))
	}
	y := r.Gather(r.Reshape(r.x(0), product(s[:lead+depth]), product(inner)), place)
	return one(r.Reshape(y, slices.Concat(rows, inner)...))
}

// reverseSequence takes from the front of each sequence what stands as far before
// its end.
func reverseSequence(r *recorder) []batch.Value {
	s := r.shape(0)
	time, lead := r.int("time_axis", 0), r.int("batch_axis", 1)
	at := make(op.Shape, len(s))
	for i := range at {
		at[i] = 1
	}
	at[lead] = s[lead]
	lengths := r.Reshape(r.x(1), at...)
	steps := r.indices(s, time)
	ids := r.Where(r.Less(steps, lengths), r.Sub(r.Sub(lengths, r.whole(1)), steps), steps)
	return one(r.pickAlong(r.x(0), ids, time))
}

// tensorScatter takes for each place of an axis what an update, which begins at a
// place of each batch, has for it; in the mode circular it goes on at the front.
func tensorScatter(r *recorder) []batch.Value {
	s := r.shape(0)
	axis := r.axis(r.int("axis", -2), len(s))
	n := r.shape(1)[axis]
	at := r.indices(s, axis)
	if r.has(2) {
		at = r.Sub(at, r.Reshape(r.x(2), append([]int{s[0]}, slices.Repeat([]int{1}, len(s)-1)...)...))
	}
	if r.text("mode", "linear") == "circular" {
		at = r.Remainder(at, r.whole(s[axis]))
	}
	fresh := r.And(r.GreaterEqual(at, r.whole(0)), r.Less(at, r.whole(n)))
	ids := r.Where(fresh, at, r.whole(0))
	return one(r.Where(fresh, r.pickAlong(r.x(1), ids, axis), r.x(0)))
}

// indices returns for each element of shape s its index along an axis.
func (r *recorder) indices(s op.Shape, axis int) batch.Value {
	inner := product(s[axis+1:])
	return r.number(s, func(i int) int { return i / inner % s[axis] })
}

// whole returns an integer as an operand.
func (r *recorder) whole(v int) batch.Value { return batch.Upload(r.Batch, []int32{int32(v)}) }

// number returns an operand of shape s whose element i is f(i).
func (r *recorder) number(s op.Shape, f func(i int) int) batch.Value {
	list := make([]int32, product(s))
	for i := range list {
		list[i] = int32(f(i))
	}
	return r.Reshape(batch.Upload(r.Batch, list), s...)
}
