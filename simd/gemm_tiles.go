package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/internal/workers"
)

// tileLimits are the limits of choices in products by tiles, measured on 2 cores of an Intel Xeon with AVX-512,
// 2026-11-21 (go test -bench Gemm ./simd).
var tileLimits = struct{ terms, directB, farK, streamK, streamC, braidPanels int }{
	terms:       512,       // rows of B that are multiplied at once, at most
	directB:     300 << 10, // bytes up to which B is read in place although several tiles of A need it
	farK:        24,        // rows of B that are read at once if B is read once, in place, from memory: the processor prefetches about 32 streams
	streamK:     64,        // terms up to which C is written with non-temporal stores: the time of more terms hides the time of writing
	streamC:     64 << 20,  // bytes of the last-level cache in which C is written without such stores, if most of it fits
	braidPanels: 8,         // panels for each tile of A from which on braiding is faster
}

func (j *gemmJob) planTiles(p *workers.Pool) {
	g, ks := &j.g, j.ks
	j.form = formTiles
	cache := memory.CPUCaches()

	// The first cache holds a tile of A, the next tile, and the part of B that is being read.
	kMost := min(tileLimits.terms, cache.L1*9/20/(4*ks.rows))
	j.packB = j.conv != nil || g.BCol != 1 || g.M > 2*ks.rows && g.K*g.N*4 > tileLimits.directB ||
		ks.wholePanels && g.N%ks.cols != 0
	j.far = !j.packB && g.K*g.N*4 > cache.L2/2
	if j.far {
		// Few rows of B at once: the processor prefetches about 32 streams.
		kMost = tileLimits.farK
	}
	j.kSteps = max(1, ceilDiv(g.K, kMost))
	j.kBlock = ceilDiv(g.K, j.kSteps)
	panels := ceilDiv(g.N, ks.cols)
	most := cache.L2 / 2 / (4 * ks.cols * max(1, j.kBlock))
	if !j.packB {
		// The rows of B and C, which are used again, stay in the second-level cache.
		most = cache.L2 / 4 / (4 * ks.cols * max(g.M, tileLimits.farK))
		if g.M > 2*ks.rows {
			most = panels // B is small
		}
	}
	j.nBlock = max(1, min(most, panels))
	// Rows that alias are not packed if the first cache has nearly as many ways, of one page
	// each. Only half of the ways count, because a second thread of the core may use the
	// others.
	j.packA = g.ACol != 1 || g.N > 4*ks.cols && aliases(4*g.ARow) && 4*(cache.L1/2/4096) < 3*ks.rows
	// Only if B is in the second-level caches does it arrive as fast as the first tile consumes it.
	j.fused = j.packB && j.conv == nil && g.BCol == 1 && ks.tilePack != nil && g.K*g.N*4 <= p.Threads()*cache.L2/2
	j.streams = ks.tileStream != nil && j.kSteps == 1 && g.K <= tileLimits.streamK && !g.Accumulate &&
		g.Epilogue == nil && j.rowBias == nil && g.N%ks.cols == 0 &&
		4*float64(g.Batch)*float64(g.M)*float64(g.N) >= float64(min(tileLimits.streamC, cache.Last/2)) &&
		(uintptr(unsafe.Pointer(&g.C[0]))|uintptr(4*g.CRow)|uintptr(4*g.CStride))%64 == 0
	// Braiding packs A, so it also separates rows that alias.
	j.braid = ks.tileBraid != nil && !j.streams && min(panels, j.nBlock) >= tileLimits.braidPanels
	j.grid(p)
}

// aliases reports whether rows that are stride bytes apart evict each other from the first-level
// cache, whose sets repeat every 4096 bytes.
func aliases(stride int) bool {
	d := stride % 4096
	return min(d, 4096-d) < 64
}

// row returns the first row of tile t. With kernels for full tiles only, all tiles have the full
// height except the last two, which divide the remaining rows.
func (j *gemmJob) row(t int) int {
	m, h := j.g.M, j.ks.rows
	tiles := ceilDiv(m, h)
	switch {
	case !j.fused && !j.streams && !j.braid:
		return spread(m, tiles, t)
	case t >= tiles:
		return m
	case t == tiles-1 && t > 0:
		return m - (m-(t-1)*h)/2
	}
	return t * h
}

// tilesPart computes the tiles t0 to t1 and the panels p0 to p1.
func (j *gemmJob) tilesPart(batch, t0, t1, p0, p1 int) {
	g, ks := &j.g, j.ks
	x := tileBlock{gemmJob: j, batch: batch, c: g.C[batch*g.CStride:]}
	floats := j.tileFloats()
	bAt := floats
	if j.packB {
		floats += j.kBlock * j.nBlock * ks.cols
	}
	if floats > 0 {
		sc := takeScratch(floats)
		defer sc.free()
		x.at, x.bt = sc.data, sc.data[bAt:]
	}
	blocks := ceilDiv(p1-p0, j.nBlock)
	x.braids = j.braid && p1-p0 >= tileLimits.braidPanels*blocks
	for nb := range blocks {
		q0, q1 := p0+spread(p1-p0, blocks, nb), p0+spread(p1-p0, blocks, nb+1)
		x.c0, x.c1 = q0*ks.cols, min(q1*ks.cols, g.N)
		for s := range j.kSteps {
			x.k0, x.k1 = spread(g.K, j.kSteps, s), spread(g.K, j.kSteps, s+1)
			x.first, x.last = s == 0, s == j.kSteps-1
			x.open(t0)
			for t := t0; t < t1; t++ {
				x.tile(t, t1)
			}
		}
	}
}

// tileFloats returns the number of floats of a packed or braided tile of A.
func (j *gemmJob) tileFloats() int {
	switch {
	case j.braid:
		return max(j.ks.lanes*j.kBlock, j.ks.rows*pad(j.kBlock))
	case j.packA:
		return j.ks.rows * pad(j.kBlock)
	}
	return 0
}

// A tileBlock multiplies tiles of A by the columns c0 to c1 of the rows k0 to k1 of B.
type tileBlock struct {
	*gemmJob
	batch          int
	at, bt         []float32 // memory for a packed tile of A, and for packed panels of B
	c              []float32 // the product of the batch
	c0, c1, k0, k1 int
	first, last    bool // the block has the first, or the last, rows of B
	braids         bool // full tiles of A are braided

	a      []float32 // A from column k0 on
	b      *float32  // the first panel of B
	bs, bp int       // bytes from row to row of B, and from panel to panel
	fuse   bool      // the first tile packs B
	bias   *float32
}

// open prepares the operands for the tiles from t0 on.
func (x *tileBlock) open(t0 int) {
	g, ks, k := &x.g, x.ks, x.k1-x.k0
	x.a, x.b, x.bs, x.bp = nil, nil, 4*g.BRow, 4*ks.cols
	x.fuse = x.fused && k > 0 && x.row(t0+1)-x.row(t0) == ks.rows
	if k > 0 {
		x.a = g.A[g.AAt(x.batch%x.repeatA)+x.k0*g.ACol:]
		switch {
		case x.conv != nil:
			x.conv.packB(ks, x.bt, g.B[g.BAt(x.batch):], x.k0, x.k1, x.c0, x.c1)
		case x.packB && !x.fuse:
			ks.packB(x.bt, g.B[g.BAt(x.batch)+x.k0*g.BRow+x.c0*g.BCol:], g.BRow, g.BCol, k, x.c1-x.c0)
		default:
			x.b = &g.B[g.BAt(x.batch)+x.k0*g.BRow+x.c0]
		}
		if x.b == nil {
			x.packed(k)
		}
	}
	x.bias = nil
	if g.Bias != nil && x.first {
		x.bias = &g.Bias[x.c0]
	}
}

// packed makes the packed panels the operand B.
func (x *tileBlock) packed(k int) { x.b, x.bs, x.bp = &x.bt[0], 4*x.ks.cols, 4*x.ks.cols*k }

// tile computes tile t. The part ends before tile t1.
func (x *tileBlock) tile(t, t1 int) {
	g, ks, k := &x.g, x.ks, x.k1-x.k0
	r0, r1 := x.row(t), x.row(t+1)
	var ap, next *float32
	as := g.ARow
	braid := x.braids && k > 0 && r1-r0 == ks.rows
	if k > 0 {
		ap = &x.a[r0*g.ARow]
		switch {
		case braid:
			ks.braid(x.at, x.a[r0*g.ARow:], g.ARow, g.ACol, k)
			ap = &x.at[0]
		case x.packA:
			as = pad(x.kBlock)
			ks.packA(x.at, as, x.a[r0*g.ARow:], g.ARow, g.ACol, r1-r0, k)
			ap = &x.at[0]
		}
		if t+1 < t1 && g.ACol == 1 {
			next = &x.a[r1*g.ARow]
		}
	}
	if x.rowBias != nil && x.first {
		for r := r0; r < r1; r++ {
			fill(x.c[r*g.CRow+x.c0:][:x.c1-x.c0], x.rowBias[x.batch%x.repeatA*g.M+r])
		}
	}
	add := g.Accumulate || !x.first || x.rowBias != nil
	ct, n := &x.c[r0*g.CRow+x.c0], x.c1-x.c0
	switch {
	case x.fuse:
		tile := ks.tilePack
		if braid {
			tile = ks.tileBraidPack
		}
		tile(ap, x.b, ct, x.bias, next, 4*as, x.bs, x.bp, 4*g.CRow, 4*g.ARow, k, n, add, &x.bt[0])
		x.packed(k)
		x.fuse = false
	case braid:
		ks.tileBraid(ap, x.b, ct, x.bias, next, 0, x.bs, x.bp, 4*g.CRow, 4*g.ARow, k, n, add)
	case x.streams && r1-r0 == ks.rows:
		ks.tileStream(ap, x.b, ct, x.bias, next, 4*as, x.bs, x.bp, 4*g.CRow, 4*g.ARow, k, n, add)
	default:
		ks.tile[r1-r0-1](ap, x.b, ct, x.bias, next, 4*as, x.bs, x.bp, 4*g.CRow, 4*g.ARow, k, n, add)
	}
	if x.last {
		x.finish(x.c, x.batch, r0, r1, x.c0, x.c1)
	}
}
