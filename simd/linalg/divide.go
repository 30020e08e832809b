package linalg

import (
	"cmp"
	"math"
	"slices"

	"github.com/rayo-go/rayo/simd"
)

// whole is the largest order of tridiagonal matrices that are not divided.
const whole = 32

// deflated is the part of the norm below which an element counts as zero.
const deflated = 0x1p-25

// A divider finds the eigenvectors of a tridiagonal matrix by dividing it in two and
// joining the vectors of the halves (Cuppen; Gu and Eisenstat). Eigenvalues and the
// components in which vectors are joined are float64, the products float32.
type divider struct {
	p      *simd.Pool
	vt     Matrix    // the vectors, by rows
	memory []float32 // as large as vt
}

func newDivider(p *simd.Pool, vt Matrix) *divider {
	d := &divider{p: p, vt: vt}
	d.memory = make([]float32, vt.Rows*vt.Cols)
	return d
}

// solve computes the eigenvalues and eigenvectors of the tridiagonal matrix with diagonal d
// and off-diagonal e. It writes the eigenvalues to d in ascending order, and the vectors to
// the rows and columns of vt from at on.
func (c *divider) solve(d, e []float64, at int) {
	order := len(d)
	vt := c.vt.part(at, at, order, order)
	if order <= whole {
		for i := range order {
			vt.row(i)[i] = 1
		}
		if !ql(d, e, vt) {
			for i := range d {
				d[i] = math.NaN()
			}
		}
		sortRows(d, vt, c.memory)
		return
	}
	h := order / 2
	rho, sign := math.Abs(e[h-1]), math.Copysign(1, e[h-1])
	d[h-1] -= rho
	d[h] -= rho
	c.solve(d[:h], e[:h-1], at)
	c.solve(d[h:], e[h:], at+h)
	if rho > 0 {
		j := &joint{c: c, vt: vt, d: d, rho: rho, half: h}
		j.join(sign)
	} else {
		sortRows(d, vt, c.memory)
	}
}

// A joint joins the halves of a matrix: diag(d) + rho·z·zᵀ in the basis of the vectors.
type joint struct {
	c    *divider
	vt   Matrix
	d    []float64
	rho  float64
	half int
	z    []float64

	from  []int     // the rows that are not deflated, by ascending d
	kind  []uint8   // for each row: which columns are not zero
	poles []float64 // d of the rows in from
	zs    []float64 // z of the rows in from
	diff  []float64 // for each root: the poles minus the root
	roots []float64
}

const (
	upper = 1
	lower = 2
)

func (j *joint) join(sign float64) {
	order := len(j.d)
	j.z, j.kind = make([]float64, order), make([]uint8, order)
	size := 0.0
	for i := range order {
		if i < j.half {
			j.z[i], j.kind[i] = float64(j.vt.row(i)[j.half-1]), upper
		} else {
			j.z[i], j.kind[i] = sign*float64(j.vt.row(i)[j.half]), lower
		}
		size += j.z[i] * j.z[i]
	}
	j.deflate()
	if len(j.from) > 0 {
		j.secular()
		j.multiply()
	}
	sortRows(j.d, j.vt, j.c.memory)
}

// deflate finds the rows whose eigenvalues do not change: rows with a small z, or with nearly equal
// d, for which a rotation makes z small.
func (j *joint) deflate() {
	order := len(j.d)
	place := make([]int, order)
	norm := j.rho
	for i := range place {
		place[i] = i
		norm = max(norm, math.Abs(j.d[i]))
	}
	slices.SortFunc(place, func(a, b int) int { return cmp.Compare(j.d[a], j.d[b]) })
	last := -1
	for _, i := range place {
		if !(j.rho*math.Abs(j.z[i]) > deflated*norm) {
			continue
		}
		if last >= 0 {
			r := math.Hypot(j.z[last], j.z[i])
			c, s := j.z[i]/r, j.z[last]/r
			if math.Abs((j.d[i]-j.d[last])*c*s) <= deflated*norm {
				j.z[i], j.z[last] = r, 0
				dl, di := j.d[last], j.d[i]
				j.d[last], j.d[i] = c*c*dl+s*s*di, s*s*dl+c*c*di
				turn(j.vt.row(last), j.vt.row(i), float32(c), float32(s))
				j.kind[i] |= j.kind[last]
				j.kind[last] = j.kind[i]
				j.from = j.from[:len(j.from)-1]
			}
		}
		j.from = append(j.from, i)
		last = i
	}
	for _, i := range j.from {
		j.poles, j.zs = append(j.poles, j.d[i]), append(j.zs, j.z[i])
	}
}

// rootsAtOnce is the number of roots of a part.
const rootsAtOnce = 16

// secular finds the roots of 1/rho + Σ z²/(d - λ). It then replaces z by the values for which the
// computed roots are exact, so that the vectors are orthogonal.
func (j *joint) secular() {
	k := len(j.poles)
	j.diff, j.roots = make([]float64, k*k), make([]float64, k)
	squares := make([]float64, k)
	for i, z := range j.zs {
		squares[i] = z * z
	}
	j.c.p.Do((k+rootsAtOnce-1)/rootsAtOnce, part(func(at int) {
		for i := at * rootsAtOnce; i < min((at+1)*rootsAtOnce, k); i++ {
			j.roots[i] = root(j.poles, squares, 1/j.rho, i, j.diff[i*k:][:k])
		}
	}))
	exact := make([]float64, k)
	for i := range exact {
		exact[i] = -1
	}
	for r := range k {
		diff := j.diff[r*k:][:k]
		pole := j.poles[r]
		for i, p := range j.poles {
			if i == r {
				exact[i] *= diff[i]
			} else {
				exact[i] *= diff[i] / (p - pole)
			}
		}
	}
	for i, z := range j.zs {
		j.zs[i] = math.Copysign(math.Sqrt(math.Abs(exact[i])), z)
	}
}

// root finds root i of 1/rho + Σ z²/(d - λ), which is between pole i and the next pole, and
// writes the poles minus the root to diff, each to full precision.
func root(poles, squares []float64, inverse float64, i int, diff []float64) float64 {
	k := len(poles)
	width := 0.0
	if i+1 < k {
		width = poles[i+1] - poles[i]
	} else {
		for _, z := range squares {
			width += z
		}
		width /= inverse
	}
	// The origin is the nearer one of the two poles.
	origin := poles[i]
	lo, hi := 0.0, width
	if i+1 < k {
		f := inverse
		for l, p := range poles {
			f += squares[l] / (p - origin - width/2)
		}
		if f < 0 {
			origin, lo, hi = poles[i+1], -width/2, 0
		} else {
			hi = width / 2
		}
	}
	for l, p := range poles {
		diff[l] = p - origin
	}
	tau := (lo + hi) / 2
	for l := range diff {
		diff[l] -= tau
	}
	for range 100 {
		f, below, above, size := values(squares, diff, inverse, i)
		if f < 0 {
			lo = tau
		} else {
			hi = tau
		}
		if math.Abs(f) <= 0x1p-48*size || hi-lo <= 0x1p-50*math.Max(math.Abs(lo), math.Abs(hi)) {
			break
		}
		next := tau + step(f, below, above, diff, i)
		if !(next > lo && next < hi) {
			next = (lo + hi) / 2
		}
		if next == tau {
			break
		}
		tau = next
		for l, p := range poles {
			diff[l] = (p - origin) - tau
		}
	}
	return origin + tau
}

// values returns the value of the function, the derivative of the terms up to i and that of the
// other terms, and the sum of the magnitudes of all terms.
func values(squares, diff []float64, inverse float64, i int) (f, below, above, size float64) {
	f, size = inverse, inverse
	for l, d := range diff[:i+1] {
		x := squares[l] / d
		f += x
		size -= x
		below += x / d
	}
	for l, d := range diff[i+1:] {
		x := squares[i+1+l] / d
		f += x
		size += x
		above += x / d
	}
	return f, below, above, max(size, inverse)
}

// step returns the distance to the root of the function with the two nearest poles that has the given
// value and derivatives.
func step(f, below, above float64, diff []float64, i int) float64 {
	d1 := diff[i]
	if i+1 == len(diff) {
		s := below * d1 * d1
		c := f - s/d1
		return d1 + s/c
	}
	d2 := diff[i+1]
	c := f - d1*below - d2*above
	a := (d1+d2)*f - d1*d2*(below+above)
	b := d1 * d2 * f
	r := math.Sqrt(max(a*a-4*b*c, 0))
	if a <= 0 {
		return (a - r) / (2 * c)
	}
	return 2 * b / (a + r)
}

// multiply computes the eigenvectors of the roots.
func (j *joint) multiply() {
	k, order := len(j.from), len(j.d)
	// Rows with zeros in one half are grouped together.
	place := make([]int, k)
	for i := range place {
		place[i] = i
	}
	rank := [4]int{upper: 0, upper | lower: 1, lower: 2}
	slices.SortStableFunc(place, func(a, b int) int { return cmp.Compare(rank[j.kind[j.from[a]]], rank[j.kind[j.from[b]]]) })
	left, right := 0, k // the end of the rows with nonzero lower columns, and the start of those with nonzero upper columns
	for _, i := range place {
		switch j.kind[j.from[i]] {
		case upper:
			left++
		case lower:
			right--
		}
	}
	s := take(k*k + k*order)
	u, rows := Matrix{s.data[:k*k], k, k, k}, Matrix{s.data[k*k:], k, order, order}
	for to, i := range place {
		copy(rows.row(to), j.vt.row(j.from[i]))
	}
	j.components(u, place)
	for r, i := range j.from {
		j.d[i] = j.roots[r]
	}
	out := Matrix{j.c.memory[:k*order], k, order, order}
	mul(j.c.p, out.part(0, 0, k, j.half), n(u.part(0, 0, k, right)), n(rows.part(0, 0, right, j.half)))
	mul(j.c.p, out.part(0, j.half, k, order-j.half), n(u.part(0, left, k, k-left)), n(rows.part(left, j.half, k-left, order-j.half)))
	for r, i := range j.from {
		copy(j.vt.row(i), out.row(r))
	}
	s.give()
}

// components writes the eigenvector of each root, in the basis of the rows, to one row of u.
func (j *joint) components(u Matrix, place []int) {
	k := len(place)
	j.c.p.Do((k+rootsAtOnce-1)/rootsAtOnce, part(func(at int) {
		for r := at * rootsAtOnce; r < min((at+1)*rootsAtOnce, k); r++ {
			diff, s := j.diff[r*k:][:k], 0.0
			for i, z := range j.zs {
				diff[i] = z / diff[i]
				s += diff[i] * diff[i]
			}
			s = 1 / math.Sqrt(s)
			row := u.row(r)
			for to, i := range place {
				row[to] = float32(diff[i] * s)
			}
		}
	}))
}
