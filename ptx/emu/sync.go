package emu

import "strings"

// bar executes bar.sync, bar.arrive and bar.warp.sync.
func (c *compiler) bar(in *inst) {
	p := c.parts()
	if len(p) > 0 && p[0] == "cta" {
		p = p[1:]
	}
	if len(p) > 1 && p[len(p)-1] == "aligned" {
		p = p[:len(p)-1]
	}
	in.kind = kindSync
	switch strings.Join(p, ".") {
	case "warp.sync":
		args := c.args(1, 1)
		in.a = c.value(&args[0], 4)
		in.run = (*warp).syncWarp
		return
	case "sync":
	case "arrive":
	case "red.popc.u32", "red.and.pred", "red.or.pred":
		c.barRed(in, p[1])
		return
	case "cluster.arrive", "cluster.arrive.release", "cluster.wait", "cluster.wait.acquire", "cluster.arrive.relaxed":
		c.args(0, 0)
		wait, release := strings.Contains(c.st.name, "wait"), !strings.Contains(c.st.name, "relaxed")
		in.run = func(w *warp, _ *inst, mask uint32) bool {
			switch {
			case !w.aligned(mask):
				return false
			case wait:
				return w.waitCluster()
			}
			return w.arriveCluster(release)
		}
		return
	default:
		c.fail(unsupported)
	}
	wait := p[0] == "sync"
	args := c.args(1, 2)
	in.a, in.b = c.value(&args[0], 4), -1
	if len(args) == 2 {
		in.b = c.value(&args[1], 4)
	} else if !wait {
		c.fail("the number of threads is missing")
	}
	in.run = func(w *warp, in *inst, mask uint32) bool { return w.syncBlock(in, mask, wait) }
}

// barRed executes bar.red: a barrier that gives all threads the number of threads in which a
// condition is true, or whether it is true in all or in any of them.
func (c *compiler) barRed(in *inst, how string) {
	args := c.args(3, 4)
	if how == "popc" {
		in.d = c.dest(&args[0], 4)
	} else {
		in.d = c.destPred(&args[0])
	}
	in.a, in.b = c.value(&args[1], 4), -1
	if len(args) == 4 {
		in.b = c.value(&args[2], 4)
	}
	pred, not := c.predOperand(&args[len(args)-1])
	in.x = &extra{mode: how}
	in.run = func(w *warp, in *inst, mask uint32) bool {
		if !w.aligned(mask) {
			return false
		}
		v, def := w.predValue(pred, not)
		if def&mask != mask {
			w.undefinedPred(w.pc, pred, mask)
		}
		w.counted, w.reduction = v&mask, in
		return w.syncBlock(in, mask, true)
	}
}

// reduced gives the threads of a warp the result of bar.red.
func (w *warp) reduced(holds, threads int) {
	in := w.reduction
	w.reduction, w.counted = nil, 0
	if in.x.mode == "popc" {
		for m := w.mask; m != 0; m &= m - 1 {
			w.set(in.d, lowest(m), uint64(holds))
		}
		return
	}
	if in.x.mode == "or" && holds > 0 || in.x.mode == "and" && holds == threads {
		w.setPred(in.d, w.mask, w.mask, w.mask)
	} else {
		w.setPred(in.d, w.mask, 0, w.mask)
	}
}

// aligned reports whether all threads of the warp execute the instruction.
func (w *warp) aligned(mask uint32) bool {
	if mask == w.live {
		return true
	}
	if w.loose {
		w.converge()
		return false
	}
	w.stop(DivergentBarrier, w.pc, lowest(mask), "not all threads of the warp execute the instruction")
	return false
}

// uniform returns the value that a register has in all lanes of mask.
func (w *warp) uniform(in *inst, plane int32, mask uint32) (uint64, bool) {
	w.need(in, plane, mask, "an operand was not computed in this thread")
	v := w.regs[plane][lowest(mask)]
	for m := mask; m != 0; m &= m - 1 {
		if w.regs[plane][lowest(m)] != v {
			w.stop(BadOperand, w.pc, lowest(m), "an operand must be the same in all threads of the warp")
			return 0, false
		}
	}
	return v, true
}

func (w *warp) syncBlock(in *inst, mask uint32, wait bool) bool {
	if !w.aligned(mask) {
		return false
	}
	id, ok := w.uniform(in, in.a, mask)
	if !ok {
		return false
	}
	want := uint64(0)
	if in.b >= 0 {
		if want, ok = w.uniform(in, in.b, mask); !ok {
			return false
		}
		if want == 0 || want%32 != 0 || want > 1024 {
			w.stop(BadOperand, w.pc, lowest(mask), "the number of threads is not a multiple of 32")
			return false
		}
	}
	if id > 15 {
		w.stop(BadOperand, w.pc, lowest(mask), "the number of the barrier must be below 16")
		return false
	}
	pc := w.pc
	w.b.arrive(w, pc, int(id), int(want), wait)
	return true
}

// syncWarp executes bar.warp.sync.
func (w *warp) syncWarp(in *inst, mask uint32) bool {
	w.need(in, in.a, mask, "the members were not computed in this thread")
	members := uint32(w.regs[in.a][lowest(mask)])
	if !w.together(in, mask, members) {
		return false
	}
	w.orderLanes(members & w.live)
	return true
}

// orderLanes orders the lanes' later accesses after their earlier ones.
func (w *warp) orderLanes(members uint32) {
	c := &w.clock
	if members == w.live {
		c.synced = c.now
	} else {
		if c.seen == nil {
			c.seen = new([32][32]uint32)
		}
		var all [32]uint32
		for m := members; m != 0; m &= m - 1 {
			l := lowest(m)
			all[l] = c.now
			for i, v := range c.seen[l] {
				all[i] = max(all[i], v)
			}
		}
		for m := members; m != 0; m &= m - 1 {
			c.seen[lowest(m)] = all
		}
	}
	w.tick()
}

// fence executes fence and membar.
func (c *compiler) fence(in *inst) {
	c.args(0, 0)
	in.kind = kindRun
	name := c.st.name
	switch {
	case strings.HasPrefix(name, "fence.proxy.async"):
		in.run = (*warp).fenceProxy
	case strings.HasPrefix(name, "fence.acq_rel."), strings.HasPrefix(name, "fence.sc."), strings.HasPrefix(name, "membar."):
		in.run = (*warp).fenceMemory
	case strings.HasPrefix(name, "fence.proxy."):
		in.run = func(*warp, *inst, uint32) bool { return true }
	default:
		c.fail(unsupported)
	}
}

// fenceMemory makes the warp's earlier accesses visible to threads that see its next write, and
// orders the accesses that it has read of before its own.
func (w *warp) fenceMemory(*inst, uint32) bool {
	if len(w.acquire) > 0 {
		w.learnRemote(w.acquire)
		w.acquire = nil
	}
	k := &known{}
	w.publish(k)
	w.release = k
	w.tick()
	return true
}

// sleep lets other warps and other blocks run.
func (w *warp) sleep(*inst, uint32) bool {
	w.b.slept = true
	return true
}

// strong orders a strong access of a word: a read is ordered after the published accesses of the
// writers, and a write publishes the warp's accesses.
func (w *warp) strong(key uint64, reads, writes bool, x *extra) {
	r := w.b.run
	if reads {
		if e := r.releases[key]; len(e) > 0 {
			if x.acquire {
				w.learnRemote(e)
			} else {
				if w.acquire == nil {
					w.acquire = epochs{}
				}
				w.acquire.join(e)
			}
		}
	}
	if !writes {
		return
	}
	if x.release {
		k := &known{}
		w.publish(k)
		w.release = k
		w.tick()
	}
	if w.release != nil {
		if r.releases == nil {
			r.releases = map[uint64]epochs{}
		}
		e := r.releases[key]
		if e == nil {
			e = epochs{}
			r.releases[key] = e
		}
		for i := range w.b.warps {
			if v := w.release.warps[i]; v > 0 {
				id := w.b.number<<5 | uint32(i)
				e[id] = max(e[id], v)
			}
		}
		e.join(w.release.remote)
	}
}
