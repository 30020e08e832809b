package block

import "math"

// levelSet finds the codes whose levels, times a scale, are nearest to given numbers.
type levelSet struct {
	l *Layout
	// The levels in ascending order, and their codes; nil if the format has a grid.
	levels []float64
	codes  []uint32
	// steps[i] is the level nearest to lo + i/2, and its code. Levels are integers, so the
	// midpoints between them are multiples of 1/2.
	steps []step

	// whole says that levels are consecutive integers, so that the nearest one is found
	// without a table.
	whole bool

	positive bool // the encoding of the scale has no sign
	lo, hi   float64
	factors  []float64 // see search
	both     bool      // try both signs of the scale
	repeats  int       // the number of times that the best scale is refined; with many levels, few are enough
	width    int       // elements of a code
}

func newLevelSet(l *Layout) levelSet {
	s := levelSet{l: l, width: 1}
	v := &l.Level
	s.positive = v.Signs != nil || v.Shift != nil || l.Scale.Encoding != Binary16
	if v.Grid != nil {
		s.setFactors()
		s.width = v.Grid.Width
		s.hi = float64(v.Grid.alphabet[len(v.Grid.alphabet)-1])
		s.lo = -s.hi
		return s
	}
	var p parts
	y := make([]float32, 1)
	for c := range uint32(1) << v.Number.bits() {
		p.code[0] = c
		l.levels(y, &p)
		s.insert(float64(y[0]), c)
	}
	// Three values of two bits are used by ternary formats.
	if v.Number[0].Ternary || l.ID == TQ2_0.ID() {
		s.levels, s.codes = s.levels[:3], s.codes[:3]
	}
	s.lo, s.hi = s.levels[0], s.levels[len(s.levels)-1]
	s.setFactors()
	s.whole = s.hi-s.lo == float64(len(s.levels)-1)
	i := 0
	for v := s.lo; v <= s.hi; v += 0.5 {
		for i+1 < len(s.levels) && v >= (s.levels[i]+s.levels[i+1])/2 {
			i++
		}
		s.steps = append(s.steps, step{s.levels[i], s.codes[i]})
	}
	return s
}

// insert adds a level in ascending order, unless it is there already.
func (s *levelSet) insert(v float64, code uint32) {
	i := 0
	for i < len(s.levels) && s.levels[i] < v {
		i++
	}
	if i < len(s.levels) && s.levels[i] == v {
		return
	}
	s.levels = append(s.levels[:i], append([]float64{v}, s.levels[i:]...)...)
	s.codes = append(s.codes[:i], append([]uint32{code}, s.codes[i:]...)...)
}

// step is a level and its code.
type step struct {
	level float64
	code  uint32
}

// sums has Σ w·x·level and Σ w·level² over elements. With a scale s the squared
// error of the elements is Σ w·x² - 2·s·xl + s²·ll.
type sums struct{ xl, ll float64 }

// addLevel adds the terms of an element x of weight w with level l.
func (a *sums) addLevel(x, w, l float64) {
	wl := float64(w * l)
	a.xl += float64(wl * x)
	a.ll += float64(wl * l)
}

func (a *sums) add(b sums) { a.xl, a.ll = a.xl+b.xl, a.ll+b.ll }

// err returns the squared error for scale s, minus Σ w·x².
func (a sums) err(s float64) float64 { return float64(s*float64(s*a.ll)) - float64(2*s*a.xl) }

// scale returns the best scale, and by how much it reduces the squared error Σ w·x² of zeros.
func (a sums) scale() (s, gain float64) {
	if a.ll == 0 {
		return 0, 0
	}
	s = a.xl / a.ll
	return s, s * a.xl
}

// assign returns the sums of the levels nearest to x with scale s, and writes their codes, and
// signs and shifts if the format has any, to the fields of the group that begins at element at of
// the block, unless p is nil.
func (s *levelSet) assign(p *parts, at int, x, w []float64, scale float64) sums {
	if s.l.Level.Grid != nil {
		return s.assignRows(p, at, x, w, scale)
	}
	r := 1 / scale
	if math.IsInf(r, 0) || math.IsNaN(r) {
		r = 0
	}
	switch {
	case s.whole && p != nil:
		return s.assignWhole(p.code[at:][:len(x)], x, w, r)
	case s.whole:
		return s.sumWhole(x, w, r)
	}
	r *= 2
	steps, lo, last := s.steps, 2*s.lo, float64(len(s.steps)-1)
	var t sums
	w = w[:len(x)]
	if p != nil {
		codes := p.code[at:][:len(x)]
		for i, v := range x {
			n := &steps[place(float64(v*r)-lo, last)]
			codes[i] = n.code
			t.addLevel(v, w[i], n.level)
		}
		return t
	}
	for i, v := range x {
		t.addLevel(v, w[i], steps[place(float64(v*r)-lo, last)].level)
	}
	return t
}

// toWhole, added to a number, rounds it to an integer, because the last bit of the sum has the value 1.
const toWhole = 3 << 51

// nearest returns the integer from lo to hi nearest to v.
func nearest(v, lo, hi float64) float64 {
	v = v + toWhole - toWhole
	if v < lo {
		v = lo
	}
	if v > hi {
		v = hi
	}
	return v
}

// sumWhole returns the sums for the levels nearest to x·r, if levels are consecutive
// integers. Groups have an even number of elements.
func (s *levelSet) sumWhole(x, w []float64, r float64) sums {
	lo, hi := s.lo, s.hi
	var even, odd sums // two sums, so that additions do not wait for each other
	for ; len(x) >= 2 && len(w) >= 2; x, w = x[2:], w[2:] {
		even.addLevel(x[0], w[0], nearest(float64(x[0]*r), lo, hi))
		odd.addLevel(x[1], w[1], nearest(float64(x[1]*r), lo, hi))
	}
	even.add(odd)
	return even
}

// assignWhole is sumWhole, and also writes the codes.
func (s *levelSet) assignWhole(codes []uint32, x, w []float64, r float64) (t sums) {
	lo, hi := s.lo, s.hi
	w, codes = w[:len(x)], codes[:len(x)]
	for i, v := range x {
		l := nearest(float64(v*r), lo, hi)
		codes[i] = s.codes[int(l-lo)]
		t.addLevel(v, w[i], l)
	}
	return t
}

// place truncates v and limits it to [0, last]. (The built-in min and max also handle
// NaN, which takes longer.)
func place(v, last float64) int {
	if !(v > 0) {
		return 0
	}
	if v > last {
		v = last
	}
	return int(v)
}
