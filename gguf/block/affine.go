package block

import (
	"math"
	"slices"
)

// line is the result of a search for a group: the elements are approximately scale·q - min for integers q.
type line struct{ scale, min float64 }

// lineSums are weighted sums over a group whose elements x have levels q.
type lineSums struct{ n, x, q, qq, qx float64 }

// err returns the squared error of scale·q - min, less Σ w·x².
func (t *lineSums) err(l line) float64 {
	s, m := l.scale, l.min
	return float64(s*float64(s*t.qq)) + float64(m*float64(m*t.n)) - float64(2*s*t.qx) + float64(2*m*t.x) - float64(2*s*float64(m*t.q))
}

// best returns the line with the least error for the levels. With positive, minimums must not be
// negative: a negative one is set to 0.
func (t *lineSums) best(old line, positive bool) line {
	d := float64(t.n*t.qq) - float64(t.q*t.q)
	if d <= 0 {
		return old
	}
	l := line{(float64(t.n*t.qx) - float64(t.q*t.x)) / d, (float64(t.q*t.qx) - float64(t.qq*t.x)) / d}
	if positive && l.min < 0 && t.qq > 0 {
		l = line{t.qx / t.qq, 0}
	}
	return l
}

// totals returns the sums n and x, which do not depend on levels.
func totals(x, w []float64) (t lineSums) {
	for i, v := range x {
		t.n += w[i]
		t.x += float64(w[i] * v)
	}
	return t
}

// levels returns the sums for the levels from 0 to limit that are nearest to the elements of
// a group with totals t.
func (t lineSums) levels(x, w []float64, l line, limit float64) lineSums {
	r := inverse(l.scale)
	half := float64(l.min*r) + 0.5
	w = w[:len(x)]
	var sq, sqq, sqx float64
	for i, v := range x {
		q := float64(place(float64(v*r)+half, limit))
		kq := float64(w[i] * q)
		sq += kq
		sqq += float64(kq * q)
		sqx += float64(kq * v)
	}
	t.q, t.qq, t.qx = sq, sqq, sqx
	return t
}

// put writes the levels of a group.
func put(codes []uint32, x []float64, l line, limit float64) {
	r := inverse(l.scale)
	half := float64(l.min*r) + 0.5
	for i, v := range x {
		codes[i] = uint32(place(float64(v*r)+half, limit))
	}
}

// inverse returns 1/s if s is positive and the quotient is finite, otherwise 0.
func inverse(s float64) float64 {
	r := 1 / s
	if !(s > 0) || math.IsInf(r, 0) {
		return 0
	}
	return r
}

// findLine returns the line with the least error that it finds. It tries to map the range
// of the elements to somewhat fewer and more levels than there are. With more levels, the
// elements at the ends of the range are clipped, and the others become more accurate.
func findLine(x, w []float64, sum lineSums, limit float64, positive bool) line {
	lo, hi := slices.Min(x), slices.Max(x)
	if positive {
		lo = min(lo, 0)
	}
	if hi <= lo {
		return line{0, -lo}
	}
	width := hi - lo
	var found line
	least := math.Inf(1)
	try := func(l line) {
		t := sum.levels(x, w, l, limit)
		l = t.best(l, positive)
		if e := t.err(l); l.scale > 0 && e < least {
			least, found = e, l
		}
	}
	span := 1.0 + 0.35*min(1, 3/limit)
	steps := 4
	if limit > 8 {
		steps = 3 // a finer search gains less than 1/500
	}
	for step := -steps; step <= steps; step++ {
		try(line{width / (limit + span*float64(step)/float64(steps)), -lo})
	}
	if limit < 8 {
		// With few levels, also try ranges without the part at one end.
		for _, cut := range [...]float64{0.15, 0.3} {
			try(line{width * (1 - cut) / limit, -lo})
			try(line{width * (1 - cut) / limit, -lo - width*cut/2})
			try(line{width * (1 - cut) / limit, -lo - width*cut})
		}
	}
	for range 2 {
		old := least
		if try(found); least == old {
			break
		}
	}
	return found
}

// affine encodes blocks of the formats with a bias.
func (w *work) affine(dst []byte, v, importance []float32) {
	l := w.e.l
	x, weights := w.wide(v, importance)
	n := l.Scale.groups(&l.Sub)
	each := len(x) / n
	limit := float64(uint32(1)<<l.Level.Number.bits() - 1)
	positive := l.SubBias.Number != nil
	var lines [16]line
	for i := range n {
		g, k := x[i*each:][:each], weights[i*each:][:each]
		w.sums[i] = totals(g, k)
		lines[i] = findLine(g, k, w.sums[i], limit, positive)
	}
	if !positive {
		s, m := halfBits(float32(lines[0].scale)), halfBits(float32(-lines[0].min))
		w.p.scale[0], w.p.bias[0] = uint32(s), uint32(m)
		put(w.p.code[:each], x, line{float64(Binary16.float(uint32(s))), -float64(Binary16.float(uint32(m)))}, limit)
		l.pack(dst, &w.p)
		return
	}
	w.lines(x, weights, lines[:n], limit)
	l.pack(dst, &w.best)
}

// lines quantises the scales and minimums of the groups to small integers. Their two factors are
// first derived from the greatest scale and minimum, and then fitted to the chosen integers, as
// long as this reduces the error.
func (w *work) lines(x, weights []float64, lines []line, limit float64) {
	l := w.e.l
	most := float64(uint32(1)<<l.Sub.Number.bits() - 1)
	var top line
	for _, g := range lines {
		top = line{max(top.scale, g.scale), max(top.min, g.min)}
	}
	least := math.Inf(1)
	d := line{top.scale / most, top.min / most}
	for range 2 {
		s, m := halfBits(float32(d.scale)), halfBits(float32(d.min))
		unit := line{float64(Binary16.float(uint32(s))), float64(Binary16.float(uint32(m)))}
		e, next := w.chooseLines(x, weights, lines, unit, limit, most)
		if !(e < least) {
			break
		}
		least = e
		w.best = w.p
		w.best.scale[0], w.best.bias[0] = uint32(s), uint32(m)
		if next == unit {
			break
		}
		d = next
	}
	w.overflow = math.IsInf(least, 1)
}

// chooseLines chooses the integers of each group for the factors d. It returns the
// error of the block and the best factors for these integers.
func (w *work) chooseLines(x, weights []float64, lines []line, d line, limit, most float64) (e float64, next line) {
	each := len(x) / len(lines)
	var qq, qm, mm, xq, xm float64
	for i, g := range lines {
		y, k := x[i*each:][:each], weights[i*each:][:each]
		a, b, least, t := w.choosePair(i, y, k, g, d, limit, most)
		put(w.p.code[i*each:][:each], y, line{a * d.scale, b * d.min}, limit)
		w.p.sub[i], w.p.subBias[i] = uint32(a), uint32(b)
		e += least
		qq += float64(a * float64(a*t.qq))
		qm += float64(a * float64(b*t.q))
		mm += float64(b * float64(b*t.n))
		xq += float64(a * t.qx)
		xm += float64(b * t.x)
	}
	return e, solve(qq, qm, mm, xq, xm, d)
}

// choosePair chooses the two integers of group i for the factors d. If the factors are
// coarse, the chosen minimum may differ much from that of the best line. It therefore
// searches the best scale for each minimum.
func (w *work) choosePair(i int, x, weights []float64, g, d line, limit, most float64) (scale, offset, least float64, t lineSums) {
	least = math.Inf(1)
	try := func(a, b float64) lineSums {
		now := line{a * d.scale, b * d.min}
		sum := w.sums[i].levels(x, weights, now, limit)
		if e := sum.err(now); e < least {
			least, scale, offset, t = e, a, b, sum
		}
		return sum
	}
	s0, s1 := beside(g.scale, d.scale, most)
	m0, m1 := beside(g.min, d.min, most)
	for m := m0; m <= m1; m++ {
		for s := s0; s <= s1; s++ {
			sum := try(s, m)
			for last := s; most <= 15 && d.scale > 0 && sum.qq > 0; {
				better := (sum.qx + float64(m*d.min)*sum.q) / sum.qq
				a := max(0, min(most, math.Floor(better/d.scale+0.5)))
				if a == last {
					break
				}
				last, sum = a, try(a, m)
				if last != scale {
					break
				}
			}
		}
	}
	return scale, offset, least, t
}

// solve returns the scale and min that minimise Σ (x - scale·q + min·m)², given the
// sums of the products.
func solve(qq, qm, mm, xq, xm float64, old line) line {
	det := float64(qq*mm) - float64(qm*qm)
	switch {
	case qq <= 0:
		return old
	case mm <= 0 || det <= float64(1e-9*qq)*mm:
		return line{xq / qq, old.min}
	}
	s := (float64(xq*mm) - float64(qm*xm)) / det
	m := (float64(qm*xq) - float64(qq*xm)) / det
	if !(s > 0 && m >= 0) {
		return old
	}
	return line{s, m}
}

// beside returns the integers below and above v/unit, limited to [0, most].
func beside(v, unit, most float64) (lo, hi float64) {
	if unit == 0 {
		return 0, 0
	}
	f := v / unit
	lo, hi = math.Floor(f), math.Floor(f)+1
	if most > 15 && math.Abs(f-lo-0.5) > 0.25 {
		// With fine steps only the nearest integer is a candidate.
		lo = math.Floor(f + 0.5)
		hi = lo
	}
	return max(0, min(most, lo)), max(0, min(most, hi))
}
