package simd

import "github.com/rayo-go/rayo/internal/memory"

// vectorLimits are the limits of products with few rows or columns, measured on 2 cores of an Intel Xeon with
// AVX-512, 2026-11-21 (go test -bench Gemm ./simd).
var vectorLimits = struct{ columns, rows int }{
	columns: 8,  // columns of C up to which rows are multiplied by dot products: tiles would be mostly empty
	rows:    16, // rows of C up to which the same holds for a transposed B, which tiles would have to transpose back
}

// Products with few rows or columns are bound by reading the large matrix once. They neither pack
// it nor divide it into tiles; the other operands are small.

// rowsUnit is a number of columns. The columns of each part of formRows are a multiple of it.
const rowsUnit = 64

// rowsGoes is the maximum number of passes of the kernels for few rows over a B with aliasing rows,
// piece by piece, instead of tiles: tiles read tileLimits.farK rows at a time, and the first-level cache holds
// only as many aliasing rows as it has ways.
var rowsGoes = mostRowsGoes()

// farB is the size in bytes from which B is in memory and not in a cache, whatever was computed
// before.
var farB = 8 * memory.CPUCaches().L2

// planRows decides whether to use formRows.
func (j *gemmJob) planRows() bool {
	g, few := &j.g, len(j.ks.rowsFew)
	if g.BCol != 1 {
		return false
	}
	return g.M <= few || g.M <= rowsGoes*few && aliases(4*g.BRow) && 4*g.K*g.N >= farB
}

// rowsPart computes the columns of part pn. It adds scaled rows of B to rows of C, which
// stay in the first cache.
func (j *gemmJob) rowsPart(batch, pn int) {
	g := &j.g
	units := ceilDiv(g.N, rowsUnit)
	first, end := spread(units, j.nParts, pn)*rowsUnit, min(spread(units, j.nParts, pn+1)*rowsUnit, g.N)
	c := g.C[batch*g.CStride:]
	var a []float32
	aRow := g.ARow
	var sc *scratch
	if g.K > 0 {
		a = g.A[g.AAt(batch):]
		if g.ACol != 1 {
			aRow = pad(g.K)
			sc = takeScratch(g.M * aRow)
			gatherRows(sc.data, aRow, a, g.ARow, g.ACol, g.M, g.K)
			a = sc.data
		}
	}
	// A piece of C has at most 16 KiB, and a call of the kernel takes some tens of microseconds.
	const most = 4096
	few, calls := len(j.ks.rowsFew), 128
	width := most / min(g.M, few) / rowsUnit * rowsUnit
	if g.M > few { // the part of B that is read stays in half of the second-level cache
		calls = max(1, min(calls, memory.CPUCaches().L2/2/(4*width)))
	}
	for c0 := first; c0 < end; c0 += width {
		c1 := min(c0+width, end)
		j.start(c, 0, g.M, c0, c1)
		for k := 0; k < g.K; k += calls {
			b := g.B[g.BAt(batch)+k*g.BRow+c0:]
			for i := 0; i < g.M; i += few {
				j.ks.rowsFew[min(few, g.M-i)-1](&a[i*aRow+k], &b[0], &c[i*g.CRow+c0], 4*aRow, 4*g.BRow, 4*g.CRow, min(calls, g.K-k), c1-c0)
			}
		}
		j.finish(c, batch, 0, g.M, c0, c1)
	}
	if sc != nil {
		sc.free()
	}
}

// gatherRows copies rows×k elements to rows with the given stride.
func gatherRows(dst []float32, stride int, src []float32, row, col, rows, k int) {
	for i := range rows {
		from, to := src[i*row:], dst[i*stride:][:k]
		for p := range to {
			to[p] = from[p*col]
		}
	}
}

// start sets C to the values that products are added to.
func (j *gemmJob) start(c []float32, i0, i1, c0, c1 int) {
	g := &j.g
	for i := i0; i < i1; i++ {
		row := c[i*g.CRow+c0:][:c1-c0]
		switch {
		case !g.Accumulate && g.Bias == nil:
			clear(row)
		case !g.Accumulate:
			copy(row, g.Bias[c0:c1])
		case g.Bias != nil:
			for q, v := range g.Bias[c0:c1] {
				row[q] += v
			}
		}
	}
}

// finish calls the epilogue for a finished piece of C.
func (j *gemmJob) finish(c []float32, batch, i0, i1, c0, c1 int) {
	g := &j.g
	if g.Epilogue == nil {
		return
	}
	for i := i0; i < i1; i++ {
		g.Epilogue(c[i*g.CRow+c0:][:c1-c0:c1-c0], batch*g.M+i, c0)
	}
}

// A dotsPlan is the plan of formDots: many rows of one matrix are read in place, and the few vectors
// of the other one are packed.
type dotsPlan struct {
	byRows   bool // the rows are the rows of A; otherwise they are the columns of B
	rows, q  int
	kBlock   int
	chunk    int // vectors of one call of the kernel
	perBatch int // floats of the packed vectors of one product
}

// dotsUnit divides the number of rows of each part.
const dotsUnit = 8

// planDots decides whether to use formDots, and packs the vectors.
func (j *gemmJob) planDots() bool {
	g, ks := &j.g, j.ks
	d := &j.dots
	switch {
	case g.K < 4*ks.lanes || len(ks.dots) == 0:
		return false
	case g.N <= min(vectorLimits.columns, 2*len(ks.dots)) && g.ACol == 1 && g.M >= dotsUnit:
		*d = dotsPlan{byRows: true, rows: g.M, q: g.N}
	case g.M <= min(vectorLimits.rows, 4*len(ks.dots)) && g.BRow == 1 && g.N >= dotsUnit:
		*d = dotsPlan{rows: g.N, q: g.M}
	default:
		return false
	}
	chunks := ceilDiv(d.q, len(ks.dots))
	d.chunk = ceilDiv(d.q, chunks)
	// The vectors of a block must stay in the first caches.
	d.kBlock = max(16384/d.chunk/ks.lanes, 1) * ks.lanes
	d.perBatch = ceilDiv(g.K, ks.lanes) * ks.lanes * d.q
	batches := g.Batch
	if !d.byRows && g.AStride == 0 && g.AFrom == nil || d.byRows && g.BStride == 0 && g.BFrom == nil {
		batches = 1
	}
	j.vectors = takeScratch(d.perBatch * batches)
	dst := j.vectors.data
	for b := range batches {
		if d.byRows {
			j.packVectors(dst[b*d.perBatch:], g.B[g.BAt(b):], g.BCol, g.BRow)
		} else {
			j.packVectors(dst[b*d.perBatch:], g.A[g.AAt(b):], g.ARow, g.ACol)
		}
	}
	if batches == 1 {
		d.perBatch = 0
	}
	return true
}

// packVectors copies q vectors, v elements apart with an element stride of e, in the order of the
// loops of dotsPart.
func (j *gemmJob) packVectors(dst, src []float32, v, e int) {
	d, lanes := &j.dots, j.ks.lanes
	for k0 := 0; k0 < j.g.K; k0 += d.kBlock {
		k1 := min(k0+d.kBlock, j.g.K)
		for q0 := 0; q0 < d.q; q0 += d.chunk {
			q1 := min(q0+d.chunk, d.q)
			for k := k0; k < k1; k += lanes {
				for q := q0; q < q1; q++ {
					line := dst[:lanes]
					dst = dst[lanes:]
					from := src[q*v+k*e:]
					n := min(lanes, k1-k)
					if e == 1 {
						copy(line, from[:n])
					} else {
						for i := range n {
							line[i] = from[i*e]
						}
					}
					clear(line[n:])
				}
			}
		}
	}
}

// dotsPart computes part pn of the rows.
func (j *gemmJob) dotsPart(batch, pn int) {
	g, ks, d := &j.g, j.ks, &j.dots
	units := ceilDiv(d.rows, dotsUnit)
	first, end := spread(units, j.nParts, pn)*dotsUnit, min(spread(units, j.nParts, pn+1)*dotsUnit, d.rows)
	c := g.C[batch*g.CStride:]
	s, sRow := g.B[g.BAt(batch):], g.BCol
	cr, cq := 1, g.CRow
	if d.byRows {
		s, sRow = g.A[g.AAt(batch):], g.ARow
		cr, cq = g.CRow, 1
	}
	// A call of the kernel takes some tens of microseconds. If the vectors have several
	// chunks, the rows stay in the second cache between them.
	block := max(dotsUnit, (128<<10)/min(g.K, d.kBlock)/dotsUnit*dotsUnit)
	for r0 := first; r0 < end; r0 += block {
		r1 := min(r0+block, end)
		i0, i1, c0, c1 := 0, g.M, r0, r1
		if d.byRows {
			i0, i1, c0, c1 = r0, r1, 0, g.N
		}
		j.start(c, i0, i1, c0, c1)
		vectors := j.vectors.data[batch*d.perBatch:]
		for k0 := 0; k0 < g.K; k0 += d.kBlock {
			k := min(d.kBlock, g.K-k0)
			for q0 := 0; q0 < d.q; q0 += d.chunk {
				q := min(d.chunk, d.q-q0)
				ks.dots[q-1](&s[r0*sRow+k0], &vectors[0], &c[r0*cr+q0*cq], 4*sRow, 4*cr, 4*cq, k, r1-r0)
				vectors = vectors[ceilDiv(k, ks.lanes)*ks.lanes*q:]
			}
		}
		j.finish(c, batch, i0, i1, c0, c1)
	}
}
