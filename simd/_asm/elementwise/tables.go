package main

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// Odd functions that become constant, on AVX-512: 32 intervals of |x|, each
// with a polynomial whose coefficients a permutation finds in registers. Of
// z = 1 + s·|x| the two low bits of the exponent and the three high bits of
// the mantissa number the interval: narrow ones near 0, wide ones where the
// function hardly changes.

const tableDegree = 5

// saturating is such a function.
type saturating struct {
	f     func(float64) float64
	limit float64 // from here on it is 1 in float32
}

var saturatings = map[ir.Code]saturating{
	ir.Tanh: {math.Tanh, 9.1},
	ir.Erf:  {math.Erf, 4},
}

// scale is the s of z.
func (f saturating) scale() float64 { return float64(float32(14.9 / f.limit)) }

// tables returns the middle of each interval and the coefficients there, the
// constant term first.
func (f saturating) tables() (middle []uint32, coefficients [tableDegree + 1][]uint32) {
	s := f.scale()
	for i := range 32 {
		e := [4]int{1, 2, 3, 0}[i>>3] // exponents 128, 129, 130, 127 end in 0, 1, 2, 3
		z := math.Ldexp(1+float64(i&7)/8, e)
		lo, hi := (z-1)/s, (z+math.Ldexp(1, e-3)-1)/s
		var b float64
		var c [tableDegree + 1]float64
		if lo == 0 {
			// An odd function: relative accuracy down to the smallest x.
			p := interpolate(func(t float64) float64 { return f.f(t) / t }, lo, hi, tableDegree)
			copy(c[1:], p)
		} else {
			b = float64(float32((lo + hi) / 2))
			copy(c[:], interpolate(func(t float64) float64 { return f.f(b + t) }, lo-b, hi-b, tableDegree+1))
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

// table selects code for a saturating function.
func (x x86) table(s *selector, n *ir.Node) *value {
	f := saturatings[n.Code]
	arg := s.value(n.Args[0])
	a := s.plain("VANDPS", second, arg, s.constant(signBit-1))
	a = s.plain("VMINPS", nil, s.float(f.limit), a)
	z := s.add(instruction{op: "VFMADD", src: []*value{a, s.float(f.scale()), s.float(1)}, tied: anyTied, folds: []int{2, 1}})
	index := s.add(instruction{op: "VPSRLD", src: []*value{z}, tied: -1, imm: 20})
	middle, c := f.tables()
	find := func(t []uint32) *value {
		return s.add(instruction{op: "VPERMI2PS", src: []*value{index, s.constant(t[:16]...), s.constant(t[16:]...)}, tied: 0, folds: []int{2}})
	}
	t := s.plain("VSUBPS", second, a, find(middle))
	y := find(c[tableDegree])
	for k := tableDegree - 1; k >= 0; k-- {
		y = s.add(instruction{op: "VFMADD", src: []*value{y, t, find(c[k])}, tied: anyTied, folds: []int{2, 1}})
	}
	return s.add(instruction{op: "VPTERNLOGD", src: []*value{y, arg, s.constant(signBit)}, tied: 0, folds: []int{2}, imm: 0xD8})
}
