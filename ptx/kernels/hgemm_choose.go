package kernels

import (
	"fmt"
	"math"
)

// wgmmaWay is a way to compute a product by warpgroups.
type wgmmaWay struct {
	wgmmaSpec
	parts        int  // of sums
	copyA, copyB bool // rows are copied to begin at lines of the cache
}

// String returns the tile, the parts and the operands that are copied:
// wgmma128x256x2_s4_c1_k3_ab.
func (w *wgmmaWay) String() string {
	s := w.wgmmaSpec.String()
	if w.parts > 1 {
		s += fmt.Sprintf("_k%d", w.parts)
	}
	if w.copyA || w.copyB {
		s += "_"
	}
	if w.copyA {
		s += "a"
	}
	if w.copyB {
		s += "b"
	}
	return s
}

// wgmmaTiles are the tiles to choose from, with the part of the time that the
// tensor cores work while a block multiplies, the best being 1.
var wgmmaTiles = []struct {
	wgmmaSpec
	busy float64
}{
	{wgmmaSpec{Rows: 128, Cols: 256, Groups: 2, Stages: 4, Cluster: 1}, 1},
	{wgmmaSpec{Rows: 256, Cols: 128, Groups: 2, Stages: 4, Cluster: 1}, 0.99},
	{wgmmaSpec{Rows: 128, Cols: 192, Groups: 2, Stages: 4, Cluster: 1}, 0.95},
	{wgmmaSpec{Rows: 128, Cols: 128, Groups: 2, Stages: 6, Cluster: 1}, 0.95},
	{wgmmaSpec{Rows: 128, Cols: 64, Groups: 2, Stages: 6, Cluster: 1}, 0.8},
	{wgmmaSpec{Rows: 64, Cols: 128, Groups: 1, Stages: 6, Cluster: 1}, 0.75},
	{wgmmaSpec{Rows: 64, Cols: 64, Groups: 1, Stages: 8, Cluster: 1}, 0.5},
	{wgmmaSpec{Rows: 128, Cols: 256, Groups: 2, Stages: 4, Cluster: 2}, 0.96},
	{wgmmaSpec{Rows: 128, Cols: 128, Groups: 2, Stages: 6, Cluster: 2}, 0.9},
}

// What an H200 does, measured, a microsecond being the unit of time.
const (
	wgmmaRate   = 5.3e6 // floating-point operations of a multiprocessor
	wgmmaTile   = 0.8   // time to begin and end a tile
	wgmmaLaunch = 2.5   // time of one more launch
	wgmmaMemory = 3.4e6 // bytes that are copied or gathered, written ones included
	wgmmaCache  = 13e6  // bytes that all multiprocessors get from L2
	wgmmaAcross = 2.4   // times as long take rows that begin within a line of the cache
)

// cost estimates the time of a way whose tensor cores work for that part of the
// time: what blocks do in turn, and what comes before and behind.
func (p *halfProduct) cost(w *wgmmaWay, busy float64, d *Device) float64 {
	a, b := p.lay()
	copied := 0.0
	slow := func(m matrix, copies bool) float64 {
		switch {
		case copies:
			copied += wgmmaLaunch + 4*float64(m.inner)*float64(m.outer)*float64(m.count)/wgmmaMemory
		case m.inner%64 != 0:
			return wgmmaAcross
		}
		return 1
	}
	slowA, slowB := slow(a, w.copyA), slow(b, w.copyB)
	slots := max(1, d.Multiprocessors/w.Cluster)
	tiles := p.Batch * ceilDiv(p.M, w.Rows*w.Cluster) * ceilDiv(p.N, w.Cols) * w.parts
	blocks := min(tiles, slots) * w.Cluster
	bytes := 2 * depth * (float64(w.Rows)*slowA + float64(w.Cols/w.Cluster)*slowB)
	step := max(float64(2*w.Rows*w.Cols*depth)/wgmmaRate/busy, bytes*float64(blocks)/wgmmaCache)
	t := copied + float64(ceilDiv(tiles, slots))*(float64(ceilDiv(ceilDiv(p.K, depth), w.parts))*step+wgmmaTile)
	if w.parts > 1 {
		t += wgmmaLaunch + 8*float64(w.parts)*float64(p.Batch)*float64(p.M)*float64(p.N)/wgmmaMemory
	}
	return t
}

// warpgroups plans a product for sm_90a in the way that should take least.
func (p *halfProduct) warpgroups(d *Device) (*Plan, error) {
	var best wgmmaWay
	least := math.Inf(1)
	p.ways(d, func(w wgmmaWay, t float64) {
		if t < least {
			best, least = w, t
		}
	})
	return p.warpgroupsOf(best, d)
}

// ways calls f for each way to compute the product, with its cost.
func (p *halfProduct) ways(d *Device, f func(w wgmmaWay, cost float64)) {
	a, b := p.lay()
	for _, s := range wgmmaTiles {
		s.TransA, s.TransB = p.TransA, p.TransB
		if s.check() != nil {
			continue
		}
		for _, n := range []int{1, 2, 3, 4, 6, 8, 12, 16} {
			// Parts keep blocks busy that had nothing to do.
			blocks := p.Batch * ceilDiv(p.M, s.Rows) * ceilDiv(p.N, s.Cols) * n
			if n > ceilDiv(p.K, depth) || n > 1 && blocks > 2*d.Multiprocessors || s.bytes() > d.Shared {
				break
			}
			for c := range 4 {
				w := wgmmaWay{s.wgmmaSpec, n, c&1 != 0 || a.inner%padEach != 0, c&2 != 0 || b.inner%padEach != 0}
				if c&1 != 0 && (a.inner%64 == 0 || a.inner%padEach != 0) || c&2 != 0 && (b.inner%64 == 0 || b.inner%padEach != 0) {
					continue
				}
				f(w, p.cost(&w, s.busy, d))
			}
		}
	}
}
