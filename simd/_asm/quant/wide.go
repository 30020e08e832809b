package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/rayo-go/rayo/gguf/block"
)

// Products of one row of integers and many rows of blocks for AVX-512 with VNNI and VBMI. A vector
// has four lanes of sixteen bytes, and each lane has elements of one group, so that sums of four
// products can be scaled without further additions. Package simd stores the integers of the row in
// the order of these lanes. In the quads it stores the values that are the same for all rows of
// blocks: the initial values of sums, and the scales, repeated for each element of a lane.

// wide writes one such product.
type wide struct {
	*gen
	l    *block.Layout
	o    columnOperands
	acc  []reg.VecVirtual // of the stream
	next int

	sums [wideStreams]struct {
		acc   []reg.VecVirtual
		below reg.VecVirtual
	}

	// few, for blocks that have less than 256 elements each, writes the code for some blocks: for a whole super, or for the 128 or
	// 64 elements after the last super of a row.
	few func(blocks int)

	// The distance in bytes between streams, and three times that, and the stream that at reads.
	apart, apart3 reg.GPVirtual
	stream        int

	// Registers that are loaded ahead of the rows.
	lanes, pairs [4]reg.Register // opmasks of the dwords and of the qwords in lanes 1 to 3
	known        map[[64]byte]reg.VecVirtual
	masks        map[uint64]reg.Register
}

// wideStreams is the number of rows of blocks that a product reads at once. These rows are far from
// each other: each is the next one of a part of the rows. A hardware prefetcher follows one stream in
// each page: one core of a Xeon was measured to read a quarter more bytes in a second from four places
// than from one, and less from two or eight.
const wideStreams = 4

// wideAhead is the distance in bytes of the lines that are prefetched in each stream. Twice the distance was measured
// to be as fast for long rows and slower for short ones.
const wideAhead = 1024

// wideBodies has a function for each format. The function writes the loads of constants before the
// loop, and returns a function that writes the code for one super.
var wideBodies = map[block.Format]func(*wide) func(){
	block.Q4_0: (*wide).shortBlocks, block.Q4_1: (*wide).shortBlocks, block.Q5_0: (*wide).shortBlocks, block.Q5_1: (*wide).shortBlocks,
	block.IQ4_NL: (*wide).shortBlocks, block.MXFP4: (*wide).shortBlocks, block.IQ4_XS: (*wide).blocksXS, block.NVFP4: (*wide).blocksFP4,
	block.Q4_K: (*wide).blocks45, block.Q5_K: (*wide).blocks45, block.Q6_K: (*wide).blocks6,
	block.Q8_0: (*wide).blocks8, block.TQ1_0: (*wide).ternaryBlocks, block.TQ2_0: (*wide).blocks2, block.Q2_K: (*wide).blocks2,
}

// int8Wide writes the function of a format.
func (g *gen) int8Wide(f block.Format, body func(*wide) func()) {
	name := "int8Columns" + f.String() + g.name
	g.function(name, "func(dst *float32, x *int8, scales, sums *float32, quads *int32, src *byte, row, blocks, count int)",
		name+" is an int8ColumnsFunc of "+f.String()+".")
	load := func(p string) reg.GPVirtual { return g.Load(g.Param(p), g.GP64()).(reg.GPVirtual) }
	w := &wide{gen: g, l: f.Layout(), known: map[[64]byte]reg.VecVirtual{}, masks: map[uint64]reg.Register{}}
	o := &w.o
	o.x, o.scales, o.quads, o.index = load("x"), load("scales"), load("quads"), g.GP64()
	if f.Biased() {
		o.sums = load("sums")
	}
	g.src = load("src")
	dst, end, skip, left := load("dst"), load("blocks"), load("row"), load("count")
	w.apart, w.apart3 = g.GP64(), g.GP64()
	g.MOVQ(skip, w.apart)
	g.IMULQ(left, w.apart)
	g.LEAQ(Mem{Base: w.apart, Index: w.apart, Scale: 2}, w.apart3)
	size := g.GP64()
	g.IMUL3Q(I32(int32(w.l.Bytes)), end, size)
	g.SUBQ(size, skip) // the bytes between rows
	g.IMUL3Q(U8(uint8(w.l.Elements/8)), end, end)
	if w.l.Elements < 256 {
		g.ANDQ(I8(-32), end)
	}
	super := body(w)
	g.Label("row")
	g.XORQ(o.index, o.index)
	for i := range w.sums {
		for range min(2, 256/w.l.Elements) {
			w.sums[i].acc = append(w.sums[i].acc, w.none())
		}
		if f.Biased() && f != block.Q2_K { // runs subtracts biases from acc
			w.sums[i].below = g.zeros()
		}
	}
	g.Label("next")
	w.each(256/w.l.Elements, super)
	g.CMPQ(o.index, end)
	g.JNE(LabelRef("next"))
	if w.few != nil {
		w.rest()
	}
	w.store(dst)
	g.ADDQ(U8(4), dst)
	g.ADDQ(skip, g.src)
	g.DECQ(left)
	g.JNE(LabelRef("row"))
	g.VZEROUPPER()
	g.RET()
}

// each writes the code for some blocks of all streams.
func (w *wide) each(blocks int, code func()) {
	bytes := blocks * w.l.Bytes
	for i, s := range w.sums {
		w.stream, w.acc, w.next, w.o.below = i, s.acc, 0, s.below
		for at := 0; at < bytes; at += 64 {
			w.PREFETCHT0(w.at(at + wideAhead))
		}
		code()
	}
	w.ADDQ(I32(int32(bytes)), w.src)
	w.ADDQ(U8(uint8(blocks*w.l.Elements/8)), w.o.index)
}

// rest writes the code for the elements of a row after the last super: none, 64, 128 or 192.
func (w *wide) rest() {
	all := w.GP64()
	w.Load(w.Param("blocks"), all)
	for blocks := 128 / w.l.Elements; blocks*w.l.Elements >= 64; blocks /= 2 {
		label := fmt.Sprintf("without%d", blocks)
		w.TESTQ(I32(int32(blocks)), all)
		w.JEQ(LabelRef(label))
		w.each(blocks, func() { w.few(blocks) })
		w.Label(label)
	}
}

// store writes the code that stores the sum of each stream: as many floats after the sum of the stream before as a
// stream has rows.
func (w *wide) store(dst reg.GPVirtual) {
	count, to := w.o.index, w.GP64()
	w.Load(w.Param("count"), count)
	w.MOVQ(dst, to)
	for i, s := range w.sums {
		all := s.acc[0]
		for _, v := range s.acc[1:] {
			w.VADDPS(v, all, all)
		}
		half, quarter := w.YMM(), w.XMM()
		w.VEXTRACTF64X4(U8(1), all, half)
		w.VADDPS(all.AsY(), half, half)
		if s.below != nil {
			w.VADDPS(s.below, half, half)
		}
		w.VEXTRACTF32X4(U8(1), half, quarter) // half may be above the registers of VEXTRACTF128
		w.VMOVSS(w.totalOf(half.AsX().(reg.VecVirtual), quarter), Mem{Base: to})
		if i < wideStreams-1 {
			w.LEAQ(Mem{Base: to, Index: count, Scale: 4}, to)
		}
	}
}

func (w *wide) none() reg.VecVirtual {
	v := w.ZMM()
	w.VPXORD(v, v, v)
	return v
}

// add adds d times v to the next accumulator.
func (w *wide) add(d, v Op) {
	w.VFMADD231PS(d, v, w.acc[w.next%len(w.acc)])
	w.next++
}

// bytes returns a register with 64 constant bytes. Call it before the loop over rows, because it
// writes the load there.
func (w *wide) bytes(at func(i int) int) reg.VecVirtual {
	var b [64]byte
	for i := range b {
		b[i] = byte(at(i))
	}
	if v, ok := w.known[b]; ok {
		return v
	}
	v := w.ZMM()
	w.VMOVDQU64(w.constant(&b), v)
	w.known[b] = v
	return v
}

// constant returns memory with constant bytes.
func (w *wide) constant(b *[64]byte) Mem {
	name, all := fmt.Sprintf("int8Wide%d", len(w.later)), *b
	w.later = append(w.later, func() {
		w.StaticGlobal(name)
		w.DataAttributes(attr.RODATA | attr.NOPTR)
		for i, v := range all {
			w.AddDatum(i, U8(v))
		}
	})
	return NewDataAddr(Symbol{Name: name, Static: true}, 0)
}

// dwordsOf returns memory with sixteen constant numbers.
func (w *wide) dwordsOf(at func(i int) int) Mem {
	var b [64]byte
	for i := range b {
		b[i] = byte(uint32(at(i/4)) >> (i % 4 * 8))
	}
	return w.constant(&b)
}

// spread returns a register with 64 equal bytes, spreadWords with 32 equal words, dwords16 and
// alike16 with sixteen numbers, and qwords with eight.
func (w *wide) spread(v int) reg.VecVirtual { return w.bytes(func(int) int { return v }) }

func (w *wide) spreadWords(v int) reg.VecVirtual {
	return w.bytes(func(i int) int { return v >> (i % 2 * 8) })
}

func (w *wide) dwords16(at func(i int) int) reg.VecVirtual {
	return w.bytes(func(i int) int { return int(uint32(at(i/4)) >> (i % 4 * 8)) })
}

func (w *wide) alike16(v int) reg.VecVirtual { return w.dwords16(func(int) int { return v }) }

func (w *wide) qwords(at func(i int) int) reg.VecVirtual {
	return w.bytes(func(i int) int { return int(uint64(at(i/8)) >> (i % 8 * 8)) })
}

// mask returns a mask register with a constant.
func (w *wide) mask(v uint64) reg.Register {
	if k, ok := w.masks[v]; ok {
		return k
	}
	r, k := w.GP64(), w.K()
	w.MOVQ(U64(v), r)
	w.KMOVQ(r, k)
	w.masks[v] = k
	return k
}

// at returns the memory at an offset in the block of the stream.
func (w *wide) at(disp int) Mem {
	m := Mem{Base: w.src, Disp: disp}
	switch w.stream {
	case 1, 2:
		m.Index, m.Scale = w.apart, uint8(w.stream)
	case 3:
		m.Index, m.Scale = w.apart3, 1
	}
	return m
}

// word returns the memory of a quad of a super, and bytesOf the memory of integers of the row.
func (w *wide) word(i int) Mem    { return w.o.at(w.o.quads, 8, 4*i) }
func (w *wide) bytesOf(i int) Mem { return w.o.at(w.o.x, 8, i) }

// op3 writes an instruction with two sources and returns its result in a new vector.
func (w *wide) op3(f func(...Op), a, b Op) reg.VecVirtual {
	v := w.ZMM()
	f(a, b, v)
	return v
}

func (w *wide) and(m Op, v Op) reg.VecVirtual { return w.op3(w.VPANDD, m, v) }

// right returns words shifted to the right.
func (w *wide) right(n int, v Op) reg.VecVirtual { return w.op3(w.VPSRLW, U8(n), v) }

// load returns 64 bytes.
func (w *wide) load(m Op) reg.VecVirtual {
	v := w.ZMM()
	w.VMOVDQU64(m, v)
	return v
}

// orBits sets v to v | from & mask.
func (w *wide) orBits(v, from, mask reg.VecVirtual) { w.VPTERNLOGD(U8(0xf8), mask, from, v) }

// choose returns the bits of a where mask has ones, and those of b elsewhere.
func (w *wide) choose(mask, a, b reg.VecVirtual) reg.VecVirtual {
	v := w.ZMM()
	w.VMOVDQA64(mask, v)
	w.VPTERNLOGD(U8(0xca), b, a, v)
	return v
}

// bytesAt returns the bytes of a table at the indices. If keep is not 0, bytes whose bits in keep are 0 become 0.
func (w *wide) bytesAt(table Op, index reg.VecVirtual, keep uint64) reg.VecVirtual {
	v := w.ZMM()
	if keep == 0 {
		w.VPERMB(table, index, v)
	} else {
		w.VPERMB_Z(table, index, w.mask(keep), v)
	}
	return v
}

// halfFloats converts the first sixteen words from binary16 to float32.
func (w *wide) halfFloats(v reg.VecVirtual) reg.VecVirtual {
	f := w.ZMM()
	w.VCVTPH2PS(v.AsY(), f)
	return f
}

// half returns a binary16 of the block in all lanes.
func (w *wide) half(disp int) reg.VecVirtual {
	y := w.YMM()
	w.VPBROADCASTW(w.at(disp), y)
	return w.halfFloats(y)
}

// inLanes broadcasts a part of each of up to four blocks to one of the four lanes. Further lanes equal the first.
func (w *wide) inLanes(broadcast func(...Op), masks *[4]reg.Register, first, step, blocks int) reg.VecVirtual {
	v := w.ZMM()
	broadcast(w.at(first), v)
	for i := 1; i < blocks; i++ {
		broadcast(w.at(first+i*step), masks[i], v)
	}
	return v
}

// pack multiplies the dwords of a and b, which fit into 16 bits, by factors, and adds adjacent
// products. Each lane of the result has two sums of a, then two sums of b.
func (w *wide) pack(a, b, factors reg.VecVirtual) reg.VecVirtual {
	v := w.op3(w.VPACKSSDW, b, a)
	w.VPMADDWD(factors, v, v)
	return v
}

// multiply adds the products of codes and integers to start and returns it. Each vector of codes is
// multiplied by the next 64 integers of the row, from integer i on.
func (w *wide) multiply(start reg.VecVirtual, i int, codes ...reg.VecVirtual) reg.VecVirtual {
	for k, c := range codes {
		w.VPDPBUSD(w.bytesOf(i+64*k), c, start)
	}
	return start
}

// nibbles returns a function that returns the levels of the lower halves of bytes, and of the upper ones.
func (w *wide) nibbles() func(q reg.VecVirtual) (low, high reg.VecVirtual) {
	if t := w.l.Level.Table; t != nil {
		least := t[0]
		for _, v := range t {
			least = min(least, v)
		}
		table := w.bytes(func(i int) int { return int(t[i%16%len(t)]) - int(least) }) // indexed by the lowest six bits
		return func(q reg.VecVirtual) (low, high reg.VecVirtual) {
			return w.bytesAt(table, q, 0), w.bytesAt(table, w.right(4, q), 0)
		}
	}
	m := w.spread(15)
	return func(q reg.VecVirtual) (low, high reg.VecVirtual) {
		return w.and(m, q), w.and(m, w.right(4, q))
	}
}

// shortBlocks writes a super of blocks of 32 elements, four at a time. If only two blocks follow, the
// other lanes are multiplied by integers, sums and scales that are 0. The quads of 128 elements are sixteen initial values of
// sums, then sixteen scales: see inLanes in package simd.
func (w *wide) shortBlocks() func() {
	size, level := w.l.Bytes, w.l.Level.Number
	for i := 1; i < 4; i++ {
		w.lanes[i] = w.mask(0xf << (4 * i))
	}
	nibbles, scales, biases := w.nibbles(), w.shortScales(w.l.Scale), func(reg.VecVirtual) reg.VecVirtual { return nil }
	header := func(at, blocks int) reg.VecVirtual {
		if blocks == 4 {
			return w.load(w.at(at))
		}
		v := w.ZMM() // zeros after the last block: its row may be the last one in memory
		w.VMOVDQU8_Z(w.at(at), w.mask(1<<(2*size)-1), v)
		return v
	}
	fifth := func(header, low, high reg.VecVirtual) {}
	step := size // distance of the headers of blocks in the vector
	if len(level) > 1 {
		step = 16
		for i := 1; i < 4; i++ {
			w.pairs[i] = w.mask(3 << (2 * i))
		}
		w.mask(0xf)
		header = func(at, blocks int) reg.VecVirtual {
			v := w.inLanes(w.VPBROADCASTQ, &w.pairs, at, size, blocks)
			if blocks < 4 { // infinite scales of the first block must not get to the other lanes
				w.VMOVDQA64_Z(v, w.mask(1<<(2*blocks)-1), v)
			}
			return v
		}
		first := bit(&level[1], 0)
		mask, bits := w.spread(16), [2]reg.VecVirtual{}
		for h := range bits {
			bits[h] = w.bytes(func(i int) int { return (first + 16*h + i%16 - 4) & 63 })
		}
		fifth = func(header, low, high reg.VecVirtual) {
			w.orBits(low, w.op3(w.VPMULTISHIFTQB, header, bits[0]), mask)
			w.orBits(high, w.op3(w.VPMULTISHIFTQB, header, bits[1]), mask)
		}
	} else {
		w.mask(1<<(2*size) - 1)
	}
	if w.l.Scale.Encoding == block.Binary16 {
		index := w.bytes(func(i int) int { return (i/8*step + w.l.Scale.Number[0].At/8 + i%2) & 63 })
		scales = func(h reg.VecVirtual) reg.VecVirtual { return w.halfFloats(w.bytesAt(h, index, 0)) }
	}
	if w.l.Bias.Number != nil {
		index := w.bytes(func(i int) int { return (i/2*step + w.l.Bias.Number[0].At/8 + i%2) & 63 })
		biases = func(h reg.VecVirtual) reg.VecVirtual { return w.halfFloats(w.bytesAt(h, index, 0)) }
	}
	w.few = func(blocks int) {
		for n := range (blocks + 3) / 4 {
			at, blocks := 4*n*size, min(4, blocks)
			q, h := w.inLanes(w.VBROADCASTI32X4, &w.lanes, at+bit(&level[0], 0)/8, size, blocks), header(at, blocks)
			low, high := nibbles(q)
			fifth(h, low, high)
			t := w.multiply(w.load(w.word(32*n)), 128*n, low, high)
			w.VCVTDQ2PS(t, t)
			d := scales(h)
			w.VMULPS(w.word(32*n+16), d, d)
			w.add(d, t)
			if b := biases(h); b != nil {
				w.VFMADD231PS(w.o.at(w.o.sums, 1, 16*n), b.AsX(), w.o.below.AsX()) // keeps the upper half of below 0
			}
		}
	}
	return func() { w.few(8) }
}

// shortScales returns a function that returns the scales of four blocks, each in one lane, from 64
// bytes. E8M0 scales have their exponent minus 1, except for the least two, which are subnormal.
func (w *wide) shortScales(f block.Float) func(reg.VecVirtual) reg.VecVirtual {
	if f.Encoding != block.E8M0 {
		return nil
	}
	index := w.bytes(func(i int) int { return i/16*w.l.Bytes + f.Number[0].At/8 })
	less, two, least := w.spread(0xff), w.alike16(2), w.alike16(0x200000)
	w.mask(0x1111111111111111)
	return func(h reg.VecVirtual) reg.VecVirtual {
		e, small := w.bytesAt(h, index, 0x1111111111111111), w.K()
		v := w.op3(w.VPADDD, less, e)
		w.VPSLLD(U8(23), v, v)
		w.VPCMPUD(U8(1), two, e, small)
		w.VPSLLVD(e, least, small, v)
		return v
	}
}

// blocksXS writes a super of IQ4_XS, whose groups have sixteen bytes each. The quads are those of shortBlocks.
func (w *wide) blocksXS() func() {
	nibbles := w.nibbles()
	group := func(i int) int { return i % 8 }
	low, high := w.dwords16(func(i int) int { return 4 * group(i) }), w.dwords16(func(i int) int { return (4 - 2*group(i)) & 31 })
	lower, upper, least := w.alike16(0x0f), w.alike16(0x30), w.alike16(-32)
	var spread [2]reg.VecVirtual
	for h := range spread {
		spread[h] = w.dwords16(func(i int) int { return 4*h + i/4 })
	}
	return func() {
		s, u := w.ZMM(), w.ZMM()
		w.VPBROADCASTD(w.at(4), s)
		w.VPBROADCASTD(w.at(2), u)
		w.VPSRLVD(low, s, s)
		w.VPROLVD(high, u, u)
		w.VPANDD(lower, s, s)
		w.orBits(s, u, upper)
		w.VPADDD(least, s, s)
		w.VCVTDQ2PS(s, s)
		w.VMULPS(w.half(0), s, s)
		for h := range 2 {
			lo, hi := nibbles(w.load(w.at(8 + 64*h)))
			t := w.multiply(w.load(w.word(32*h)), 128*h, lo, hi)
			w.VCVTDQ2PS(t, t)
			d := w.op3(w.VPERMPS, s, spread[h])
			w.VMULPS(w.word(32*h+16), d, d)
			w.add(d, t)
		}
	}
}
