package main

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// Functions by table, on AVX-512. There are 32 intervals, each with a polynomial; a permutation
// selects its coefficients from registers. The index of the interval is the two low bits of the
// exponent and the three high bits of the mantissa of z = origin + slope·t, which is in [1, 16). So
// the intervals are narrow for small z, and their width doubles three times.

type table struct {
	f             func(float64) float64
	limit         float64 // t is in [0, limit]
	origin, slope float64
	degree        int
	odd           bool // f(t)/t is smooth at 0, where the accuracy is relative
}

// rising returns a table with the narrow intervals at 0.
func rising(f func(float64) float64, limit float64, degree int, odd bool) table {
	return table{f, limit, 1, float64(float32(14.9 / limit)), degree, odd}
}

// falling returns a table with the narrow intervals at the limit.
func falling(f func(float64) float64, limit float64, degree int) table {
	s := float64(float32(14.9 / limit))
	return table{f, limit, float64(float32(1.01 + s*limit)), -s, degree, false}
}

// normTail returns the upper tail probability of the normal distribution at t.
func normTail(t float64) float64 { return 0.5 * math.Erfc(t/math.Sqrt2) }

// The functions: tanh and erf of |x|, which are 1 from the limit on; the tail
// of the normal distribution, and the same without its factor e**(-t²/2).
var (
	tanhTable = rising(math.Tanh, 9.1, 5, true)
	erfTable  = rising(math.Erf, 4, 5, true)
	nearTable = falling(normTail, nearLimit, 6)
	tailTable = rising(func(t float64) float64 { return normTail(t) * math.Exp(t*t/2) }, 14.5, 4, false)
)

// nearLimit is the limit of nearTable.
const nearLimit = 5.5

// words returns the midpoint of each interval and the coefficients of its polynomial, the constant
// term first.
func (f table) words() (middle []uint32, coefficients [][]uint32) {
	coefficients = make([][]uint32, f.degree+1)
	for i := range 32 {
		e := [4]int{1, 2, 3, 0}[i>>3] // exponents 128, 129, 130, 127 end in 0, 1, 2, 3
		z := math.Ldexp(1+float64(i&7)/8, e)
		lo, hi := (z-f.origin)/f.slope, (z+math.Ldexp(1, e-3)-f.origin)/f.slope
		if lo > hi {
			lo, hi = hi, lo
		}
		var b float64
		c := make([]float64, f.degree+1)
		if f.odd && lo == 0 {
			copy(c[1:], interpolate(func(t float64) float64 { return f.f(t) / t }, lo, hi, f.degree))
		} else {
			b = float64(float32((lo + hi) / 2))
			copy(c, interpolate(func(t float64) float64 { return f.f(b + t) }, lo-b, hi-b, f.degree+1))
		}
		middle = append(middle, math.Float32bits(float32(b)))
		for j := range c {
			coefficients[j] = append(coefficients[j], math.Float32bits(float32(c[j])))
		}
	}
	return middle, coefficients
}

// interpolate returns the polynomial of n terms through f at the Chebyshev
// nodes of [lo, hi].
func interpolate(f func(float64) float64, lo, hi float64, n int) []float64 {
	a := make([][]float64, n)
	for i := range a {
		t := (lo+hi)/2 + (hi-lo)/2*math.Cos(math.Pi*(float64(i)+0.5)/float64(n))
		p := 1.0
		for range n {
			a[i] = append(a[i], p)
			p = float64(p * (t / hi)) // scaled, so that the system is well conditioned
		}
		a[i] = append(a[i], f(t))
	}
	for k := range a {
		pivot := k
		for i := k; i < n; i++ {
			if math.Abs(a[i][k]) > math.Abs(a[pivot][k]) {
				pivot = i
			}
		}
		a[k], a[pivot] = a[pivot], a[k]
		for i := range a {
			if i == k {
				continue
			}
			m := a[i][k] / a[k][k]
			for j := k; j <= n; j++ {
				a[i][j] -= float64(m * a[k][j])
			}
		}
	}
	c := make([]float64, n)
	scale := 1.0
	for k := range c {
		c[k] = a[k][n] / a[k][k] / scale
		scale = float64(scale * hi)
	}
	return c
}

// look selects code for f of t, in [0, limit] or NaN.
func (x x86) look(s *selector, f table, t *value) *value {
	z := s.add(instruction{op: "VFMADD", src: []*value{t, s.float(f.slope), s.float(f.origin)}, tied: anyTied, folds: []int{2, 1}})
	index := s.add(instruction{op: "VPSRLD", src: []*value{z}, tied: -1, imm: 20})
	middle, c := f.words()
	find := func(t []uint32) *value {
		return s.add(instruction{op: "VPERMI2PS", src: []*value{index, s.constant(t[:16]...), s.constant(t[16:]...)}, tied: 0, folds: []int{2}})
	}
	t = s.plain("VSUBPS", second, t, find(middle))
	y := find(c[f.degree])
	for k := f.degree - 1; k >= 0; k-- {
		y = s.add(instruction{op: "VFMADD", src: []*value{y, t, find(c[k])}, tied: anyTied, folds: []int{2, 1}})
	}
	return y
}

// magnitude selects code for min(|x|, limit); NaN stays NaN.
func (x x86) magnitude(s *selector, v *value, limit float64) *value {
	a := s.plain("VANDPS", second, v, s.constant(signBit-1))
	return s.plain("VMINPS", nil, s.float(limit), a)
}

// odd selects code for an odd function; f is its table for positive arguments.
func (x x86) odd(s *selector, n *ir.Node, f table) *value {
	arg := s.value(n.Args[0])
	y := x.look(s, f, x.magnitude(s, arg, f.limit))
	return s.add(instruction{op: "VPTERNLOGD", src: []*value{y, arg, s.constant(signBit)}, tied: 0, folds: []int{2}, imm: 0xD8})
}

// normCDF selects code for the normal distribution function: if q is the tail at |x|, the result is
// q for negative x and 1-q for positive x. See ir.Lower for the exponential.
func (x x86) normCDF(s *selector, n *ir.Node) *value {
	arg := s.value(n.Args[0])
	var q *value
	if x.near {
		q = x.look(s, nearTable, x.magnitude(s, arg, nearLimit))
	} else {
		q = x.normTail(s, x.magnitude(s, arg, tailTable.limit))
	}
	positive := s.add(instruction{op: "VCMPPS", dst: x.truth(), src: []*value{arg, s.constant(0)}, tied: -1, folds: second, imm: predicates[ir.Lt][1]})
	return s.add(instruction{op: "VSUBPS.merge", src: []*value{q, s.float(1), positive}, tied: 0})
}

// normTail selects code for the tail of the normal distribution beyond t:
// e**(-t²/2) by the expansion of ir, with t²/2 as a sum of two numbers, times
// the table's function.
func (x x86) normTail(s *selector, t *value) *value {
	fma := func(op string, a, b, c *value) *value {
		return s.add(instruction{op: op, src: []*value{a, b, c}, tied: anyTied, folds: []int{2, 1, 0}})
	}
	e := ir.ExpansionConstants()
	m := x.look(s, tailTable, t)
	half := s.plain("VMULPS", second, t, s.float(0.5))
	sq := s.plain("VMULPS", second, half, t)
	low := fma("VFMSUB", half, t, sq)
	magic := s.float(e.Magic)
	k := s.plain("VSUBPS", second, fma("VFNMADD", sq, s.float(math.Log2E), magic), magic)
	r := fma("VFNMSUB", k, s.float(e.Ln2[0]), sq)
	r = s.plain("VSUBPS", second, fma("VFNMADD", k, s.float(e.Ln2[1]), r), low)
	p := s.float(e.Exp[len(e.Exp)-1])
	for i := len(e.Exp) - 2; i >= 0; i-- {
		p = fma("VFMADD", p, r, s.float(e.Exp[i]))
	}
	return s.plain("VSCALEFPS", second, s.plain("VMULPS", second, p, m), k)
}
