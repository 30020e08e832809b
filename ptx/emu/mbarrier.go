package emu

import (
	"strings"
)

type mbarrier struct {
	count   int    // arrivals of each phase
	pending int    // arrivals that the current phase still needs
	bytes   int64  // bytes of copies that the current phase still needs
	phase   uint32 // number of phases that are complete
	known   known  // accesses before the arrivals of this phase
	past    known  // accesses before the arrivals of earlier phases
	warps   []*warp
}

// mbarrier executes mbarrier instructions.
func (c *compiler) mbarrier(in *inst) {
	p := c.parts()
	if len(p) < 2 || p[len(p)-1] != "b64" {
		c.fail(unsupported)
	}
	x := &extra{}
	op, parity, expect := p[0], false, false
	for _, s := range p[1 : len(p)-1] {
		switch s {
		case "shared", "shared::cta", "shared::cluster", "release", "acquire", "relaxed", "cta", "cluster", "noComplete":
		case "parity":
			parity = true
		case "expect_tx":
			expect = true
		default:
			c.fail(unsupported)
		}
	}
	in.kind, in.x, in.b = kindRun, x, -1
	switch op {
	case "init":
		args := c.args(2, 2)
		in.a, x.off = c.address(&args[0], spaceShared)
		in.b = c.value(&args[1], 4)
		in.run = (*warp).mbarrierInit
	case "inval":
		args := c.args(1, 1)
		in.a, x.off = c.address(&args[0], spaceShared)
		in.run = (*warp).mbarrierInval
	case "arrive", "arrive_drop":
		c.mbarrierArrive(in, expect)
		in.run = func(w *warp, in *inst, mask uint32) bool {
			return w.mbarrierArrive(in, mask, expect, op == "arrive_drop")
		}
	case "expect_tx", "complete_tx":
		args := c.args(2, 2)
		in.a, x.off = c.address(&args[0], spaceShared)
		in.b = c.value(&args[1], 4)
		in.run = func(w *warp, in *inst, mask uint32) bool { return w.mbarrierBytes(in, mask, op == "complete_tx") }
	case "test_wait", "try_wait":
		args := c.args(3, 4)
		in.kind, in.d = kindSync, c.destPred(&args[0])
		in.a, x.off = c.address(&args[1], spaceShared)
		n := uint8(8)
		if parity {
			n = 4
		}
		in.b = c.value(&args[2], n)
		in.run = func(w *warp, in *inst, mask uint32) bool { return w.mbarrierWait(in, mask, parity, op == "try_wait") }
	default:
		c.fail(unsupported)
	}
}

// mbarrierArrive parses the operands of arrive: an optional result, the barrier, and an optional
// count.
func (c *compiler) mbarrierArrive(in *inst, expect bool) {
	args := c.st.args
	if len(args) > 0 && args[0].kind != operandAddress {
		in.d = c.destOrSink(&args[0], 8)
		args = args[1:]
	} else {
		in.d = -1
	}
	least := 1
	if expect {
		least = 2
	}
	if len(args) < least || len(args) > 2 {
		results := len(c.st.args) - len(args)
		c.wrongCount(len(c.st.args), results+least, results+2)
	}
	in.a, in.x.off = c.address(&args[0], spaceShared)
	if len(args) == 2 {
		in.b = c.value(&args[1], 4)
	}
}

func (w *warp) mbarrierInval(in *inst, mask uint32) bool {
	pc := w.pcOf(in)
	for m := mask; m != 0; m &= m - 1 {
		if w.mbarrierAt(in, pc, lowest(m)) == nil {
			return false
		}
		delete(w.b.mbars, uint32(w.regs[in.a][lowest(m)]+uint64(in.x.off)))
	}
	return true
}

// mbarrierBytes changes how many bytes of copies a barrier waits for.
func (w *warp) mbarrierBytes(in *inst, mask uint32, complete bool) bool {
	pc := w.pcOf(in)
	w.need(in, in.b, mask, "the number of bytes was not computed in this thread")
	for m := mask; m != 0; m &= m - 1 {
		bar := w.mbarrierAt(in, pc, lowest(m))
		if bar == nil {
			return false
		}
		n := int64(w.regs[in.b][lowest(m)])
		if complete {
			n = -n
		}
		bar.bytes += n
		w.b.complete(bar)
	}
	return true
}

// mbarrierAt returns the mbarrier at the address that a lane gives, or nil after a finding.
func (w *warp) mbarrierAt(in *inst, pc, lane int) *mbarrier {
	addr := w.regs[in.a][lane] + uint64(in.x.off)
	return w.mbarrierOf(pc, lane, addr)
}

func (w *warp) mbarrierOf(pc, lane int, addr uint64) *mbarrier {
	off, a := w.shared(pc, lane, addr, 8, 8)
	if off < 0 {
		w.b.run.report.fatal = true
		return nil
	}
	bar := w.b.mbars[uint32(addr)]
	if bar == nil {
		w.stop(Uninitialised, pc, lane, "there is no initialised mbarrier at this address")
		return nil
	}
	if !w.b.run.m.config.Unchecked {
		w.checkWrite(&w.b.shadow, off, &access{pc: pc, lane: lane, n: 8, strong: true, name: a.name, base: a.at - sharedBase}, true, false)
	}
	return bar
}

func (w *warp) mbarrierInit(in *inst, mask uint32) bool {
	pc := w.pcOf(in)
	w.need(in, in.a, mask, "the address was not computed in this thread")
	w.need(in, in.b, mask, "the number of arrivals was not computed in this thread")
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		addr := w.regs[in.a][lane] + uint64(in.x.off)
		off, a := w.shared(pc, lane, addr, 8, 8)
		if off < 0 {
			w.b.run.report.fatal = true
			return false
		}
		n := int(w.regs[in.b][lane])
		if n < 1 || n > 1<<20-1 {
			w.stop(BadOperand, pc, lane, "the number of arrivals must be at least 1 and below 2^20")
			return false
		}
		if !w.b.run.m.config.Unchecked {
			w.checkWrite(&w.b.shadow, off, &access{pc: pc, lane: lane, n: 8, name: a.name, base: a.at - sharedBase}, true, false)
		}
		if w.b.mbars == nil {
			w.b.mbars = map[uint32]*mbarrier{}
		}
		w.b.defined.set(off, 8)
		w.b.mbars[uint32(addr)] = &mbarrier{count: n, pending: n}
	}
	return true
}

func (w *warp) mbarrierArrive(in *inst, mask uint32, expect, drop bool) bool {
	pc := w.pcOf(in)
	w.need(in, in.a, mask, "the address was not computed in this thread")
	if in.b >= 0 {
		w.need(in, in.b, mask, "an operand was not computed in this thread")
	}
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		bar := w.mbarrierAt(in, pc, lane)
		if bar == nil {
			return false
		}
		n := 1
		if in.b >= 0 {
			v := int(w.regs[in.b][lane])
			if expect {
				bar.bytes += int64(v)
			} else {
				n = v
			}
		}
		if in.d >= 0 {
			w.set(in.d, lane, uint64(bar.phase))
		}
		if drop {
			bar.count -= n
		}
		if !w.arriveAt(bar, pc, lane, n) {
			return false
		}
	}
	w.tick()
	return true
}

// arriveAt records n arrivals of a lane.
func (w *warp) arriveAt(bar *mbarrier, pc, lane, n int) bool {
	if n < 1 || n > bar.pending {
		w.stop(BadOperand, pc, lane, "there are more arrivals than the mbarrier expects")
		return false
	}
	w.publish(&bar.known)
	bar.pending -= n
	w.b.complete(bar)
	return true
}

// complete ends the phase if no arrivals and bytes are missing.
func (b *block) complete(bar *mbarrier) {
	if bar.pending != 0 || bar.bytes != 0 {
		return
	}
	bar.phase++
	bar.pending = bar.count
	bar.past, bar.known = bar.known, known{}
	for _, w := range bar.warps {
		if w.state == waiting {
			w.state = running
		}
	}
	bar.warps = bar.warps[:0]
}

// mbarrierWait executes test_wait and try_wait. try_wait waits until the phase is complete.
func (w *warp) mbarrierWait(in *inst, mask uint32, parity, wait bool) bool {
	pc := w.pc
	w.need(in, in.a, mask, "the address was not computed in this thread")
	w.need(in, in.b, mask, "the phase was not computed in this thread")
	done := uint32(0)
	var missing *mbarrier
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		bar := w.mbarrierAt(in, pc, lane)
		if bar == nil {
			return false
		}
		v := uint32(w.regs[in.b][lane])
		over := bar.phase != v
		if parity {
			over = bar.phase&1 != v&1
		}
		if !over {
			missing = bar
			w.mbarrier, w.parity = uint32(w.regs[in.a][lane]+uint64(in.x.off)), v
			continue
		}
		done |= 1 << lane
		w.learn(&bar.past)
	}
	if missing != nil && wait {
		w.state, w.barrier = waiting, -1
		missing.warps = append(missing.warps, w)
		return false
	}
	w.tried = false
	if done != 0 {
		// A lane that leaves the barrier sees all accesses before the arrivals.
		w.clock.synced = w.clock.now
		w.tick()
	}
	w.setPred(in.d, mask, done, mask)
	return true
}

// deliver completes one pending copy, or lets other lanes of waiting warps run. It reports whether
// there was anything to do.
func (b *block) deliver() bool {
	if len(b.bulk) > 0 {
		i := 0
		if b.run.m.config.Schedule == Shuffled {
			i = b.rng.IntN(len(b.bulk))
		}
		c := b.bulk[i]
		b.bulk = append(b.bulk[:i], b.bulk[i+1:]...)
		c.land(b)
		return true
	}
	for _, w := range b.warps {
		if w.state == waiting && w.barrier == -1 && len(w.others) > 0 && !w.tried {
			w.tried, w.state = true, running
			w.takeTurns()
			return true
		}
	}
	return false
}

// copiesAfar reports whether a kernel has copies to several blocks of a cluster, or uses mbarriers
// of other blocks.
func copiesAfar(f *function) bool {
	for i := range f.statements {
		if n := f.statements[i].name; strings.Contains(n, ".multicast::cluster") || strings.HasPrefix(n, "mbarrier.arrive") && strings.Contains(n, "shared::cluster") {
			return true
		}
	}
	return false
}

// usesProxy reports whether a kernel has instructions of the async proxy.
func usesProxy(f *function) bool {
	for i := range f.statements {
		if n := f.statements[i].name; strings.HasPrefix(n, "cp.async.bulk") || strings.HasPrefix(n, "wgmma.") {
			return true
		}
	}
	return false
}
