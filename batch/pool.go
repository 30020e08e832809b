package batch

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// pooling checks the operand and the options of a method, and returns how the windows
// move.
func (b *Batch) pooling(name string, x Value, size []int, opts []op.PoolOpts) (o op.PoolOpts, list []window) {
	if !b.takes(name, x) {
		return o, nil
	}
	o, err := op.OptionOf(opts)
	if err != nil {
		b.refuse(name, []Value{x}, "%w", err)
		return o, nil
	}
	stride := o.Stride
	if stride == nil {
		stride = size
	}
	return o, b.windows(name, x, windowing{size, stride, o.Pad, o.PadAfter, o.Dilation, o.Same, o.Ceil})
}

// MaxPool returns the greatest element of each window of x [n c ...], which has one, two or
// three spatial axes. size has one extent of the window for each axis, or one for all.
// Unless the options have strides, windows do not overlap and leave no gaps:
//
//	y := b.MaxPool(x, []int{3}, op.PoolOpts{Stride: []int{2}, Pad: []int{1}})
//
// Padding is -Inf, or the least number of an integer type. A window with NaN gives NaN.
//
// Execute or Compile returns [op.ErrShape] for another rank, a window larger than the padded
// axis, or an option out of range.
func (b *Batch) MaxPool(x Value, size []int, opts ...op.PoolOpts) Value {
	_, list := b.pooling("max_pool", x, size, opts)
	if list == nil {
		return Value{}
	}
	return b.fold(x, list, least(x.Type()), b.Maximum)
}

// least returns a number that no element of a type is below.
func least(t op.DType) float32 {
	switch t {
	case op.I32:
		return math.MinInt32
	case op.U32:
		return 0
	}
	return float32(math.Inf(-1))
}

// MaxPoolIndices returns the results of [Batch.MaxPool] and their i32 indices in x, flattened to
// one row. Of several equal greatest elements, the index is that of the first; with NaN it is the
// index of the first NaN. A window that is all padding has the index -1.
//
//	y, at := b.MaxPoolIndices(x, []int{2})
//	again := b.Gather(b.Reshape(x, -1, 1), at) // y with an axis of 1 at the end
//
// The errors are those of MaxPool.
func (b *Batch) MaxPoolIndices(x Value, size []int, opts ...op.PoolOpts) (values, indices Value) {
	_, list := b.pooling("max_pool", x, size, opts)
	if list == nil {
		return Value{}, Value{}
	}
	lowest := least(x.Type())
	values = b.fold(x, list, lowest, b.Maximum)
	s := x.Shape()
	n := product(s)
	if b.err != nil {
		return Value{}, Value{}
	}
	const outside = math.MaxInt32 - 127 // the greatest i32 that is a float32
	at := b.Reshape(b.Cast(b.Iota(b.word(0), n), op.I32), s...)
	none := b.scalar(op.I32, outside)
	indices = none
	px, pat := b.padded(x, list, lowest), b.padded(at, list, outside)
	b.eachPlace(list, func(k []int) {
		part, place := px, pat
		for i := range list {
			part, place = b.part(part, &list[i], k[i]), b.part(place, &list[i], k[i])
		}
		found := b.Equal(part, values)
		if x.Type().Float() {
			found = b.Or(found, b.IsNaN(part))
		}
		indices = b.Minimum(indices, b.Where(found, place, none))
	})
	return values, b.Where(b.Equal(indices, none), b.whole(-1), indices)
}

// eachPlace calls f for each position in a window, the last axis fastest.
func (b *Batch) eachPlace(list []window, f func(k []int)) {
	n := 1
	for _, w := range list {
		n *= w.size
	}
	for i := range n {
		k := make([]int, len(list))
		for axis := len(list) - 1; axis >= 0; axis-- {
			k[axis] = i % list[axis].size
			i /= list[axis].size
		}
		if f(k); b.err != nil {
			return
		}
	}
}

// AvgPool returns the mean of each window of x [n c ...]. Windows are those of
// [Batch.MaxPool]. Padding counts only if CountPad is set. With Ceil, the last window may
// reach beyond the padding; that part never counts. A window that is all padding gives NaN.
//
// The errors are those of MaxPool.
func (b *Batch) AvgPool(x Value, size []int, opts ...op.PoolOpts) Value {
	o, list := b.pooling("avg_pool", x, size, opts)
	if list == nil {
		return Value{}
	}
	sums, all := b.fold(x, list, 0, b.Add), 1.0
	for i := range list {
		counts := list[i].counts(o.CountPad)
		if c := counts[0]; !slices.ContainsFunc(counts, func(n int) bool { return n != c }) {
			all *= float64(c)
			continue
		}
		s := slices.Repeat([]int{1}, len(x.Shape()))
		s[2+i] = len(counts)
		sums = b.Div(sums, b.table(x.Type(), s, func(k int) float64 { return float64(counts[k]) }))
	}
	if all == 1 {
		return sums
	}
	return b.Div(sums, b.scalar(x.Type(), all))
}

// counts returns for each window along an axis the number of its elements in x or, if padding is
// set, in x and the padding.
func (w *window) counts(padding bool) []int {
	list := make([]int, w.count)
	first, last := 0, w.n
	if padding {
		first, last = -w.before, w.n+w.after
	}
	for i := range list {
		at := i*w.stride - w.before
		// Count the positions at + k·dilation in [first, last).
		from := max(0, (first-at+w.dilation-1)/w.dilation)
		if first <= at {
			from = 0
		}
		to := 0
		if last > at {
			to = min(w.size, (last-at-1)/w.dilation+1)
		}
		list[i] = max(0, to-from)
	}
	return list
}

// LpPool returns the p-norm of each window of x [n c ...]: (Σ |x|^p)^(1/p). Windows are
// those of [Batch.MaxPool]. Padding is 0.
//
// The errors are those of MaxPool. A power that is not above 0 is [op.ErrShape].
func (b *Batch) LpPool(x Value, size []int, opts ...op.PoolOpts) Value {
	o, list := b.pooling("lp_pool", x, size, opts)
	if list == nil {
		return Value{}
	}
	p := o.P
	if p == 0 {
		p = 2
	}
	if !(p > 0) {
		return b.refuse("lp_pool", []Value{x}, "power %v: %w", p, device.ErrShape)
	}
	switch {
	case p == 1:
		return b.fold(b.Abs(x), list, 0, b.Add)
	case p == 2:
		return b.Sqrt(b.fold(b.Square(x), list, 0, b.Add))
	case math.IsInf(float64(p), 1):
		return b.fold(b.Abs(x), list, 0, b.Maximum)
	}
	t := x.Type()
	return b.Pow(b.fold(b.Pow(b.Abs(x), b.scalar(t, float64(p))), list, 0, b.Add), b.scalar(t, 1/float64(p)))
}

// AdaptiveMaxPool divides each spatial axis of x [n c ...] into windows and returns the
// greatest element of each. size has the number of windows for each axis, or one number for
// all. Window i of m over n elements starts at i·n/m, rounded down, and ends before
// (i+1)·n/m, rounded up. A size of 1 is global pooling.
//
// Execute or Compile returns [op.ErrShape] for another rank, or a size below 1.
func (b *Batch) AdaptiveMaxPool(x Value, size []int) Value {
	return b.adaptive("adaptive_max_pool", x, size, func(y Value, axis int, a adaptive) Value {
		if a.even() {
			return b.Max(y, op.Axes(axis+1))
		}
		ids := make([]int, 0, a.m*a.longest)
		for i := range a.m {
			from, to := a.window(i)
			for k := range a.longest {
				ids = append(ids, min(from+k, to-1)) // repeats the last element, which does not change the maximum
			}
		}
		return b.Max(b.windowed(y, axis, ids, a), op.Axes(axis+1))
	})
}

// AdaptiveAvgPool returns the means of the windows of [Batch.AdaptiveMaxPool].
func (b *Batch) AdaptiveAvgPool(x Value, size []int) Value {
	return b.adaptive("adaptive_avg_pool", x, size, func(y Value, axis int, a adaptive) Value {
		if a.even() {
			return b.Mean(y, op.Axes(axis+1))
		}
		ids, counts := make([]int, 0, a.m*a.longest), make([]int, a.m)
		for i := range a.m {
			from, to := a.window(i)
			counts[i] = to - from
			for k := range a.longest {
				if from+k >= to {
					from = a.n - k // the element after the last, which is 0
				}
				ids = append(ids, from+k)
			}
		}
		sums := b.Sum(b.windowed(b.Pad(y, axis, 0, 1, 0), axis, ids, a), op.Axes(axis+1))
		s := slices.Repeat([]int{1}, len(x.Shape()))
		s[axis] = a.m
		return b.Div(sums, b.table(x.Type(), s, func(i int) float64 { return float64(counts[i]) }))
	})
}

// adaptive describes m windows that divide an axis of n elements.
type adaptive struct{ n, m, longest int }

func (a adaptive) even() bool { return a.n%a.m == 0 }

// window returns the bounds of a window.
func (a adaptive) window(i int) (from, to int) {
	k, n, m := int64(i), int64(a.n), int64(a.m)
	return int(k * n / m), int(((k+1)*n + m - 1) / m)
}

// windowed returns the windows of x along an axis: the elements at ids, along a new axis after it.
func (b *Batch) windowed(x Value, axis int, ids []int, a adaptive) Value {
	s := slices.Clone(x.Shape())
	if b.err != nil {
		return Value{}
	}
	s[axis] = a.m
	return b.Reshape(b.take(x, axis, ids), slices.Insert(s, axis+1, a.longest)...)
}

// adaptive applies f to one spatial axis after the other. If the windows do not overlap, the operand
// of f has them as a new axis after the spatial axis.
func (b *Batch) adaptive(name string, x Value, size []int, f func(x Value, axis int, a adaptive) Value) Value {
	if !b.takes(name, x) {
		return Value{}
	}
	axes := len(x.Shape()) - 2
	if axes < 1 || axes > 3 {
		return b.refuse(name, []Value{x}, "expected one, two or three axes after the first two: %w", device.ErrShape)
	}
	m := spread(size, axes, 0)
	if m == nil || slices.Min(m) < 1 || slices.Contains(x.Shape()[2:], 0) {
		return b.refuse(name, []Value{x}, "windows %v: expected 1 or more along each axis: %w", size, device.ErrShape)
	}
	if !bounded(slices.Concat(x.Shape()[:2], m)) {
		return b.refuse(name, []Value{x}, "windows %v: more elements than a value can have: %w", size, device.ErrShape)
	}
	for i, m := range m {
		s := slices.Clone(x.Shape())
		if b.err != nil {
			return Value{}
		}
		a := adaptive{n: s[2+i], m: m}
		for k := range m {
			from, to := a.window(k)
			a.longest = max(a.longest, to-from)
		}
		switch {
		case a.n == m:
			continue
		case a.even():
			s[2+i] = m
			x = f(b.Reshape(x, slices.Insert(s, 3+i, a.n/m)...), 2+i, a)
		default:
			x = f(x, 2+i, a)
		}
	}
	return x
}
