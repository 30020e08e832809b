package block

import "math"

// fit is the result of a search for one group of elements.
type fit struct{ scale float64 }

// scaled encodes blocks of the formats without a bias. First it finds the scale with the least
// error for each group. If group scales are small integer factors of one block scale, it derives
// the block scale from the greatest group scale, chooses the best factor near each group's scale,
// and then computes the best block scale for the chosen codes. It repeats this as long as the error
// decreases.
func (w *work) scaled(dst []byte, v, importance []float32) {
	l := w.e.l
	x, weights := w.wide(v, importance)
	n := l.Scale.groups(&l.Sub)
	each := len(x) / n
	for i := range n {
		w.groups[i] = w.e.levels.search(x[i*each:][:each], weights[i*each:][:each])
	}
	if l.Sub.Number != nil {
		w.factors(x, weights, n)
	} else {
		w.direct(x, weights, n)
	}
	l.pack(dst, &w.best)
}

// search returns the best scale that it finds for a group. It tries scales that map the
// greatest element to several places in the range of levels, and refines the best of
// them.
func (s *levelSet) search(x, w []float64) fit {
	top := 0.0
	for _, v := range x {
		if math.Abs(v) > math.Abs(top) {
			top = v
		}
	}
	var best fit
	most := 0.0
	try := func(a float64) {
		if a == 0 || math.IsInf(1/a, 0) {
			return
		}
		b, gain := s.assign(nil, 0, x, w, a).scale()
		if gain > most && !(s.positive && b <= 0) {
			most, best.scale = gain, b
		}
	}
	for _, f := range s.factors {
		switch {
		case s.positive:
			try(math.Abs(top) / (s.hi * f))
		default:
			try(top / (s.lo * f))
			if s.both {
				try(top / (s.hi * f))
			}
		}
	}
	for range s.repeats {
		old := most
		if try(best.scale); most == old {
			break
		}
	}
	return best
}

// units returns the factors by which the block scale is varied from the value for its greatest
// group: with many levels only the factor 1.
func (s *levelSet) units() []float64 {
	if len(s.levels) >= 8 {
		return []float64{1}
	}
	return []float64{1, 0.92, 1.06}
}

// setFactors chooses the places in the range of levels to which a search maps the
// greatest element. With many levels they are a little inside and outside the end of the
// range. With few levels they are far beyond it, so that the greatest elements are
// clipped.
func (s *levelSet) setFactors() {
	s.repeats = 3
	switch n := len(s.levels); {
	case n >= 8:
		width, steps := 0.12, 2
		if n >= 64 {
			width, steps, s.repeats = 0.035, 1, 1
		}
		for k := -steps; k <= steps; k++ {
			s.factors = append(s.factors, 1+width*float64(k)/float64(steps))
		}
		s.both = n < 16
	default:
		for f := 0.75; f < 3; f *= 1.2 {
			s.factors = append(s.factors, f)
		}
		s.both = true
	}
}

// direct encodes a block with full-precision group scales.
func (w *work) direct(x, weights []float64, n int) {
	l, p := w.e.l, &w.p
	each := len(x) / n
	widths := each / w.e.levels.width
	for i := range n {
		g, k := x[i*each:][:each], weights[i*each:][:each]
		least := math.Inf(1)
		for _, bits := range l.Scale.Encoding.near(w.groups[i].scale) {
			s := float64(l.Scale.Encoding.float(bits))
			e := w.e.levels.assign(p, i*each, g, k, s).err(s)
			if e < least {
				least = e
				w.best.scale[i] = bits
				copy(w.best.code[i*widths:][:widths], p.code[i*widths:][:widths])
			}
		}
		w.overflow = w.overflow || math.IsInf(least, 1) || w.groups[i].scale > w.e.limit
	}
}

// lastE8M0 is the greatest code of a scale whose product with every level is finite.
const lastE8M0 = 252

// near returns the codes of the numbers nearest to v.
func (e Encoding) near(v float64) []uint32 {
	switch e {
	case E8M0:
		if v <= 0 {
			return []uint32{0}
		}
		// v = m·2^x with m from 1/2 to 1, and code c is 2^(c-128).
		_, x := math.Frexp(v)
		c := max(0, min(lastE8M0, x+127))
		return []uint32{uint32(c), uint32(min(lastE8M0, c+1)), uint32(max(0, c-1))}
	case UE4M3:
		c := 0
		for c < 126 && float64(ue4m3(uint32(c+1))) <= v {
			c++
		}
		return []uint32{uint32(c), uint32(min(126, c+1)), uint32(max(0, c-1)), uint32(min(126, c+2)), uint32(max(0, c-2))}
	}
	return []uint32{uint32(halfBits(float32(v)))}
}

// factors encodes a block with group scales that are small factors of one scale.
func (w *work) factors(x, weights []float64, n int) {
	l := w.e.l
	top := 0.0
	for _, g := range w.groups[:n] {
		if math.Abs(g.scale) > math.Abs(top) {
			top = g.scale
		}
	}
	last := 1<<l.Sub.Number.bits() - 1
	most := float64(l.Sub.value(uint32(last)))
	if l.Sub.Signed || l.Sub.Add < 0 {
		// The range has one more factor below 0, so the one of the greatest magnitude is negative.
		most = -math.Ldexp(1, l.Sub.Number.bits()-1)
	}
	least := math.Inf(1)
	for _, f := range w.e.levels.units() {
		d := top / most * f
		for range min(3, 1+w.e.levels.repeats) {
			h := halfBits(float32(d))
			unit := float64(Binary16.float(uint32(h)))
			e, t := w.choose(x, weights, n, unit)
			if !(e < least) {
				break
			}
			least = e
			w.best = w.p
			w.best.scale[0] = uint32(h)
			if d, _ = t.scale(); uint32(halfBits(float32(d))) == uint32(h) {
				break
			}
		}
	}
	w.overflow = math.IsInf(least, 1)
}

// choose finds the factor of each group for the scale d, and returns the error
// of the block and the sums over its levels times their factors.
func (w *work) choose(x, weights []float64, n int, d float64) (e float64, t sums) {
	l := w.e.l
	each := len(x) / n
	var buf [2]uint32
	for i := range n {
		g, k := x[i*each:][:each], weights[i*each:][:each]
		codes := l.Sub.near(buf[:0], w.groups[i].scale, d)
		code := codes[0]
		if least := math.Inf(1); len(codes) > 1 {
			for _, c := range codes {
				s := d * float64(l.Sub.value(c))
				if e := w.e.levels.assign(nil, 0, g, k, s).err(s); e < least {
					least, code = e, c
				}
			}
		}
		f := float64(l.Sub.value(code))
		sum := w.e.levels.assign(&w.p, i*each, g, k, d*f)
		w.p.sub[i] = code
		e += sum.err(d * f)
		t.add(sums{f * sum.xl, f * f * sum.ll})
	}
	return e, t
}

// near appends the codes of the factors whose products with d are nearest to s.
func (n *Integer) near(codes []uint32, s, d float64) []uint32 {
	bits := n.Number.bits()
	v := 0.0
	if d != 0 {
		v = (s/d - float64(n.Add)) / float64(n.Mul)
	}
	lo, hi := 0.0, float64(int(1)<<bits-1)
	if n.Signed {
		lo = -float64(int(1) << (bits - 1))
		hi = -lo - 1
	}
	clamp := func(v float64) uint32 {
		if !(v >= lo) {
			v = lo
		}
		return uint32(int32(min(v, hi))) & (uint32(1)<<bits - 1)
	}
	if bits >= 8 {
		return append(codes, clamp(math.Floor(v+0.5))) // the second nearest is hardly ever better
	}
	v = math.Floor(v)
	return append(codes, clamp(v), clamp(v+1))
}
