package simd

import "github.com/rayo-go/rayo/internal/workers"

// parts returns the number of parts, of about equal work, into which the batch is divided. There are
// several for each thread, in case one thread is late, but each takes at least a few microseconds. It
// returns 1 if the work is too little for several threads.
func (j *gemmJob) parts(p *workers.Pool) int {
	g := &j.g
	m, n, k := float64(g.M), float64(g.N), float64(g.K)
	// Memory is the bottleneck if each element is used only a few times.
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
	parts := ceilDiv(j.parts(p), j.g.Batch)
	if j.form == formRows {
		parts = j.farParts(p, parts)
	}
	j.nParts = max(1, min(parts, units))
}

// farColumns is the number of elements of two pages of memory.
const farColumns = 2 * 4096 / 4

// farParts reduces the number of parts for a B that is read in place from memory, so that
// each part has at least two pages of each row. The processor prefetches within a page,
// and needs some cache lines to start again on the next page.
func (j *gemmJob) farParts(p *workers.Pool, parts int) int {
	if parts == 1 {
		return 1
	}
	return min(parts, max(p.Threads(), j.g.N/farColumns))
}

// grid cuts C into parts along both dimensions.
//
// A large product starts with a part of whole columns for each thread, so that all rows use the panels of B that the thread packs.
// The rest is divided into smaller parts, so that threads end together even if one is late.
func (j *gemmJob) grid(p *workers.Pool) {
	g, ks := &j.g, j.ks
	j.mParts, j.nParts, j.columnParts, j.columnPanels = 1, 1, 0, 0
	parts := ceilDiv(j.parts(p), g.Batch)
	if j.far {
		parts = j.farParts(p, parts)
	}
	if parts == 1 {
		return
	}
	tiles, panels := ceilDiv(g.M, ks.rows), ceilDiv(g.N, ks.cols)
	if t := p.Threads(); g.Batch == 1 && j.packB && parts >= 4*t && panels >= 4*t {
		j.columnParts, j.columnPanels = t, wideBlocks(panels*5/8/t, panels*13/16/t, j.nBlock)
		panels -= t * j.columnPanels
		parts = 2 * t
	}
	packCost := 3.0 // the cost of packing B relative to A, which is read and written in the first-level cache
	switch {
	case j.conv != nil:
		packCost = 4 // because B is gathered piece by piece
	case !j.packB:
		packCost = 0
	}
	best := -1.0
	for m := 1; m <= min(parts, tiles); m++ {
		n := min(ceilDiv(parts, m), panels)
		if m*n < min(parts, tiles*panels) {
			continue
		}
		// Each column of parts packs all of A, each row all of B.
		cost := float64(n)*float64(g.M) + float64(m)*float64(panels*ks.cols)*packCost
		if best < 0 || cost < best {
			best, j.mParts, j.nParts = cost, m, n
		}
	}
}

// wideBlocks returns the number of panels, from least to most, that divides into the widest
// blocks of at most block panels.
func wideBlocks(least, most, block int) int {
	best, width := least, 0
	for n := max(1, least); n <= most; n++ {
		if w := n / ceilDiv(n, max(1, block)); w >= width {
			best, width = n, w
		}
	}
	return best
}

// count returns the number of parts of the whole batch.
func (j *gemmJob) count() int { return j.columnParts + j.g.Batch*j.mParts*j.nParts }
