package emu

import (
	"math"
	"math/bits"
)

// define marks the registers of a load as computed in the lanes of mask.
func (w *warp) define(x *extra, mask uint32) {
	for _, d := range x.regs {
		if d >= 0 {
			w.def[d] |= mask
		}
	}
}

// needValues reports registers that a store reads and that were not computed.
func (w *warp) needValues(in *inst, mask uint32) {
	for _, s := range in.x.regs {
		w.need(in, s, mask, "the value to store was not computed in this thread")
	}
}

// blockOf returns the block whose shared memory has the address, or nil, and the address in it.
func (w *warp) blockOf(x *extra, pc, lane int, addr uint64) (*block, uint64) {
	if !x.cluster {
		return w.b, addr
	}
	return w.peer(pc, lane, addr), addr & placeMask
}

func (w *warp) loadGlobal(in *inst, mask uint32) bool {
	x, pc := in.x, w.pcOf(in)
	w.need(in, in.a, mask, "the address was not computed in this thread")
	r := w.b.run
	check := !r.m.config.Unchecked
	n := x.n * x.bytes
	base := &w.regs[in.a]
	var sectors distinct
	acc := access{pc: pc, n: n, strong: x.strong}
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		addr := base[lane] + uint64(x.off)
		a, off := w.global(pc, lane, addr, n, n)
		if a == nil {
			w.zero(x, lane)
			continue
		}
		sectors.add(addr >> 5)
		if check {
			if !a.whole && !a.defined.has(off, min(n, 16)) {
				w.undefined(pc, lane, a.name, off)
			}
			acc.lane, acc.name = lane, a.name
			w.checkRead(&a.shadow, off, &acc, false)
		}
		for i, d := range x.regs {
			if d >= 0 {
				w.regs[d][lane] = x.extend(load(a.data[off+i*x.bytes:], x.bytes))
			}
		}
		if x.strong {
			w.strong(addr, true, false, x)
		}
	}
	w.define(x, mask)
	c := &r.counts[pc]
	c.LoadRequests++
	c.LoadSectors += int64(sectors.n)
	c.LoadBytes += int64(n * bits.OnesCount32(mask))
	return true
}

func (w *warp) storeGlobal(in *inst, mask uint32) bool {
	x, pc := in.x, w.pcOf(in)
	w.need(in, in.a, mask, "the address was not computed in this thread")
	r := w.b.run
	check := !r.m.config.Unchecked
	n := x.n * x.bytes
	base := &w.regs[in.a]
	if check {
		w.needValues(in, mask)
	}
	var sectors distinct
	acc := access{pc: pc, n: n, strong: x.strong}
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		addr := base[lane] + uint64(x.off)
		a, off := w.global(pc, lane, addr, n, n)
		if a == nil {
			continue
		}
		sectors.add(addr >> 5)
		if check {
			acc.lane, acc.name = lane, a.name
			w.checkWrite(&a.shadow, off, &acc, false, w.holds(a.data[off:], x, lane))
		}
		if !a.whole {
			a.defined.set(off, n)
		}
		for i, s := range x.regs {
			store(a.data[off+i*x.bytes:], x.bytes, w.regs[s][lane])
		}
		if x.strong {
			w.strong(addr, false, true, x)
		}
	}
	c := &r.counts[pc]
	c.StoreRequests++
	c.StoreSectors += int64(sectors.n)
	c.StoreBytes += int64(n * bits.OnesCount32(mask))
	return true
}

// holds reports whether memory already has the value that a lane stores.
func (w *warp) holds(b []byte, x *extra, lane int) bool {
	for i, s := range x.regs {
		v := w.regs[s][lane]
		if x.bytes < 8 {
			v &= 1<<(8*x.bytes) - 1
		}
		if load(b[i*x.bytes:], x.bytes) != v {
			return false
		}
	}
	return true
}

// countShared counts an access to shared memory at w.addr.
func (w *warp) countShared(pc int, mask uint32, bytes int) {
	c := &w.b.run.counts[pc]
	c.SharedRequests++
	first := lowest(mask)
	same, row := true, mask == math.MaxUint32
	for m := mask; m != 0; m &= m - 1 {
		l := lowest(m)
		same = same && w.addr[l] == w.addr[first]
		row = row && w.addr[l] == w.addr[0]+uint64(l*bytes)
	}
	n, least := 1, 1
	switch {
	case same:
	case row && bytes >= 4:
		n, least = bytes/4, bytes/4
	default:
		n, least = passes(&w.addr, mask, bytes)
	}
	c.SharedPasses += int64(n)
	c.Conflicts += int64(n - least)
}

func (w *warp) loadShared(in *inst, mask uint32) bool {
	x, pc := in.x, w.pcOf(in)
	w.need(in, in.a, mask, "the address was not computed in this thread")
	check := !w.b.run.m.config.Unchecked
	n := x.n * x.bytes
	base := &w.regs[in.a]
	acc := access{pc: pc, n: n, strong: x.strong}
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		addr := base[lane] + uint64(x.off)
		b, addr := w.blockOf(x, pc, lane, addr)
		if b == nil {
			continue
		}
		w.addr[lane] = addr
		off, a := w.shared(pc, lane, addr, n, n)
		if off < 0 {
			w.zero(x, lane)
			continue
		}
		if b == w.b {
			w.landed(pc, lane, off, n, a)
		}
		if check {
			if !b.defined.has(off, min(n, 16)) {
				w.undefined(pc, lane, a.name, off+sharedBase-a.at)
			}
			acc.lane, acc.name, acc.base = lane, a.name, a.at-sharedBase
			w.checkRead(&b.shadow, off, &acc, true)
		}
		for i, d := range x.regs {
			if d >= 0 {
				w.regs[d][lane] = x.extend(load(b.memory[off+i*x.bytes:], x.bytes))
			}
		}
		if x.strong {
			w.strong(b.key(off), true, false, x)
		}
	}
	w.define(x, mask)
	w.countShared(pc, mask, n)
	return true
}

// key identifies a word of the shared memory of a block.
func (b *block) key(off int) uint64 { return 1<<63 | uint64(b.number)<<20 | uint64(off) }

func (w *warp) storeShared(in *inst, mask uint32) bool {
	x, pc := in.x, w.pcOf(in)
	w.need(in, in.a, mask, "the address was not computed in this thread")
	check := !w.b.run.m.config.Unchecked
	n := x.n * x.bytes
	base := &w.regs[in.a]
	if check {
		w.needValues(in, mask)
	}
	acc := access{pc: pc, n: n, strong: x.strong}
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		addr := base[lane] + uint64(x.off)
		b, addr := w.blockOf(x, pc, lane, addr)
		if b == nil {
			continue
		}
		w.addr[lane] = addr
		off, a := w.shared(pc, lane, addr, n, n)
		if off < 0 {
			continue
		}
		if b == w.b {
			w.landed(pc, lane, off, n, a)
			w.outgoing(pc, lane, off, n, a)
		}
		if check {
			acc.lane, acc.name, acc.base = lane, a.name, a.at-sharedBase
			w.checkWrite(&b.shadow, off, &acc, true, w.holds(b.memory[off:], x, lane))
		}
		b.defined.set(off, n)
		for i, s := range x.regs {
			store(b.memory[off+i*x.bytes:], x.bytes, w.regs[s][lane])
		}
		if b == w.b {
			w.touched(off, n)
		}
		if x.strong {
			w.strong(b.key(off), false, true, x)
		}
	}
	w.countShared(pc, mask, n)
	return true
}
