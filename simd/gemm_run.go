package simd

import (
	"sync"

	"github.com/rayo-go/rayo/internal/workers"
)

// A gemmJob is a product, or a batch of products, that the worker pool computes. Every C is divided
// into a grid of independent parts: threads synchronise only at the end, and packing some panels
// twice costs little compared with the products.
//
// A part walks over blocks of B that fit in half of the second cache, once
// packed, and for each block over the tiles of A, which stay in the first
// cache while the block streams past them.
type gemmJob struct {
	g    Gemm
	ks   *gemmKernels
	form gemmForm

	strips, strip  int // parts before the grid, and how many panels each has
	mParts, nParts int // the grid of one C, or of the rest after the strips
	kSteps         int // blocks along K
	nBlock         int // most panels in a block of B
	kBlock         int // most elements along K in a block
	packA, packB   bool
	braid          bool // whole tiles of A are packed as braids
	fused          bool // the first tile of a part packs B
	far            bool // B is read once, where it lies, from outside the caches
	streams        bool // C is written past the caches

	// A convolution is a product whose B is gathered while it is packed, with several matrices A,
	// and with one bias for each row.
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
	p.Do(j.count(), j)
	j.release()
}

// release returns the job to the pool, without references to the caller's data.
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
	case j.planRows():
		j.form = formRows
		j.cut(p, ceilDiv(g.N, rowsUnit))
		return
	}
	j.planTiles(p)
}

// Part computes part i of the grid.
func (j *gemmJob) Part(i int) {
	if i < j.strips {
		j.tilesPart(0, 0, ceilDiv(j.g.M, j.ks.rows), i*j.strip, (i+1)*j.strip)
		return
	}
	i -= j.strips
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
		tiles, first, panels := ceilDiv(j.g.M, j.ks.rows), j.strips*j.strip, ceilDiv(j.g.N, j.ks.cols)
		j.tilesPart(batch, spread(tiles, j.mParts, pm), spread(tiles, j.mParts, pm+1),
			first+spread(panels-first, j.nParts, pn), first+spread(panels-first, j.nParts, pn+1))
	}
}
