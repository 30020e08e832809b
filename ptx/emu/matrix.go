package emu

import (
	"math"
	"strings"
)

// ldmatrix loads 8 by 8 matrices of elements of 16 bits.
func (c *compiler) ldmatrix(in *inst) {
	x := c.matrixShape("ldmatrix")
	args := c.args(2, 2)
	c.matrixRegs(&args[0], x, true)
	in.kind, in.x = kindSync, x
	in.a, x.off = c.address(&args[1], spaceShared)
	in.run = func(w *warp, in *inst, mask uint32) bool { return w.matrix(in, mask, false) }
}

// stmatrix stores 8 by 8 matrices of elements of 16 bits.
func (c *compiler) stmatrix(in *inst) {
	x := c.matrixShape("stmatrix")
	args := c.args(2, 2)
	c.matrixRegs(&args[1], x, false)
	in.kind, in.x = kindSync, x
	in.a, x.off = c.address(&args[0], spaceShared)
	in.run = func(w *warp, in *inst, mask uint32) bool { return w.matrix(in, mask, true) }
}

func (c *compiler) matrixShape(name string) *extra {
	s, ok := strings.CutPrefix(c.st.name, name+".sync.aligned.m8n8.x")
	if !ok || len(s) < 2 {
		c.fail(unsupported)
	}
	x := &extra{n: int(s[0] - '0')}
	rest := s[1:]
	if rest, ok = strings.CutPrefix(rest, ".trans"); ok {
		x.mode = "trans"
	}
	if rest != ".shared.b16" && rest != ".shared::cta.b16" || x.n != 1 && x.n != 2 && x.n != 4 {
		c.fail(unsupported)
	}
	return x
}

func (c *compiler) matrixRegs(o *operand, x *extra, result bool) {
	x.bytes = 4
	c.registers(o, x, result)
	if x.wide != 4 {
		c.fail("the registers have %d bits, expected 32", 8*x.wide)
	}
}

// allHere reports whether all lanes of the warp execute the instruction.
func (w *warp) allHere(mask uint32) bool {
	if mask != math.MaxUint32 {
		if w.loose {
			w.converge()
			return false
		}
		w.stop(DivergentWarp, w.pc, lowest(mask), "not all threads of the warp execute the instruction")
		return false
	}
	return true
}

// matrixRows checks the rows of matrix i and returns their offsets in shared memory, negative for
// invalid addresses.
func (w *warp) matrixRows(in *inst, i int, writes bool) (offs [8]int) {
	pc, b := w.pc, w.b
	check := !b.run.m.config.Unchecked
	acc := access{pc: pc, n: 16}
	for row := range offs {
		lane := 8*i + row
		addr := w.regs[in.a][lane] + uint64(in.x.off)
		w.addr[lane] = addr
		off, a := w.shared(pc, lane, addr, 16, 16)
		offs[row] = off
		if off < 0 {
			continue
		}
		w.landed(pc, lane, off, 16, a)
		if !check {
			continue
		}
		acc.lane, acc.name, acc.base = lane, a.name, a.at-sharedBase
		if writes {
			w.checkWrite(&b.shadow, off, &acc, true, false)
		} else {
			if !b.defined.has(off, 16) {
				w.undefined(pc, lane, a.name, off+sharedBase-a.at)
			}
			w.checkRead(&b.shadow, off, &acc, true)
		}
	}
	return offs
}

// moveMatrix moves one matrix between register r and the rows at offs. A negative r is a sink.
func (w *warp) moveMatrix(r int32, offs *[8]int, transposed, writes bool) {
	for lane := range 32 {
		row, col := lane/4, 2*(lane%4)
		v := uint32(0)
		if r >= 0 && writes {
			v = uint32(w.regs[r][lane])
		}
		for j := range 2 {
			at, e := row, col+j
			if transposed {
				at, e = e, at
			}
			if offs[at] < 0 {
				continue
			}
			m := w.b.memory[offs[at]+2*e:]
			if writes {
				store(m, 2, uint64(v>>(16*j)))
			} else {
				v |= uint32(load(m, 2)) << (16 * j)
			}
		}
		if r >= 0 && !writes {
			w.set(r, lane, uint64(v))
		}
	}
}

// matrix moves matrices between registers and shared memory.
func (w *warp) matrix(in *inst, mask uint32, writes bool) bool {
	if !w.allHere(mask) {
		return false
	}
	x, pc, b := in.x, w.pc, w.b
	lanes := uint32(1<<(8*x.n) - 1)
	w.need(in, in.a, lanes, "the address was not computed in this thread")
	if writes {
		for _, r := range x.regs {
			w.need(in, r, mask, "the value to store was not computed in this thread")
		}
	}
	for i := range x.n {
		offs := w.matrixRows(in, i, writes)
		w.moveMatrix(x.regs[i], &offs, x.mode == "trans", writes)
		if writes {
			for _, off := range offs {
				if off >= 0 {
					b.defined.set(off, 16)
					w.touched(off, 16)
				}
			}
		}
	}
	// A pass serves one matrix.
	w.countShared(pc, lanes, 16)
	return true
}

// mmaShape is a product of matrices by one warp: D[16,8] = A[16,k] B[k,8] + C[16,8].
type mmaShape struct {
	k        int
	per      int // elements of A and B in a register
	na, nb   int
	from     func(bits uint32) float64 // of an element of A or B
	integer  func(bits uint32) int32   // used instead of from for integers
	integerB func(bits uint32) int32
	halves   bool // C and D are half floats
	limit    bool // integers saturate instead of wrapping around
}

func tf32(x uint32) float64 { return float64(f32(x &^ (1<<13 - 1))) }

var mmaTypes = map[string]struct {
	bits    int
	from    func(uint32) float64
	integer func(uint32) int32
}{
	"f16":  {16, func(x uint32) float64 { return fromHalf(uint16(x)) }, nil},
	"bf16": {16, func(x uint32) float64 { return fromBrain(uint16(x)) }, nil},
	"tf32": {32, tf32, nil},
	"s8":   {8, nil, func(x uint32) int32 { return int32(int8(x)) }},
	"u8":   {8, nil, func(x uint32) int32 { return int32(uint8(x)) }},
	"e4m3": {8, func(x uint32) float64 { return fromE4M3(uint8(x)) }, nil},
	"e5m2": {8, func(x uint32) float64 { return fromHalf(uint16(x&0xff) << 8) }, nil},
}

// fromE4M3 returns the number with the given 8 bits: 4 of exponent and 3 of fraction.
func fromE4M3(x uint8) float64 {
	exp, frac := int(x>>3&15), float64(x&7)
	v := math.Ldexp(8+frac, exp-10)
	switch {
	case x&0x7f == 0x7f:
		return math.NaN()
	case exp == 0:
		v = math.Ldexp(frac, -9)
	}
	if x&0x80 != 0 {
		return -v
	}
	return v
}

func (c *compiler) mma(in *inst) {
	p := c.parts()
	if len(p) < 9 || p[0] != "sync" || p[1] != "aligned" || p[3] != "row" || p[4] != "col" || !strings.HasPrefix(p[2], "m16n8k") {
		c.fail(unsupported)
	}
	s := &mmaShape{k: atoi(p[2][len("m16n8k"):])}
	t := p[5:]
	if t[0] == "satfinite" {
		s.limit, t = true, t[1:]
	}
	if len(t) != 4 {
		c.fail(unsupported)
	}
	ta, okA := mmaTypes[t[1]]
	tb, okB := mmaTypes[t[2]]
	if !okA || !okB || ta.bits != tb.bits || t[0] != t[3] || (ta.integer == nil) != (tb.integer == nil) || ta.integer == nil && t[1] != t[2] {
		c.fail(unsupported)
	}
	s.from, s.integer, s.integerB = ta.from, ta.integer, tb.integer
	s.per = 32 / ta.bits
	switch {
	case t[0] == "s32" && s.integer != nil, t[0] == "f32" && s.from != nil:
	case t[0] == "f16" && t[1] == "f16":
		s.halves = true
	default:
		c.fail(unsupported)
	}
	least := 4 * s.per
	if s.k != least && s.k != 2*least {
		c.fail(unsupported)
	}
	s.na, s.nb = 2*s.k/least, s.k/least
	nc := 4
	if s.halves {
		nc = 2
	}
	args := c.args(4, 4)
	x := &extra{mma: s}
	regs := func(o *operand, n int, result bool) []int32 {
		y := &extra{n: n, bytes: 4}
		if o.kind != operandVector {
			c.fail("expected a vector")
		}
		c.registers(o, y, result)
		if y.wide != 4 {
			c.fail("the registers have %d bits, expected 32", 8*y.wide)
		}
		return y.regs
	}
	x.regs, x.regs2, x.regs3, x.regs4 = regs(&args[0], nc, true), regs(&args[1], s.na, false), regs(&args[2], s.nb, false), regs(&args[3], nc, false)
	in.kind, in.x, in.run = kindSync, x, (*warp).mma
}

func (w *warp) mma(in *inst, mask uint32) bool {
	if !w.allHere(mask) {
		return false
	}
	x, s := in.x, in.x.mma
	for _, list := range [][]int32{x.regs2, x.regs3, x.regs4} {
		for _, r := range list {
			w.need(in, r, mask, "a part of a matrix was not computed in this thread")
		}
	}
	if s.integer != nil {
		w.mmaInteger(x, s)
		return true
	}
	var a [16][32]float64
	var b [8][32]float64 // by column
	w.fragments(x, s, func(row, k int, bits uint32) { a[row][k] = s.from(bits) }, func(k, col int, bits uint32) { b[col][k] = s.from(bits) })
	var d [16][8]float64
	for row := range 16 {
		for col := range 8 {
			sum := w.mmaC(x, s, row, col)
			for k := range s.k {
				sum += float64(a[row][k] * b[col][k])
			}
			d[row][col] = sum
		}
	}
	for lane := range 32 {
		g, t := lane/4, lane%4
		for h := range 2 {
			lo, hi := d[g+8*h][2*t], d[g+8*h][2*t+1]
			if s.halves {
				w.setD(x.regs[h], lane, uint64(toHalf(lo))|uint64(toHalf(hi))<<16)
			} else {
				w.setD(x.regs[2*h], lane, uint64(b32(float32(lo))))
				w.setD(x.regs[2*h+1], lane, uint64(b32(float32(hi))))
			}
		}
	}
	return true
}

func (w *warp) setD(r int32, lane int, v uint64) {
	if r >= 0 {
		w.set(r, lane, v)
	}
}

// mmaC returns an element of C.
func (w *warp) mmaC(x *extra, s *mmaShape, row, col int) float64 {
	lane, h := row%8*4+col/2, row/8
	if s.halves {
		return fromHalf(uint16(w.regs[x.regs4[h]][lane] >> (16 * (col & 1))))
	}
	return float64(f32(uint32(w.regs[x.regs4[2*h+col&1]][lane])))
}

// fragments returns the elements of A and B.
func (w *warp) fragments(x *extra, s *mmaShape, a, b func(i, j int, bits uint32)) {
	width := 32 / s.per
	for lane := range 32 {
		g, t := lane/4, lane%4
		for r, reg := range x.regs2 {
			v := uint32(w.regs[reg][lane])
			for j := range s.per {
				a(g+8*(r&1), r/2*4*s.per+s.per*t+j, v>>(width*j))
			}
		}
		for r, reg := range x.regs3 {
			v := uint32(w.regs[reg][lane])
			for j := range s.per {
				b(r*4*s.per+s.per*t+j, g, v>>(width*j))
			}
		}
	}
}

func (w *warp) mmaInteger(x *extra, s *mmaShape) {
	var a [16][32]int32
	var b [8][32]int32
	w.fragments(x, s, func(row, k int, bits uint32) { a[row][k] = s.integer(bits) }, func(k, col int, bits uint32) { b[col][k] = s.integerB(bits) })
	var d [16][8]uint32
	for row := range 16 {
		for col := range 8 {
			sum := int64(int32(w.regs[x.regs4[2*(row/8)+col&1]][row%8*4+col/2]))
			for k := range s.k {
				sum += int64(a[row][k] * b[col][k])
			}
			if s.limit {
				sum = min(max(sum, math.MinInt32), math.MaxInt32)
			}
			d[row][col] = uint32(sum)
		}
	}
	for lane := range 32 {
		g, t := lane/4, lane%4
		for i := range 4 {
			w.setD(x.regs[i], lane, uint64(d[g+8*(i/2)][2*t+i&1]))
		}
	}
}
