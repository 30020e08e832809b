package simd

import (
	"sync"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/internal/workers"
)

// A gemmJob is a product, or a batch of them, on its way through the pool of
// workers. Every C is cut into a grid of parts that need nothing from each
// other: threads meet only at the end, and what two parts pack twice is little
// beside their products.
//
// A part walks over blocks of B that fit in half of the second cache, once
// packed, and for each block over the tiles of A, which stay in the first
// cache while the block streams past them.
type gemmJob struct {
	g    Gemm
	ks   *gemmKernels
	form gemmForm

	mParts, nParts int // the grid of one C
	kSteps         int // blocks along K
	nBlock         int // most panels in a block of B
	kBlock         int // most elements along K in a block
	packA, packB   bool

	// A convolution is a product whose B is made as it is packed, whose
	// matrices A take turns, and whose bias belongs to the rows.
	window  Conv2D
	conv    *Conv2D // window, while its pixels are to be gathered
	repeatA int
	rowBias []float32

	vectors *scratch // of the form of dots
	dots    dotsPlan
}

// gemmForm is a way to go over the matrices.
type gemmForm uint8

const (
	formTiles gemmForm = iota // tiles that stay in registers
	formRows                  // few rows of C: sums of scaled rows of B
	formDots                  // few rows or columns of C: scalar products
	formConv                  // few windows: row by row
)

// gemmJobs keeps what products need while they run.
var gemmJobs = sync.Pool{New: func() any { return new(gemmJob) }}

// spread returns where part i of n things in the given number of parts begins.
func spread(n, parts, i int) int { return n/parts*i + min(i, n%parts) }

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// flopsPerNS is a guess for deciding on threads, on the high side: of
// splitting too little work little is lost.
const flopsPerNS = 100

// bytesPerNS is the same for memory.
const bytesPerNS = 20

func (g *Gemm) run(p *workers.Pool) {
	j := gemmJobs.Get().(*gemmJob)
	j.g, j.ks = *g, gemmActive
	j.repeatA = g.Batch
	j.plan(p)
	p.Do(g.Batch*j.mParts*j.nParts, j)
	j.release()
}

// release gives the job back, without what it held of its user's.
func (j *gemmJob) release() {
	if j.vectors != nil {
		j.vectors.free()
	}
	*j = gemmJob{}
	gemmJobs.Put(j)
}

// plan chooses the form and the blocks.
func (j *gemmJob) plan(p *workers.Pool) {
	g := &j.g
	switch {
	case j.planDots():
		j.form = formDots
		j.cut(p, ceilDiv(j.dots.rows, dotsUnit))
		return
	case g.M <= len(j.ks.rowsFew) && g.BCol == 1:
		j.form = formRows
		j.cut(p, ceilDiv(g.N, rowsUnit))
		return
	}
	j.planTiles(p)
}

func (j *gemmJob) planTiles(p *workers.Pool) {
	g, ks := &j.g, j.ks
	j.form = formTiles
	cache := memory.CPUCaches()

	// A tile of A shares the first cache with what streams past.
	kMost := min(512, cache.L1*6/10/(4*ks.rows))
	j.packB = j.conv != nil || g.BCol != 1 || g.M > 2*ks.rows && g.K*g.N*4 > directB ||
		ks.wholePanels && g.N%ks.cols != 0
	if !j.packB && g.K*g.N*4 > cache.L2/2 {
		// B is read once and from afar: along few rows side by side.
		kMost = farK
	}
	j.kSteps = max(1, ceilDiv(g.K, kMost))
	j.kBlock = ceilDiv(g.K, j.kSteps)
	panels := ceilDiv(g.N, ks.cols)
	most := max(1, cache.L2/2/(4*ks.cols*max(1, j.kBlock)))
	if !j.packB {
		most = ceilDiv(farN, ks.cols)
	}
	j.nBlock = ceilDiv(panels, ceilDiv(panels, most))
	j.packA = g.ACol != 1 || g.N > 4*ks.cols && aliases(4*g.ARow)
	j.grid(p)
}

// directB is the size in bytes up to which B is read where it lies although
// several tiles of A need it.
const directB = 300 << 10

// Blocks of a B that is read where it lies, once.
const (
	farK = 32
	farN = 1024
)

// aliases reports whether rows that are so many bytes apart would push each
// other out of the first cache, whose ways repeat every 4096 bytes.
func aliases(stride int) bool {
	d := stride % 4096
	return min(d, 4096-d) < 64
}

// parts returns into how many parts of about equal work the batch is cut:
// several for every thread, in case one comes late, but none of less than a
// few microseconds. It is 1 if threads do not pay.
func (j *gemmJob) parts(p *workers.Pool) int {
	g := &j.g
	m, n, k := float64(g.M), float64(g.N), float64(g.K)
	// Memory is the slower one where every element is used a few times only.
	ns := float64(g.Batch) * max(2*m*n*k/flopsPerNS, 4*(m*k+k*n+m*n)/bytesPerNS)
	return partsOf(p, ns)
}

func partsOf(p *workers.Pool, ns float64) int {
	if !p.Worth(ns) {
		return 1
	}
	threads := p.Threads()
	return min(4*threads, max(threads, int(ns/20_000)))
}

// cut divides C along one dimension.
func (j *gemmJob) cut(p *workers.Pool, units int) {
	j.mParts = 1
	j.nParts = max(1, min(ceilDiv(j.parts(p), j.g.Batch), units))
}

// grid cuts C into parts along both dimensions.
func (j *gemmJob) grid(p *workers.Pool) {
	g, ks := &j.g, j.ks
	j.mParts, j.nParts = 1, 1
	parts := ceilDiv(j.parts(p), g.Batch)
	if parts == 1 {
		return
	}
	tiles, panels := ceilDiv(g.M, ks.rows), ceilDiv(g.N, ks.cols)
	packCost := 1.0
	if j.conv != nil {
		packCost = 4 // gathered piece by piece
	}
	best := -1.0
	for m := 1; m <= min(parts, tiles); m++ {
		n := min(ceilDiv(parts, m), panels)
		if m*n < min(parts, tiles*panels) {
			continue
		}
		// Each column of parts packs all of A, each row all of B.
		cost := float64(n)*float64(g.M) + float64(m)*float64(g.N)*packCost
		if best < 0 || cost < best {
			best, j.mParts, j.nParts = cost, m, n
		}
	}
}

// Part computes part i of the grid.
func (j *gemmJob) Part(i int) {
	batch := i / (j.mParts * j.nParts)
	pm, pn := i%j.mParts, i/j.mParts%j.nParts
	switch j.form {
	case formRows:
		j.rowsPart(batch, pn)
	case formDots:
		j.dotsPart(batch, pn)
	case formConv:
		j.convPart(batch, pn)
	default:
		j.tilesPart(batch, pm, pn)
	}
}

func (j *gemmJob) tilesPart(batch, pm, pn int) {
	g, ks := &j.g, j.ks
	tiles, panels := ceilDiv(g.M, ks.rows), ceilDiv(g.N, ks.cols)
	t0, t1 := spread(tiles, j.mParts, pm), spread(tiles, j.mParts, pm+1)
	p0, p1 := spread(panels, j.nParts, pn), spread(panels, j.nParts, pn+1)

	stride := pad(j.kBlock)
	sc := takeScratch(ks.rows*stride + j.kBlock*j.nBlock*ks.cols)
	buf := sc.data
	at, bt := buf[:ks.rows*stride], buf[ks.rows*stride:]
	c := g.C[batch*g.CStride:]

	blocks := ceilDiv(p1-p0, j.nBlock)
	for nb := range blocks {
		q0, q1 := p0+spread(p1-p0, blocks, nb), p0+spread(p1-p0, blocks, nb+1)
		c0, c1 := q0*ks.cols, min(q1*ks.cols, g.N)
		for s := range j.kSteps {
			k0, k1 := spread(g.K, j.kSteps, s), spread(g.K, j.kSteps, s+1)
			var a []float32
			var b *float32
			bs, bp := 4*g.BRow, 4*ks.cols
			if k1 > k0 {
				a = g.A[batch%j.repeatA*g.AStride+k0*g.ACol:]
				switch {
				case j.conv != nil:
					j.conv.packB(ks, bt, g.B[batch*g.BStride:], k0, k1, c0, c1)
				case j.packB:
					ks.packB(bt, g.B[batch*g.BStride+k0*g.BRow+c0*g.BCol:], g.BRow, g.BCol, k1-k0, c1-c0)
				default:
					b = &g.B[batch*g.BStride+k0*g.BRow+c0]
				}
				if j.packB {
					b, bs, bp = &bt[0], 4*ks.cols, 4*ks.cols*(k1-k0)
				}
			}
			var bias *float32
			if g.Bias != nil && s == 0 {
				bias = &g.Bias[c0]
			}
			add := g.Accumulate || s > 0 || j.rowBias != nil
			for t := t0; t < t1; t++ {
				r0, r1 := spread(g.M, tiles, t), spread(g.M, tiles, t+1)
				var ap, next *float32
				as := g.ARow
				if k1 > k0 {
					ap = &a[r0*g.ARow]
					if j.packA {
						ks.packA(at, stride, a[r0*g.ARow:], g.ARow, g.ACol, r1-r0, k1-k0)
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
				ks.tile[r1-r0-1](ap, b, &c[r0*g.CRow+c0], bias, next, 4*as, bs, bp, 4*g.CRow, 4*g.ARow, k1-k0, c1-c0, add)
				if s == j.kSteps-1 {
					j.finish(c, batch, r0, r1, c0, c1)
				}
			}
		}
	}
	sc.free()
}
