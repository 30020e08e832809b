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
	// If top is not 0 it is the rows of the result that are computed so, in
	// rounds in which no block is idle; another launch computes those below.
	top        int
	below      wgmmaSpec
	belowParts int
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
	if w.top > 0 {
		s += "+" + (&wgmmaWay{wgmmaSpec: w.below, parts: w.belowParts}).String()
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

// copying returns the time that the copies of a way take, and how many times as
// long a line of each operand then takes.
func (p *halfProduct) copying(w *wgmmaWay) (t, slowA, slowB float64) {
	a, b := p.lay()
	slow := func(m matrix, copies bool) float64 {
		switch {
		case copies:
			t += wgmmaLaunch + 4*float64(m.inner)*float64(m.outer)*float64(m.count)/wgmmaMemory
		case m.inner%64 != 0:
			return wgmmaAcross
		}
		return 1
	}
	slowA = slow(a, w.copyA)
	slowB = slow(b, w.copyB)
	return t, slowA, slowB
}

// multiplying estimates the time to compute so many rows with tiles that keep the
// tensor cores busy for that part of the time, and sums in parts.
func (p *halfProduct) multiplying(s *wgmmaSpec, busy float64, rows, parts int, slowA, slowB float64, d *Device) float64 {
	slots := max(1, d.Multiprocessors/s.Cluster)
	tiles := p.Batch * ceilDiv(rows, s.Rows*s.Cluster) * ceilDiv(p.N, s.Cols) * parts
	blocks := min(tiles, slots) * s.Cluster
	bytes := 2 * depth * (float64(s.Rows)*slowA + float64(s.Cols/s.Cluster)*slowB)
	step := max(float64(2*s.Rows*s.Cols*depth)/wgmmaRate/busy, bytes*float64(blocks)/wgmmaCache)
	t := float64(ceilDiv(tiles, slots)) * (float64(ceilDiv(ceilDiv(p.K, depth), parts))*step + wgmmaTile)
	if parts > 1 {
		t += wgmmaLaunch + 8*float64(parts)*float64(p.Batch)*float64(rows)*float64(p.N)/wgmmaMemory
	}
	return t
}

// warpgroups plans a product for sm_90a in the way that should take least.
func (p *halfProduct) warpgroups(d *Device) (*Plan, error) {
	w, _ := p.best(d)
	return p.warpgroupsOf(w, d)
}

// best returns the way that should take least, and its time.
func (p *halfProduct) best(d *Device) (wgmmaWay, float64) {
	var best wgmmaWay
	least := math.Inf(1)
	p.ways(d, func(w wgmmaWay, t float64) {
		if t < least {
			best, least = w, t
		}
	})
	// Rows of A that lie one after the other can be cut, and nothing that follows
	// may ask which row it is.
	if p.Batch > 1 || p.TransA || p.after != nil || best.parts > 1 {
		return best, least
	}
	copied, slowA, slowB := p.copying(&best)
	for _, s := range wgmmaTiles {
		slots, across := d.Multiprocessors/s.Cluster, ceilDiv(p.N, s.Cols)
		down := ceilDiv(p.M, s.Rows*s.Cluster)
		rounds := down * across / max(1, slots)
		top := rounds * slots / across * s.Rows * s.Cluster
		s.TransB = p.TransB
		if top == 0 || top >= p.M || s.check() != nil || s.bytes() > d.Shared {
			continue
		}
		t := copied + p.multiplying(&s.wgmmaSpec, s.busy, top, 1, slowA, slowB, d) + wgmmaLaunch
		for _, u := range wgmmaTiles {
			u.TransB = p.TransB
			if u.check() != nil || u.bytes() > d.Shared {
				continue
			}
			for _, n := range []int{1, 2, 3, 4, 6, 8} {
				if n > ceilDiv(p.K, depth) || t >= least {
					break
				}
				if t := t + p.multiplying(&u.wgmmaSpec, u.busy, p.M-top, n, slowA, slowB, d); t < least*0.97 {
					w := best
					w.wgmmaSpec, w.parts, w.top, w.below, w.belowParts = s.wgmmaSpec, 1, top, u.wgmmaSpec, n
					best, least = w, t/0.97
				}
			}
		}
	}
	return best, least
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
				w := wgmmaWay{wgmmaSpec: s.wgmmaSpec, parts: n, copyA: c&1 != 0 || a.inner%padEach != 0, copyB: c&2 != 0 || b.inner%padEach != 0}
				if c&1 != 0 && (a.inner%64 == 0 || a.inner%padEach != 0) || c&2 != 0 && (b.inner%64 == 0 || b.inner%padEach != 0) {
					continue
				}
				t, slowA, slowB := p.copying(&w)
				f(w, t+p.multiplying(&s.wgmmaSpec, s.busy, p.M, n, slowA, slowB, d))
			}
		}
	}
}
