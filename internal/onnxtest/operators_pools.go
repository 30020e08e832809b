package onnxtest

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/batch"
)

var poolOperators = map[string]mapping{
	"AveragePool": averagePool,
	"LpPool":      lpPool,
	"LRN":         localNorm,
	"MaxPool":     maxPool,
}

// sliding says how a window moves along one axis: its elements, from one of its
// elements to the next, from one window to the next, and the padding before and
// after. Extra padding behind that lets the last window be whole.
type sliding struct{ size, dilation, stride, before, after, extra int }

// slidings returns how the windows of a node, of the given extents, move along axes
// of the given extents.
func (r *recorder) slidings(spatial, kernel []int) []sliding {
	list := make([]sliding, len(kernel))
	for i, n := range spatial {
		w := sliding{size: kernel[i], dilation: 1, stride: 1}
		if d := r.ints("dilations"); d != nil {
			w.dilation = d[i]
		}
		if s := r.ints("strides"); s != nil {
			w.stride = s[i]
		}
		if p := r.ints("pads"); p != nil {
			w.before, w.after = p[i], p[len(kernel)+i]
		}
		if total := max(0, (n-1)/w.stride*w.stride+w.extent()-n); r.text("auto_pad", "NOTSET") == "SAME_UPPER" {
			w.before, w.after = total/2, total-total/2
		} else if r.text("auto_pad", "NOTSET") == "SAME_LOWER" {
			w.before, w.after = total-total/2, total/2
		}
		padded := w.before + n + w.after
		// Another window, if it begins before the padding behind.
		if more := (padded - w.extent()) % w.stride; r.int("ceil_mode", 0) != 0 && more != 0 {
			if padded-w.extent()-more+w.stride < w.before+n {
				w.extra = w.stride - more
			}
		}
		list[i] = w
	}
	return list
}

// pooling returns how the windows of a node move over operand 0.
func (r *recorder) pooling() []sliding { return r.slidings(r.shape(0)[2:], r.ints("kernel_shape")) }

// extent returns the extent of a window with what it skips.
func (w sliding) extent() int { return (w.size-1)*w.dilation + 1 }

// fold combines the elements of each window along an axis of x, which is padded:
// first elements of all windows are a slice, second ones another.
func (w sliding) fold(r *recorder, x batch.Value, axis int, f func(x, y batch.Value) batch.Value) batch.Value {
	count := (x.Shape()[axis]-w.extent())/w.stride + 1
	var y batch.Value
	for k := range w.size {
		from := k * w.dilation
		part := r.Slice(x, axis, from, from+(count-1)*w.stride+1, w.stride)
		if k == 0 {
			y = part
		} else {
			y = f(y, part)
		}
	}
	return y
}

// windows pads x with a value, and behind that with another, and folds its windows
// along one axis after the other.
func (r *recorder) windows(x batch.Value, list []sliding, value, extra float32, f func(x, y batch.Value) batch.Value) batch.Value {
	for i, w := range list {
		x = r.Pad(x, 2+i, w.before, w.after, value)
	}
	for i, w := range list {
		x = r.Pad(x, 2+i, 0, w.extra, extra)
	}
	for i, w := range list {
		x = w.fold(r, x, 2+i, f)
	}
	return x
}

func maxPool(r *recorder) []batch.Value {
	if len(r.c.Out) > 1 {
		return r.refuse("with indices")
	}
	least := float32(math.Inf(-1))
	return one(r.windows(r.x(0), r.pooling(), least, least, r.Maximum))
}

// averagePool divides the sums by the numbers of elements, with or without padding.
func averagePool(r *recorder) []batch.Value {
	list := r.pooling()
	counted := float32(0)
	if r.int("count_include_pad", 0) != 0 {
		counted = 1
	}
	ones := slices.Clone(r.shape(0))
	ones[0], ones[1] = 1, 1
	n := r.windows(r.Const(1, ones...), list, counted, 0, r.Add)
	return one(r.Div(r.windows(r.x(0), list, 0, 0, r.Add), n))
}

func lpPool(r *recorder) []batch.Value {
	p := float32(r.int("p", 2))
	power := r.Pow(r.Abs(r.x(0)), r.Const(p))
	return one(r.Pow(r.windows(power, r.pooling(), 0, 0, r.Add), r.Const(1/p)))
}

// localNorm divides by a power of the sum of squares of neighbouring channels.
func localNorm(r *recorder) []batch.Value {
	size := r.int("size", 1)
	squares := r.Pad(r.Square(r.x(0)), 1, (size-1)/2, size/2, 0)
	sum := sliding{size: size, dilation: 1, stride: 1}.fold(r, squares, 1, r.Add)
	base := r.AddScalar(r.Scale(sum, r.float("alpha", 1e-4)/float32(size)), r.float("bias", 1))
	return one(r.Div(r.x(0), r.Pow(base, r.Const(r.float("beta", 0.75)))))
}
