package onnxtest

import (
	"math"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var resizeOperators = map[string]mapping{
	"AffineGrid": affineGrid,
	"GridSample": gridSample,
	"Resize":     resize,
}

var interpolations = map[string]op.Interpolation{
	"nearest": op.Nearest, "linear": op.Linear, "cubic": op.Cubic,
}

var coordinates = map[string]op.Coordinates{
	"half_pixel": op.HalfPixel, "align_corners": op.AlignCorners, "asymmetric": op.Asymmetric, "pytorch_half_pixel": op.TorchHalfPixel,
	"half_pixel_symmetric": op.HalfPixelSymmetric, "tf_crop_and_resize": op.CropAndResize,
}

var roundings = map[string]op.Rounding{
	"round_prefer_floor": op.HalfDown, "round_prefer_ceil": op.HalfUp, "floor": op.RoundDown, "ceil": op.RoundUp,
}

// resize names all axes, those that the node does not name with the scale 1.
func resize(r *recorder) []batch.Value {
	s, axes := r.shape(0), r.ints("axes")
	if axes == nil {
		axes = upTo(0, len(s))
	}
	o := op.ResizeOpts{
		Mode:        interpolations[r.text("mode", "nearest")],
		Coordinates: coordinates[r.text("coordinate_transformation_mode", "half_pixel")],
		Rounding:    roundings[r.text("nearest_mode", "round_prefer_floor")],
		CubicA:      r.float("cubic_coeff_a", 0), Antialias: r.int("antialias", 0) != 0,
		ExcludeOutside: r.int("exclude_outside", 0) != 0, Outside: r.float("extrapolation_value", 0),
	}
	size := make([]int, len(s))
	for i, n := range s {
		size[i], o.Scale, o.Region = n, append(o.Scale, 1), append(o.Region, [2]float64{0, 1})
	}
	least, most := math.Inf(1), 0.0
	for i, axis := range axes {
		if r.has(2) {
			o.Scale[axis] = r.c.In[2].Data[i]
			size[axis] = int(o.Scale[axis] * float64(s[axis]))
		} else {
			size[axis] = r.host(3)[i]
			o.Scale[axis] = float64(size[axis]) / float64(s[axis])
		}
		if r.has(1) {
			o.Region[axis] = [2]float64{r.c.In[1].Data[i], r.c.In[1].Data[len(axes)+i]}
		}
		least, most = min(least, o.Scale[axis]), max(most, o.Scale[axis])
	}
	if p := r.text("keep_aspect_ratio_policy", "stretch"); p != "stretch" {
		for _, axis := range axes {
			if o.Scale[axis] = least; p == "not_smaller" {
				o.Scale[axis] = most
			}
			size[axis] = int(math.Round(o.Scale[axis] * float64(s[axis])))
		}
	}
	return one(r.Resize(r.x(0), size, o))
}
