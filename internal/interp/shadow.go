package interp

import "github.com/rayo-go/rayo/internal/ir"

// who identifies an access: a lane of a workgroup between two barriers. The zero value means no
// access.
type who struct {
	group uint32 // from 1
	epoch uint32
	at    ir.Value
	lane  uint16
	bulk  bool // an atomic update, which does not race with other updates
}

// unordered reports whether access b, now, is not ordered after access a.
func (a *who) unordered(b *who) bool {
	if a.group == 0 {
		return false
	}
	if a.group != b.group {
		return true
	}
	return a.lane != b.lane && a.epoch == b.epoch
}

// cell has the recorded accesses of one component in memory. The last write and two reads by
// different lanes suffice: if the next write is unordered with any read, it is unordered with one
// of these two, because a workgroup's accesses before its last barrier, and all others of a lane,
// are ordered before those after.
type cell struct {
	write  who
	reads  [2]who
	filled bool
}

// shadow has the cells of a buffer or array, in pages that are made when they
// are first used.
type shadow struct {
	pages   [][]cell
	watched bool // someone may write
	blank   bool // undefined until written
}

const pageCells = 1 << 10

func newShadow(n int, blank, watched bool) shadow {
	return shadow{pages: make([][]cell, (n+pageCells-1)/pageCells), watched: watched, blank: blank}
}

func (s *shadow) reset() {
	for _, p := range s.pages {
		clear(p)
	}
}

func (s *shadow) cell(i int) *cell {
	p := &s.pages[i/pageCells]
	if *p == nil {
		*p = make([]cell, pageCells)
	}
	return &(*p)[i%pageCells]
}

// read notes a read and returns the write that it races with, or nil.
func (c *cell) read(me who) *who {
	if c.write.unordered(&me) {
		w := c.write
		return &w
	}
	switch r := &c.reads[0]; {
	case r.group == 0 || r.group == me.group && (r.epoch != me.epoch || r.lane == me.lane):
		*r = me
	case r.group == me.group:
		c.reads[1] = me
	}
	// A read of an earlier workgroup stays: it races with any write to come.
	return nil
}

// store notes a write and returns the access that it races with, or nil.
func (c *cell) store(me who) (race *who) {
	for _, a := range [...]*who{&c.write, &c.reads[0], &c.reads[1]} {
		if a.unordered(&me) && !(a.bulk && me.bulk) {
			b := *a
			race = &b
			break
		}
	}
	c.write = me
	return race
}
