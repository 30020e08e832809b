package emu

import (
	"math/bits"
	"slices"
	"strings"
)

// copyAsync is an incomplete copy by a thread from global to shared memory. It completes as late as
// possible: when the thread waits for it.
type copyAsync struct {
	lane, group int
	pc          int
	dst         int // offset in shared memory
	src         uint64
	bytes, some int // only the first some bytes come from src; the others are 0
	array       *array
}

// copies are the incomplete copies of a warp.
type copies struct {
	list   []copyAsync
	groups [32]int // number of groups that each lane has committed
}

func (c *copies) reset() { c.list, c.groups = c.list[:0], [32]int{} }

// copy executes cp.async and similar instructions.
func (c *compiler) copy(in *inst) {
	name := c.st.name
	in.kind = kindRun
	switch {
	case name == "cp.async.commit_group":
		c.args(0, 0)
		in.run = func(w *warp, _ *inst, mask uint32) bool {
			for m := mask; m != 0; m &= m - 1 {
				w.copies.groups[lowest(m)]++
			}
			return true
		}
	case name == "cp.async.wait_group":
		n := c.number(&c.args(1, 1)[0], 1<<20)
		in.run = func(w *warp, _ *inst, mask uint32) bool {
			w.copies.land(w, mask, n)
			return true
		}
	case name == "cp.async.wait_all":
		c.args(0, 0)
		in.run = func(w *warp, _ *inst, mask uint32) bool {
			w.copies.land(w, mask, -1)
			return true
		}
	case strings.HasPrefix(name, "cp.async.mbarrier.arrive."):
		c.copyArrive(in)
	case strings.HasPrefix(name, "cp.async.bulk."), strings.HasPrefix(name, "cp.reduce.async.bulk."):
		c.bulk(in)
	case strings.HasPrefix(name, "cp.async.ca.shared"), strings.HasPrefix(name, "cp.async.cg.shared"):
		c.copyAsync(in)
	default:
		c.fail(unsupported)
	}
}

func (c *compiler) copyAsync(in *inst) {
	hint := false
	for _, s := range c.parts()[1:] {
		switch {
		case s == "L2::cache_hint":
			hint = true
		case slices.Contains([]string{"ca", "cg", "shared", "shared::cta", "global"}, s), strings.HasPrefix(s, "L2::"):
		default:
			c.fail(unsupported)
		}
	}
	hints := 0
	if hint {
		hints = 1 // the last operand is a cache hint
	}
	args := slices.Clone(c.args(3+hints, 4+hints))
	args = args[:len(args)-hints]
	x := &extra{bytes: c.number(&args[2], 16)}
	if x.bytes != 4 && x.bytes != 8 && x.bytes != 16 || x.bytes != 16 && strings.HasPrefix(c.st.name, "cp.async.cg") {
		c.fail("the copy has %d bytes, expected 16, or without .cg 4 or 8", x.bytes)
	}
	in.x, in.b = x, -1
	in.d, x.off = c.address(&args[0], spaceShared)
	in.a, x.off2 = c.address(&args[1], spaceGlobal)
	x.pred = -1
	if len(args) == 4 {
		if o := &args[3]; o.kind == operandRegister && c.f.registers[o.reg].bytes == 0 {
			x.pred, x.predNot = c.predOperand(o)
		} else {
			in.b = c.value(o, 4)
		}
	}
	in.run = (*warp).copyAsync
}

// sourceBytes returns the number of bytes that a lane of an asynchronous copy reads.
func (w *warp) sourceBytes(in *inst, lane int) int {
	x, n := in.x, in.x.bytes
	if in.b >= 0 {
		n = int(min(w.regs[in.b][lane], 1<<20))
	}
	if n <= x.bytes && x.pred >= 0 {
		if v, _ := w.predValue(x.pred, x.predNot); v>>lane&1 != 0 {
			return 0 // the source is ignored
		}
	}
	return n
}

func (w *warp) copyAsync(in *inst, mask uint32) bool {
	x, pc, b := in.x, w.pcOf(in), w.b
	w.need(in, in.d, mask, "the address was not computed in this thread")
	w.need(in, in.a, mask, "the address was not computed in this thread")
	if in.b >= 0 {
		w.need(in, in.b, mask, "the number of bytes was not computed in this thread")
	}
	check := !b.run.m.config.Unchecked
	var sectors distinct
	total := 0
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		some := w.sourceBytes(in, lane)
		if some > x.bytes {
			w.stop(BadOperand, pc, lane, "the number of bytes to read exceeds the number of bytes to copy")
			return false
		}
		to := w.regs[in.d][lane] + uint64(x.off)
		w.addr[lane] = to
		off, a := w.shared(pc, lane, to, x.bytes, x.bytes)
		if off < 0 {
			continue
		}
		src := w.regs[in.a][lane] + uint64(x.off2)
		if some > 0 {
			g, at := w.global(pc, lane, src, some, x.bytes)
			if g == nil {
				continue
			}
			sectors.add(src >> 5)
			total += some
			if check {
				if !g.whole && !g.defined.has(at, some) {
					w.undefined(pc, lane, g.name, at)
				}
				w.checkRead(&g.shadow, at, &access{pc: pc, lane: lane, n: some, name: g.name}, false)
			}
		}
		if check {
			// The copy may complete at once.
			w.checkWrite(&b.shadow, off, &access{pc: pc, lane: lane, n: x.bytes, name: a.name, base: a.at - sharedBase}, true, false)
		}
		b.launchInto(off, x.bytes)
		w.copies.list = append(w.copies.list, copyAsync{lane: lane, group: w.copies.groups[lane], pc: pc, dst: off, src: src, bytes: x.bytes, some: some, array: a})
	}
	c := &b.run.counts[pc]
	c.LoadRequests++
	c.LoadSectors += int64(sectors.n)
	c.LoadBytes += int64(total)
	w.countShared(pc, mask, x.bytes)
	return true
}

// launchInto records that an asynchronous copy will write bytes of shared memory.
func (b *block) launchInto(off, n int) {
	b.inflight.set(off, n)
	b.flying += n
}

// landInto records that the copy has written them.
func (b *block) landInto(off, n int) {
	b.inflight.unset(off, n)
	b.flying -= n
	b.defined.set(off, n)
}

// land completes the copies of the lanes of mask, except those of the last groups; -1 means all,
// committed or not.
func (c *copies) land(w *warp, mask uint32, groups int) {
	b := w.b
	kept := c.list[:0]
	for i := range c.list {
		p := &c.list[i]
		if mask>>p.lane&1 == 0 || groups >= 0 && p.group >= c.groups[p.lane]-groups {
			kept = append(kept, *p)
			continue
		}
		clear(b.memory[p.dst : p.dst+p.bytes])
		if p.some > 0 {
			if g := b.run.m.find(p.src, p.some); g != nil {
				copy(b.memory[p.dst:p.dst+p.some], g.data[p.src-g.base:])
			}
		}
		b.landInto(p.dst, p.bytes)
		w.touched(p.dst, p.bytes)
		if !b.run.m.config.Unchecked {
			// For the other lanes, the copy completes now.
			w.checkWrite(&b.shadow, p.dst, &access{pc: p.pc, lane: p.lane, n: p.bytes, name: p.array.name, base: p.array.at - sharedBase}, true, true)
		}
	}
	c.list = kept
}

func (c *copies) landAll(w *warp) {
	if len(c.list) > 0 {
		c.land(w, ^uint32(0), -1)
	}
}

// copyArrive is an arrival at an mbarrier when all earlier copies are complete.
func (c *compiler) copyArrive(in *inst) {
	noinc := strings.Contains(c.st.name, ".noinc.")
	args := c.args(1, 1)
	in.kind, in.x = kindRun, &extra{}
	in.a, in.x.off = c.address(&args[0], spaceShared)
	in.run = func(w *warp, in *inst, mask uint32) bool {
		pc := w.pcOf(in)
		w.copies.land(w, mask, -1)
		for m := mask; m != 0; m &= m - 1 {
			lane := lowest(m)
			bar := w.mbarrierAt(in, pc, lane)
			if bar == nil {
				return false
			}
			if !noinc {
				bar.pending++
			}
			if !w.arriveAt(bar, pc, lane, 1) {
				return false
			}
		}
		w.tick()
		return true
	}
}

// span is a range of shared memory.
type span struct{ off, n int }

// touched records that the warp has written shared memory through the generic proxy. Instructions
// of the async proxy see such writes only after a fence.
func (w *warp) touched(off, n int) {
	if !w.b.run.k.proxy {
		return
	}
	w.b.dirty.set(off, n)
	if l := len(w.dirty); l > 0 && w.dirty[l-1].off+w.dirty[l-1].n == off {
		w.dirty[l-1].n += n
		return
	}
	w.dirty = append(w.dirty, span{off, n})
}

// fenceProxy makes the warp's writes visible to the async proxy.
func (w *warp) fenceProxy(_ *inst, mask uint32) bool {
	if mask != w.live && bits.OnesCount32(mask) < 1 {
		return true
	}
	for _, s := range w.dirty {
		w.b.dirty.unset(s.off, s.n)
	}
	w.dirty = w.dirty[:0]
	return true
}

// clean reports a read of the async proxy of data that were written through the generic proxy
// without a fence.
func (w *warp) clean(pc, lane, off, n int, a *array) {
	b := w.b
	for i := off; i < off+n; i++ {
		if b.dirty.has(i, 1) {
			w.find(MissingWait, pc, lane, "no fence.proxy.async since the memory was written", func(f *Finding) {
				f.Name, f.Offset = a.name, int64(i+sharedBase-a.at)
			})
			return
		}
	}
}
