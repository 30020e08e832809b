package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Bits of [gen] masks: the lower byte of each word, the upper one, and the lowest byte of each dword.
const (
	lowBytes  = 0x5555555555555555
	highBytes = 0xaaaaaaaaaaaaaaaa
	oneOfFour = 0x1111111111111111
)

// rotated returns a function that moves bits of the four lanes to the left, each by another number.
func (w *wide) rotated(by func(lane int) int) func(v Op) reg.VecVirtual {
	n := w.qwords(func(i int) int { return by(i/2) & 63 })
	return func(v Op) reg.VecVirtual { return w.op3(w.VPROLVQ, n, v) }
}

// lane16 broadcasts sixteen bytes of the block, and lane32 32.
func (w *wide) lane16(disp int) reg.VecVirtual {
	v := w.ZMM()
	w.VBROADCASTI32X4(w.at(disp), v)
	return v
}

func (w *wide) lane32(m Op) reg.VecVirtual {
	v := w.ZMM()
	w.VBROADCASTI64X4(m, v)
	return v
}

// blocks45 writes a super of Q4_K or Q5_K: lane j has groups 2j and 2j+1 in the two halves of its bytes. The
// first quads of a super are each of its eight scales twice.
func (w *wide) blocks45() func() {
	nibbles, sixBits := w.nibbles(), w.sixBits()
	factors := w.bytes(func(i int) int { return i/16*2 + i%16/8 })
	minimums := w.bytes(func(i int) int { return 8 + i/4%8 })
	w.mask(lowBytes)
	w.mask(oneOfFour)
	fifth := func(part int, low, high reg.VecVirtual) {}
	if len(w.l.Level.Number) > 1 {
		mask := w.spread(16)
		even, odd := w.rotated(func(lane int) int { return 4 - 2*lane }), w.rotated(func(lane int) int { return 3 - 2*lane })
		fifth = func(part int, low, high reg.VecVirtual) {
			bits := w.lane16(bit(&w.l.Level.Number[1], 0)/8 + 16*part)
			w.orBits(low, even(bits), mask)
			w.orBits(high, odd(bits), mask)
		}
	}
	return func() {
		first, from := w.load(w.at(bit(&w.l.Level.Number[0], 0)/8)), w.at(bit(&w.l.Level.Number[0], 0)/8+64)
		even, odd := w.none(), w.none()
		for part, lanes := range []uint8{0x88, 0xdd} {
			q := w.ZMM()
			w.VSHUFI64X2(U8(lanes), from, first, q)
			low, high := nibbles(q)
			fifth(part, low, high)
			w.multiply(even, 64*part, low)
			w.multiply(odd, 128+64*part, high)
		}
		small := sixBits()
		t := w.pack(even, odd, w.bytesAt(small, factors, lowBytes))
		w.VCVTDQ2PS(t, t)
		w.VMULPS(w.word(0), t, t)
		both, y, d, m := w.ZMM(), w.YMM(), w.ZMM(), w.YMM()
		w.VPBROADCASTD(w.at(w.l.Scale.Number[0].At/8), y)
		w.VCVTPH2PS(y, both)
		w.VMOVSLDUP(both, d)
		w.VMOVSHDUP(both.AsY(), m)
		w.add(d, t)
		b := w.bytesAt(small, minimums, oneOfFour)
		w.VCVTDQ2PS(b, b)
		w.VMULPS(w.o.at(w.o.sums, 1, 0), b.AsY(), y)
		w.VFNMADD231PS(m, y, w.o.below)
	}
}

// sixBits returns a function that returns the eight small scales of Q4_K and Q5_K as bytes, and then the eight
// small factors of biases. The first four of each are the low six bits of eight bytes; their upper two bits belong to the others, and
// these have their low four bits in four bytes behind.
func (w *wide) sixBits() func() reg.VecVirtual {
	shifts := w.dwords16(func(i int) int { return []int{0, 0, 0, 4}[i%4] })
	lower := w.dwords16(func(i int) int { return []int{0x3f3f3f3f, 0x0f0f0f0f}[i%2] })
	six := w.spread(0x3f)
	return func() reg.VecVirtual {
		x, low, high := w.lane16(w.l.Scale.Number[0].At/8), w.ZMM(), w.ZMM()
		w.VPSHUFD(U8(1|3<<2|2<<4|3<<6), x, low)
		w.VPSRLVD(shifts, low, low)
		w.VPSHUFD(U8(1|1<<2|2<<4|2<<6), x, high)
		w.VPSRLD(U8(2), high, high)
		return w.and(six, w.choose(lower, low, high))
	}
}

// blocks6 writes a super of Q6_K: lanes are groups, in the order of the row. The quads are as they are.
func (w *wide) blocks6() func() {
	nibbles, ones, upper := w.nibbles(), w.spreadWords(1), w.spread(0x30)
	factors := w.bytes(func(i int) int { return i%16/4*4 + i/16 })
	runs := w.dwords16(func(i int) int { return (i%4*4 + i/4) / 2 })
	unit := w.alike16((127 - 8) << 23)
	w.mask(highBytes)
	bits := [2]func(Op) reg.VecVirtual{
		w.rotated(func(lane int) int { return 4 - lane/2*2 }), w.rotated(func(lane int) int { return -(lane / 2 * 2) }),
	}
	return func() {
		var pairs [2]reg.VecVirtual
		for n := range pairs {
			low, high := nibbles(w.load(w.at(64 * n)))
			top := w.lane32(w.at(128 + 32*n))
			w.orBits(low, bits[0](top), upper)
			w.orBits(high, bits[1](top), upper)
			a := w.multiply(w.load(w.word(32*n)), 128*n, low)
			b := w.multiply(w.load(w.word(32*n+16)), 128*n+64, high)
			pairs[n] = w.pack(a, b, ones)
		}
		// Small scales in the upper halves of words keep their sign, and multiply by 256.
		t := w.pack(pairs[0], pairs[1], w.bytesAt(w.lane16(192), factors, highBytes))
		w.VCVTDQ2PS(t, t)
		w.VMULPS(w.op3(w.VPERMPS, w.lane32(w.o.at(w.o.scales, 1, 0)), runs), t, t)
		d := w.half(w.l.Scale.Number[0].At / 8)
		w.VMULPS(unit, d, d)
		w.add(d, t)
	}
}

// blocks2 writes a super of Q2_K or TQ2_0: the first two lanes have the first half of the elements. The first sixteen quads of a
// super are added to sums of groups, and the next ones are scales, in the order in which the sums arrive: run i of each half is dword i of its lanes.
func (w *wide) blocks2() func() {
	three, ones, sub := w.spread(3), w.spreadWords(1), w.l.Sub.Number != nil
	var small, factors, minimums reg.VecVirtual
	if sub {
		small = w.spread(15)
		factors = w.bytes(func(i int) int { return i/32*8 + i%16/4*2 + i/16%2 })
		minimums = w.bytes(func(i int) int { return i / 4 })
		w.mask(lowBytes)
		w.mask(oneOfFour)
	}
	return func() {
		q := w.load(w.at(bit(&w.l.Level.Number[0], 0) / 8))
		var sums [4]reg.VecVirtual
		for i := range sums {
			v := q
			if i > 0 {
				v = w.right(2*i, q)
			}
			sums[i] = w.multiply(w.none(), 64*i, w.and(three, v))
		}
		last := ones
		var scales reg.VecVirtual
		if sub {
			scales = w.lane16(0)
			last = w.bytesAt(w.and(small, scales), factors, lowBytes)
		}
		t := w.pack(w.pack(sums[0], sums[1], ones), w.pack(sums[2], sums[3], ones), last)
		if !sub {
			w.VPADDD(w.word(0), t, t)
		}
		w.VCVTDQ2PS(t, t)
		w.VMULPS(w.word(16), t, t)
		w.add(w.half(w.l.Scale.Number[0].At/8), t)
		if sub {
			b := w.bytesAt(w.and(small, w.right(4, scales)), minimums, oneOfFour)
			w.VCVTDQ2PS(b, b)
			w.VMULPS(w.o.at(w.o.sums, 2, 0), b, b)
			w.VFNMADD231PS(w.half(w.l.Bias.Number[0].At/8), b, w.acc[0])
		}
	}
}
