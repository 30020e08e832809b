package simd

import (
	"math"
	"unsafe"
)

// reduceGeneric returns the reference for the kernels of the other levels. Its sums are float64.
func reduceGeneric() *reduceKernels {
	return &reduceKernels{
		block: [numKinds]func(x, y *float32, n int) float32{
			kindSum: reduceSumGeneric, kindSumAbs: reduceSumAbsGeneric, kindSumSquares: reduceSumSquaresGeneric, kindDot: reduceDotGeneric,
			kindMax: reduceMaxGeneric, kindMin: reduceMinGeneric, kindMaxAbs: reduceMaxAbsGeneric,
		},
		rows: [numKinds]func(dst, x, y *float32, rows, cols int){
			kindSum: reduceRowsGeneric(reduceSumGeneric), kindSumAbs: reduceRowsGeneric(reduceSumAbsGeneric),
			kindSumSquares: reduceRowsGeneric(reduceSumSquaresGeneric), kindDot: reduceRowsGeneric(reduceDotGeneric),
			kindMax: reduceRowsGeneric(reduceMaxGeneric), kindMin: reduceRowsGeneric(reduceMinGeneric), kindMaxAbs: reduceRowsGeneric(reduceMaxAbsGeneric),
		},
		dotEach:        reduceDotEachGeneric,
		deviations:     reduceDeviationsGeneric,
		index:          reduceIndexGeneric,
		deviationsRows: reduceDeviationsRowsGeneric,
		indexRows:      reduceIndexRowsGeneric,
	}
}

// reduceRowsGeneric makes a kernel for many rows from a kernel for one row.
func reduceRowsGeneric(block func(x, y *float32, n int) float32) func(dst, x, y *float32, rows, cols int) {
	return func(dst, x, y *float32, rows, cols int) {
		d, in := floats(dst, rows), floats(x, rows*cols)
		for r := range d {
			yp := y
			if y != nil {
				yp = &floats(y, rows*cols)[r*cols]
			}
			d[r] = block(&in[r*cols], yp, cols)
		}
	}
}

func reduceSumGeneric(x, _ *float32, n int) float32 {
	var a, b, c, d float64
	s := floats(x, n)
	for ; len(s) >= 4; s = s[4:] {
		a += float64(s[0])
		b += float64(s[1])
		c += float64(s[2])
		d += float64(s[3])
	}
	for _, v := range s {
		a += float64(v)
	}
	return float32((a + c) + (b + d))
}

func reduceSumAbsGeneric(x, _ *float32, n int) float32 {
	var a, b float64
	s := floats(x, n)
	for ; len(s) >= 2; s = s[2:] {
		a += math.Abs(float64(s[0]))
		b += math.Abs(float64(s[1]))
	}
	for _, v := range s {
		a += math.Abs(float64(v))
	}
	return float32(a + b)
}

func reduceSumSquaresGeneric(x, _ *float32, n int) float32 { return reduceDotGeneric(x, x, n) }

func reduceDotGeneric(x, y *float32, n int) float32 {
	var a, b, c, d float64
	s, t := floats(x, n), floats(y, n)
	for ; len(s) >= 4 && len(t) >= 4; s, t = s[4:], t[4:] {
		a += float64(s[0]) * float64(t[0])
		b += float64(s[1]) * float64(t[1])
		c += float64(s[2]) * float64(t[2])
		d += float64(s[3]) * float64(t[3])
	}
	for i, v := range s {
		a += float64(v) * float64(t[i])
	}
	return float32((a + c) + (b + d))
}

func reduceDotEachGeneric(dst, x, y *float32, rows, cols int) {
	in := floats(x, rows*cols)
	for r := range floats(dst, rows) {
		floats(dst, rows)[r] = reduceDotGeneric(&in[r*cols], y, cols)
	}
}

func reduceMaxGeneric(x, _ *float32, n int) float32 {
	s := floats(x, n)
	m := s[0]
	for _, v := range s {
		m = max(m, v)
	}
	return m
}

func reduceMinGeneric(x, _ *float32, n int) float32 {
	s := floats(x, n)
	m := s[0]
	for _, v := range s {
		m = min(m, v)
	}
	return m
}

func reduceMaxAbsGeneric(x, _ *float32, n int) float32 {
	m := uint32(0)
	// The bits of magnitudes have the order of the magnitudes, with NaN as the greatest.
	for _, v := range floats(x, n) {
		m = max(m, math.Float32bits(v)&^(1<<31))
	}
	return math.Float32frombits(m)
}

func reduceDeviationsGeneric(x *float32, n int, m float32) (s1, s2 float32) {
	var a, b float64
	for _, v := range floats(x, n) {
		d := float64(v) - float64(m)
		a += d
		b += d * d
	}
	return float32(a), float32(b)
}

func reduceIndexGeneric(x *float32, n int, v float32) int {
	s := floats(x, n)
	if v != v {
		for i, e := range s {
			if e != e {
				return i
			}
		}
		return n
	}
	for i, e := range s {
		if e == v {
			return i
		}
	}
	return n
}

func reduceDeviationsRowsGeneric(s1, s2, x, m *float32, rows, cols int) {
	a, b, ms, in := floats(s1, rows), floats(s2, rows), floats(m, rows), floats(x, rows*cols)
	for r := range ms {
		a[r], b[r] = reduceDeviationsGeneric(&in[r*cols], cols, ms[r])
	}
}

func reduceIndexRowsGeneric(dst *int32, x, v *float32, rows, cols int) {
	vs, in := floats(v, rows), floats(x, rows*cols)
	for r := range unsafe.Slice(dst, rows) {
		unsafe.Slice(dst, rows)[r] = int32(reduceIndexGeneric(&in[r*cols], cols, vs[r]))
	}
}
