package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/internal/workers"
)

func (j *gemmJob) planTiles(p *workers.Pool) {
	g, ks := &j.g, j.ks
	j.form = formTiles
	cache := memory.CPUCaches()

	// The first cache holds a tile of A, the next tile, and the part of B that is being read.
	kMost := min(512, cache.L1*9/20/(4*ks.rows))
	j.packB = j.conv != nil || g.BCol != 1 || g.M > 2*ks.rows && g.K*g.N*4 > directB ||
		ks.wholePanels && g.N%ks.cols != 0
	j.far = !j.packB && g.K*g.N*4 > cache.L2/2
	if j.far {
		// Few rows of B at once: the processor prefetches about 32 streams.
		kMost = farK
	}
	j.kSteps = max(1, ceilDiv(g.K, kMost))
	j.kBlock = ceilDiv(g.K, j.kSteps)
	panels := ceilDiv(g.N, ks.cols)
	most := cache.L2 / 2 / (4 * ks.cols * max(1, j.kBlock))
	if !j.packB {
		// The rows of B and C, which are used again, stay in the second-level cache.
		most = cache.L2 / 4 / (4 * ks.cols * max(g.M, farK))
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
	j.streams = ks.tileStream != nil && j.kSteps == 1 && g.K <= streamK && !g.Accumulate &&
		g.Epilogue == nil && j.rowBias == nil && g.N%ks.cols == 0 &&
		4*float64(g.Batch)*float64(g.M)*float64(g.N) >= float64(min(streamC, cache.Last/2)) &&
		(uintptr(unsafe.Pointer(&g.C[0]))|uintptr(4*g.CRow)|uintptr(4*g.CStride))%64 == 0
	// Braiding packs A, so it also separates rows that alias.
	j.braid = ks.tileBraid != nil && !j.streams && min(panels, j.nBlock) >= braidPanels
	j.grid(p)
}

// directB is the size in bytes up to which B is read in place although several tiles of A
// need it.
const directB = 300 << 10

// farK is the number of rows of B that are read at once if B is read once, in place, from memory.
const farK = 24

// C is written with non-temporal stores if most of it does not fit into streamC bytes of the
// last-level cache and K is at most streamK: with a larger K, the computation hides the time of
// writing.
const streamK = 64

var streamC = 64 << 20

// braidPanels is the least number of panels for each tile of A for which braiding is faster.
const braidPanels = 8

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
	stride, floats := pad(j.kBlock), 0
	switch {
	case j.braid:
		floats = max(ks.lanes*j.kBlock, ks.rows*stride)
	case j.packA:
		floats = ks.rows * stride
	}
	bAt := floats
	if j.packB {
		floats += j.kBlock * j.nBlock * ks.cols
	}
	var at, bt []float32
	if floats > 0 {
		sc := takeScratch(floats)
		defer sc.free()
		at, bt = sc.data, sc.data[bAt:]
	}
	c := g.C[batch*g.CStride:]

	blocks := ceilDiv(p1-p0, j.nBlock)
	braids := j.braid && p1-p0 >= braidPanels*blocks
	for nb := range blocks {
		q0, q1 := p0+spread(p1-p0, blocks, nb), p0+spread(p1-p0, blocks, nb+1)
		c0, c1 := q0*ks.cols, min(q1*ks.cols, g.N)
		for s := range j.kSteps {
			k0, k1 := spread(g.K, j.kSteps, s), spread(g.K, j.kSteps, s+1)
			k := k1 - k0
			var a []float32
			var b *float32
			bs, bp := 4*g.BRow, 4*ks.cols
			fuse := j.fused && k > 0 && j.row(t0+1)-j.row(t0) == ks.rows
			if k > 0 {
				a = g.A[g.AAt(batch%j.repeatA)+k0*g.ACol:]
				switch {
				case j.conv != nil:
					j.conv.packB(ks, bt, g.B[g.BAt(batch):], k0, k1, c0, c1)
				case j.packB && !fuse:
					ks.packB(bt, g.B[g.BAt(batch)+k0*g.BRow+c0*g.BCol:], g.BRow, g.BCol, k, c1-c0)
				default:
					b = &g.B[g.BAt(batch)+k0*g.BRow+c0]
				}
				if b == nil {
					b, bs, bp = &bt[0], 4*ks.cols, 4*ks.cols*k
				}
			}
			var bias *float32
			if g.Bias != nil && s == 0 {
				bias = &g.Bias[c0]
			}
			add := g.Accumulate || s > 0 || j.rowBias != nil
			for t := t0; t < t1; t++ {
				r0, r1 := j.row(t), j.row(t+1)
				var ap, next *float32
				as := g.ARow
				braid := braids && k > 0 && r1-r0 == ks.rows
				if k > 0 {
					ap = &a[r0*g.ARow]
					switch {
					case braid:
						ks.braid(at, a[r0*g.ARow:], g.ARow, g.ACol, k)
						ap = &at[0]
					case j.packA:
						ks.packA(at, stride, a[r0*g.ARow:], g.ARow, g.ACol, r1-r0, k)
						ap, as = &at[0], stride
					}
					if t+1 < t1 && g.ACol == 1 {
						next = &a[r1*g.ARow]
					}
				}
				if j.rowBias != nil && s == 0 {
					for r := r0; r < r1; r++ {
						fill(c[r*g.CRow+c0:][:c1-c0], j.rowBias[batch%j.repeatA*g.M+r])
					}
				}
				ct := &c[r0*g.CRow+c0]
				switch {
				case fuse:
					tile := ks.tilePack
					if braid {
						tile = ks.tileBraidPack
					}
					tile(ap, b, ct, bias, next, 4*as, bs, bp, 4*g.CRow, 4*g.ARow, k, c1-c0, add, &bt[0])
					b, bs, bp, fuse = &bt[0], 4*ks.cols, 4*ks.cols*k, false
				case braid:
					ks.tileBraid(ap, b, ct, bias, next, 0, bs, bp, 4*g.CRow, 4*g.ARow, k, c1-c0, add)
				case j.streams && r1-r0 == ks.rows:
					ks.tileStream(ap, b, ct, bias, next, 4*as, bs, bp, 4*g.CRow, 4*g.ARow, k, c1-c0, add)
				default:
					ks.tile[r1-r0-1](ap, b, ct, bias, next, 4*as, bs, bp, 4*g.CRow, 4*g.ARow, k, c1-c0, add)
				}
				if s == j.kSteps-1 {
					j.finish(c, batch, r0, r1, c0, c1)
				}
			}
		}
	}
}
