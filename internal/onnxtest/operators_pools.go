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

// part returns the elements k of all windows along an axis of x, which is padded.
func (w sliding) part(r *recorder, x batch.Value, axis, k int) batch.Value {
	count, from := (x.Shape()[axis]-w.extent())/w.stride+1, k*w.dilation
	return r.Slice(x, axis, from, from+(count-1)*w.stride+1, w.stride)
}

// fold combines the elements of each window along an axis of x, which is padded.
func (w sliding) fold(r *recorder, x batch.Value, axis int, f func(x, y batch.Value) batch.Value) batch.Value {
	y := w.part(r, x, axis, 0)
	for k := 1; k < w.size; k++ {
		y = f(y, w.part(r, x, axis, k))
	}
	return y
}

// offsets calls f for each element of the windows with a function that returns these
// elements of all windows of a value, with another outside.
func (r *recorder) offsets(list []sliding, f func(part func(x batch.Value, outside float32) batch.Value)) {
	n := 1
	for _, w := range list {
		n *= w.size
	}
	for i := range n {
		f(func(x batch.Value, outside float32) batch.Value {
			k := i
			for axis := len(list) - 1; axis >= 0; axis-- {
				w := list[axis]
				x = w.part(r, r.Pad(x, 2+axis, w.before, w.after+w.extra, outside), 2+axis, k%w.size)
				k /= w.size
			}
			return x
		})
	}
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

// maxPool returns the greatest elements, and where the first of each window lies.
func maxPool(r *recorder) []batch.Value {
	least := float32(math.Inf(-1))
	list := r.pooling()
	y := r.windows(r.x(0), list, least, least, r.Maximum)
	if len(r.c.Out) == 1 {
		return one(y)
	}
	s := r.shape(0)
	n := product(s)
	none := r.whole(n)
	at, ids := r.Reshape(r.number(s, func(i int) int { return i }), s...), none
	r.offsets(list, func(part func(x batch.Value, outside float32) batch.Value) {
		found := r.Equal(part(r.x(0), least), y)
		ids = r.Minimum(ids, r.Where(found, part(at, float32(n)), none))
	})
	if r.int("storage_order", 0) == 0 {
		return []batch.Value{y, ids}
	}
	if len(s) != 4 {
		return r.refuse("with indices by columns of %v", s)
	}
	place := r.Remainder(ids, r.whole(s[2]*s[3]))
	row, column := r.FloorDivide(place, r.whole(s[3])), r.Remainder(place, r.whole(s[3]))
	return []batch.Value{y, r.Add(r.Sub(ids, place), r.Add(r.Mul(column, r.whole(s[2])), row))}
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
