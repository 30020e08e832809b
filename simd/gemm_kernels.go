package simd

import "unsafe"

// gemmKernels are the kernels of one level.
type gemmKernels struct {
	rows, cols int          // the largest tile
	tile       []tileFunc   // kernels for 1 to rows rows
	tileStream tileFunc     // for the largest tile, with non-temporal stores to C; or nil
	tilePack   tilePackFunc // for the largest tile, or nil

	tileBraid     tileFunc     // for the largest tile with a braided A, or nil
	tileBraidPack tilePackFunc // the same, which also packs B
	braidRows     braidFunc    // braids A

	// wholePanels says that tile reads the last panel of B as if it were whole.
	wholePanels bool

	lanes      int // the largest number of rows of transpose
	transpose  transposeFunc
	copyPanels copyPanelsFunc // or nil

	rowsFew []rowsFunc // kernels for 1 row, 2 rows and so on, up to the number from which tiles are faster
	dots    []dotsFunc // kernels for 1 vector, 2 vectors and so on

	convRow    convRowFunc
	convPair   convPairFunc   // or nil
	convGather convGatherFunc // or nil
}

// tileFunc multiplies a few rows of A by a row of panels of B:
//
//	for each panel of cols columns, the last one narrower:
//		t = bias[panel] or 0, for every row
//		t[i][j] += a[i*as + p*4] * b[p*bs + j*4]   for p in 0..k
//		c[i*cs + j*4] = t[i][j], or += with add
//		b += bp
//
// n is the total number of columns. Strides are in bytes, and A is contiguous along k. bias may be
// nil. next, unless nil, is a prefetch hint: the address of rows, ns bytes apart, that the caller
// will read soon.
type tileFunc func(a, b, c, bias, next *float32, as, bs, bp, cs, ns, k, n int, add bool)

// tilePackFunc is a tileFunc of the largest tile that also copies the rows of B to panels, which
// follow one another in packed. The padding of an incomplete panel becomes zero or is not written.
type tilePackFunc func(a, b, c, bias, next *float32, as, bs, bp, cs, ns, k, n int, add bool, packed *float32)

// braidFunc braids the rows of the largest tile: it copies element j of row i to dst[j*lanes+i]. Rows
// are contiguous and ss bytes apart. cols is a positive multiple of 4. The padding between the columns
// of dst is overwritten.
type braidFunc func(dst, src *float32, ss, cols int)

// transposeFunc writes the transpose of a matrix of rows×cols elements that
// are contiguous in its rows, rows <= lanes: element j of row i, at i*ss bytes,
// goes to element i of row j, at j*ds bytes.
type transposeFunc func(dst, src *float32, ds, ss, rows, cols int)

// copyPanelsFunc copies k rows of B, ss bytes apart, to whole panels that
// begin dp bytes apart.
type copyPanelsFunc func(dst, src *float32, ss, dp, k, panels int)

// convRowFunc computes n neighbouring results of a convolution. Offsets
// are in bytes.
//
//	y[i] = start + sum over t in 0..taps of weights[t] * x[offsets[t]/4 + i]
type convRowFunc func(y, x *float32, offsets *int, weights *float32, start float32, taps, n int)

// convPairFunc computes two rows of a convolution, ys bytes apart. The first outer offsets belong
// to pixels of only the one row, and the last ones to pixels of only the other, with one weight
// each; the offsets between belong to pixels of both rows, with two weights each.
type convPairFunc func(y, x *float32, ys int, offsets *int, weights *float32, start float32, outer, inner, n int)

// convGatherFunc copies n neighbouring elements, at most a panel's width, from
// each of k places to rows of a panel. Offsets are in bytes.
//
//	dst[t*cols + i] = src[offsets[t]/4 + i]   for t in 0..k, i in 0..n
type convGatherFunc func(dst, src *float32, offsets *int, k, n int)

// rowsFunc adds the product of a few rows of A, contiguous along k, and a B
// that is contiguous along n to C. Strides are in bytes.
//
//	c[i*cs + j*4] += a[i*as + p*4] * b[p*bs + j*4]   for p in 0..k
type rowsFunc func(a, b, c *float32, as, bs, cs, k, n int)

// dotsFunc adds the dot products of rows of s, contiguous along k, with q vectors
// p to C. p is interleaved: it has the first elements of all vectors, as many as a
// register holds, then the next ones, and zeros after the last.
//
//	c[r*cr + i*cq] += s[r*ss + k*4] * p_i[k]   for r in 0..rows, i in 0..q
type dotsFunc func(s, p, c *float32, ss, cr, cq, k, rows int)

// step returns the address of the element i places after p.
func step(p *float32, i int) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(p), i*4))
}
