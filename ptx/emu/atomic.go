package emu

import (
	"math/bits"
	"slices"
	"strings"
)

// atomicFunc returns the new value of an atomic operation: old is the old value, v the operand, and
// more the second operand of compare and exchange.
type atomicFunc func(old, v, more uint64) uint64

// atomicOp returns the operation on memory with a name and a type, or nil.
func atomicOp(op, typ string) atomicFunc {
	f := map[string]atomicFunc{
		"add.u32": func(o, v, _ uint64) uint64 { return uint64(uint32(o) + uint32(v)) },
		"add.u64": func(o, v, _ uint64) uint64 { return o + v },
		"add.f32": func(o, v, _ uint64) uint64 { return uint64(b32(f32(uint32(o)) + f32(uint32(v)))) },
		"add.f64": func(o, v, _ uint64) uint64 { return b64(f64(o) + f64(v)) },
		"min.u32": func(o, v, _ uint64) uint64 { return min(o, v) },
		"max.u32": func(o, v, _ uint64) uint64 { return max(o, v) },
		"min.s32": func(o, v, _ uint64) uint64 { return uint64(uint32(min(int32(o), int32(v)))) },
		"max.s32": func(o, v, _ uint64) uint64 { return uint64(uint32(max(int32(o), int32(v)))) },
		"min.u64": func(o, v, _ uint64) uint64 { return min(o, v) },
		"max.u64": func(o, v, _ uint64) uint64 { return max(o, v) },
		"min.s64": func(o, v, _ uint64) uint64 { return uint64(min(int64(o), int64(v))) },
		"max.s64": func(o, v, _ uint64) uint64 { return uint64(max(int64(o), int64(v))) },
		"inc.u32": func(o, v, _ uint64) uint64 {
			if uint32(o) >= uint32(v) {
				return 0
			}
			return o + 1
		},
		"dec.u32": func(o, v, _ uint64) uint64 {
			if o == 0 || uint32(o) > uint32(v) {
				return v
			}
			return o - 1
		},
	}
	and := func(o, v, _ uint64) uint64 { return o & v }
	or := func(o, v, _ uint64) uint64 { return o | v }
	xor := func(o, v, _ uint64) uint64 { return o ^ v }
	exchange := func(_, v, _ uint64) uint64 { return v }
	compare := func(o, v, more uint64) uint64 {
		if o == v {
			return more
		}
		return o
	}
	for _, t := range []string{".b32", ".b64"} {
		f["and"+t], f["or"+t], f["xor"+t], f["exch"+t], f["cas"+t] = and, or, xor, exchange, compare
	}
	f["cas.b16"] = compare
	f["add.s32"] = f["add.u32"]
	f["add.s64"] = f["add.u64"]
	for _, h := range floatFormats[2:] {
		f["add."+h.name] = func(o, v, _ uint64) uint64 { return h.to(oddFma(h.from(o&0xffff), 1, h.from(v&0xffff))) }
		f["add."+h.name+"x2"] = func(o, v, _ uint64) uint64 {
			return h.to(oddFma(h.from(o&0xffff), 1, h.from(v&0xffff))) | h.to(oddFma(h.from(o>>16), 1, h.from(v>>16)))<<16
		}
	}
	return f[op+"."+typ]
}

// atomicModifiers sets in x what the modifiers of atom or red say. It returns the operation, and
// whether the last operand is a cache policy.
func (c *compiler) atomicModifiers(x *extra, modifiers []string) (op string, hint bool) {
	for _, s := range modifiers {
		switch s {
		case "global":
			x.space = spaceGlobal
		case "shared", "shared::cta":
			x.space = spaceShared
		case "relaxed", "cta", "gpu", "sys", "cluster", "noftz":
		case "acquire":
			x.acquire = true
		case "release":
			x.release = true
		case "acq_rel":
			x.acquire, x.release = true, true
		case "L2::cache_hint":
			hint = true
		case "v2", "v4":
			x.n = atoi(s[1:])
		default:
			if op != "" {
				c.fail(unsupported)
			}
			op = s
		}
	}
	return op, hint
}

// atomic executes atom and red.
func (c *compiler) atomic(in *inst) {
	p := c.parts()
	if len(p) < 2 {
		c.fail(unsupported)
	}
	x := &extra{strong: true, n: 1, pred: -1}
	typ := p[len(p)-1]
	op, hint := c.atomicModifiers(x, p[:len(p)-1])
	if x.atomic = atomicOp(op, typ); x.atomic == nil {
		c.fail(unsupported)
	}
	x.bytes = int(c.typeBytes(typ))
	x.wide = uint8(x.bytes)
	args := slices.Clone(c.st.args)
	if hint && len(args) > 0 {
		args = args[:len(args)-1]
	}
	want := 2
	if op == "cas" {
		want++
	}
	in.d = -1
	if strings.HasPrefix(c.st.name, "atom.") {
		if len(args) == 0 {
			c.wrongCount(0, want+1, want+1)
		}
		if x.n > 1 {
			c.fail("vectors with results are %s", unsupported)
		}
		in.d = c.destOrSink(&args[0], x.wide)
		args = args[1:]
	}
	if len(args) != want {
		c.wrongCount(len(c.st.args), want+len(c.st.args)-len(args), want+len(c.st.args)-len(args))
	}
	in.kind, in.x, in.run = kindRun, x, (*warp).atomic
	in.a, x.off = c.address(&args[0], x.space)
	c.registers(&args[1], x, false)
	in.c = -1
	if op == "cas" {
		in.c = c.value(&args[2], x.wide)
	}
}

// atomicGlobal records an atomic access to global memory and returns the bytes, or nil if the
// address is invalid.
func (w *warp) atomicGlobal(x *extra, acc *access, addr uint64) []byte {
	a, off := w.global(acc.pc, acc.lane, addr, acc.n, acc.n)
	if a == nil {
		return nil
	}
	if !w.b.run.m.config.Unchecked {
		if !a.whole && !a.defined.has(off, acc.n) {
			w.undefined(acc.pc, acc.lane, a.name, off)
		}
		acc.name = a.name
		w.checkWrite(&a.shadow, off, acc, false, false)
	}
	a.defined.set(off, acc.n)
	w.strong(addr, true, true, x)
	return a.data[off : off+acc.n]
}

// atomicShared is [warp.atomicGlobal] for shared memory.
func (w *warp) atomicShared(x *extra, acc *access, addr uint64) []byte {
	b := w.b
	off, a := w.shared(acc.pc, acc.lane, addr, acc.n, acc.n)
	if off < 0 {
		return nil
	}
	w.landed(acc.pc, acc.lane, off, acc.n, a)
	if !b.run.m.config.Unchecked {
		if !b.defined.has(off, acc.n) {
			w.undefined(acc.pc, acc.lane, a.name, off+sharedBase-a.at)
		}
		acc.name, acc.base = a.name, a.at-sharedBase
		w.checkWrite(&b.shadow, off, acc, true, false)
	}
	b.defined.set(off, acc.n)
	w.touched(off, acc.n)
	w.strong(b.key(off), true, true, x)
	return b.memory[off : off+acc.n]
}

func (w *warp) atomic(in *inst, mask uint32) bool {
	x, pc := in.x, w.pcOf(in)
	w.need(in, in.a, mask, "the address was not computed in this thread")
	n := x.n * x.bytes
	for _, s := range x.regs {
		w.need(in, s, mask, "the operand was not computed in this thread")
	}
	if in.c >= 0 {
		w.need(in, in.c, mask, "the operand was not computed in this thread")
	}
	acc := access{pc: pc, n: n, strong: true}
	base := w.regs[in.a]
	var sectors distinct
	// The lanes execute it one after the other, from the last to the first, because PTX does not
	// define an order.
	for m := mask; m != 0; {
		lane := highest(m)
		m &^= 1 << lane
		addr := base[lane] + uint64(x.off)
		var data []byte
		at := x.space
		if at == spaceNone {
			at = spaceOf(addr)
		}
		acc.lane = lane
		switch at {
		case spaceGlobal:
			if data = w.atomicGlobal(x, &acc, addr); data != nil {
				sectors.add(addr >> 5)
			}
		case spaceShared:
			data = w.atomicShared(x, &acc, addr)
		default:
			w.stop(BadOperand, pc, lane, "the address is neither in global nor in shared memory")
			return false
		}
		if data == nil {
			continue
		}
		more := uint64(0)
		if in.c >= 0 {
			more = w.regs[in.c][lane]
		}
		for i, s := range x.regs {
			at := data[i*x.bytes:]
			old := load(at, x.bytes)
			store(at, x.bytes, x.atomic(old, w.regs[s][lane], more))
			if in.d >= 0 {
				w.tmp[lane] = old
			}
		}
	}
	if in.d >= 0 {
		w.regs[in.d].blend(&w.tmp, mask)
		w.def[in.d] |= mask
	}
	c := &w.b.run.counts[pc]
	c.Atomics += int64(bits.OnesCount32(mask))
	if x.space == spaceGlobal {
		c.StoreRequests++
		c.StoreSectors += int64(sectors.n)
	} else {
		c.SharedRequests++
	}
	return true
}
