package emu

import (
	"math"
	"math/bits"
	"strconv"
)

// integers adds the operations on integers.
func (t table) integers() {
	integer[uint32, int32](t, 32)
	integer[uint64, int64](t, 64)
	integer[uint16, int16](t, 16)
	t.frequentIntegers()
	t.wideIntegers()
	t.highProducts()
	t.add("dp4a.s32.s32", lanes3(dot4[int8, int8]), 4, 4, 4, 4)
	t.add("dp4a.u32.u32", lanes3(dot4[uint8, uint8]), 4, 4, 4, 4)
	t.add("dp4a.u32.s32", lanes3(dot4[uint8, int8]), 4, 4, 4, 4)
	t.add("dp4a.s32.u32", lanes3(dot4[int8, uint8]), 4, 4, 4, 4)
}

// dot4 returns z plus the scalar product of the four bytes of x and y.
func dot4[X, Y int8 | uint8](x, y, z uint32) uint32 {
	for i := 0; i < 32; i += 8 {
		z += uint32(int32(X(x>>i)) * int32(Y(y>>i)))
	}
	return z
}

// frequentIntegers replaces the most frequent instructions by loops of their own: a call for each
// lane costs more than the addition.
func (t table) frequentIntegers() {
	t.add("add.u32", func(d, a, b, _ *plane) {
		for i := range d {
			d[i] = uint64(uint32(a[i]) + uint32(b[i]))
		}
	}, 4, 4, 4)
	t["add.s32"] = t["add.u32"]
	t.add("add.u64", func(d, a, b, _ *plane) {
		for i := range d {
			d[i] = a[i] + b[i]
		}
	}, 8, 8, 8)
	t["add.s64"] = t["add.u64"]
	t.add("mul.lo.u32", func(d, a, b, _ *plane) {
		for i := range d {
			d[i] = uint64(uint32(a[i]) * uint32(b[i]))
		}
	}, 4, 4, 4)
	t["mul.lo.s32"] = t["mul.lo.u32"]
	t.add("mad.lo.u32", func(d, a, b, c *plane) {
		for i := range d {
			d[i] = uint64(uint32(a[i])*uint32(b[i]) + uint32(c[i]))
		}
	}, 4, 4, 4, 4)
	t["mad.lo.s32"] = t["mad.lo.u32"]
	t.add("mul.wide.u32", func(d, a, b, _ *plane) {
		for i := range d {
			d[i] = a[i] * b[i]
		}
	}, 8, 4, 4)
	t.add("mul.wide.s32", func(d, a, b, _ *plane) {
		for i := range d {
			d[i] = uint64(int64(int32(a[i])) * int64(int32(b[i])))
		}
	}, 8, 4, 4)
	t.add("mad.wide.u32", func(d, a, b, c *plane) {
		for i := range d {
			d[i] = a[i]*b[i] + c[i]
		}
	}, 8, 4, 4, 8)
	t.add("mad.wide.s32", func(d, a, b, c *plane) {
		for i := range d {
			d[i] = uint64(int64(int32(a[i]))*int64(int32(b[i]))) + c[i]
		}
	}, 8, 4, 4, 8)
}

// wideIntegers adds saturating sums, and products that are wider than their operands.
func (t table) wideIntegers() {
	t.add("add.sat.s32", lanes2(func(x, y uint32) uint32 { return clamp32(int64(int32(x)) + int64(int32(y))) }), 4, 4, 4)
	t.add("sub.sat.s32", lanes2(func(x, y uint32) uint32 { return clamp32(int64(int32(x)) - int64(int32(y))) }), 4, 4, 4)
	t.add("mul.wide.s16", lanes2(func(x, y uint16) uint32 { return uint32(int32(int16(x)) * int32(int16(y))) }), 4, 2, 2)
	t.add("mad.wide.u16", lanes3(func(x, y uint16, z uint32) uint32 { return uint32(x)*uint32(y) + z }), 4, 2, 2, 4)
	t.add("mad.wide.s16", lanes3(func(x, y uint16, z uint32) uint32 { return uint32(int32(int16(x))*int32(int16(y))) + z }), 4, 2, 2, 4)
	t.add("mul.wide.u16", lanes2(func(x, y uint16) uint32 { return uint32(x) * uint32(y) }), 4, 2, 2)
}

// highProducts adds the instructions that return the upper half of a product.
func (t table) highProducts() {
	t.add("mul.hi.u16", lanes2(func(x, y uint16) uint16 { return uint16(uint32(x) * uint32(y) >> 16) }), 2, 2, 2)
	t.add("mul.hi.s16", lanes2(func(x, y uint16) uint16 { return uint16(int32(int16(x)) * int32(int16(y)) >> 16) }), 2, 2, 2)
	t.add("mul.hi.u32", lanes2(func(x, y uint32) uint32 { return uint32(uint64(x) * uint64(y) >> 32) }), 4, 4, 4)
	t.add("mul.hi.s32", lanes2(func(x, y uint32) uint32 { return uint32(int64(int32(x)) * int64(int32(y)) >> 32) }), 4, 4, 4)
	t.add("mul.hi.u64", lanes2(mulHigh), 8, 8, 8)
	t.add("mul.hi.s64", lanes2(func(x, y uint64) uint64 {
		h := mulHigh(x, y)
		if int64(x) < 0 {
			h -= y
		}
		if int64(y) < 0 {
			h -= x
		}
		return h
	}), 8, 8, 8)
	t.add("mad.hi.u32", lanes3(func(x, y, z uint32) uint32 { return uint32(uint64(x)*uint64(y)>>32) + z }), 4, 4, 4, 4)
}

func clamp32(v int64) uint32 { return uint32(max(min(v, math.MaxInt32), math.MinInt32)) }

func mulHigh(x, y uint64) uint64 {
	h, _ := bits.Mul64(x, y)
	return h
}

// integer adds the instructions that unsigned and signed integers of one size have.
func integer[U uint16 | uint32 | uint64, S int16 | int32 | int64](t table, width int) {
	n := uint8(width / 8)
	u, s := ".u"+strconv.Itoa(width), ".s"+strconv.Itoa(width)
	both := func(name string, f func(x, y U) U) {
		t.add(name+u, lanes2(f), n, n, n)
		t[name+s] = t[name+u]
	}
	signed := func(name string, f func(x, y S) S) {
		t.add(name+s, lanes2(func(x, y U) U { return U(f(S(x), S(y))) }), n, n, n)
	}
	both("add", func(x, y U) U { return x + y })
	both("sub", func(x, y U) U { return x - y })
	both("mul.lo", func(x, y U) U { return x * y })
	t.add("mad.lo"+u, lanes3(func(x, y, z U) U { return x*y + z }), n, n, n, n)
	t["mad.lo"+s] = t["mad.lo"+u]
	// A division by zero gives the result of the instruction sequence with which the device
	// divides.
	t.add("div"+u, lanes2(func(x, y U) U {
		if y == 0 {
			return ^U(0)
		}
		return x / y
	}), n, n, n)
	t.add("rem"+u, lanes2(func(x, y U) U {
		if y == 0 {
			return x
		}
		return x % y
	}), n, n, n)
	signed("div", func(x, y S) S {
		if y == 0 {
			return -1
		}
		return x / y
	})
	signed("rem", func(x, y S) S {
		if y == 0 {
			return x
		}
		return x % y
	})
	t.add("min"+u, lanes2(func(x, y U) U { return min(x, y) }), n, n, n)
	t.add("max"+u, lanes2(func(x, y U) U { return max(x, y) }), n, n, n)
	signed("min", func(x, y S) S { return min(x, y) })
	signed("max", func(x, y S) S { return max(x, y) })
	t.add("sad"+u, lanes3(func(x, y, z U) U { return max(x, y) - min(x, y) + z }), n, n, n, n)
	t.add("sad"+s, lanes3(func(x, y, z U) U { return U(max(S(x), S(y))) - U(min(S(x), S(y))) + z }), n, n, n, n)
	t.add("neg"+s, lanes1(func(x U) U { return -x }), n, n)
	t.add("abs"+s, lanes1(func(x U) U {
		if S(x) < 0 {
			return -x
		}
		return x
	}), n, n)
}

// bits adds the instructions on bits.
func (t table) bits() {
	bitwise[uint32, int32](t, 32)
	bitwise[uint64, int64](t, 64)
	bitwise[uint16, int16](t, 16)
	t.add("popc.b32", lanes1(func(x uint32) uint32 { return uint32(bits.OnesCount32(x)) }), 4, 4)
	t.add("popc.b64", lanes1(func(x uint64) uint32 { return uint32(bits.OnesCount64(x)) }), 4, 8)
	t.add("clz.b32", lanes1(func(x uint32) uint32 { return uint32(bits.LeadingZeros32(x)) }), 4, 4)
	t.add("clz.b64", lanes1(func(x uint64) uint32 { return uint32(bits.LeadingZeros64(x)) }), 4, 8)
	t.add("brev.b32", lanes1(bits.Reverse32), 4, 4)
	t.add("brev.b64", lanes1(bits.Reverse64), 8, 8)
	t.add("bfind.u32", lanes1(func(x uint32) uint32 { return uint32(bits.Len32(x) - 1) }), 4, 4)
	t.add("bfind.u64", lanes1(func(x uint64) uint32 { return uint32(bits.Len64(x) - 1) }), 4, 8)
	t.add("bfind.s64", lanes1(func(x uint64) uint32 { return uint32(bits.Len64(x^uint64(int64(x)>>63)) - 1) }), 4, 8)
	for name, width := range map[string]uint32{"u32": 32, "s32": 32, "u64": 64, "s64": 64} {
		// The result is the shift that moves the bit to the left end, instead of the position of the bit.
		t["bfind.shiftamt."+name] = operation{op: func(d, a, b, c *plane) {
			t["bfind."+name].op(d, a, b, c)
			for i, at := range d {
				if uint32(at) != math.MaxUint32 {
					d[i] = uint64(width - 1 - uint32(at))
				}
			}
		}, bytes: [4]uint8{4, uint8(width / 8)}}
	}
	t.add("bfind.s32", lanes1(func(x uint32) uint32 { return uint32(bits.Len32(x^uint32(int32(x)>>31)) - 1) }), 4, 4)
	t.add("bfe.u32", lanes3(func(x, at, n uint32) uint32 { return uint32(field(uint64(x), 32, at, n, false)) }), 4, 4, 4, 4)
	t.add("bfe.s32", lanes3(func(x, at, n uint32) uint32 { return uint32(field(uint64(x), 32, at, n, true)) }), 4, 4, 4, 4)
	t.add("bfe.u64", lanes3(func(x uint64, at, n uint32) uint64 { return field(x, 64, at, n, false) }), 8, 8, 4, 4)
	t.add("bfe.s64", lanes3(func(x uint64, at, n uint32) uint64 { return field(x, 64, at, n, true) }), 8, 8, 4, 4)
	t.add("prmt.b32", lanes3(func(x, y, sel uint32) (r uint32) {
		all := uint64(y)<<32 | uint64(x)
		for i := range 4 {
			s := sel >> (4 * i) & 15
			b := uint32(all>>(8*(s&7))) & 0xff
			if s&8 != 0 { // the sign, eight times
				b = uint32(int32(int8(b))>>7) & 0xff
			}
			r |= b << (8 * i)
		}
		return r
	}), 4, 4, 4, 4)
	for _, mode := range []string{"wrap", "clamp"} {
		count := func(n uint32) uint32 { return n & 31 }
		if mode == "clamp" {
			count = func(n uint32) uint32 { return min(n, 32) }
		}
		t.add("shf.l."+mode+".b32", lanes3(func(low, high, n uint32) uint32 {
			return uint32((uint64(high)<<32 | uint64(low)) << count(n) >> 32)
		}), 4, 4, 4, 4)
		t.add("shf.r."+mode+".b32", lanes3(func(low, high, n uint32) uint32 {
			return uint32((uint64(high)<<32 | uint64(low)) >> count(n))
		}), 4, 4, 4, 4)
	}
}

func bitwise[U uint16 | uint32 | uint64, S int16 | int32 | int64](t table, width int) {
	n := uint8(width / 8)
	b, u, s := ".b"+strconv.Itoa(width), ".u"+strconv.Itoa(width), ".s"+strconv.Itoa(width)
	t.add("and"+b, func(d, x, y, _ *plane) {
		for i := range d {
			d[i] = x[i] & y[i]
		}
	}, n, n, n)
	t.add("or"+b, func(d, x, y, _ *plane) {
		for i := range d {
			d[i] = x[i] | y[i]
		}
	}, n, n, n)
	t.add("xor"+b, func(d, x, y, _ *plane) {
		for i := range d {
			d[i] = x[i] ^ y[i]
		}
	}, n, n, n)
	t.add("cnot"+b, lanes1(func(x U) U {
		if x == 0 {
			return 1
		}
		return 0
	}), n, n)
	t.add("not"+b, lanes1(func(x U) U { return ^x }), n, n)
	t.add("shl"+b, func(d, x, y, _ *plane) {
		for i := range d {
			d[i] = uint64(U(x[i]) << uint32(y[i]))
		}
	}, n, n, 4)
	t.add("shr"+u, func(d, x, y, _ *plane) {
		for i := range d {
			d[i] = uint64(U(x[i]) >> uint32(y[i]))
		}
	}, n, n, 4)
	t["shr"+b] = t["shr"+u]
	t.add("shr"+s, lanes2(func(x U, k uint32) U { return U(S(x) >> k) }), n, n, 4)
	t.add("mov"+b, func(d, x, _, _ *plane) { *d = *x }, n, n)
	t["mov"+u], t["mov"+s] = t["mov"+b], t["mov"+b]
}

// field computes bfe: the n bits of x that begin at bit at. Only the lower 8 bits of n and of at count.
func field(x uint64, width, at, n uint32, signed bool) uint64 {
	at, n = at&0xff, n&0xff
	if n == 0 {
		return 0
	}
	sign := uint64(0)
	if signed {
		sign = x >> min(at+n-1, width-1) & 1
	}
	r := uint64(0)
	if at < width {
		r = x >> at
	}
	have := uint32(0)
	if at < width {
		have = min(n, width-at)
	}
	if have < 64 {
		r &= 1<<have - 1
		if sign != 0 {
			r |= ^uint64(0) << have
		}
	}
	return r
}
