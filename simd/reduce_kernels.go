package simd

import (
	"math"
	"unsafe"
)

// kind numbers the kernels that reduce many numbers to one.
type kind uint8

const (
	kindSum kind = iota
	kindSumAbs
	kindSumSquares
	kindDot
	kindMax
	kindMin
	kindMaxAbs

	numKinds
)

// reduceKernels are the kernels of one level. Lengths are positive. y is read
// only by kindDot.
type reduceKernels struct {
	// block reduces n elements.
	block [numKinds]func(x, y *float32, n int) float32
	// rows reduces each of rows rows of cols elements, with the same bits as block.
	// One call serves many short rows.
	rows [numKinds]func(dst, x, y *float32, rows, cols int)
	// dotEach sets dst[i] to the dot product of row i of x with y. x is rows rows
	// of cols elements, and y is one row.
	dotEach func(dst, x, y *float32, rows, cols int)
	// deviations returns the sum of x-m and the sum of (x-m)².
	deviations func(x *float32, n int, m float32) (s1, s2 float32)
	// deviationsRows does the same for each of many rows; m has one number for each row.
	deviationsRows func(s1, s2, x, m *float32, rows, cols int)
	// index returns the first i with x[i] == v, or the first NaN if v is NaN,
	// or n if there is none.
	index func(x *float32, n int, v float32) int
	// indexRows does the same for each of many rows; v has one number for each row.
	indexRows func(dst *int32, x, v *float32, rows, cols int)
}

// tiny is a sum of squares below which squares may have underflowed.
const tiny = 0x1p-80

// doubtful reports whether the kernel that returned raw may have overflowed or
// underflowed, so that repair must check it.
func (k kind) doubtful(raw float32) bool {
	return k <= kindDot && (!finite(raw) || k == kindSumSquares && raw < tiny)
}

// repair returns the sum of a block, in float64 if the kernel's result raw overflowed or
// underflowed.
func (k kind) repair(raw float32, x, y []float32) float64 {
	if finite(raw) && (k != kindSumSquares || raw >= tiny || reducers().block[kindMaxAbs](&x[0], nil, len(x)) == 0) {
		return float64(raw)
	}
	n := len(x)
	if m := reducers().block[kindMax](&x[0], nil, n); m != m {
		return math.NaN()
	}
	var s float64
	for i, v := range x {
		switch v := float64(v); k {
		case kindSum:
			s += v
		case kindSumAbs:
			s += math.Abs(v)
		case kindSumSquares:
			s += v * v
		case kindDot:
			s += v * float64(y[i])
		}
	}
	return s
}

// allMaxAbs returns the greatest magnitude of any number of elements.
func (k *reduceKernels) allMaxAbs(x []float32) float32 {
	if len(x) == 0 {
		return 0
	}
	return k.block[kindMaxAbs](&x[0], nil, len(x))
}

// deviations64 is deviations in float64, for sums that overflow float32.
func deviations64(x []float32, mean float64) (exact, m2 float64) {
	var s1, s2 float64
	for _, v := range x {
		d := float64(v) - mean
		s1 += d
		s2 += d * d
	}
	d := s1 / float64(len(x))
	return mean + d, max(0, s2-d*s1)
}

// floats returns the n elements at p as a slice.
func floats(p *float32, n int) []float32 { return unsafe.Slice(p, n) }
