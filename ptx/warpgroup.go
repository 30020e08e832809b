package ptx

import "fmt"

// CheckWarpgroups finds three defects of products of warpgroups: a missing [Kernel.WgmmaFence]
// after a write to the accumulators, a use of the accumulators before [Kernel.WgmmaWait], and a
// missing commit. It finds [Kernel.RaiseRegisters] and [Kernel.DropRegisters] in kernels whose
// blocks and registers are not fixed, where ptxas ignores them.
var CheckWarpgroups = Pass{"warpgroups", checkWarpgroups}

// flight has the state of the lists of accumulators, one bit for each list.
type flight struct {
	dirty  uint64    // written, without a fence since then
	open   uint64    // used in a product that is not committed
	groups [8]uint64 // used in committed products, from the last group on
}

func (f *flight) join(g *flight) (changed bool) {
	or := func(a *uint64, b uint64) {
		changed = changed || *a|b != *a
		*a |= b
	}
	or(&f.dirty, g.dirty)
	or(&f.open, g.open)
	for i := range f.groups {
		or(&f.groups[i], g.groups[i])
	}
	return changed
}

func (f *flight) busy() uint64 {
	n := f.open
	for _, g := range f.groups {
		n |= g
	}
	return n
}

// warpgroups is the state of a check.
type warpgroups struct {
	b      *body
	lists  map[string]uint64 // lists of registers, by their text
	of     map[val]uint64    // the lists that contain each register
	acc    uint64            // the lists that are accumulators
	report bool
	a      access
}

func checkWarpgroups(b *body) {
	w := &warpgroups{b: b, lists: map[string]uint64{}, of: map[val]uint64{}}
	g, k := b.graph(), b.k
	for i := range k.code {
		in := &k.code[i]
		if (in.op == opRaiseRegisters || in.op == opDropRegisters) && (!k.exactly || k.minimum == 0) {
			b.report(i, "the instruction is ignored unless the kernel calls Block and MinBlocks")
		}
		if descs[in.op].layout == layoutWgmma {
			acc, frag := w.operands(in)
			w.acc |= w.list(acc)
			w.list(frag)
		}
	}
	if len(w.lists) == 0 || len(w.lists) > 64 {
		return
	}
	in := make([]flight, len(g.blocks))
	in[0].dirty = ^uint64(0)
	for changed := true; changed; {
		changed = false
		for _, n := range g.order {
			f := in[n]
			w.through(&f, int(n))
			for _, m := range g.blocks[n].next {
				if m >= 0 && in[m].join(&f) {
					changed = true
				}
			}
		}
	}
	w.report = true
	for _, n := range g.order {
		f := in[n]
		w.through(&f, int(n))
	}
}

// operands returns the accumulators, and the registers of A if A is in registers.
func (w *warpgroups) operands(in *instr) (acc, frag []val) {
	list := w.b.k.lists[in.a:]
	acc = list[:in.c]
	if in.aux&wgmmaRegisters != 0 {
		frag = list[in.c : in.c+4]
	}
	return acc, frag
}

// list returns the bit of a list of registers.
func (w *warpgroups) list(regs []val) uint64 {
	if len(regs) == 0 {
		return 0
	}
	name := fmt.Sprint(regs)
	bit, ok := w.lists[name]
	if !ok {
		bit = 1 << (len(w.lists) % 64)
		w.lists[name] = bit
		for _, v := range regs {
			w.of[v] |= bit
		}
	}
	return bit
}

// through applies the instructions of block n to the state.
func (w *warpgroups) through(f *flight, n int) {
	bl, k := &w.b.g.blocks[n], w.b.k
	for i := bl.begin; i < bl.end; i++ {
		in := &k.code[i]
		switch {
		case descs[in.op].layout == layoutWgmma:
			acc, frag := w.operands(in)
			bits := w.list(acc) | w.list(frag)
			if f.dirty&bits != 0 {
				w.find(i, "no WgmmaFence since its registers were written")
			}
			f.open |= bits
			continue
		case in.op == opWgmmaFence:
			f.dirty = 0
			continue
		case in.op == opWgmmaCommit:
			f.groups[7] |= f.groups[6]
			copy(f.groups[1:7], f.groups[:6])
			f.groups[0], f.open = f.open, 0
			continue
		case in.op == opWgmmaWait:
			if f.open != 0 {
				w.find(i, "products that WgmmaCommit did not put into a group are not waited for")
			}
			for j := int(in.aux); j < len(f.groups); j++ {
				f.groups[j] = 0
			}
			continue
		case in.op == opReturn && f.open != 0 && in.guard == 0:
			w.find(i, "products without WgmmaCommit")
		}
		w.a.of(k, in)
		busy := f.busy()
		for _, v := range w.a.reads {
			if w.of[v]&w.acc&busy != 0 {
				w.find(i, "an accumulator is read before WgmmaWait")
				break
			}
		}
		for _, v := range w.a.writes {
			if w.of[v]&busy != 0 {
				w.find(i, "a register of a product is written before WgmmaWait")
				break
			}
		}
		for _, v := range w.a.writes {
			f.dirty |= w.of[v]
		}
	}
}

func (w *warpgroups) find(i int, format string) {
	if w.report {
		w.b.report(i, "%s", format)
	}
}
