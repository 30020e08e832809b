package ptxkernels

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/op"
)

// wgmmaSchedule is a schedule that computes a product with the wgmma instruction.
type wgmmaSchedule struct {
	wgmmaSpec
	parts        int  // splits of K
	copyA, copyB bool // copy the operand, so that its rows begin at cache lines
	// If top is not 0, this schedule computes the first top rows of the result, in waves without
	// idle blocks; a second launch computes the rows below.
	top        int
	below      wgmmaSpec
	belowParts int
}

// String returns the tile, the splits of K and the operands that are copied, for example
// wgmma128x256x2_s4_c1_k3_ab. A turned tile has the suffix t: wgmma128x256x2t.
func (w *wgmmaSchedule) String() string {
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
		s += "+" + (&wgmmaSchedule{wgmmaSpec: w.below, parts: w.belowParts}).String()
	}
	return s
}

// wgmmaTiles are the candidate tiles. busy is the utilisation of the tensor cores while a block
// multiplies, relative to the best tile.
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

// wgmmaParts are the candidate splits of K.
var wgmmaParts = [...]int{1, 2, 3, 4, 6, 8, 12, 16}

// The cost model: measurements of an H200, in microseconds, and in bytes or operations per microsecond.
const (
	wgmmaLaunch = 2.5   // time of one more launch
	wgmmaMemory = 3.4e6 // bytes read and written per microsecond by copies and by the sum of partials
)

// wgmmaSpeed is the cost model for elements of 2 or of 4 bytes.
type wgmmaSpeed struct {
	rate   float64 // operations of a multiprocessor; operations on 4-byte elements count twice
	tile   float64 // time to begin and end a tile
	cache  float64 // bytes per microsecond that all multiprocessors read from L2
	across float64 // slowdown of rows that do not begin at a cache line
}

// wgmmaSpeeds has the cost model for each size of an element in bytes.
var wgmmaSpeeds = map[int]wgmmaSpeed{
	2: {rate: 5.3e6, tile: 0.8, cache: 13e6, across: 2.4},
	4: {rate: 6.2e6, tile: 2, cache: 11.5e6, across: 1.25},
}

func (p *halfProduct) speed() wgmmaSpeed { return wgmmaSpeeds[p.Type.Size()] }

// copying returns the time of the copies of a schedule, and for each operand the slowdown of its
// reads after the copies: 1 if rows begin at cache lines.
func (p *halfProduct) copying(w *wgmmaSchedule) (t, slowA, slowB float64) {
	a, b := p.lay()
	slow := func(m matrix, copies bool) float64 {
		switch {
		case copies:
			t += wgmmaLaunch + 2*float64(m.bytes)*float64(m.inner)*float64(m.outer)*float64(m.count)/wgmmaMemory
		case m.inner*m.bytes%(2*wgmmaLine) != 0:
			return p.speed().across
		}
		return 1
	}
	slowA = slow(a, w.copyA)
	slowB = slow(b, w.copyB)
	return t, slowA, slowB
}

// multiplying estimates the time to compute rows of the result with tiles of s, which have the
// utilisation busy, and K split in parts.
func (p *halfProduct) multiplying(s *wgmmaSpec, busy float64, rows, parts int, slowA, slowB float64, d *Device) float64 {
	slots := max(1, d.Multiprocessors/s.Cluster)
	down, across := s.tiles(rows, p.N)
	tiles := p.Batch * down * across * parts
	if s.Turned {
		slowA, slowB = slowB, slowA
	}
	if s.aInRegisters() {
		slowA *= 1.06 // more copies load a stage of A
		if s.Rows > 64*s.Groups {
			busy *= 0.9 // each product reads B once for each 64 rows, and A goes through registers
		}
	}
	blocks := min(tiles, slots) * s.Cluster
	bytes := 2 * wgmmaLine * (float64(s.Rows)*slowA + float64(s.Cols/s.Cluster)*slowB)
	speed := p.speed()
	step := max(float64(2*s.Rows*s.Cols*wgmmaLine)/speed.rate/busy, bytes*float64(blocks)/speed.cache)
	t := float64(ceilDiv(tiles, slots)) * (float64(ceilDiv(ceilDiv(p.K, depth(p.Type)), parts))*step + speed.tile)
	if parts > 1 {
		slow := 1.0
		if p.Type == op.F32 && p.N%2 != 0 {
			slow = 2 // elements are stored one by one
		}
		t += wgmmaLaunch + slow*8*float64(parts)*float64(p.Batch)*float64(rows)*float64(p.N)/wgmmaMemory
	}
	return t
}

// warpgroups plans a product for sm_90a with the schedule that has the least estimated time.
func (p *halfProduct) warpgroups(d *Device) (*Plan, error) {
	w, _ := p.best(d)
	return p.warpgroupsOf(w, d)
}

// best returns the schedule that has the least estimated time, and this time.
func (p *halfProduct) best(d *Device) (wgmmaSchedule, float64) {
	var best wgmmaSchedule
	minimum := math.Inf(1)
	p.schedules(d, func(w wgmmaSchedule, t float64) {
		if t < minimum {
			best, minimum = w, t
		}
	})
	// The rows can be divided between two launches if the rows of A are contiguous and no epilogue
	// depends on the row.
	if p.Batch > 1 || p.TransA || p.after != nil || best.parts > 1 {
		return best, minimum
	}
	copied, slowA, slowB := p.copying(&best)
	alongA, alongB := p.alongs(&best)
	for _, s := range wgmmaTiles {
		v := s.of(p.Type, alongA, alongB)
		slots := d.Multiprocessors / v.Cluster
		down, across := v.tiles(p.M, p.N)
		high := v.Rows * v.Cluster
		if v.Turned {
			across, high = down, v.Cols
		}
		rounds := ceilDiv(p.M, high) * across / max(1, slots)
		top := rounds * slots / across * high
		if top == 0 || top >= p.M || v.check() != nil || v.bytes() > d.Shared {
			continue
		}
		t := copied + p.multiplying(&v, s.busy, top, 1, slowA, slowB, d) + wgmmaLaunch
		for _, u := range wgmmaTiles {
			below := u.of(p.Type, alongA, alongB)
			if below.check() != nil || below.bytes() > d.Shared {
				continue
			}
			for _, n := range wgmmaParts[:6] {
				if n > ceilDiv(p.K, depth(p.Type)) || t >= minimum {
					break
				}
				if t := t + p.multiplying(&below, u.busy, p.M-top, n, slowA, slowB, d); t < minimum*0.97 {
					w := best
					w.wgmmaSpec, w.parts, w.top, w.below, w.belowParts = s.wgmmaSpec, 1, top, u.wgmmaSpec, n
					best, minimum = w, t/0.97
				}
			}
		}
	}
	return best, minimum
}

// schedules calls f for each schedule that can compute the product, with its cost.
func (p *halfProduct) schedules(d *Device, f func(w wgmmaSchedule, cost float64)) {
	a, b := p.lay()
	for _, s := range wgmmaTiles {
		for _, n := range wgmmaParts[:] {
			if n > ceilDiv(p.K, depth(p.Type)) {
				break
			}
			for c := range 4 {
				w := wgmmaSchedule{wgmmaSpec: s.wgmmaSpec, parts: n, copyA: c&1 != 0, copyB: c&2 != 0}
				if !p.mayCopy(a, w.copyA) || !p.mayCopy(b, w.copyB) {
					continue
				}
				alongA, alongB := p.alongs(&w)
				v := s.of(p.Type, alongA, alongB)
				down, across := v.tiles(p.M, p.N)
				// Split K only if blocks would be idle otherwise.
				if v.check() != nil || v.bytes() > d.Shared || n > 1 && p.Batch*down*across*v.Cluster*n > 2*d.Multiprocessors {
					continue
				}
				t, slowA, slowB := p.copying(&w)
				f(w, t+p.multiplying(&v, s.busy, p.M, n, slowA, slowB, d))
			}
		}
	}
}

// mayCopy reports whether an operand may be copied, or may be read in place. Rows must begin at
// multiples of 16 bytes; copying rows that begin at cache lines gains nothing, unless the copy
// transposes them.
func (p *halfProduct) mayCopy(m matrix, copies bool) bool {
	row := m.inner * m.bytes
	if !copies {
		// Kernels with A in registers store unaligned rows of the result slowly.
		return row%16 == 0 && (p.Type != op.F32 || m.along || p.N%4 == 0)
	}
	return row%(2*wgmmaLine) != 0 || p.Type == op.F32 && !m.along
}

// alongs reports whether each operand is K-major after the copies of w.
func (p *halfProduct) alongs(w *wgmmaSchedule) (a, b bool) {
	turn := p.Type == op.F32
	return !p.TransA || turn && w.copyA, p.TransB || turn && w.copyB
}
