package emu

import (
	"math"
	"math/bits"
	"strings"
)

// members returns the members of a warp instruction.
func (w *warp) members(in *inst, plane int32, mask uint32) (uint32, bool) {
	v, ok := w.uniform(in, plane, mask)
	return uint32(v), ok && w.together(in, mask, uint32(v))
}

// shuffles has the modes of shfl. Lane i reads lane j if ok. The segment of the lane has the bits
// seg of i, and max is the last lane that it may read; for up it is the first.
var shuffles = map[string]func(i, n, seg, max uint32) (j uint32, ok bool){
	"up":   func(i, n, _, max uint32) (uint32, bool) { return i - n, int32(i-n) >= int32(max) },
	"down": func(i, n, _, max uint32) (uint32, bool) { return i + n, i+n <= max },
	"bfly": func(i, n, _, max uint32) (uint32, bool) { return i ^ n, i^n <= max },
	"idx":  func(i, n, seg, max uint32) (uint32, bool) { j := i&seg | n&^seg; return j, j <= max },
}

// shuffle compiles shfl.sync.
func (c *compiler) shuffle(in *inst) {
	p := c.parts()
	if len(p) != 3 || p[0] != "sync" || p[2] != "b32" {
		c.fail(unsupported)
	}
	from := shuffles[p[1]]
	if from == nil {
		c.fail(unsupported)
	}
	args := c.args(5, 5)
	d, pred := &args[0], int32(-1)
	if d.kind == operandPair {
		pred = c.destPred(&d.list[1])
		d = &d.list[0]
	}
	in.kind, in.d = kindSync, c.dest(d, 4)
	in.a, in.b, in.c = c.value(&args[1], 4), c.value(&args[2], 4), c.value(&args[4], 4)
	clamp := c.value(&args[3], 4)
	in.run = func(w *warp, in *inst, mask uint32) bool {
		if _, ok := w.members(in, in.c, mask); !ok {
			return false
		}
		w.need(in, in.b, mask, "the lane to read was not computed in this thread")
		src, def := w.regs[in.a], w.def[in.a]
		var hold, got uint32
		for m := mask; m != 0; m &= m - 1 {
			i := lowest(m)
			n, c := uint32(w.regs[in.b][i]), uint32(w.regs[clamp][i])
			seg := c >> 8 & 31
			limit := c & 31
			j, ok := from(uint32(i), n&31, seg, uint32(i)&seg|limit&^seg)
			if !ok {
				j = uint32(i)
			} else {
				hold |= 1 << i
			}
			w.tmp[i] = src[j&31]
			// The value from a lane that does not participate is undefined.
			if def&mask>>(j&31)&1 != 0 {
				got |= 1 << i
			}
		}
		w.regs[in.d].blend(&w.tmp, mask)
		w.def[in.d] = w.def[in.d]&^mask | got
		if pred >= 0 {
			w.setPred(pred, mask, hold, mask)
		}
		return true
	}
}

func (c *compiler) vote(in *inst) {
	p := strings.Join(c.parts(), ".")
	var args []operand
	switch p {
	case "sync.any.pred", "sync.all.pred", "sync.uni.pred":
		args = c.args(3, 3)
		in.d = c.destPred(&args[0])
	case "sync.ballot.b32":
		args = c.args(3, 3)
		in.d = c.dest(&args[0], 4)
	default:
		c.fail(unsupported)
	}
	in.kind, in.c = kindSync, c.value(&args[2], 4)
	var not bool
	in.a, not = c.predOperand(&args[1])
	in.run = func(w *warp, in *inst, mask uint32) bool {
		if _, ok := w.members(in, in.c, mask); !ok {
			return false
		}
		v, def := w.predValue(in.a, not)
		if def&mask != mask {
			w.undefinedPred(w.pc, in.a, mask)
		}
		v &= mask
		holds := false
		switch p {
		case "sync.ballot.b32":
			for m := mask; m != 0; m &= m - 1 {
				w.set(in.d, lowest(m), uint64(v))
			}
			return true
		case "sync.any.pred":
			holds = v != 0
		case "sync.all.pred":
			holds = v == mask
		case "sync.uni.pred":
			holds = v == mask || v == 0
		}
		v = 0
		if holds {
			v = mask
		}
		w.setPred(in.d, mask, v, mask)
		return true
	}
}

func (c *compiler) match(in *inst) {
	p := strings.Join(c.parts(), ".")
	n := uint8(4)
	switch p {
	case "any.sync.b32", "all.sync.b32":
	case "any.sync.b64", "all.sync.b64":
		n = 8
	default:
		c.fail(unsupported)
	}
	args := c.args(3, 3)
	d, pred := &args[0], int32(-1)
	if d.kind == operandPair {
		pred = c.destPred(&d.list[1])
		d = &d.list[0]
	}
	in.kind, in.d = kindSync, c.dest(d, 4)
	in.a, in.c = c.value(&args[1], n), c.value(&args[2], 4)
	any := strings.HasPrefix(p, "any")
	in.run = func(w *warp, in *inst, mask uint32) bool {
		if _, ok := w.members(in, in.c, mask); !ok {
			return false
		}
		w.need(in, in.a, mask, "the value to compare was not computed in this thread")
		v := w.regs[in.a]
		for m := mask; m != 0; m &= m - 1 {
			i, same := lowest(m), uint32(0)
			for o := mask; o != 0; o &= o - 1 {
				if v[lowest(o)] == v[i] {
					same |= 1 << lowest(o)
				}
			}
			if !any {
				if pred >= 0 {
					w.setPred(pred, 1<<i, -b2u(same == mask), 1<<i)
				}
				if same != mask {
					same = 0
				}
			}
			w.set(in.d, i, uint64(same))
		}
		return true
	}
}

func b2u(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func (c *compiler) redux(in *inst) {
	p := strings.Join(c.parts(), ".")
	f, ok := map[string]func(x, y uint32) uint32{
		"sync.add.u32": func(x, y uint32) uint32 { return x + y },
		"sync.add.s32": func(x, y uint32) uint32 { return x + y },
		"sync.min.u32": func(x, y uint32) uint32 { return min(x, y) },
		"sync.max.u32": func(x, y uint32) uint32 { return max(x, y) },
		"sync.min.s32": func(x, y uint32) uint32 { return uint32(min(int32(x), int32(y))) },
		"sync.max.s32": func(x, y uint32) uint32 { return uint32(max(int32(x), int32(y))) },
		"sync.and.b32": func(x, y uint32) uint32 { return x & y },
		"sync.or.b32":  func(x, y uint32) uint32 { return x | y },
		"sync.xor.b32": func(x, y uint32) uint32 { return x ^ y },
	}[p]
	if !ok {
		c.fail(unsupported)
	}
	args := c.args(3, 3)
	in.kind, in.d = kindSync, c.dest(&args[0], 4)
	in.a, in.c = c.value(&args[1], 4), c.value(&args[2], 4)
	in.run = func(w *warp, in *inst, mask uint32) bool {
		if _, ok := w.members(in, in.c, mask); !ok {
			return false
		}
		w.need(in, in.a, mask, "the value was not computed in this thread")
		v := &w.regs[in.a]
		r := uint32(v[lowest(mask)])
		for m := mask & (mask - 1); m != 0; m &= m - 1 {
			r = f(r, uint32(v[lowest(m)]))
		}
		for m := mask; m != 0; m &= m - 1 {
			w.set(in.d, lowest(m), uint64(r))
		}
		return true
	}
}

func (c *compiler) activemask(in *inst) {
	if c.st.name != "activemask.b32" {
		c.fail(unsupported)
	}
	args := c.args(1, 1)
	in.kind, in.d = kindRun, c.dest(&args[0], 4)
	in.run = func(w *warp, in *inst, mask uint32) bool {
		for m := mask; m != 0; m &= m - 1 {
			w.set(in.d, lowest(m), uint64(mask))
		}
		return true
	}
}

// elect chooses the last of the members. Kernels must not rely on this choice.
func (c *compiler) elect(in *inst) {
	if c.st.name != "elect.sync" {
		c.fail(unsupported)
	}
	args := c.args(2, 2)
	if args[0].kind != operandPair {
		c.fail("the result must be a pair")
	}
	in.kind, in.d = kindSync, c.destOrSink(&args[0].list[0], 4)
	pred := c.destPred(&args[0].list[1])
	in.c = c.value(&args[1], 4)
	in.run = func(w *warp, in *inst, mask uint32) bool {
		if _, ok := w.members(in, in.c, mask); !ok {
			return false
		}
		leader := 31 - bits.LeadingZeros32(mask)
		if in.d >= 0 {
			for m := mask; m != 0; m &= m - 1 {
				w.set(in.d, lowest(m), uint64(leader))
			}
		}
		w.setPred(pred, mask, 1<<leader, math.MaxUint32)
		return true
	}
}
