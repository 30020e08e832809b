package block

import "math"

// levelSet finds the codes with the levels, times a scale, nearest to given numbers.
type levelSet struct {
	l *Layout
	// Levels in order and their codes; nil if the format has a grid.
	levels []float64
	codes  []uint32
	// steps has the level and the code nearest to lo + i/2: levels are whole
	// numbers, so the middles between them are halves of such.
	steps []step

	// whole says that levels are neighbouring whole numbers: the nearest one needs
	// no table.
	whole bool

	positive bool // the scale has no sign
	lo, hi   float64
	factors  []float64 // see search
	both     bool      // signs of the scale are tried
	repeats  int       // of making the best scale better: with many levels later ones change little
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
	if v.Number[0].Ternary || l.ID == layouts[TQ2_0].ID {
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

// insert adds a level, unless it is there, in its place.
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

// sums are Σ w·x·level and Σ w·level² over elements: with a scale s their
// squared error is Σ w·x² - 2·s·xl + s²·ll.
type sums struct{ xl, ll float64 }

// addLevel adds what an element of weight w with level l has.
func (a *sums) addLevel(x, w, l float64) {
	wl := float64(w * l)
	a.xl += float64(wl * x)
	a.ll += float64(wl * l)
}

func (a *sums) add(b sums) { a.xl, a.ll = a.xl+b.xl, a.ll+b.ll }

// err returns the squared error less Σ w·x².
func (a sums) err(s float64) float64 { return float64(s*float64(s*a.ll)) - float64(2*s*a.xl) }

// scale returns the best scale, and how much of Σ w·x² it explains.
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

// toWhole added to a number leaves it without a fraction: its last bit is worth 1.
const toWhole = 3 << 51

// nearest returns the whole number from lo to hi nearest to v.
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

// sumWhole returns the sums over the levels nearest to x·r, if these are whole
// numbers. Groups have an even number of elements.
func (s *levelSet) sumWhole(x, w []float64, r float64) sums {
	lo, hi := s.lo, s.hi
	var even, odd sums // chains that do not wait for each other
	for ; len(x) >= 2 && len(w) >= 2; x, w = x[2:], w[2:] {
		even.addLevel(x[0], w[0], nearest(float64(x[0]*r), lo, hi))
		odd.addLevel(x[1], w[1], nearest(float64(x[1]*r), lo, hi))
	}
	even.add(odd)
	return even
}

// assignWhole is sumWhole that writes the codes too.
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

// place returns v without its fraction, from 0 to last. (The built-in min and max
// look after NaN too, which takes longer.)
func place(v, last float64) int {
	if !(v > 0) {
		return 0
	}
	if v > last {
		v = last
	}
	return int(v)
}
