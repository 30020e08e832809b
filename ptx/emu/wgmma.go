package emu

import (
	"math"
	"slices"
	"strings"
)

// wgmmaShape is a product of matrices by four warps: D[64,n] = A[64,k] B[k,n] + D.
// Each warp has 16 rows of A and D.
type wgmmaShape struct {
	mmaShape
	n              int
	bytes          int // size of an element of A and B
	negA, negB     bool
	transA, transB bool
	inRegs         bool // A is in registers
}

// wgmmaState has the pending products of a warp. A product is computed as late as possible: when a
// warp waits for it.
type wgmmaState struct {
	list   []wgmmaUse
	group  int
	fenced bool
	busy   map[int32]int // number of pending products that use each accumulator
}

type wgmmaUse struct {
	in    *inst
	pc    int
	group int
	a, b  uint64 // descriptors
	add   bool
	done  bool // one warp of the four has waited for the product
	at    int  // its index in products, if done
}

// waited has the epochs in which the four warps waited for a product, 0 for not yet. The operands
// are read until the first of them has waited.
type waited [4]uint32

// afterProduct reports whether this warp is ordered after a warp that has waited for the product. t
// is a thread of the four warps of the product.
func (w *warp) afterProduct(t, at uint32) bool {
	if t>>10 != w.b.number {
		return true // the product reads the shared memory of another block
	}
	first := int(t >> 5 & 31 &^ 3)
	for i, e := range w.b.products[at] {
		if e != 0 && e <= w.clock.warps[first+i] {
			return true
		}
	}
	return false
}

func (g *wgmmaState) reset() { *g = wgmmaState{list: g.list[:0]} }

func (c *compiler) wgmma(in *inst) {
	in.kind = kindSync
	switch name := c.st.name; {
	case name == "wgmma.fence.sync.aligned":
		c.args(0, 0)
		in.run = func(w *warp, in *inst, mask uint32) bool {
			if !w.wholeGroup(mask) {
				return false
			}
			w.wg.fenced = true
			return true
		}
	case name == "wgmma.commit_group.sync.aligned":
		c.args(0, 0)
		in.run = func(w *warp, in *inst, mask uint32) bool {
			if !w.wholeGroup(mask) {
				return false
			}
			w.wg.group++
			for _, o := range w.fellows() {
				if o.state == waiting && o.barrier == fellowsBarrier {
					o.state, o.barrier = running, -1
				}
			}
			return true
		}
	case name == "wgmma.wait_group.sync.aligned":
		n := c.number(&c.args(1, 1)[0], 7)
		in.run = func(w *warp, in *inst, mask uint32) bool { return w.wholeGroup(mask) && w.wgmmaWait(n) }
	case strings.HasPrefix(name, "wgmma.mma_async.sync.aligned.m64n"):
		c.wgmmaProduct(in, strings.TrimPrefix(name, "wgmma.mma_async.sync.aligned.m64n"))
	default:
		c.fail(unsupported)
	}
}

// wholeGroup reports whether the whole warp executes the instruction and belongs to a group of
// four.
func (w *warp) wholeGroup(mask uint32) bool {
	if !w.allHere(mask) {
		return false
	}
	if w.index&^3+4 > len(w.b.warps) {
		w.stop(DivergentWarp, w.pc, 0, "the last warps of the block are not a complete group of four")
		return false
	}
	return true
}

// wgmmaShapeOf returns the shape that the modifiers of wgmma.mma_async give, and the number of
// registers of the accumulators.
func (c *compiler) wgmmaShapeOf(rest string) (s *wgmmaShape, regs int) {
	p := strings.Split(rest, ".")
	limit := false
	if len(p) == 5 && p[4] == "satfinite" {
		limit, p = true, p[:4]
	}
	nk := strings.Split(p[0], "k")
	if len(p) != 4 || len(nk) != 2 {
		c.fail(unsupported)
	}
	ta, okA := mmaTypes[p[2]]
	tb, okB := mmaTypes[p[3]]
	if !okA || !okB || ta.bits != tb.bits || (ta.integer == nil) != (tb.integer == nil) {
		c.fail(unsupported)
	}
	s = &wgmmaShape{n: atoi(nk[0]), bytes: ta.bits / 8}
	s.mmaShape = mmaShape{k: atoi(nk[1]), per: 32 / ta.bits, from: ta.from, integer: ta.integer, integerB: tb.integer, limit: limit}
	if s.n < 8 || s.n > 256 || s.n%8 != 0 || s.k*s.bytes != 32 {
		c.fail(unsupported)
	}
	regs = s.n / 2
	switch {
	case p[1] == "s32" && s.integer != nil, p[1] == "f32" && s.from != nil:
	case p[1] == "f16" && s.from != nil:
		s.halves = true
		regs /= 2
	default:
		c.fail(unsupported)
	}
	return s, regs
}

// wgmmaProduct compiles wgmma.mma_async.
func (c *compiler) wgmmaProduct(in *inst, rest string) {
	s, regs := c.wgmmaShapeOf(rest)
	args := c.args(4, 8)
	x := &extra{wg: s, n: regs, bytes: 4}
	if args[0].kind != operandVector {
		c.fail("expected a vector of accumulators")
	}
	c.registers(&args[0], x, true)
	if slices.Contains(x.regs, -1) || x.wide != 4 {
		c.fail("accumulators must be registers of 32 bits")
	}
	if args[1].kind == operandVector {
		s.inRegs = true
		y := &extra{n: 4, bytes: 4}
		c.registers(&args[1], y, false)
		if y.wide != 4 {
			c.fail("the registers have %d bits, expected 32", 8*y.wide)
		}
		x.regs2 = y.regs
	} else {
		in.a = c.value(&args[1], 8)
	}
	in.b = c.value(&args[2], 8)
	if args[3].kind == operandInteger {
		x.pred = -1 - int32(min(args[3].bits, 1))
	} else {
		x.pred, x.predNot = c.predOperand(&args[3])
	}
	c.wgmmaFlags(s, args[4:])
	in.x, in.run = x, (*warp).wgmmaStart
}

// wgmmaFlags reads the signs and the transpositions of the operands.
func (c *compiler) wgmmaFlags(s *wgmmaShape, flags []operand) {
	sign := func(o *operand) bool {
		if o.kind != operandInteger || o.bits != 1 && int64(o.bits) != -1 {
			c.fail("the scale of an operand must be 1 or -1")
		}
		return int64(o.bits) < 0
	}
	want := 0
	if s.from != nil {
		if want = 2; s.bytes == 2 {
			if want = 4; s.inRegs {
				want = 3
			}
		}
	}
	if len(flags) != want {
		c.wrongCount(4+len(flags), 4+want, 4+want)
	}
	if want > 0 {
		s.negA, s.negB = sign(&flags[0]), sign(&flags[1])
	}
	if want == 4 {
		s.transA = c.number(&flags[2], 1) == 1
	}
	if want > 2 {
		s.transB = c.number(&flags[want-1], 1) == 1
	}
}

func (w *warp) wgmmaStart(in *inst, mask uint32) bool {
	if !w.wholeGroup(mask) {
		return false
	}
	x, g := in.x, &w.wg
	if !g.fenced {
		w.find(MissingWait, w.pc, 0, "no wgmma.fence before", nil)
		g.fenced = true
	}
	u := wgmmaUse{in: in, pc: w.pc, group: g.group}
	if !x.wg.inRegs {
		v, ok := w.uniform(in, in.a, mask)
		if !ok {
			return false
		}
		u.a = v
	}
	v, ok := w.uniform(in, in.b, mask)
	if !ok {
		return false
	}
	u.b = v
	add, def := w.predValue(x.pred, x.predNot)
	if def != math.MaxUint32 {
		w.undefinedPred(w.pc, x.pred, mask)
	}
	if add != 0 && add != math.MaxUint32 {
		w.stop(BadOperand, w.pc, 0, "whether to add must be the same in all threads of the warp")
		return false
	}
	u.add = add != 0
	if g.busy == nil {
		g.busy = map[int32]int{}
	}
	for _, r := range x.regs {
		if u.add && g.busy[r] == 0 {
			w.need(in, r, mask, "an accumulator was not computed in this thread")
		}
		g.busy[r]++
		w.def[r] = 0
	}
	g.list = append(g.list, u)
	return true
}

// fellowsBarrier is the state of a warp that waits until the other warps of its group have started
// the products that it waits for.
const fellowsBarrier = -2

// fellows returns the four warps that multiply together.
func (w *warp) fellows() []*warp { return w.b.warps[w.index&^3:][:4] }

// wgmmaWait computes the products except those of the last n groups. Four warps compute a product:
// after one of them has waited for it, the others must not read its operands any more.
func (w *warp) wgmmaWait(n int) bool {
	g := &w.wg
	for _, o := range w.fellows() {
		if o.wg.group < g.group-n && o.state != done {
			w.state, w.barrier = waiting, fellowsBarrier
			return false
		}
	}
	for _, o := range w.fellows() {
		for i := range o.wg.list {
			if u := &o.wg.list[i]; u.group < g.group-n && !u.done {
				u.done, u.at = true, len(w.b.products)
				o.wgmmaRun(u, w)
			}
		}
	}
	w.b.products = append(w.b.products, waited{})
	kept := g.list[:0]
	for _, u := range g.list {
		if u.group >= g.group-n {
			kept = append(kept, u)
			continue
		}
		w.b.products[u.at][w.index&3] = w.clock.now
		for _, r := range u.in.x.regs {
			if g.busy[r]--; g.busy[r] == 0 {
				delete(g.busy, r)
				w.def[r] = math.MaxUint32
			}
		}
		if w.b.run.report.fatal {
			return false
		}
	}
	g.list = kept
	if len(kept) == 0 {
		g.fenced = false
	}
	return true
}

// busyOperand reports a use of an accumulator before it was waited for.
func (w *warp) busyOperand(pc int, mask uint32, planes ...int32) {
	for _, p := range planes {
		if w.wg.busy[p] > 0 {
			w.find(MissingWait, pc, lowest(mask), "the accumulator belongs to a pending product: use wgmma.wait_group first", nil)
			return
		}
	}
}

// descriptor gives the position of a matrix in shared memory.
type descriptor struct {
	start, leading, stride uint32
	swizzle                uint32
}

func newDescriptor(v uint64) descriptor {
	return descriptor{uint32(v&0x3fff) << 4, uint32(v>>16&0x3fff) << 4, uint32(v>>32&0x3fff) << 4, uint32(v >> 62)}
}

// rowBytes is the length of a row of a swizzled tile.
func (d descriptor) rowBytes() uint32 { return [4]uint32{16, 128, 64, 32}[d.swizzle] }

// swizzled returns the address, in a swizzled tile, of the byte that would be at addr without
// swizzle.
func swizzled(addr, swizzle uint32) uint32 {
	switch swizzle {
	case 1:
		return addr ^ addr>>7&7<<4
	case 2:
		return addr ^ addr>>7&3<<4
	case 3:
		return addr ^ addr>>7&1<<4
	}
	return addr
}

// at returns the address of the element with index mn along M or N, and index k along the sum.
func (d descriptor) at(mn, k, bytes uint32, trans bool) uint32 {
	row := d.rowBytes()
	var off uint32
	switch {
	case !trans && d.swizzle == 0:
		off = mn/8*d.stride + k*bytes/16*d.leading + mn%8*16 + k*bytes%16
	case !trans:
		off = mn/8*d.stride + mn%8*row + k*bytes
	case d.swizzle == 0:
		off = mn/8*d.stride + k/8*d.leading + k%8*16 + mn%8*bytes
	default:
		per := row / bytes
		off = mn/per*d.leading + k/8*d.stride + k%8*row + mn%per*bytes
	}
	return swizzled(d.start+off, d.swizzle)
}

// wgmmaMatrix reads a matrix from shared memory through the async proxy. Its rows are indices along
// M or N.
func (w *warp) wgmmaMatrix(reader *warp, u *wgmmaUse, desc uint64, from, rows int, trans bool, each func(i, k int, bits uint32)) {
	d, s, b := newDescriptor(desc), u.in.x.wg, w.b
	check := !b.run.m.config.Unchecked
	checked := map[int]bool{}
	for i := range rows {
		for k := range s.k {
			addr := d.at(uint32(from+i), uint32(k), uint32(s.bytes), trans)
			off := int(addr) - sharedBase
			if chunk := off &^ 15; !checked[chunk] {
				checked[chunk] = true
				place, a := reader.shared(u.pc, 0, uint64(addr&^15), 16, 16)
				if place < 0 {
					return
				}
				reader.landed(u.pc, 0, chunk, 16, a)
				reader.clean(u.pc, 0, chunk, 16, a)
				if check {
					if !b.defined.has(chunk, 16) {
						reader.undefined(u.pc, 0, a.name, chunk+sharedBase-a.at)
					}
					reader.checkRead(&b.shadow, chunk, &access{pc: u.pc, n: 16, group: uint32(u.at) + 1, name: a.name, base: a.at - sharedBase}, true)
				}
			}
			each(i, k, uint32(load(b.memory[off:], s.bytes)))
		}
	}
}

// wgmmaRun computes this warp's part of a product; reader is the warp that waits.
func (w *warp) wgmmaRun(u *wgmmaUse, reader *warp) {
	x := u.in.x
	s := x.wg
	rows := 16 * (w.index & 3)
	a, b := make([][32]float64, 16), make([][32]float64, s.n)
	value, valueB := s.from, s.from
	if s.integer != nil {
		value = func(v uint32) float64 { return float64(s.integer(v)) }
		valueB = func(v uint32) float64 { return float64(s.integerB(v)) }
	}
	setA := func(i, k int, bits uint32) { a[i][k] = value(bits) }
	if s.inRegs {
		for _, r := range x.regs2 {
			w.need(u.in, r, math.MaxUint32, "a part of A was not computed in this thread")
		}
		w.fragments(x, &s.mmaShape, setA, nil)
	} else {
		w.wgmmaMatrix(reader, u, u.a, rows, 16, s.transA, setA)
	}
	w.wgmmaMatrix(reader, u, u.b, 0, s.n, s.transB, func(i, k int, bits uint32) { b[i][k] = valueB(bits) })
	sign := 1.0
	if s.negA != s.negB {
		sign = -1
	}
	for row := range 16 {
		for col := range s.n {
			lane := row%8*4 + col%8/2
			sum := 0.0
			for k := range s.k {
				sum += float64(a[row][k] * b[col][k])
			}
			sum *= sign
			if s.halves {
				r, shift := &w.regs[x.regs[col/8*2+row/8]][lane], 16*(col&1)
				if u.add {
					sum += fromHalf(uint16(*r >> shift))
				}
				*r = *r&^(0xffff<<shift) | uint64(toHalf(sum))<<shift
				continue
			}
			r := &w.regs[x.regs[col/8*4+row/8*2+col&1]][lane]
			if s.integer != nil {
				if u.add {
					sum += float64(int32(*r))
				}
				v := int64(sum)
				if s.limit {
					v = min(max(v, math.MinInt32), math.MaxInt32)
				}
				*r = uint64(uint32(v))
				continue
			}
			if u.add {
				sum += float64(f32(uint32(*r)))
			}
			*r = uint64(b32(float32(sum)))
		}
	}
}
