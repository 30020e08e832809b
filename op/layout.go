package op

import (
	"slices"
	"strings"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Layout describes the position of a value's elements in memory. It splits the row-major index of an
// element into digits, one for each factor; the digit of the last factor counts fastest. The element is
// at
//
//	Off + Σ (digit-Lo)·Stride
//
// elements from the start of the memory. If a digit is outside [Lo, Hi), the
// element is not in memory: it is Fill, the bits of an element of the value's
// type.
//
// A layout does not know the shape of the value, only the number of its elements: reshaping a value
// does not change its layout. Layouts are canonical, so that equal ones compare equal: no factor
// has the extent 1, adjacent factors are merged if one factor can express both, and fields without
// effect are zero. The zero Layout describes one element at the start of the memory.
//
// For example, the transpose of a matrix of 2 rows and 3 columns has the
// factors (N 3, Stride 1), (N 2, Stride 3).
type Layout struct {
	Off  int
	Fill uint32
	Rank uint8 // factors
	F    [MaxRank]Factor
}

// Factor describes one digit of a [Layout]: its extent N, the range [Lo, Hi) of digits that are in
// memory, and the distance of elements whose digits differ by 1.
type Factor struct{ N, Lo, Hi, Stride int }

// windowed reports whether elements with some digits are not in memory.
func (f *Factor) windowed() bool { return f.Lo != 0 || f.Hi != f.N }

// RowMajor returns the layout of n contiguous elements.
func RowMajor(n int) Layout {
	l, _ := canonical(0, 0, []Factor{{n, 0, n, 1}})
	return l
}

// canonical returns the layout of the factors, or false if more than MaxRank remain after merging.
func canonical(off int, fill uint32, fs []Factor) (Layout, bool) {
	size := 1
	for _, f := range fs {
		size *= f.N
	}
	for _, f := range fs {
		if f.N > 0 && f.Hi <= f.Lo && size > 0 { // no element is in memory
			l := Layout{Fill: fill, Rank: 1}
			l.F[0] = Factor{N: size}
			return l, true
		}
	}
	if size == 0 {
		return Layout{Rank: 1}, true
	}
	l := Layout{Off: off}
	var merged [MaxRank + 1]Factor // from the last factor to the first
	n := 0
	for i := len(fs) - 1; i >= 0; i-- {
		f := fs[i]
		if f.N == 1 {
			continue
		}
		if f.Hi-f.Lo == 1 {
			f.Stride = 0
		}
		if n > 0 {
			if in := &merged[n-1]; !in.windowed() && (f.Stride == in.N*in.Stride || f.Hi-f.Lo == 1) {
				*in = Factor{f.N * in.N, f.Lo * in.N, f.Hi * in.N, in.Stride}
				continue
			}
		}
		if n == MaxRank {
			return Layout{}, false
		}
		merged[n] = f
		n++
	}
	for i, f := range merged[:n] {
		l.F[n-1-i] = f
		if f.windowed() {
			l.Fill = fill
		}
	}
	l.Rank = uint8(n)
	return l, true
}

// Factors returns the factors, outermost first. Callers must not change them.
func (l *Layout) Factors() []Factor { return l.F[:l.Rank] }

// Size returns the number of elements of the value.
func (l *Layout) Size() int {
	n := 1
	for _, f := range l.Factors() {
		n *= f.N
	}
	return n
}

// Windowed reports whether some elements are not in memory but Fill.
func (l *Layout) Windowed() bool {
	for i := range l.Factors() {
		if l.F[i].windowed() {
			return true
		}
	}
	return false
}

// At returns the index in memory of element i, or false if the element is Fill.
func (l *Layout) At(i int) (off int, in bool) {
	off, in = l.Off, true
	for k := int(l.Rank) - 1; k >= 0; k-- {
		f := &l.F[k]
		d := i % f.N
		i /= f.N
		if d < f.Lo || d >= f.Hi {
			return 0, false
		}
		off += (d - f.Lo) * f.Stride
	}
	return off, in
}

// Bounds returns the half-open range of memory elements that the value uses: 0, 0 if it uses none.
func (l *Layout) Bounds() (first, end int) {
	first, end = l.Off, l.Off+1
	for _, f := range l.Factors() {
		switch n := f.Hi - f.Lo; {
		case f.N == 0 || n <= 0:
			return 0, 0
		case f.Stride < 0:
			first += (n - 1) * f.Stride
		default:
			end += (n - 1) * f.Stride
		}
	}
	return first, end
}

// BroadcastKind returns the broadcast kind of the layout of a value in n elements of memory: a kind
// that needs no index arithmetic, or Strided.
func (l *Layout) BroadcastKind(n int) BroadcastKind {
	f := l.F
	plain := func(i int) bool { return f[i].Lo == 0 && f[i].Hi == f[i].N && f[i].N == n && f[i].Stride == 1 }
	same := func(i int) bool { return f[i].Lo == 0 && f[i].Hi == f[i].N && f[i].Stride == 0 }
	switch {
	case l.Size() == 0: // no element is read
		return [...]BroadcastKind{Full, Scalar, Tiled}[min(n, 2)]
	case l.Off != 0:
	case l.Rank == 0 && n == 1, l.Rank == 1 && plain(0):
		return Full
	case l.Rank == 1 && n == 1 && same(0):
		return Scalar
	case l.Rank == 2 && same(0) && plain(1):
		return Tiled
	case l.Rank == 2 && plain(0) && same(1):
		return Repeated
	}
	return Strided
}

// Strides returns the first element of a value of shape s and the stride of each axis, or false if
// an axis has no constant stride. It returns false for extents of 0.
func (l *Layout) Strides(s Shape) (off int, strides []int, ok bool) {
	a, ok := l.align(s)
	if !ok || l.Windowed() || l.Size() == 0 {
		return 0, nil, false
	}
	strides = make([]int, len(s))
	for i := range s {
		switch fs := a.axes[i]; len(fs) {
		case 0:
		case 1:
			strides[i] = fs[0].Stride
		default:
			return 0, nil, false
		}
	}
	return l.Off, strides, true
}

// Columns reports whether the layout, as rows of cols elements, is a permutation of an array of
// extents [outer cols inner] that fills the memory: consecutive elements of a row are inner
// elements apart. Moving an axis to the end gives such a layout.
func (l *Layout) Columns(rows, cols int) (outer, inner int, ok bool) {
	if l.Off != 0 || l.Windowed() || rows <= 1 || cols <= 1 {
		return 0, 0, false
	}
	if _, s, ok := l.Strides(Shape{rows, cols}); ok && s[0] == 1 && s[1] == rows {
		return 1, rows, true
	}
	fs := l.Factors()
	if len(fs) != 3 {
		return 0, 0, false
	}
	o, j, c := fs[0], fs[1], fs[2]
	return o.N, j.N, o.N*j.N == rows && c.N == cols && j.Stride == 1 && c.Stride == j.N && o.Stride == cols*j.N
}

// Inverse returns the layout that finds the elements of a memory of n elements in the value: element i
// of the memory is element At(i) of the value. It returns false unless each element of the memory is
// exactly one element of the value.
func (l *Layout) Inverse(n int) (inverse Layout, ok bool) {
	if l.Windowed() || l.Off != 0 || l.Size() != n || n == 0 {
		return Layout{}, false
	}
	type pair struct{ f, to Factor }
	ps := make([]pair, l.Rank)
	at := 1 // elements of the value
	for k := int(l.Rank) - 1; k >= 0; k-- {
		f := l.F[k]
		ps[k] = pair{f, Factor{f.N, 0, f.N, at}}
		at *= f.N
	}
	slices.SortFunc(ps, func(a, b pair) int { return b.f.Stride - a.f.Stride })
	var fs []Factor
	next := 1
	for k := len(ps) - 1; k >= 0; k-- {
		if ps[k].f.Stride != next {
			return Layout{}, false
		}
		next *= ps[k].f.N
	}
	for _, p := range ps {
		fs = append(fs, p.to)
	}
	return canonical(0, 0, fs)
}

// Part returns the layout of n elements of the value, starting at element from, or false if no
// layout can describe them.
func (l *Layout) Part(from, n int) (Layout, bool) { return l.slice(Shape{l.Size()}, 0, from, n, 1) }

// Filled returns the layout with Fill converted to another type, for a memory that has been
// converted to it.
func (l *Layout) Filled(from, to DType) *Layout {
	if from == to || !l.Windowed() {
		return l
	}
	m := *l
	m.Fill = to.bits(from.number(l.Fill))
	return &m
}

// String writes the layout as +off and n·stride for each factor, with [lo,hi)
// where there is a window.
func (l *Layout) String() string {
	var b strings.Builder
	b.WriteByte('(')
	for i, f := range l.Factors() {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%d", f.N)
		if f.windowed() {
			fmt.Fprintf(&b, "[%d,%d)", f.Lo, f.Hi)
		}
		fmt.Fprintf(&b, "·%d", f.Stride)
	}
	if l.Off != 0 {
		fmt.Fprintf(&b, " +%d", l.Off)
	}
	if l.Fill != 0 {
		fmt.Fprintf(&b, " fill %#x", l.Fill)
	}
	b.WriteByte(')')
	return b.String()
}

// aligned is a layout whose factors are assigned to the axes of a shape.
type aligned struct {
	off   int
	fill  uint32
	axes  [MaxRank][]Factor
	shape Shape
}

// align splits the factors of l so that each axis of s has its own factors. It returns false if an
// axis begins in the middle of a factor and does not divide its extent.
func (l *Layout) align(s Shape) (*aligned, bool) {
	a := &aligned{off: l.Off, fill: l.Fill, shape: append(Shape{}, s...)}
	if len(s) > MaxRank {
		return nil, false
	}
	if l.Size() == 0 {
		for i, d := range s {
			a.axes[i] = []Factor{{d, 0, d, 0}}
		}
		return a, true
	}
	k := int(l.Rank) - 1
	var f Factor
	if k >= 0 {
		f = l.F[k]
	}
	for axis := len(s) - 1; axis >= 0; axis-- {
		var fs []Factor // the last factor first
		for need := s[axis]; need > 1; {
			switch {
			case k < 0:
				return nil, false
			case need%f.N == 0:
				fs = append(fs, f)
				need /= f.N
				if k--; k >= 0 {
					f = l.F[k]
				}
			case f.N%need == 0 && f.Lo%need == 0 && f.Hi%need == 0:
				fs = append(fs, Factor{need, 0, need, f.Stride})
				f = Factor{f.N / need, f.Lo / need, f.Hi / need, f.Stride * need}
				need = 1
			default:
				return nil, false
			}
		}
		for i, j := 0, len(fs)-1; i < j; i, j = i+1, j-1 {
			fs[i], fs[j] = fs[j], fs[i]
		}
		a.axes[axis] = fs
	}
	return a, k < 0
}

// layout returns the canonical layout of a.
func (a *aligned) layout() (Layout, bool) {
	var fs []Factor
	for i := range a.shape {
		fs = append(fs, a.axes[i]...)
	}
	return canonical(a.off, a.fill, fs)
}

// inner returns the elements of an axis that one step of its outermost factor
// passes over.
func inner(fs []Factor) int {
	n := 1
	for _, f := range fs[1:] {
		n *= f.N
	}
	return n
}

// permute returns the layout of the axes in another order: axis i of the result is axis
// order[i] of s.
func (l *Layout) permute(s Shape, order []int) (Layout, bool) {
	a, ok := l.align(s)
	if !ok {
		return Layout{}, false
	}
	b := *a
	for i, from := range order {
		b.axes[i], b.shape[i] = a.axes[from], a.shape[from]
	}
	return b.layout()
}

// slice returns the layout of count elements of an axis: start, start+step and so on.
func (l *Layout) slice(s Shape, axis, start, count, step int) (Layout, bool) {
	a, ok := l.align(s)
	if !ok {
		return Layout{}, false
	}
	if count == 0 {
		return Layout{Rank: 1}, true
	}
	if step < 0 { // the same elements in ascending order, then reversed
		if !a.slice(axis, start+(count-1)*step, count, -step) {
			return Layout{}, false
		}
		a.flip(axis)
	} else if !a.slice(axis, start, count, step) {
		return Layout{}, false
	}
	return a.layout()
}

// slice is Layout.slice for a step above 0.
func (a *aligned) slice(axis, start, count, step int) bool {
	fs := a.axes[axis]
	if count == 1 {
		step = 1
	}
	for k := range fs {
		f := &fs[k]
		p := inner(fs[k:])
		switch {
		case start/p == (start+(count-1)*step)/p && k < len(fs)-1: // this digit is constant; the next factors select the elements
			f.cut(&a.off, start/p, 1, 1)
			start %= p
		case step%p == 0: // only this digit changes; the digits of the next factors are constant
			f.cut(&a.off, start/p, count, step/p)
			start, count, step = start%p, 1, 1
		case step == 1 && start%p == 0 && count%p == 0: // this digit selects the elements; the next factors keep all of theirs
			f.cut(&a.off, start/p, count/p, 1)
			return true
		default:
			return false
		}
	}
	return true
}

// cut keeps count digits: start, start+step and so on.
func (f *Factor) cut(off *int, start, count, step int) {
	ceil := func(n int) int { return min(max((n+step-1)/step, 0), count) }
	g := Factor{N: count, Lo: 0, Hi: 0, Stride: f.Stride * step}
	if f.Lo > start {
		g.Lo = ceil(f.Lo - start)
	}
	if f.Hi > start {
		g.Hi = ceil(f.Hi - start)
	}
	g.Hi = max(g.Hi, g.Lo)
	if g.Hi > g.Lo {
		*off += (start + step*g.Lo - f.Lo) * f.Stride
	}
	*f = g
}

// flip reverses an axis.
func (a *aligned) flip(axis int) {
	for i := range a.axes[axis] {
		f := &a.axes[axis][i]
		a.off += (f.Hi - 1 - f.Lo) * f.Stride
		f.Lo, f.Hi, f.Stride = f.N-f.Hi, f.N-f.Lo, -f.Stride
	}
}

// expand returns the layout of the value broadcast to a shape by NumPy's rule:
// shapes are aligned at the end, and axes that are absent or of extent 1 repeat.
func (l *Layout) expand(s, over Shape) (Layout, bool) {
	if s.Equal(over) {
		return *l, true
	}
	if n, err := over.Size(); err != nil || n == 0 {
		return Layout{Rank: 1}, err == nil
	}
	a, ok := l.align(s)
	if !ok {
		return Layout{}, false
	}
	b := aligned{off: a.off, fill: a.fill, shape: over}
	for i, d := range over {
		j := i - (len(over) - len(s))
		switch {
		case j < 0 || s[j] == 1 && d != 1:
			b.axes[i] = []Factor{{d, 0, d, 0}}
		default:
			b.axes[i] = a.axes[j]
		}
	}
	return b.layout()
}

// pad returns the layout with the given numbers of fill elements before and after the elements of
// an axis.
func (l *Layout) pad(s Shape, axis, before, after int, fill uint32) (Layout, bool) {
	a, ok := l.align(s)
	if !ok || l.Windowed() && l.Fill != fill {
		return Layout{}, false
	}
	if s[axis] == 0 || l.Size() == 0 {
		t := append(Shape{}, s...)
		t[axis] += before + after
		n, err := t.Size()
		m, _ := canonical(0, fill, []Factor{{n, 0, 0, 0}})
		return m, err == nil
	}
	a.fill = fill
	fs := a.axes[axis]
	if len(fs) == 0 {
		fs = []Factor{{1, 0, 1, 0}}
	}
	p := inner(fs)
	if before%p != 0 || after%p != 0 {
		return Layout{}, false
	}
	before, after = before/p, after/p
	f := &fs[0]
	f.N, f.Lo, f.Hi = f.N+before+after, f.Lo+before, f.Hi+before
	a.axes[axis] = fs
	return a.layout()
}

// Over returns the layout of a contiguous value of shape s that is broadcast to shape out by
// NumPy's rule, or an ErrShape.
func Over(s, out Shape) (Layout, error) {
	n, err := s.Size()
	if err != nil {
		return Layout{}, err
	}
	l := RowMajor(n)
	return l.Over(s, out)
}

// Over is the function [Over] for a value of layout l. It returns an ErrUnsupported
// if no layout can describe the result: then the value must be copied first.
func (l *Layout) Over(s, out Shape) (Layout, error) {
	if err := s.spreads(out); err != nil {
		return Layout{}, err
	}
	m, ok := l.expand(s, out)
	if !ok {
		return m, unsupported("no layout describes %v of layout %v broadcast to %v: copy the operand first", s, l, out)
	}
	return m, nil
}

// spreads returns an ErrShape if s does not broadcast to out by NumPy's rule.
func (s Shape) spreads(out Shape) error {
	if len(s) > len(out) {
		return mismatch("%v does not broadcast to %v", s, out)
	}
	for i, d := range out {
		if e := s.at(i, len(out)); e != d && e != 1 {
			return mismatch("%v does not broadcast to %v", s, out)
		}
	}
	return nil
}
