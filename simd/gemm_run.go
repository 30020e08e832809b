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

	columnParts, columnPanels int // number of parts of whole columns before the grid, and the panels of each
	mParts, nParts            int // the grid of one C, or of the columns after these parts
	kSteps                    int // blocks along K
	nBlock                    int // the largest number of panels in a block of B
	kBlock                    int // the largest number of elements along K in a block
	packA, packB              bool
	braid                     bool // whole tiles of A are packed as braids
	fused                     bool // the first tile of a part packs B
	far                       bool // B is read once, in place, from memory
	streams                   bool // C is written with non-temporal stores

	// A convolution is a product whose B is gathered while it is packed, with several matrices A,
	// and with one bias for each row.
	window  Conv2D
	conv    *Conv2D // &window, or nil if B is the image itself
	repeatA int
	rowBias []float32

	vectors *scratch // packed vectors of formDots
	dots    dotsPlan
}

// gemmForm is an algorithm for a product.
type gemmForm uint8

const (
	formTiles gemmForm = iota // tiles that stay in registers
	formRows                  // few rows of C: sums of scaled rows of B
	formDots                  // few rows or columns of C: scalar products
	formConv                  // few windows: row by row
)

// gemmJobs is the pool of jobs.
var gemmJobs = sync.Pool{New: func() any { return new(gemmJob) }}

// spread returns the start of part i if n is divided into equal parts.
func spread(n, parts, i int) int { return n/parts*i + min(i, n%parts) }

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// flopsPerNS is an estimate that decides on the number of threads. It is rather too high:
// splitting too little work costs little.
const flopsPerNS = 100

// bytesPerNS is such an estimate for memory traffic.
const bytesPerNS = 20

func (g *Gemm) run(p *workers.Pool) {
	j := gemmJobs.Get().(*gemmJob)
	j.g, j.ks = *g, gemmActive()
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
	if i < j.columnParts {
		j.tilesPart(0, 0, ceilDiv(j.g.M, j.ks.rows), i*j.columnPanels, (i+1)*j.columnPanels)
		return
	}
	i -= j.columnParts
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
		tiles, first, panels := ceilDiv(j.g.M, j.ks.rows), j.columnParts*j.columnPanels, ceilDiv(j.g.N, j.ks.cols)
		j.tilesPart(batch, spread(tiles, j.mParts, pm), spread(tiles, j.mParts, pm+1),
			first+spread(panels-first, j.nParts, pn), first+spread(panels-first, j.nParts, pn+1))
	}
}
