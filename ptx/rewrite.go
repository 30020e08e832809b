package ptx

import "slices"

// FuseMultiplyAdd fuses a product and a sum, if the sum is the product's only use. For floats the
// result differs, because it is rounded once instead of twice: call Fma to fuse single operations.
var FuseMultiplyAdd = Pass{"fuse multiply-add", fuseMultiplyAdd}

// RemoveDead removes instructions with unused results.
var RemoveDead = Pass{"remove dead", removeDead}

// ForwardMoves replaces copies by their sources (copy propagation).
var ForwardMoves = Pass{"forward moves", forwardMoves}

// ShareAddresses removes repeated computations from the same registers, such as addresses (common
// subexpression elimination).
var ShareAddresses = Pass{"share addresses", shareAddresses}

// Rewrites returns the passes that change instructions. None runs by default: ptxas does the same
// optimisations better, as docs/measurements/experiments.md shows.
func Rewrites() []Pass { return []Pass{FuseMultiplyAdd, ForwardMoves, ShareAddresses, RemoveDead} }

// once reports whether exactly one instruction writes the register, without a condition.
func (b *body) once(v val) bool {
	f := b.registers()
	n := f.number(v)
	return f.writes[n] == 1 && (f.first[n] < 0 || b.k.code[f.first[n]].guard == 0)
}

// stays reports whether v has the same value at instruction j as at i. Instruction i is an earlier
// one of the same block, or one that dominates j.
func (b *body) stays(v val, i, j int) bool {
	if _, ok := v.class(); !ok || b.once(v) {
		return true
	}
	if b.graph().of[i] != b.g.of[j] {
		return false
	}
	var a access
	for n := i + 1; n < j; n++ {
		a.of(b.k, &b.k.code[n])
		if slices.Contains(a.writes, v) {
			return false
		}
	}
	return true
}

// fused maps a product and a sum to the fused instruction.
var fused = map[[2]code]code{
	{opMulF32, opAddF32}: opFmaF32, {opMulF64, opAddF64}: opFmaF64,
	{opMulF16, opAddF16}: opFmaF16, {opMulF16x2, opAddF16x2}: opFmaF16x2,
	{opMulBF16, opAddBF16}: opFmaBF16, {opMulBF16x2, opAddBF16x2}: opFmaBF16x2,
	{opMulU32, opAddU32}: opMulAddU32, {opMulS32, opAddS32}: opMulAddS32,
	{opMulU64, opAddU64}: opMulAddU64, {opMulS64, opAddS64}: opMulAddS64,
	{opMulWideU32, opAddU64}: opMulAddWideU32, {opMulWideS32, opAddS64}: opMulAddWideS32,
}

func fuseMultiplyAdd(b *body) {
	f, k := b.registers(), b.k
	gone := make([]bool, len(k.code))
	for j := range k.code {
		sum := &k.code[j]
		if descs[sum.op].layout != layoutPlain {
			continue
		}
		for _, swap := range []bool{false, true} {
			t, c := sum.a, sum.b
			if swap {
				t, c = c, t
			}
			if _, ok := t.class(); !ok || f.writes[f.number(t)] != 1 || f.reads[f.number(t)] != 1 || f.first[f.number(t)] < 0 {
				continue
			}
			i := int(f.first[f.number(t)])
			mul := &k.code[i]
			o, ok := fused[[2]code{mul.op, sum.op}]
			if !ok || i >= j || mul.guard != sum.guard || descs[o].target > k.m.target.features() {
				continue
			}
			if b.graph().of[i] != b.g.of[j] || !b.stays(mul.a, i, j) || !b.stays(mul.b, i, j) {
				continue
			}
			if mul.guard != 0 && !b.stays(classP.reg(uint32(mul.guard&^guarded)>>1), i, j) {
				continue
			}
			k.version = max(k.version, descs[o].version)
			sum.op, sum.a, sum.b, sum.c = o, mul.a, mul.b, c
			gone[i] = true
			break
		}
	}
	b.remove(gone)
}

func removeDead(b *body) {
	k := b.k
	f := b.registers()
	gone := make([]bool, len(k.code))
	var a access
	// Uses are counted, and removing an instruction decrements the counts of its operands, so that
	// an instruction whose results become unused is removed too.
	byWrite := map[int][]int{}
	var list []int
	for i := range k.code {
		a.of(k, &k.code[i])
		for _, v := range a.writes {
			n := f.number(v)
			byWrite[n] = append(byWrite[n], i)
		}
		list = append(list, i)
	}
	for len(list) > 0 {
		i := list[len(list)-1]
		list = list[:len(list)-1]
		in := &k.code[i]
		if gone[i] || !in.droppable() {
			continue
		}
		a.of(k, in)
		used := false
		for _, v := range a.writes {
			// If an instruction reads its own result register, this is not a use.
			own := int32(0)
			for _, r := range a.reads {
				if r == v {
					own++
				}
			}
			used = used || f.reads[f.number(v)] > own
		}
		if used {
			continue
		}
		gone[i] = true
		for _, v := range a.reads {
			n := f.number(v)
			f.reads[n]--
			list = append(list, byWrite[n]...)
		}
	}
	b.remove(gone)
}

func forwardMoves(b *body) {
	g, k := b.graph(), b.k
	to := map[val]int{} // the move that writes each register
	for i := range k.code {
		switch in := &k.code[i]; in.op {
		case opMovU32, opMovU64, opMovF32, opMovF64, opMovF16, opMovPred:
			if c, ok := in.a.class(); ok && b.once(in.d) {
				if d, _ := in.d.class(); c == d {
					to[in.d] = i
				}
			}
		}
	}
	if len(to) == 0 {
		return
	}
	for j := range k.code {
		k.replaceReads(&k.code[j], func(v val) val {
			for {
				i, ok := to[v]
				if !ok || i >= j || !g.dominates(g.of[i], g.of[j]) || !b.stays(k.code[i].a, i, j) {
					return v
				}
				v = k.code[i].a
			}
		})
	}
	b.changed()
}

// computed is a key of a computation: the instruction and its operands.
type computed struct {
	op      code
	aux     uint16
	a, b, c val
	pa, pb  uint64 // constants in a, b and c
}

func shareAddresses(b *body) {
	g, k := b.graph(), b.k
	first := map[computed][]int{}
	instead := map[val]val{}
	for i := range k.code {
		in := &k.code[i]
		k.replaceReads(in, func(v val) val {
			if w, ok := instead[v]; ok {
				return w
			}
			return v
		})
		if in.guard != 0 || !in.pure() || g.rank[g.of[i]] < 0 || descs[in.op].layout != layoutPlain || !b.once(in.d) {
			continue
		}
		if _, ok := in.d.class(); !ok {
			continue
		}
		key, ok := b.computed(in)
		if !ok {
			continue
		}
		shared := false
		for _, j := range first[key] {
			if g.dominates(g.of[j], g.of[i]) {
				instead[in.d], shared = k.code[j].d, true
				break
			}
		}
		if !shared {
			first[key] = append(first[key], i)
		}
	}
	b.changed()
	removeDead(b)
}

// computed returns a key of the instruction's computation, if its operands do not change.
func (b *body) computed(in *instr) (computed, bool) {
	c := computed{op: in.op, aux: in.aux, a: in.a, b: in.b, c: in.c}
	for i, v := range []*val{&c.a, &c.b, &c.c} {
		if _, ok := v.class(); ok && !b.once(*v) {
			return c, false
		}
		switch v.tag() {
		case tagSigned, tagBig, tagF32, tagF64: // constants are compared by value
			bits := b.k.consts[v.n()]
			*v = tagged(v.tag(), 0)
			switch i {
			case 0:
				c.pa = bits
			case 1:
				c.pb = bits
			default:
				return c, false
			}
		}
	}
	return c, true
}
