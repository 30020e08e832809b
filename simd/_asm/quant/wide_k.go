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

// rotated returns a function that rotates the qwords of each lane to the left by the number of the lane.
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

// blocks45 writes a super of Q4_K or Q5_K: the bytes of lane j have elements of group 2j in their low halves and of group 2j+1
// in their high halves. The quads are those of inChunks in package simd.
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

// sixBits returns a function that returns the eight small scales of Q4_K and Q5_K as bytes, and
// then the eight small factors of biases. The first four of each are the low six bits of eight
// bytes. The last four of each have their upper two bits in the upper bits of these bytes, and
// their low four bits in the next four bytes.
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

// blocks6 writes a super of Q6_K, with a group in each lane. The integers and quads have the order of the row.
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
		// Small scales in the upper halves of words keep their sign and are multiplied by 256.
		t := w.pack(pairs[0], pairs[1], w.bytesAt(w.lane16(192), factors, highBytes))
		w.VCVTDQ2PS(t, t)
		w.VMULPS(w.op3(w.VPERMPS, w.lane32(w.o.at(w.o.scales, 1, 0)), runs), t, t)
		d := w.half(w.l.Scale.Number[0].At / 8)
		w.VMULPS(unit, d, d)
		w.add(d, t)
	}
}

// blocks2 writes a super of Q2_K or TQ2_0. Each byte has two bits of each of four runs. The codes of the second and fourth run
// are multiplied by four: see inHalves in package simd.
func (w *wide) blocks2() func() {
	lower, upper := w.spread(3), w.spread(12)
	return w.runs(func() (codes [4]reg.VecVirtual) {
		q := w.load(w.at(bit(&w.l.Level.Number[0], 0) / 8))
		codes[0], codes[1] = w.and(lower, q), w.and(upper, q)
		q = w.right(4, q)
		codes[2], codes[3] = w.and(lower, q), w.and(upper, q)
		return codes
	})
}

// runs writes a super whose four vectors of codes have a run of 32 elements in each half. The sums of vector i are dword i of the
// lanes. The first sixteen quads of a super are added to these sums, and the next sixteen are their scales: see placeRuns in package simd.
func (w *wide) runs(codes func() [4]reg.VecVirtual) func() {
	ones, sub := w.spreadWords(1), w.l.Sub.Number != nil
	var small, factors, minimums reg.VecVirtual
	if sub {
		small = w.spread(15)
		factors = w.bytes(func(i int) int { return i/32*8 + i%16/4*2 + i/16%2 })
		minimums = w.bytes(func(i int) int { return i / 4 })
		w.mask(lowBytes)
		w.mask(oneOfFour)
	}
	return func() {
		var sums [4]reg.VecVirtual
		for i, c := range codes() {
			sums[i] = w.multiply(w.none(), 64*i, c)
		}
		last := ones
		var scales reg.VecVirtual
		if sub {
			scales = w.lane16(0)
			last = w.bytesAt(w.and(small, scales), factors, lowBytes)
		}
		first, second := w.pack(sums[0], sums[1], ones), w.pack(sums[2], sums[3], ones)
		var t reg.VecVirtual
		if sub {
			t = w.pack(first, second, last)
		} else {
			t = w.load(w.word(0))
			w.VPDPWSSD(ones, w.op3(w.VPACKSSDW, second, first), t)
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

// ternaryBlocks writes a super of TQ1_0. A table has the first four digits to base 3 of each byte, in two bits each, as the bytes of TQ2_0,
// and another table has the fifth digit. The last lane of these bytes gets the fifth digits of 48 bytes and the digits of the last
// four bytes: see withDigits in package simd.
func (w *wide) ternaryBlocks() func() {
	digits := func(from, to int) *byteTable {
		return w.byteTable(func(v int) (y int) {
			for n := range to {
				if n >= from {
					y |= v * 3 >> 8 << (2 * (n - from))
				}
				v = v * 3 & 0xff
			}
			return y
		})
	}
	first, fifth := digits(0, 4), digits(4, 5)
	w.mask(1<<52 - 1)
	w.mask(0x1111111111111111)
	lane3 := w.mask(0xffff << 48)
	// Most constants are in memory, because there are too few registers. Dword j of columns selects bytes j, 16+j, 32+j and one more,
	// which counts 0.
	columns := w.dwordsOf(func(i int) int { return i | (16+i)<<8 | (32+i)<<16 })
	worth := w.dwordsOf(func(int) int { return 1 | 4<<8 | 16<<16 })
	last := w.dwordsOf(func(i int) int { return 48 + i%4 })
	shifts, top := w.dwordsOf(func(i int) int { return 6 - i/4*2 }), w.dwordsOf(func(int) int { return 0xc0 })
	narrow := w.dwordsOf(func(i int) int { return 0x0c080400 + i%4*0x10101010 })
	lower, upper := w.dwordsOf(func(int) int { return 0x03030303 }), w.dwordsOf(func(int) int { return 0x0c0c0c0c })
	return w.runs(func() (codes [4]reg.VecVirtual) {
		v := w.ZMM()
		w.VMOVDQU8_Z(w.at(0), w.mask(1<<52-1), v)
		q := w.byteOf(first, v)
		t := w.bytesAt(q, w.load(last), 0x1111111111111111)
		w.VPSLLVD(shifts, t, t)
		w.VPANDD(top, t, t)
		w.VPDPBUSD(worth, w.byteOf(fifth, w.bytesAt(v, w.load(columns), 0)), t)
		w.VPERMB(t, w.load(narrow), lane3, q)
		codes[0], codes[1] = w.and(lower, q), w.and(upper, q)
		q = w.right(4, q)
		codes[2], codes[3] = w.and(lower, q), w.and(upper, q)
		return codes
	})
}

// byteTable has 256 bytes, half of them in memory: there are too few registers.
type byteTable struct {
	low  [2]reg.VecVirtual
	high [2]Mem
}

func (w *wide) byteTable(at func(v int) int) *byteTable {
	t := new(byteTable)
	for i := range t.low {
		t.low[i] = w.bytes(func(j int) int { return at(128*i + j) })
		var b [64]byte
		for j := range b {
			b[j] = byte(at(128*i + 64 + j))
		}
		t.high[i] = w.constant(&b)
	}
	return t
}

// byteOf returns the bytes of a table at the indices.
func (w *wide) byteOf(t *byteTable, index reg.VecVirtual) reg.VecVirtual {
	y, z, late := w.ZMM(), w.ZMM(), w.K()
	w.VPMOVB2M(index, late)
	w.VMOVDQA64(index, y)
	w.VMOVDQA64(index, z)
	w.VPERMI2B(t.high[0], t.low[0], y)
	w.VPERMI2B(t.high[1], t.low[1], z)
	w.VMOVDQU8(z, late, y)
	return y
}

// blocks8 writes a super of Q8_0: a vector has two blocks, and codes are levels plus 128. The integers and quads have the order of
// the row.
func (w *wide) blocks8() func() {
	size, upper := w.l.Bytes, w.mask(0xf0)
	offset := w.spread(0x80)
	halves := w.bytes(func(i int) int { return i/16%2*size + i%2 })
	var runs [4]reg.VecVirtual
	for n := range runs {
		runs[n] = w.dwords16(func(i int) int { return 2*n + i/8 })
	}
	w.few = func(blocks int) {
		scales := w.lane32(w.o.at(w.o.scales, 1, 0))
		for n, run := range runs[:blocks/2] {
			at := 2 * n * size
			q := w.lane32(w.at(at + 2))
			w.VBROADCASTI64X4(w.at(at+size+2), upper, q)
			w.VPXORD(offset, q, q)
			t := w.multiply(w.load(w.word(16*n)), 64*n, q)
			w.VCVTDQ2PS(t, t)
			d := w.halfFloats(w.bytesAt(w.at(at), halves, 0))
			w.VMULPS(w.op3(w.VPERMPS, scales, run), d, d)
			w.add(d, t)
		}
	}
	return func() { w.few(8) }
}

// blocksFP4 writes a super of NVFP4, two blocks at a time. A lane has two groups of sixteen elements. The quads of 128
// elements are sixteen initial values of sums, then sixteen scales: see inEighths in package simd. If only one block follows, the
// upper lanes are multiplied by zeros.
func (w *wide) blocksFP4() func() {
	size, scale, level := w.l.Bytes, w.l.Scale.Number[0].At/8, bit(&w.l.Level.Number[0], 0)/8
	nibbles := w.nibbles()
	spread := w.bytes(func(i int) int { return i / 4 % 8 })  // each scale twice, as words
	all, float := w.spreadWords(0x7f), w.alike16(0x43000000) // 128
	upper := w.mask(0xfffe)
	w.mask(0x5555555555555555)
	w.few = func(blocks int) {
		for n := range (blocks + 1) / 2 {
			at, two := 2*n*size, blocks > 1
			q, d, finite := w.ZMM(), w.ZMM(), w.K()
			w.VMOVDQU64(w.at(at+level), q.AsY())
			w.VPBROADCASTD(w.at(at+scale), d)
			if two {
				w.VINSERTI64X4(U8(1), w.at(at+size+level), q, q)
				w.VPBROADCASTD(w.at(at+size+scale), upper, d)
			}
			low, high := nibbles(q)
			t := w.multiply(w.load(w.word(32*n)), 128*n, low, high)
			w.VCVTDQ2PS(t, t)
			// The bits of a binary16 of another exponent bias; 0x7f means 0.
			d = w.and(all, w.bytesAt(d, spread, 0x5555555555555555))
			w.VPCMPUW(U8(1), all, d, finite)
			w.VPSLLW_Z(U8(7), d, finite, d)
			d = w.halfFloats(d)
			w.VMULPS(float, d, d)
			w.VMULPS(w.word(32*n+16), d, d)
			w.add(d, t)
		}
	}
	return func() { w.few(4) }
}
