package simd

import "math"

// rowKernels are the kernels of one level. Lengths are positive; dst may be x.
type rowKernels struct {
	// expStore sets dst to exp(x-m) and returns the sum of dst; expSum only
	// returns the sum. No x is above m unless m is NaN.
	expStore func(dst, x *float32, n int, m float32) float32
	expSum   func(x *float32, n int, m float32) float32
	// expStoreRows and expSumRows do the same for each of many rows.
	expStoreRows func(dst, x, m, sum *float32, rows, cols int)
	expSumRows   func(x, m, sum *float32, rows, cols int)
	// softmaxRows sets each row of dst to the softmax of that of x. If it is nil, the kernels of maxima, exponentials
	// and affine are called for some rows at a time.
	softmaxRows func(dst, x *float32, rows, cols int)
	// affine sets dst to ((x-m)*s+b)*gamma+beta. gamma and beta may be nil.
	affine func(dst, x, gamma, beta *float32, n int, m, s, b float32)
	// affineRows does the same for each of many rows. All rows have the same gamma and
	// beta; msb has m, s and b of each row, one after the other.
	affineRows func(dst, x, gamma, beta, msb *float32, rows, cols int)

	// ropeHalves sets (u, v) of dst to (u*c - v*s, u*s + v*c) of x in each of count
	// vectors that are stride bytes apart. u is the first n elements of a vector,
	// and v the next n.
	ropeHalves func(dst, x, c, s *float32, n, count, stride int)
	// ropePairs sets n elements of dst, an even number, to x*c + swap(x)*s in each of
	// count vectors that are stride bytes apart. swap exchanges neighbours.
	ropePairs func(dst, x, c, s *float32, n, count, stride int)
	// cumsum sets dst[i] to before plus the sum of x[:i+1].
	cumsum func(dst, x *float32, n int, before float32)
	// fetch prefetches the first bytes of rows, stride bytes apart. It may be nil.
	fetch func(p *float32, stride, rows, bytes int)
}

// logarithm returns MapAt(l, "log"). Unlike MapAt it does not link the other loops in plain Go.
func logarithm(l Level) MapFunc {
	if f := mapLevel(l, "log"); f != nil {
		return f
	}
	return mapLogGeneric
}

var rowsGeneric = rowKernels{
	expStore: rowsExpStoreGeneric, expStoreRows: rowsExpStoreRowsGeneric,
	expSum: rowsExpSumGeneric, expSumRows: rowsExpSumRowsGeneric,
	affine: rowsAffineGeneric, affineRows: rowsAffineRowsGeneric,
	ropeHalves: ropeHalvesGeneric, ropePairs: ropePairsGeneric,
	cumsum: rowsCumsumGeneric,
}

func rowsExpStoreGeneric(dst, x *float32, n int, m float32) float32 {
	d, s := floats(dst, n), floats(x, n)
	var sum float64
	for i, v := range s {
		e := float32(math.Exp(float64(v - m)))
		d[i] = e
		sum += float64(e)
	}
	return float32(sum)
}

func rowsExpSumGeneric(x *float32, n int, m float32) float32 {
	var sum float64
	for _, v := range floats(x, n) {
		sum += math.Exp(float64(v - m))
	}
	return float32(sum)
}

func rowsAffineGeneric(dst, x, gamma, beta *float32, n int, m, s, b float32) {
	d, v := floats(dst, n), floats(x, n)
	switch {
	case gamma == nil && beta == nil:
		for i := range v {
			d[i] = (v[i]-m)*s + b
		}
	case beta == nil:
		g := floats(gamma, n)
		for i := range v {
			d[i] = ((v[i]-m)*s + b) * g[i]
		}
	case gamma == nil:
		h := floats(beta, n)
		for i := range v {
			d[i] = ((v[i]-m)*s + b) + h[i]
		}
	default:
		g, h := floats(gamma, n), floats(beta, n)
		for i := range v {
			d[i] = ((v[i]-m)*s+b)*g[i] + h[i]
		}
	}
}

func ropeHalvesGeneric(dst, x, c, s *float32, n, count, stride int) {
	cos, sin := floats(c, n), floats(s, n)
	for i := range count {
		from, to := floats(x, i*stride/4+2*n)[i*stride/4:], floats(dst, i*stride/4+2*n)[i*stride/4:]
		for j, c := range cos {
			u, v, s := from[j], from[n+j], sin[j]
			to[j], to[n+j] = u*c-v*s, u*s+v*c
		}
	}
}

func ropePairsGeneric(dst, x, c, s *float32, n, count, stride int) {
	cos, sin := floats(c, n), floats(s, n)
	for i := range count {
		from, to := floats(x, i*stride/4+n)[i*stride/4:], floats(dst, i*stride/4+n)[i*stride/4:]
		for j := 0; j < n; j += 2 {
			u, v := from[j], from[j+1]
			to[j], to[j+1] = u*cos[j]+v*sin[j], v*cos[j+1]+u*sin[j+1]
		}
	}
}

func rowsExpStoreRowsGeneric(dst, x, m, sum *float32, rows, cols int) {
	for r, top := range floats(m, rows) {
		i := r * cols
		floats(sum, rows)[r] = rowsExpStoreGeneric(&floats(dst, rows*cols)[i], &floats(x, rows*cols)[i], cols, top)
	}
}

func rowsExpSumRowsGeneric(x, m, sum *float32, rows, cols int) {
	for r, top := range floats(m, rows) {
		floats(sum, rows)[r] = rowsExpSumGeneric(&floats(x, rows*cols)[r*cols], cols, top)
	}
}

func rowsAffineRowsGeneric(dst, x, gamma, beta, msb *float32, rows, cols int) {
	for r := range rows {
		c := floats(msb, 3*rows)[3*r:]
		i := r * cols
		rowsAffineGeneric(&floats(dst, rows*cols)[i], &floats(x, rows*cols)[i], gamma, beta, cols, c[0], c[1], c[2])
	}
}
