package main

import (
	"github.com/mmcloughlin/avo/operand"
)

// scanner is a machine that sums along a vector.
type scanner interface {
	machine
	// scan computes the prefix sums of the lanes of v. zero is a vector of zeros.
	scan(v, zero vec)
	// lastLane copies the last lane of a to all of dst.
	lastLane(dst, a vec)
}

// cumsum writes the running sums. The carry from one vector to the next is a single addition, so
// that the prefix sums of several vectors overlap.
func (k *writer) cumsum(m scanner) {
	k.begin(&fn{name: "rowsCumsum", doc: "sets dst[i] to before plus the sum of x[:i+1]; n > 0. dst may be x.",
		params: list("dst x *float32, n int, before float32")})
	dst, x, n, before := k.pointer("dst"), k.pointer("x"), k.pointer("n"), k.scalar("before")
	zero, carry := k.vec(), k.vec()
	k.zero(zero)
	k.zero(carry)
	L := k.lanes()
	finish := func(v vec) {
		k.add(v, v, carry)
		k.add(v, v, before)
	}
	count := func(c int) {
		var vs []vec
		for i := range c {
			v := k.vec()
			k.load(v, x, i)
			m.scan(v, zero)
			vs = append(vs, v)
		}
		for i, v := range vs {
			t := k.vec()
			m.lastLane(t, v)
			finish(v)
			k.add(carry, carry, t)
			k.store(dst, i, v)
			k.free(t, v)
		}
		k.addConst(x, 4*c*L)
		k.addConst(dst, 4*c*L)
		k.addConst(n, -c*L)
	}
	loop, one, last, done := k.fresh("loop"), k.fresh("one"), k.fresh("last"), k.fresh("done")
	k.ifLess(n, 4*L, one)
	k.label(loop)
	count(4)
	k.ifAtLeast(n, 4*L, loop)
	k.label(one)
	k.ifLess(n, L, last)
	count(1)
	k.jump(one)
	k.label(last)
	k.ifNil(n, done)
	k.part(n)
	v := k.vec()
	k.loadPart(v, x, none)
	m.scan(v, zero)
	finish(v)
	k.storePart(dst, v)
	k.partEnd()
	k.label(done)
	k.free(v, zero, carry, before)
	k.ret()
}

func (m *amd64) scan(v, zero vec) {
	t := m.vec()
	defer m.free(t)
	if m.wide {
		for _, by := range []uint8{1, 2, 4, 8} {
			m.VALIGND(operand.U8(16-by), m.v(zero), m.v(v), m.v(t))
			m.add(v, v, t)
		}
		return
	}
	for _, by := range []uint8{4, 8} { // bytes, in each half
		m.VPSLLDQ(operand.U8(by), m.v(v), m.v(t))
		m.add(v, v, t)
	}
	m.VPERMILPS(operand.U8(0xff), m.v(v), m.v(t))
	m.VPERM2F128(operand.U8(0x08), m.v(t), m.v(t), m.v(t)) // moves the lower half to the upper half and clears the lower one
	m.add(v, v, t)
}

func (m *amd64) lastLane(dst, a vec) {
	if m.wide {
		m.VSHUFF64X2(operand.U8(0xff), m.v(a), m.v(a), m.v(dst))
	} else {
		m.VPERM2F128(operand.U8(0x11), m.v(a), m.v(a), m.v(dst))
	}
	m.VPERMILPS(operand.U8(0xff), m.v(dst), m.v(dst))
}
