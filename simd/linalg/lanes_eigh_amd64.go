//go:build amd64 && !noasm

package linalg

import "math"

// A spectrum finds the eigenvalues and eigenvectors of a symmetric matrix, of a norm of about 1, in each lane.
type spectrum struct {
	order int
	a, vt grid  // the matrix, which is overwritten, and its eigenvectors by rows
	d, e  []vec // the diagonal of a tridiagonal matrix, then the eigenvalues; the elements beside it, then 0
	taus  []vec
	turns []vec        // a cosine and a sine for each rotation
	pairs []vec        // the vectors v, w, v of an update
	at    [Lanes]int32 // the first element of each lane that has not converged
}

// spectrumVectors returns how many vectors a spectrum takes.
func spectrumVectors(order int) int { return order * (2*order + 8) }

func newSpectrum(m []vec, order int) *spectrum {
	s := &spectrum{order: order}
	take := func(n int) []vec {
		x := m[:n:n]
		m = m[n:]
		return x
	}
	s.a, s.vt = grid{take(order * order), order, 1}, grid{take(order * order), order, 1}
	s.d, s.e, s.taus = take(order), take(order), take(order)
	s.turns, s.pairs = take(2*order), take(3*order)
	return s
}

// counts is the length of a column below which its elements count as 0, in a matrix with a norm of about 1.
const counts = 1e-15

// solve finds the eigenvalues and eigenvectors, in no order. It returns a mask of the lanes that did not converge.
func (s *spectrum) solve() (bad uint8) {
	s.reduce()
	s.vt.first(s.order)
	if k := s.order - 1; k > 0 {
		s.vt.from(1, 1).accumulate(s.a.from(0, 1), s.taus, k, k, s.pairs)
	}
	s.at = [Lanes]int32{}
	for range 40 * s.order {
		if s.step() {
			return infinite(s.vt.data) | infinite(s.d)
		}
	}
	for l, at := range s.at {
		if int(at) < s.order {
			bad |= 1 << l
		}
	}
	return bad | infinite(s.vt.data) | infinite(s.d)
}

// first sets the first row and column of a square matrix to those of the identity.
func (g grid) first(order int) {
	for i := range order {
		*g.at(0, i), *g.at(i, 0) = vec{}, vec{}
	}
	for l := range Lanes {
		g.at(0, 0)[l] = 1
	}
}

// reduce makes the matrix tridiagonal. The vectors of the reflections remain beside the diagonal of a.
func (s *spectrum) reduce() {
	n := s.order
	p := grid{s.pairs[n:], 1, 1}
	for k := range n {
		s.d[k] = *s.a.at(k, k)
		rest := n - k - 1
		if rest == 0 {
			s.e[k] = vec{}
			break
		}
		v, b := s.a.from(k, k+1).t(), s.a.from(k+1, k+1)
		f := v.reflector(rest, counts)
		s.e[k], s.taus[k] = f.beta, f.tau
		if rest == 1 {
			continue
		}
		// w = tau·A·v - (tau²/2)·(vᵀ·A·v)·v, and A becomes A - v·wᵀ - w·vᵀ.
		p.set(b, v, rest, 1, rest)
		var h [1]vec
		half := grid{h[:], 1, 1}
		half.set(p.t(), v, 1, 1, rest)
		for l, tau := range f.tau {
			h[0][l] *= tau * tau / 2
		}
		p.scale(&f.tau, rest)
		p.less(v, half, rest, 1, 1)
		copy(s.pairs[:rest], v.data)
		copy(s.pairs[2*n:2*n+rest], v.data)
		b.less(grid{s.pairs, 1, n}, grid{s.pairs[n:], n, 1}, rest, rest, 2)
	}
}

// step does one QL iteration in all lanes. It reports whether all lanes had converged before.
func (s *spectrum) step() (done bool) {
	var from, to [Lanes]int32
	var state [2]vec
	first, last := s.order, 0
	for l := range Lanes {
		at, m := s.window(l)
		if s.at[l] = int32(at); at == s.order {
			continue
		}
		to[l], from[l] = int32(at), int32(m)
		first, last = min(first, at), max(last, m)
		d, e := float64(s.d[at][l]), float64(s.e[at][l])
		g := (float64(s.d[at+1][l]) - d) / (2 * e)
		state[0][l] = float32(float64(s.d[m][l]) - d + e/(g+math.Copysign(math.Sqrt(g*g+1), g)))
	}
	if last == 0 {
		return true
	}
	lanesQLAVX2(&s.turns[0][0], &s.d[0][0], &s.e[0][0], &state[0][0], &from[0], &to[0], first, last)
	for l := range Lanes {
		if at, m := to[l], from[l]; m > 0 {
			s.d[at][l] -= state[1][l]
			s.e[at][l] = state[0][l]
			s.e[m][l] = 0
		}
	}
	rows := s.vt.from(first, 0)
	lanesTurnAVX2(&rows.data[0][0], &s.turns[2*first][0], 4*Lanes*rows.row, s.order, last-first)
	return false
}

// window returns the first range of elements in a lane, from at to m, that has not converged. If all have
// converged, at is the order.
func (s *spectrum) window(lane int) (at, m int) {
	for at = int(s.at[lane]); at < s.order; at = m + 1 {
		for m = at; m+1 < s.order; m++ {
			e := s.e[m][lane]
			if e = max(e, -e); e <= 0x1p-25*(abs(s.d[m][lane])+abs(s.d[m+1][lane])) || e <= 0x1p-30 {
				break
			}
		}
		if m > at {
			break
		}
	}
	return at, m
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// sorted writes the indices of the values of a lane to places, in ascending order of the values.
func sorted(values []vec, lane int, places []int32) {
	for i := range values {
		v, k := values[i][lane], i
		for ; k > 0 && values[places[k-1]][lane] > v; k-- {
			places[k] = places[k-1]
		}
		places[k] = int32(i)
	}
}

// normalise multiplies each lane of x by a power of two, so that its greatest magnitude is about 1. It returns the
// scales that undo this, and a mask of the lanes that are not finite or whose power is beyond float32.
func normalise(x []vec) (scale [Lanes]float64, bad uint8) {
	bad = infinite(x)
	_, most := grid{x, 1, 1}.pivot(len(x))
	var factors vec
	for l, m := range most {
		e := 0
		if m > 0 && bad>>l&1 == 0 {
			_, e = math.Frexp(float64(m))
		}
		if e > 125 || e < -125 {
			bad |= 1 << l
			e = 0
		}
		scale[l], factors[l] = math.Ldexp(1, e), float32(math.Ldexp(1, -e))
	}
	grid{x, 1, 1}.scale(&factors, len(x))
	return scale, bad
}

// EighLanes is [Eigh] for count matrices.
func EighLanes(w, v, a []float32, order, count int) (bad uint8) {
	memory := takeVectors(spectrumVectors(order))
	defer memory.give()
	s := newSpectrum(memory.data, order)
	pack(s.a.data, a, count)
	for i := range order {
		for j := range i {
			*s.a.at(j, i) = *s.a.at(i, j)
		}
	}
	scale, bad := normalise(s.a.data)
	if bad |= s.solve(); bad&used(count) == used(count) {
		return used(count)
	}
	bad &= used(count)
	rows := take(Lanes * order * order)
	defer rows.give()
	unpack(rows.data, s.vt.data, count, 0)
	moved := take(order * order)
	defer moved.give()
	places := make([]int32, order)
	for l := range count {
		if bad>>l&1 != 0 {
			continue
		}
		sorted(s.d, l, places)
		vt := Matrix{moved.data, order, order, order}
		for i, at := range places {
			w[l*order+i] = float32(float64(s.d[at][l]) * scale[l])
			copy(vt.row(i), rows.data[(l*order+int(at))*order:])
		}
		transpose(Matrix{v[l*order*order:], order, order, order}, vt)
	}
	return bad
}
