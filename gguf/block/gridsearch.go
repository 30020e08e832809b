package block

import "math"

// nearbyRows is the number of rows of a grid that a search tries for each point.
const nearbyRows = 12

// points returns the number of points with coordinates from the alphabet.
func (g *Grid) points() int {
	n := 1
	for range g.Width {
		n *= len(g.alphabet)
	}
	return n
}

// nearRows are the rows nearest to a point, the nearest first.
type nearRows struct {
	rows  [nearbyRows]uint16
	exact bool // the first row equals the point
}

// rowsNear returns the rows nearest to a point. The digits of the point's number, in the base of
// the alphabet's size, are the indices of its coordinates in the alphabet. The rows are searched at
// the first request for the point.
func (g *Grid) rowsNear(point int) *nearRows {
	g.once.Do(g.unpack)
	if n := g.nearby[point].Load(); n != nil {
		return n
	}
	n := g.findNearby(point)
	g.nearby[point].Store(n)
	return n
}

// findNearby searches the rows nearest to a point.
func (g *Grid) findNearby(point int) *nearRows {
	var levels [8]int32
	base := len(g.alphabet)
	for j := range g.Width {
		levels[j] = int32(g.alphabet[point%base])
		point /= base
	}
	var near nearRows
	var distances [nearbyRows]int32
	found := 0
	for r := range g.Rows {
		d := int32(0)
		for j, v := range g.levels[r*g.Width:][:g.Width] {
			t := levels[j] - int32(v)
			d += t * t
		}
		if found == nearbyRows && d >= distances[found-1] {
			continue
		}
		found = min(found+1, nearbyRows)
		at := found - 1
		for ; at > 0 && distances[at-1] > d; at-- {
			distances[at], near.rows[at] = distances[at-1], near.rows[at-1]
		}
		distances[at], near.rows[at] = d, uint16(r)
	}
	near.exact = distances[0] == 0
	return &near
}

// point returns the number of the point nearest to v.
func (g *Grid) point(v *[8]float64) int {
	p, base := 0, 1
	for _, x := range v[:g.Width] {
		i := 0
		for i+1 < len(g.alphabet) && x > float64(int(g.alphabet[i])+int(g.alphabet[i+1]))/2 {
			i++
		}
		p += i * base
		base *= len(g.alphabet)
	}
	return p
}

// find returns the row near v with the least weighted squared distance from v, in units of the
// scale, and that distance.
func (g *Grid) find(v, w *[8]float64) (row int, distance float64) {
	distance = math.Inf(1)
	near := g.rowsNear(g.point(v))
	rows := near.rows[:]
	if near.exact {
		rows = rows[:1] // it is the nearest row in every coordinate
	}
	for _, r := range rows {
		d := 0.0
		for j, l := range g.levels[int(r)*g.Width:][:g.Width] {
			t := v[j] - float64(l)
			d += float64(w[j] * float64(t*t))
		}
		if d < distance {
			row, distance = int(r), d
		}
	}
	return row, distance
}

// assignRows is assign for levels from a grid.
func (s *levelSet) assignRows(p *parts, at int, x, w []float64, scale float64) sums {
	if s.l.Level.Shift != nil {
		return s.assignShifted(p, at, x, w, scale)
	}
	var t sums
	for i := 0; i < len(x); i += 8 {
		negative := s.signs(x[i:][:8], w[i:][:8])
		if p != nil {
			s.putSigns(p, at+i, negative)
		}
		for j := i; j < i+8; j += s.width {
			t.add(s.assignRow(p, at+j, x[j:][:s.width], w[j:][:s.width], negative>>(j-i), scale))
		}
	}
	return t
}

// signs returns one bit for each of 8 elements: 1 if it is negative. If the number of negative elements
// must be even but is odd, it flips the sign that adds the least error.
func (s *levelSet) signs(x, w []float64) (negative uint32) {
	odd := false
	least, at := math.Inf(1), 0
	for i, v := range x {
		if v < 0 {
			negative |= 1 << i
			odd = !odd
		}
		if c := w[i] * float64(v*v); c < least {
			least, at = c, i
		}
	}
	if odd && s.l.Level.Signs.bits() == 7 {
		negative ^= 1 << at
	}
	return negative
}

// putSigns writes the signs of 8 elements.
func (s *levelSet) putSigns(p *parts, at int, negative uint32) {
	if s.l.Level.Signs.bits() == 7 {
		p.sign[at/8] = negative & 127
		return
	}
	for j := range 8 {
		p.sign[at+j] = negative >> j & 1
	}
}

func (s *levelSet) assignRow(p *parts, at int, x, w []float64, negative uint32, scale float64) sums {
	var v, k, y [8]float64
	r := inverse(scale)
	for j := range x {
		y[j], k[j] = x[j], w[j]
		if negative>>j&1 != 0 {
			y[j] = -y[j]
		}
		v[j] = y[j] * r
	}
	row, _ := s.l.Level.Grid.find(&v, &k)
	if p != nil {
		p.code[at/s.width] = uint32(row)
	}
	var t sums
	for j, l := range s.l.Level.Grid.row(row) {
		t.xl += float64(k[j] * float64(y[j]*float64(l)))
		t.ll += float64(k[j] * float64(int(l)*int(l)))
	}
	return t
}

// assignShifted is assign for levels to which 1/8 is added or from which it is
// subtracted. For each group of rows that share the choice, it takes the one with
// the smaller error.
func (s *levelSet) assignShifted(p *parts, at int, x, w []float64, scale float64) sums {
	each := s.l.Elements / s.l.Level.Shift.Items()
	var t sums
	for i := 0; i < len(x); i += each {
		var sum [2]sums
		var rows [2][4]int
		var cost [2]float64
		for bit := range 2 {
			shift := 0.125 - 0.25*float64(bit)
			for j := 0; j < each; j += 8 {
				rows[bit][j/8] = s.shiftedRow(x[i+j:], w[i+j:], scale, shift, &sum[bit], &cost[bit])
			}
		}
		bit := 0
		if cost[1] < cost[0] {
			bit = 1
		}
		t.add(sum[bit])
		if p != nil {
			p.shift[(at+i)/each] = uint32(bit)
			for j := range each / 8 {
				p.code[(at+i)/8+j] = uint32(rows[bit][j])
			}
		}
	}
	return t
}

// shiftedRow finds the row of 8 elements and adds its sums and its distance.
func (s *levelSet) shiftedRow(x, w []float64, scale, shift float64, t *sums, cost *float64) int {
	var v, k [8]float64
	r := inverse(scale)
	for j := range v {
		v[j], k[j] = float64(x[j]*r)-shift, w[j]
	}
	row, d := s.l.Level.Grid.find(&v, &k)
	*cost += d
	for j, l := range s.l.Level.Grid.row(row) {
		l := float64(l) + shift
		t.xl += float64(k[j] * float64(x[j]*l))
		t.ll += float64(k[j] * float64(l*l))
	}
	return row
}
