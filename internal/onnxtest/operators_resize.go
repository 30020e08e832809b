package onnxtest

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var resizeOperators = map[string]mapping{
	"AffineGrid": affineGrid,
	"Resize":     resize,
}

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
			y = r.take(y, ids, z.axis)
			continue
		}
		w := r.Upload(r.weights(z, places), z.out, z.n)
		y = r.SwapAxes(r.MatMul(r.SwapAxes(y, z.axis, -1), w, op.MatMulOpts{TransB: true}), z.axis, -1)
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

// weights returns for each place the weights of all elements of an axis. To smooth
// where it gets smaller, the function is as much wider.
func (r *recorder) weights(z resizing, places []float64) []float32 {
	f, reach, narrow := hat, 1.0, 1.0
	if r.text("mode", "") == "cubic" {
		a := float64(r.float("cubic_coeff_a", -0.75))
		f, reach = func(x float64) float64 { return cubic(a, x) }, 2
	}
	if r.int("antialias", 0) != 0 {
		narrow = min(1, z.scale)
	}
	first := int(math.Floor(-reach/narrow)) + 1
	w := make([]float32, len(places)*z.n)
	for i, x := range places {
		row, sum := make([]float64, z.n), 0.0
		at := int(math.Floor(x))
		for k := at + first; k < at+2-first; k++ {
			if r.int("exclude_outside", 0) != 0 && (k < 0 || k >= z.n) {
				continue
			}
			v := f((float64(k) - x) * narrow)
			row[min(max(k, 0), z.n-1)] += v
			sum += v
		}
		for k, v := range row {
			w[i*z.n+k] = float32(v / sum)
		}
	}
	return w
}

func hat(x float64) float64 { return max(0, 1-math.Abs(x)) }

// cubic is the convolution kernel of Keys with the parameter a.
func cubic(a, x float64) float64 {
	x = math.Abs(x)
	switch {
	case x <= 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return (((x-5)*x+8)*x - 4) * a
	}
	return 0
}
