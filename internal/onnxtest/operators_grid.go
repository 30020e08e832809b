package onnxtest

import (
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// affineGrid multiplies the places of the grid, and 1, with a matrix of each image.
func affineGrid(r *recorder) []batch.Value {
	extents := r.host(1)[2:]
	d, n := len(extents), product(extents)
	corners := r.int("align_corners", 0) != 0
	base := make([]float32, 0, n*(d+1))
	for i := range n {
		for k := d - 1; k >= 0; k-- { // from the last axis
			w := extents[k]
			at := i / product(extents[k+1:]) % w
			if corners {
				base = append(base, float32(2*float64(at)/float64(w-1)-1))
			} else {
				base = append(base, float32(float64(2*at+1)/float64(w)-1))
			}
		}
		base = append(base, 1)
	}
	y := r.MatMul(r.Upload(base, n, d+1), r.x(0), op.MatMulOpts{TransB: true})
	return one(r.Reshape(y, slices.Concat([]int{r.shape(0)[0]}, extents, []int{d})...))
}

// tap is one element of an axis for each place of a grid, and its weight.
type tap struct{ id, weight batch.Value }

// gridSample takes what lies around the places of a grid [n o… d], by rows of
// channels: at each place the sum of the products of taps on all axes.
func gridSample(r *recorder) []batch.Value {
	s := r.shape(0)
	d, spatial := len(s)-2, s[2:]
	taps := make([][]tap, d)
	for i, n := range spatial {
		// The grid names the last axis first.
		g := r.Squeeze(r.Slice(r.x(1), -1, d-1-i, d-i, 1), -1)
		taps[i] = r.taps(g, n)
	}
	order := append(append([]int{0}, upTo(2, d+2)...), 1)
	table := r.Reshape(r.Permute(r.x(0), order...), -1, s[1])
	rows := r.indices(append(op.Shape{s[0]}, slices.Repeat([]int{1}, d)...), 0)
	var sum batch.Value
	var visit func(axis int, at, weight batch.Value)
	visit = func(axis int, at, weight batch.Value) {
		if axis == d {
			part := r.Mul(r.Gather(table, at), r.Unsqueeze(weight, -1))
			if sum != (batch.Value{}) {
				part = r.Add(sum, part)
			}
			sum = part
			return
		}
		for _, t := range taps[axis] {
			visit(axis+1, r.Add(r.Mul(at, r.whole(spatial[axis])), t.id), r.Mul(weight, t.weight))
		}
	}
	visit(0, rows, r.Const(1))
	return one(r.Permute(sum, append([]int{0, d + 1}, upTo(1, d+1)...)...))
}

// taps returns the elements of an axis of n around places from -1 to 1.
func (r *recorder) taps(g batch.Value, n int) []tap {
	first, last := float32(-0.5), float32(n)-0.5
	if r.int("align_corners", 0) != 0 {
		first, last = 0, float32(n-1)
	}
	// Places outside stay, move to the end, or are mirrored there.
	padding := r.text("padding_mode", "zeros")
	within := func(x batch.Value) batch.Value {
		switch padding {
		case "border":
			return r.Clip(x, 0, float32(n-1))
		case "reflection":
			back := r.Remainder(r.AddScalar(x, -first), r.Const(2*(last-first)))
			return r.AddScalar(r.Minimum(back, r.Sub(r.Const(2*(last-first)), back)), first)
		}
		return x
	}
	x := within(r.AddScalar(r.Scale(r.AddScalar(g, 1), (last-first)/2), first))
	kernel, reach := r.kernel()
	base, from, to := r.Floor(x), 1-reach, reach
	if r.text("mode", "linear") == "nearest" {
		x = r.Round(x)
		base, from, to = x, 0, 0
	}
	var list []tap
	for k := from; k <= to; k++ {
		at := r.AddScalar(base, float32(k))
		weight := r.Map(kernel, r.Sub(at, x))
		at = within(at)
		if padding == "zeros" {
			inside := r.And(r.GreaterEqual(at, r.Const(0)), r.Less(at, r.Const(float32(n))))
			weight = r.Where(inside, weight, r.Const(0))
		}
		list = append(list, tap{r.Cast(r.Clip(at, 0, float32(n-1)), op.I32), weight})
	}
	return list
}
