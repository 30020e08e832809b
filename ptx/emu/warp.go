package emu

import (
	"math"
	"math/bits"
)

// inst is an instruction that is prepared for running.
type inst struct {
	kind       instKind
	not        bool  // the guard is negated
	guard      int32 // predicate, or -1
	d, a, b, c int32 // planes or predicates
	op         opFunc
	test       testFunc
	run        runFunc
	target     int // of a branch
	line       int
	x          *extra
}

// instKind says how an instruction is executed.
type instKind uint8

const (
	kindOp instKind = iota
	kindTest
	kindBranch
	kindReturn
	kindRun  // run executes it for the active lanes
	kindSync // run executes it for the active lanes, and returns whether the warp continues
	kindJump // run moves each lane to its next position
)

// runFunc runs an instruction for the lanes of mask, which is not empty. It returns false if the
// instruction has to run again.
type runFunc func(w *warp, in *inst, mask uint32) bool

// extra has data that only few instructions need.
type extra struct {
	space   space
	bytes   int // size of an element
	n       int // number of elements
	signed  bool
	wide    uint8 // size of the register
	strong  bool
	reads   bool // a load, which has no side effects
	cluster bool // the address may be in another block
	acquire bool
	release bool
	off     int64
	off2    int64
	regs    []int32 // planes
	regs2   []int32
	regs3   []int32
	regs4   []int32
	mode    string
	pred    int32 // -1 if absent
	predNot bool
	imm     int
	atomic  atomicFunc
	site    *site
	mma     *mmaShape
	wg      *wgmmaShape
}

type warpState uint8

const (
	running warpState = iota
	waiting           // waits for a barrier or an mbarrier
	done
)

// fragment is a set of lanes at the same position and call depth.
type fragment struct {
	pc    int
	mask  uint32
	depth int
}

const never = math.MaxInt

// looseAfter is the number of steps that the lowest lanes of a diverged warp may run alone. Then
// the others run, because the lowest lanes may be waiting for them.
const looseAfter = 1 << 15

// warp has 32 threads, which run in step while their control flow is the same. After a divergent
// branch, the threads whose next instruction comes first in the text run first, and join the others
// when they reach them. Threads in a function run before the threads outside, which wait at the
// call.
type warp struct {
	b         *block
	index     int
	regs      []plane
	def       []uint32 // lanes in which a register is defined
	preds     []uint32
	pdef      []uint32
	pc        int
	mask      uint32
	depth     int // call depth
	others    []fragment
	next      int // the least pc of other lanes with the same call depth
	alone     int // steps since the warp was last together
	loose     bool
	tried     bool   // other lanes had a chance to run while these wait for an mbarrier
	exists    uint32 // lanes that exist in the block
	live      uint32 // lanes that have not returned
	state     warpState
	barrier   int    // barrier for which the warp waits, or -1
	mbarrier  uint32 // mbarrier for which the warp waits
	parity    uint32
	came      bool   // to the barrier of the cluster, for which it did not wait yet
	phase     uint32 // of that barrier, likewise
	clock     clock
	release   *known // by the last fence
	acquire   epochs // by strong reads, for the next fence
	copies    copies
	groups    bulkGroups
	wg        wgmmaState
	dirty     []span // shared memory written since the last proxy fence
	tmp       plane
	addr      [32]uint64
	stacks    []stack  // of the lanes, if the kernel needs them
	active    []uint32 // lanes that are in a routine
	reduction *inst    // a bar.red at which the warp waits
	counted   uint32   // lanes in which its condition is true
	carry     uint32   // of arithmetic of several words
	carryDef  uint32   // lanes in which it is defined
}

func newWarp(b *block, index int) *warp {
	k := b.run.k
	w := &warp{b: b, index: index, regs: make([]plane, k.planes), def: make([]uint32, k.planes),
		preds: make([]uint32, k.preds), pdef: make([]uint32, k.preds)}
	n := min(32, b.run.threads-32*index)
	w.exists = uint32(1<<n - 1)
	for _, g := range k.given {
		if g.special == specialNone {
			v := g.bits
			if g.variable > 0 {
				v += b.run.variables[g.variable-1]
			}
			for i := range w.regs[g.plane] {
				w.regs[g.plane][i] = v
			}
		}
	}
	if k.stacks {
		w.stacks, w.active = make([]stack, 32), make([]uint32, len(k.routines))
	}
	return w
}

// enter begins a block.
func (w *warp) enter() {
	clear(w.def)
	clear(w.pdef)
	for _, g := range w.b.run.k.given {
		w.def[g.plane] = math.MaxUint32
		if g.special != specialNone {
			w.fill(&w.regs[g.plane], g.special)
		}
	}
	w.pc, w.mask, w.live, w.state, w.depth = 0, w.exists, w.exists, running, 0
	w.others, w.next, w.alone, w.loose = w.others[:0], never, 0, false
	w.barrier, w.mbarrier, w.came = -1, 0, false
	w.clock.reset(w.index)
	w.release, w.acquire = nil, nil
	w.copies.reset()
	w.groups.reset()
	w.wg.reset()
	w.dirty = w.dirty[:0]
	w.carryDef, w.reduction, w.counted = 0, nil, 0
	if w.stacks != nil {
		w.enterRoot()
	}
}

// run runs up to n instructions and returns how many it ran.
func (w *warp) run(n int) (steps int) {
	r := w.b.run
	code, counts := r.k.code, r.counts
	if len(w.others) > 0 && !w.loose {
		w.converge()
	}
	for steps < n && w.state == running {
		if w.pc >= w.next {
			w.converge()
		}
		pc := w.pc
		in := &code[pc]
		mask := w.mask
		steps++
		r.clock++
		if in.guard >= 0 {
			p := w.preds[in.guard]
			if w.pdef[in.guard]&mask != mask {
				w.undefinedPred(pc, in.guard, mask)
				if r.report.fatal {
					return steps
				}
			}
			if in.not {
				p = ^p
			}
			mask &= p
		}
		count := &counts[pc]
		count.Warps++
		if mask == math.MaxUint32 {
			count.Threads += 32
		} else {
			count.Threads += int64(bits.OnesCount32(mask))
		}
		switch in.kind {
		case kindOp:
			w.pc = pc + 1
			def := w.def[in.a] & w.def[in.b] & w.def[in.c]
			d := &w.regs[in.d]
			if len(w.wg.busy) > 0 {
				w.busyOperand(pc, mask, in.a, in.b, in.c, in.d)
			}
			if mask == math.MaxUint32 {
				in.op(d, &w.regs[in.a], &w.regs[in.b], &w.regs[in.c])
				w.def[in.d] = def
				continue
			}
			if mask == 0 {
				continue
			}
			if w.live == mask {
				// The results of lanes that have ended do not matter.
				in.op(d, &w.regs[in.a], &w.regs[in.b], &w.regs[in.c])
			} else {
				in.op(&w.tmp, &w.regs[in.a], &w.regs[in.b], &w.regs[in.c])
				d.blend(&w.tmp, mask)
			}
			w.def[in.d] = w.def[in.d]&^mask | def&mask
		case kindTest:
			w.pc = pc + 1
			def := w.def[in.a] & w.def[in.b]
			p := in.test(&w.regs[in.a], &w.regs[in.b])
			w.preds[in.d] = w.preds[in.d]&^mask | p&mask
			w.pdef[in.d] = w.pdef[in.d]&^mask | def&mask
		case kindBranch:
			stay := w.mask &^ mask
			switch {
			case stay == 0:
				w.pc = in.target
			case mask == 0:
				w.pc = pc + 1
			default:
				w.pc, w.mask = pc+1, stay
				w.others = append(w.others, fragment{in.target, mask, w.depth})
				w.converge()
			}
		case kindReturn:
			w.pc = pc + 1
			w.exit(mask)
		case kindJump:
			w.pc = pc + 1
			if mask == 0 {
				continue
			}
			all := w.mask
			w.mask &^= mask
			in.run(w, in, mask)
			if r.report.fatal {
				w.mask = all
				return steps
			}
			w.converge()
		case kindRun:
			w.pc = pc + 1
			if mask != 0 {
				in.run(w, in, mask)
				if r.report.fatal || w.b.slept {
					return steps
				}
			}
		case kindSync:
			if mask == 0 {
				w.pc = pc + 1
				continue
			}
			if in.run(w, in, mask) {
				w.pc = pc + 1
			}
			if r.report.fatal {
				return steps
			}
		}
	}
	if len(w.others) > 0 && w.state == running {
		if w.alone += steps; w.alone > looseAfter {
			w.takeTurns()
		}
	}
	return steps
}

// takeTurns lets lanes run that are not at the lowest position.
func (w *warp) takeTurns() {
	w.alone = looseAfter - 1<<10
	w.loose = true
	f := w.others[0]
	w.others = append(w.others[1:], fragment{w.pc, w.mask, w.depth})
	w.pc, w.mask, w.depth, w.next = f.pc, f.mask, f.depth, never
}

// converge selects the next lanes to run: among the lanes deepest in calls, those at the lowest position.
func (w *warp) converge() {
	w.loose = false
	if w.mask != 0 {
		w.others = append(w.others, fragment{w.pc, w.mask, w.depth})
	}
	least, depth := never, 0
	for _, f := range w.others {
		if f.depth > depth {
			least, depth = f.pc, f.depth
		} else if f.depth == depth {
			least = min(least, f.pc)
		}
	}
	w.pc, w.mask, w.depth, w.next = least, 0, depth, never
	kept := w.others[:0]
	for _, f := range w.others {
		if f.pc == least && f.depth == depth {
			w.mask |= f.mask
			continue
		}
		if kept = append(kept, f); f.depth == depth {
			w.next = min(w.next, f.pc)
		}
	}
	w.others = kept
	if len(kept) == 0 {
		w.alone = 0
	}
}

// exit ends the given lanes.
func (w *warp) exit(mask uint32) {
	w.live &^= mask
	w.mask &^= mask
	if w.live == 0 {
		w.copies.landAll(w)
		w.groups.leaveAll(w)
		w.state = done
		w.b.live--
		w.b.cluster.complete()
		return
	}
	if w.mask == 0 {
		w.converge()
	}
}

// blend takes the lanes of mask from p.
func (d *plane) blend(p *plane, mask uint32) {
	for m := mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros32(m) & 31
		d[i] = p[i]
	}
}

// lowest returns the first lane of a mask.
func lowest(mask uint32) int { return bits.TrailingZeros32(mask) & 31 }

// undefinedPred reports the use of a condition that was never computed.
func (w *warp) undefinedPred(pc int, p int32, mask uint32) {
	w.find(Uninitialised, pc, lowest(mask&^w.pdef[p]), "the condition was not computed in this thread", nil)
	w.pdef[p] |= mask
}

// need reports a use of a register that is not defined in all lanes of mask.
func (w *warp) need(in *inst, plane int32, mask uint32, what string) {
	if w.def[plane]&mask != mask {
		if w.wg.busy[plane] > 0 {
			w.busyOperand(w.pcOf(in), mask, plane)
			return
		}
		w.find(Uninitialised, w.pcOf(in), lowest(mask&^w.def[plane]), what, nil)
		w.def[plane] |= mask // once is enough
	}
}

// pcOf returns the position of the instruction that is running.
func (w *warp) pcOf(in *inst) int {
	if p := w.pc; p < len(w.b.run.k.code) && &w.b.run.k.code[p] == in {
		return p
	}
	return w.pc - 1
}

// set sets a register of one lane.
func (w *warp) set(plane int32, lane int, v uint64) {
	w.regs[plane][lane] = v
	w.def[plane] |= 1 << lane
}

// together reports whether mask contains all lanes of members that have not returned. If not, it
// reports a finding, or lets the other lanes run first.
func (w *warp) together(in *inst, mask, members uint32) bool {
	if missing := members & w.live &^ mask; missing != 0 {
		if w.loose {
			w.converge()
			return false
		}
		w.stop(DivergentWarp, w.pc, lowest(mask), "some threads of the member mask do not execute the instruction")
		return false
	}
	if mask&^members != 0 {
		w.stop(DivergentWarp, w.pc, lowest(mask&^members), "the thread is not in the member mask")
		return false
	}
	return true
}

// highest returns the last lane of a mask.
func highest(mask uint32) int { return (31 - bits.LeadingZeros32(mask)) & 31 }
