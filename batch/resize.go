package batch

import (
	"fmt"
	"math"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// resizing describes how one axis is resized: from n to m elements, by a scale. from and to are the
// part of the axis for the mode that crops.
type resizing struct {
	axis, n, m      int
	scale, from, to float64
}

// Resize returns x with its last axes resized to the extents of size. If size is nil, the
// new extents are the old ones times the scales of the options, rounded down. By default
// Resize interpolates linearly along one axis after the other. Beyond the ends of an axis
// it uses the last element.
//
//	twice := b.Resize(images, []int{2 * h, 2 * w})
//
// Execute or Compile returns [op.ErrShape] for an axis without elements, another number of
// scales, or a size below 1 or out of range.
func (b *Batch) Resize(x Value, size []int, opts ...op.ResizeOpts) Value {
	const name = "resize"
	if !b.takes(name, x) {
		return Value{}
	}
	o, err := op.OptionOf(opts)
	if err != nil {
		return b.refuse(name, []Value{x}, "%w", err)
	}
	if o.CubicA == 0 {
		o.CubicA = -0.75
	}
	list, why := resizings(x.Shape(), size, &o)
	if why != "" {
		return b.refuse(name, []Value{x}, "to %v by %v: %s: %w", size, o.Scale, why, device.ErrShape)
	}
	for _, z := range list {
		if z.m == z.n && z.scale == 1 && o.Coordinates != op.CropAndResize {
			continue
		}
		if x = b.resize(x, z, &o); b.err != nil {
			return Value{}
		}
	}
	return x
}

// resizings returns how the axes of shape s are resized, or an error.
func resizings(s op.Shape, size []int, o *op.ResizeOpts) ([]resizing, string) {
	k := len(size)
	if size == nil {
		k = len(o.Scale)
	}
	cut := o.Coordinates == op.CropAndResize
	switch {
	case k == 0 || k > len(s):
		return nil, fmt.Sprintf("expected sizes or scales for 1 to %d of the last axes", len(s))
	case o.Scale != nil && len(o.Scale) != k || cut && len(o.Region) != k:
		return nil, fmt.Sprintf("expected %d scales and regions, one for each axis that is resized", k)
	case o.Mode > op.Area || o.Coordinates > op.CropAndResize || o.Rounding > op.RoundUp:
		return nil, "no such mode"
	}
	out := slices.Clone(s)
	list := make([]resizing, k)
	for i := range list {
		z := resizing{axis: len(s) - k + i, n: s[len(s)-k+i], to: 1}
		if o.Scale != nil {
			if z.scale = o.Scale[i]; !(z.scale > 0 && z.scale*float64(z.n) < math.MaxInt32) {
				return nil, "scales must be above 0"
			}
			z.m = int(z.scale * float64(z.n))
		}
		if size != nil {
			z.m = size[i]
		}
		if z.n < 1 || z.m < 1 {
			return nil, "axes and sizes must have one element at least"
		}
		if o.Scale == nil {
			z.scale = float64(z.m) / float64(z.n)
		}
		if cut {
			z.from, z.to = o.Region[i][0], o.Region[i][1]
		}
		if z.from-z.from != 0 || z.to-z.to != 0 {
			return nil, "regions are finite"
		}
		if z.narrow(o)*math.MaxInt32 < 8*float64(z.m) {
			return nil, "a kernel of too many elements"
		}
		list[i], out[z.axis] = z, z.m
	}
	if !bounded(out) {
		return nil, "more elements than a value has"
	}
	return list, ""
}

// resize resizes one axis.
func (b *Batch) resize(x Value, z resizing, o *op.ResizeOpts) Value {
	if o.Mode == op.Area {
		return b.area(x, z)
	}
	places := make([]float64, z.m)
	for i := range places {
		// An undefined position (NaN, for a result of one element) is replaced by the first element.
		if p := z.place(o.Coordinates, float64(i)); p == p {
			places[i] = min(max(p, -1<<30), 1<<30)
		}
	}
	y := b.sample(x, z, o, places)
	if o.Coordinates != op.CropAndResize || b.err != nil {
		return y
	}
	s := slices.Repeat([]int{1}, len(x.Shape()))
	s[z.axis] = z.m
	inside := b.table(op.Bool, s, func(i int) float64 {
		if places[i] < 0 || places[i] > float64(z.n-1) {
			return 0
		}
		return 1
	})
	return b.Where(inside, y, b.scalar(x.Type(), float64(o.Outside)))
}

// place returns the position on the axis of element i of the resized axis.
func (z *resizing) place(c op.Coordinates, i float64) float64 {
	n, m := float64(z.n), float64(z.m)
	half := (i+0.5)/z.scale - 0.5
	switch c {
	case op.Asymmetric:
		return i / z.scale
	case op.AlignCorners:
		if z.m == 1 {
			return 0
		}
		return i * (n - 1) / (z.scale*n - 1)
	case op.TorchHalfPixel:
		if z.m == 1 {
			return 0
		}
	case op.HalfPixelSymmetric:
		return half + n/2*(1-m/(z.scale*n))
	case op.CropAndResize:
		if z.m == 1 {
			return (z.from + z.to) / 2 * (n - 1)
		}
		return (z.from + i*(z.to-z.from)/(m-1)) * (n - 1)
	}
	return half
}

// area returns the means of the windows of an adaptive average along one axis.
func (b *Batch) area(x Value, z resizing) Value {
	s := slices.Clone(x.Shape())
	y := b.AdaptiveAvgPool(b.Reshape(x, product(s[:z.axis]), 1, z.n, product(s[z.axis+1:])), []int{z.m, product(s[z.axis+1:])})
	s[z.axis] = z.m
	return b.Reshape(y, s...)
}

var roundings = [...]func(float64) float64{
	op.HalfDown:  func(x float64) float64 { return math.Ceil(x - 0.5) },
	op.HalfUp:    func(x float64) float64 { return math.Floor(x + 0.5) },
	op.RoundDown: math.Floor,
	op.RoundUp:   math.Ceil,
}

// sample returns x at positions along an axis.
func (b *Batch) sample(x Value, z resizing, o *op.ResizeOpts, places []float64) Value {
	if o.Mode == op.Nearest {
		ids := make([]int, z.m)
		for i, p := range places {
			ids[i] = clamp(roundings[o.Rounding](p), z.n)
		}
		return b.pickAlong(x, z.axis, ids)
	}
	ids, weights := taps(z, o, places)
	count := len(ids)
	near := ids[0][0] >= -count && ids[count-1][z.m-1] < z.n+count // of the axis
	if p := phases(ids, weights); p > 0 && count <= 8 && near {
		return b.polyphase(x, z.axis, ids, weights, p)
	}
	if last := len(x.Shape()) - 1; z.axis == last && last > 0 && x.Shape()[last-1] > 1 {
		// Gathering whole rows is so much faster than gathering elements that two transpositions pay off.
		z.axis = last - 1
		return b.SwapAxes(b.sample(b.SwapAxes(x, last-1, last), z, o, places), last-1, last)
	}
	if count <= 8 {
		return b.blend(x, z.axis, ids, weights)
	}
	all := make([]int, 0, z.m*count)
	for i := range z.m {
		for k := range count {
			all = append(all, clamp(float64(ids[k][i]), z.n))
		}
	}
	s := slices.Clone(x.Shape())
	s[z.axis] = z.m
	s = slices.Insert(s, z.axis+1, count)
	if !bounded(s) || len(s) > op.MaxRank {
		return b.refuse("resize", []Value{x}, "%d elements for each of %d along axis %d: %w", count, z.m, z.axis, device.ErrShape)
	}
	each := slices.Repeat([]int{1}, len(s))
	each[z.axis], each[z.axis+1] = z.m, count
	w := b.table(x.Type(), each, func(i int) float64 { return weights[i%count][i/count] })
	return b.Sum(b.Mul(b.Reshape(b.take(x, z.axis, all), s...), w), op.Axes(z.axis+1))
}

// narrow returns the factor by which distances are reduced before the kernel is applied.
func (z *resizing) narrow(o *op.ResizeOpts) float64 {
	if o.Antialias && o.Mode != op.Nearest {
		return min(1, z.scale)
	}
	return 1
}

// clamp returns an index of n elements.
func clamp(x float64, n int) int {
	if !(x > 0) { // also for NaN
		return 0
	}
	return int(min(x, float64(n-1)))
}

// taps returns, for each position, the ids of the elements whose weighted sum is the result, and
// their weights. ids beyond an end mean copies of the end element. The weights are the kernel at
// the distances of the elements, divided by their sum. If the axis gets smaller, the kernel is
// widened by the same factor, to smooth.
func taps(z resizing, o *op.ResizeOpts, places []float64) (ids [][]int, weights [][]float64) {
	reach, kernel := 1, triangle
	if o.Mode == op.Cubic {
		a := float64(o.CubicA)
		reach, kernel = 2, func(x float64) float64 { return keys(a, x) }
	}
	narrow := z.narrow(o)
	wide := int(math.Ceil(float64(reach) / narrow))
	for k := 1 - wide; k <= wide; k++ {
		ids, weights = append(ids, make([]int, z.m)), append(weights, make([]float64, z.m))
	}
	for i, p := range places {
		sum := 0.0
		for k := range ids {
			at := math.Floor(p) + float64(k+1-wide)
			w := kernel((at - p) * narrow)
			if o.ExcludeOutside && (at < 0 || at > float64(z.n-1)) {
				w = 0
			}
			ids[k][i], weights[k][i] = int(at), w
			sum += w
		}
		for k := range ids {
			weights[k][i] /= sum
		}
	}
	return ids, weights
}

// triangle is the kernel of linear interpolation.
func triangle(x float64) float64 { return max(0, 1-math.Abs(x)) }

// keys is the cubic kernel of Keys.
func keys(a, x float64) float64 {
	switch x = math.Abs(x); {
	case x <= 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return ((a*x-5*a)*x+8*a)*x - 4*a
	}
	return 0
}

// phases returns the period, in elements of an axis, after which the weights repeat, as they do if
// the scale is a ratio of small numbers; 0 if they do not repeat.
func phases(ids [][]int, weights [][]float64) int {
	m := len(ids[0])
	recur := func(p int) bool {
		step := ids[0][p] - ids[0][0]
		for k := range ids {
			for i := p; i < m; i++ {
				if same := math.Abs(weights[k][i]-weights[k][i-p]) <= 1e-12; step < 1 || ids[k][i] != ids[k][i-p]+step || !same {
					return false
				}
			}
		}
		return true
	}
	for p := 1; p <= 8 && p < m; p++ {
		if m%p == 0 && recur(p) {
			return p
		}
	}
	return 0
}

// polyphase is blend for weights that repeat after p elements: it computes each phase from strided
// slices and constant weights, and interleaves the phases.
func (b *Batch) polyphase(x Value, axis int, ids [][]int, weights [][]float64, p int) Value {
	n, m := x.Shape()[axis], len(ids[0])
	first, last := ids[0][0], ids[len(ids)-1][m-1]
	before := max(0, -first)
	x = b.PadMode(x, axis, before, max(0, last-n+1), PadEdge)
	step := ids[0][p] - ids[0][0]
	parts := make(map[int]Value)
	for j := range p {
		for k := range ids {
			w := weights[k][j]
			if w == 0 {
				continue
			}
			from := ids[k][j] + before
			part := b.Slice(x, axis, from, from+(m/p-1)*step+1, step)
			if w != 1 {
				part = b.Mul(part, b.scalar(part.Type(), w))
			}
			if sum, ok := parts[j]; ok {
				part = b.Add(sum, part)
			}
			if parts[j] = part; b.err != nil {
				return Value{}
			}
		}
	}
	return b.interleave(axis, p, parts)
}

// blend returns the sum of the elements of an axis that ids name, times weights.
func (b *Batch) blend(x Value, axis int, ids [][]int, weights [][]float64) Value {
	s := slices.Repeat([]int{1}, len(x.Shape()))
	s[axis] = len(ids[0])
	var sum Value
	n := x.Shape()[axis]
	for k := range ids {
		at := make([]int, len(ids[k]))
		for i, id := range ids[k] {
			at[i] = clamp(float64(id), n)
		}
		if !slices.ContainsFunc(weights[k], func(w float64) bool { return w != 0 }) {
			continue
		}
		part := b.Mul(b.pickAlong(x, axis, at), b.table(x.Type(), s, func(i int) float64 { return weights[k][i] }))
		if sum.given() {
			part = b.Add(sum, part)
		}
		if sum = part; b.err != nil {
			break
		}
	}
	return sum
}

// pickAlong returns the elements of an axis that ids name. If each is repeated equally often, or if
// they have a constant stride, the result is a view.
func (b *Batch) pickAlong(x Value, axis int, ids []int) Value {
	s := slices.Clone(x.Shape())
	n, m := s[axis], len(ids)
	if m%n == 0 {
		each, repeats := m/n, true
		for i, id := range ids {
			repeats = repeats && id == i/each
		}
		if repeats && len(s) < op.MaxRank {
			s[axis] = m
			y := b.Unsqueeze(x, axis+1)
			wide := slices.Clone(y.Shape())
			if b.err != nil {
				return Value{}
			}
			wide[axis+1] = each
			return b.Reshape(b.Expand(y, wide...), s...)
		}
	}
	step := 1
	if m > 1 {
		step = ids[1] - ids[0]
	}
	regular := step > 0
	for i, id := range ids {
		regular = regular && id == ids[0]+i*step
	}
	if regular {
		return b.Slice(x, axis, ids[0], ids[m-1]+1, step)
	}
	return b.take(x, axis, ids)
}
