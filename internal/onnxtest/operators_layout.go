package onnxtest

import (
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var layoutOperators = map[string]mapping{
	"CenterCropPad":   centerCropPad,
	"Concat":          func(r *recorder) []batch.Value { return one(r.Concat(r.int("axis", 0), r.all()...)) },
	"ConstantOfShape": constantOfShape,
	"DepthToSpace":    depthToSpace,
	"Expand":          expand,
	"Flatten":         flatten,
	"Pad":             pad,
	"Reshape":         reshape,
	"Slice":           slice,
	"SpaceToDepth":    func(r *recorder) []batch.Value { return one(r.SpaceToDepth(r.x(0), r.int("blocksize", 1))) },
	"Split":           split,
	"Squeeze":         func(r *recorder) []batch.Value { return one(r.Squeeze(r.x(0), r.axes()...)) },
	"Tile":            func(r *recorder) []batch.Value { return one(r.Tile(r.x(0), r.host(1)...)) },
	"Transpose":       transpose,
	"Unsqueeze":       func(r *recorder) []batch.Value { return one(r.Unsqueeze(r.x(0), r.axes()...)) },
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

func transpose(r *recorder) []batch.Value {
	perm := r.ints("perm")
	if perm == nil {
		perm = upTo(0, len(r.shape(0)))
		slices.Reverse(perm)
	}
	return one(r.Permute(r.x(0), perm...))
}

// expand spreads operand and shape over each other: an extent of 1 in the shape is
// that of the operand.
func expand(r *recorder) []batch.Value {
	s, err := op.Broadcast(r.shape(0), r.host(1))
	if err != nil {
		return r.refuse("%v", err)
	}
	return one(r.Expand(r.x(0), s...))
}

// slice takes all of the first axes, or the named, with steps of 1 by default.
func slice(r *recorder) []batch.Value {
	x, starts, stops := r.x(0), r.host(1), r.host(2)
	for i, start := range starts {
		axis, step := i, 1
		if r.has(3) {
			axis = r.host(3)[i]
		}
		if r.has(4) {
			step = r.host(4)[i]
		}
		x = r.Slice(x, axis, start, stops[i], step)
	}
	return one(x)
}

// split cuts into the named extents, or into equal ones, the last of which may be
// smaller.
func split(r *recorder) []batch.Value {
	s := r.shape(0)
	axis := r.axis(r.int("axis", 0), len(s))
	parts := r.host(1)
	if parts == nil {
		n := r.int("num_outputs", len(r.c.Out))
		each := (s[axis] + n - 1) / n
		parts = slices.Repeat([]int{each}, n)
		parts[n-1] = s[axis] - each*(n-1)
	}
	return r.Split(r.x(0), axis, parts...)
}

// pad puts a constant, or elements of the operand, before and after those of axes.
func pad(r *recorder) []batch.Value {
	x, rank := r.x(0), len(r.shape(0))
	axes := upTo(0, rank)
	if r.has(3) {
		axes = r.host(3)
	}
	pads := r.host(1)
	for i, axis := range axes {
		before, after := pads[i], pads[len(axes)+i]
		text := r.text("mode", "constant")
		if mode, ok := padModes[text]; ok {
			x = r.PadMode(x, axis, before, after, mode)
		} else if text == "constant" {
			x = r.Pad(x, axis, before, after, r.scalar(2, 0))
		} else {
			return r.refuse("mode %s", text)
		}
	}
	return one(x)
}

var padModes = map[string]batch.PadMode{"reflect": batch.PadReflect, "edge": batch.PadEdge, "wrap": batch.PadWrap}

// centerCropPad takes the middle of an axis, or puts zeros around it.
func centerCropPad(r *recorder) []batch.Value {
	x, s := r.x(0), r.shape(0)
	axes := r.ints("axes")
	if axes == nil {
		axes = upTo(0, len(s))
	}
	for i, want := range r.host(1) {
		axis := r.axis(axes[i], len(s))
		if n := s[axis]; want <= n {
			from := (n - want) / 2
			x = r.Slice(x, axis, from, from+want, 1)
		} else {
			before := (want - n) / 2
			x = r.Pad(x, axis, before, want-n-before, 0)
		}
	}
	return one(x)
}

// depthToSpace makes blocks of space of channels, which stand block by block or,
// in the mode CRD, channel by channel.
func depthToSpace(r *recorder) []batch.Value {
	x, size := r.x(0), r.int("blocksize", 1)
	if r.text("mode", "DCR") == "CRD" {
		return one(r.PixelShuffle(x, size))
	}
	return one(r.DepthToSpace(x, size))
}
