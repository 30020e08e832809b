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
	"MaxUnpool":       maxUnpool,
	"ReverseSequence": reverseSequence,
	"Scatter":         scatterElements,
	"ScatterElements": scatterElements,
	"ScatterND":       scatterND,
	"TensorScatter":   tensorScatter,
}

func gather(r *recorder) []batch.Value {
	return one(r.Gather(r.x(0), r.x(1), op.Axes(r.int("axis", 0))))
}

// compress selects the elements for which a constant condition is true, along an axis, or
// from the flattened operand if there is no axis. The condition decides the shape.
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
	return one(r.Gather(x, batch.Upload(r.Batch, ids), op.Axes(axis)))
}

func gatherElements(r *recorder) []batch.Value {
	return one(r.TakeAlong(r.x(0), r.x(1), r.int("axis", 0)))
}

// gatherND takes what stands at the places that the last axis of the indices names,
// behind batch_dims axes that both operands have: their numbers are indices in front.
func gatherND(r *recorder) []batch.Value {
	ids, t := r.x(1), r.shape(1)
	for k := r.int("batch_dims", 0) - 1; k >= 0; k-- {
		s := append(slices.Clone(t[:len(t)-1]), 1)
		ids = r.Concat(-1, r.Reshape(r.indices(t[:len(t)-1], k), s...), ids)
	}
	return one(r.GatherND(r.x(0), ids))
}

// scatterReductions are the attribute reduction of the operators that scatter.
var scatterReductions = map[string]op.ScatterReduce{"none": op.ScatterSet, "add": op.ScatterAdd, "mul": op.ScatterMul, "min": op.ScatterMin, "max": op.ScatterMax}

func scatterElements(r *recorder) []batch.Value {
	return one(r.ScatterAlong(r.x(0), r.x(1), r.x(2), op.ScatterOpts{Reduce: scatterReductions[r.text("reduction", "none")], Along: op.Axes(r.int("axis", 0))}))
}

func scatterND(r *recorder) []batch.Value {
	return one(r.ScatterND(r.x(0), r.x(1), r.x(2), op.ScatterOpts{Reduce: scatterReductions[r.text("reduction", "none")]}))
}

// maxUnpool puts elements where the greatest of windows were: places of the operand
// that they were taken from, counted through.
func maxUnpool(r *recorder) []batch.Value {
	s := slices.Clone(r.shape(0))
	kernel, strides, pads := r.ints("kernel_shape"), r.ints("strides"), r.ints("pads")
	for i, k := range kernel {
		step, pad := 1, 0
		if strides != nil {
			step = strides[i]
		}
		if pads != nil {
			pad = pads[i] + pads[i+len(kernel)]
		}
		s[2+i] = (s[2+i]-1)*step + k - pad
	}
	flat := r.Scatter(r.Const(0, product(s)), r.x(1), r.x(0))
	if !r.has(2) {
		return one(r.Reshape(flat, s...))
	}
	// The places are those of the smaller result: it stands in the first corner.
	y := r.Reshape(flat, s...)
	for i, n := range r.c.In[2].Data {
		if more := int(n) - s[i]; more > 0 {
			y = r.Pad(y, i, 0, more, 0)
		}
	}
	return one(y)
}

// reverseSequence reverses the first lengths[i] elements of each sequence i.
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
	return one(r.TakeAlong(r.x(0), ids, time))
}

// tensorScatter writes an update into an axis, starting at an index that each batch has of
// its own. In the mode circular the update continues at the front.
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
	return one(r.Where(fresh, r.TakeAlong(r.x(1), ids, axis), r.x(0)))
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
