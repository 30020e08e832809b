package onnxtest

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var resizeOperators = map[string]mapping{
	"AffineGrid": affineGrid,
	"GridSample": gridSample,
	"Resize":     resize,
}

// resizing says how one axis is resized: from n to out elements, by a factor, of the
// part [from, to] where the mode cuts one out.
type resizing struct {
	axis, n, out    int
	scale, from, to float64
}

// resizings returns how the axes of operand 0 are resized.
func (r *recorder) resizings() []resizing {
	s, axes := r.shape(0), r.ints("axes")
	if axes == nil {
		axes = upTo(0, len(s))
	}
	list := make([]resizing, len(axes))
	least, most := math.Inf(1), 0.0
	for i, axis := range axes {
		z := resizing{axis: axis, n: s[axis], to: 1}
		if r.has(2) {
			z.scale = r.c.In[2].Data[i]
			z.out = int(z.scale * float64(z.n))
		} else {
			z.out = r.host(3)[i]
			z.scale = float64(z.out) / float64(z.n)
		}
		if r.has(1) {
			z.from, z.to = r.c.In[1].Data[i], r.c.In[1].Data[len(axes)+i]
		}
		least, most = min(least, z.scale), max(most, z.scale)
		list[i] = z
	}
	if p := r.text("keep_aspect_ratio_policy", "stretch"); p != "stretch" {
		for i := range list {
			z := &list[i]
			if z.scale = least; p == "not_smaller" {
				z.scale = most
			}
			z.out = int(math.Round(z.scale * float64(z.n)))
		}
	}
	return list
}

// place returns where element i of the resized axis lies on the axis.
func (z resizing) place(mode string, i int) float64 {
	x, n, out := float64(i), float64(z.n), float64(z.out)
	half := (x+0.5)/z.scale - 0.5
	switch mode {
	case "asymmetric":
		return x / z.scale
	case "align_corners":
		if out == 1 {
			return 0
		}
		return x * (n - 1) / (z.scale*n - 1)
	case "pytorch_half_pixel":
		if out == 1 {
			return 0
		}
	case "half_pixel_symmetric":
		return half + n/2*(1-out/(z.scale*n))
	case "tf_crop_and_resize":
		if out == 1 {
			return (z.from + z.to) / 2 * (n - 1)
		}
		return (z.from + x*(z.to-z.from)/(out-1)) * (n - 1)
	}
	return half
}

var nearest = map[string]func(float64) float64{
	"round_prefer_floor": func(x float64) float64 { return math.Ceil(x - 0.5) },
	"round_prefer_ceil":  func(x float64) float64 { return math.Floor(x + 0.5) },
	"floor":              math.Floor,
	"ceil":               math.Ceil,
}

// resize takes the nearest elements of an axis, or multiplies it with a matrix of
// weights, one axis after the other.
func resize(r *recorder) []batch.Value {
	y, mode := r.x(0), r.text("coordinate_transformation_mode", "half_pixel")
	cut := mode == "tf_crop_and_resize"
	for _, z := range r.resizings() {
		if z.out == z.n && !cut {
			continue
		}
		places := make([]float64, z.out)
		for i := range places {
			places[i] = z.place(mode, i)
		}
		if r.text("mode", "nearest") == "nearest" {
			round := nearest[r.text("nearest_mode", "round_prefer_floor")]
			ids := r.number(op.Shape{z.out}, func(i int) int { return min(max(int(round(places[i])), 0), z.n-1) })
			y = r.Gather(y, ids, op.Axes(z.axis))
			continue
		}
		y = r.resample(y, z, places)
		if cut {
			inside := r.number(op.Shape{z.out}, func(i int) int {
				if places[i] < 0 || places[i] > float64(z.n-1) {
					return 0
				}
				return 1
			})
			shape := slices.Repeat([]int{1}, len(r.shape(0)))
			shape[z.axis] = z.out
			y = r.Where(r.Cast(r.Reshape(inside, shape...), op.Bool), y, r.Const(r.float("extrapolation_value", 0)))
		}
	}
	return one(y)
}

// resample multiplies an axis, with copies of its ends before and behind, with the
// weights that a kernel has at the distances from places to elements. To smooth
// where the axis gets smaller, the kernel is as much wider.
func (r *recorder) resample(x batch.Value, z resizing, places []float64) batch.Value {
	kernel, reach := r.kernel()
	narrow := 1.0
	if r.int("antialias", 0) != 0 {
		narrow = min(1, z.scale)
	}
	ends := int(float64(reach)/narrow) + 1
	if r.int("exclude_outside", 0) != 0 {
		ends = 0
	}
	n := z.n + 2*ends
	distances := make([]float32, len(places)*n)
	for i := range distances {
		distances[i] = float32((float64(i%n-ends) - places[i/n]) * narrow)
	}
	w := r.Map(kernel, r.Upload(distances, len(places), n))
	w = r.Div(w, r.Sum(w, op.Axes(-1).KeepDims()))
	x = r.SwapAxes(r.mirror(x, z.axis, ends, ends, "edge"), z.axis, -1)
	return r.SwapAxes(r.MatMul(x, w, op.MatMulOpts{TransB: true}), z.axis, -1)
}

// kernel returns the weights of a mode by the distance, and beyond what distance
// they are 0: a triangle, or the cubic of Keys.
func (r *recorder) kernel() (*op.Operation, int) {
	one, two := op.Const(1), op.Const(2)
	if r.text("mode", "") != "cubic" {
		return op.Unary("triangle", func(x op.Expr) op.Expr { return one.Sub(x.Abs()).Max(op.Const(0)) }), 1
	}
	a := r.constant("cubic_coeff_a", -0.75)
	return op.Unary("keys", func(x op.Expr) op.Expr {
		x = x.Abs()
		near := a.Add(two).Mul(x).Sub(a.Add(op.Const(3))).Mul(x.Square()).Add(one)
		far := x.Sub(op.Const(5)).Mul(x).Add(op.Const(8)).Mul(x).Sub(op.Const(4)).Mul(a)
		return op.Select(x.Le(one), near, op.Select(x.Lt(two), far, op.Const(0)))
	}), 2
}
