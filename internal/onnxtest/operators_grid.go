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
	y := r.MatMul(r.Upload(base, n, d+1), r.x(0), batch.None, op.MatMulOpts{TransB: true})
	return one(r.Reshape(y, slices.Concat([]int{r.shape(0)[0]}, extents, []int{d})...))
}

var outsides = map[string]op.Outside{
	"zeros": op.OutsideZeros, "border": op.OutsideBorder, "reflection": op.OutsideReflect,
}

func gridSample(r *recorder) []batch.Value {
	return one(r.GridSample(r.x(0), r.x(1), op.GridSampleOpts{
		Mode: interpolations[r.text("mode", "linear")], Outside: outsides[r.text("padding_mode", "zeros")],
		AlignCorners: r.int("align_corners", 0) != 0,
	}))
}
