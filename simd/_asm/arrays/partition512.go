package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// group512 is the number of vectors that partition512 reads at once.
const group512 = 8

// partition512 writes the kernel that divides keys in place. The free elements lie before and behind the unread keys. Each step reads a
// group of vectors next to the smaller part of the free elements, so that both parts have room for the group that was read before it.
func (g *gen) partition512() {
	g.function("sortPartitionAVX512", "func(low, from, group *uint32, unread, free, groups int, pivot uint32) (lows, read int)",
		"sortPartitionAVX512 divides 128 keys at group and groups-1 groups of 128 keys out of the unread keys at from, and sets group to one more",
		"group of these. free is the number of free elements from low to from and behind the unread keys together, at least 256. Keys up to",
		"pivot go to low, and the others to the end of the free elements. groups is positive and at most unread/128. It returns the number of",
		"keys at low and the number of keys that it read at from.")
	low, from := g.Load(g.Param("low"), g.GP64()), g.Load(g.Param("from"), g.GP64())
	groups, left, right, high := g.Load(g.Param("groups"), g.GP64()), g.GP64(), g.GP64(), g.GP64()
	pivot := g.ZMM()
	a, err := g.Param("pivot").Resolve()
	if err != nil {
		panic(err)
	}
	g.VBROADCASTSS(a.Addr, pivot)
	g.MOVQ(from, left)
	unread := g.Load(g.Param("unread"), g.GP64())
	g.LEAQ(Mem{Base: left, Index: unread, Scale: 4}, right)
	g.ADDQ(g.Load(g.Param("free"), g.GP64()), unread)
	g.LEAQ(Mem{Base: low, Index: unread, Scale: 4}, high)
	at, counts := g.GP64(), g.GP64()
	g.MOVQ(low, at)
	g.LEAQ(g.laneCounts(), counts)
	const size = 4 * lanes512 * group512
	// read sets v to the group next to the smaller part of the free elements.
	read := func(v []reg.VecVirtual) {
		src, unreadEnds, freeEnds, next, last := g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64()
		g.LEAQ(Mem{Base: left, Disp: size}, next)
		g.LEAQ(Mem{Base: right, Disp: -size}, last)
		g.LEAQ(Mem{Base: left, Index: right, Scale: 1}, unreadEnds)
		g.LEAQ(Mem{Base: at, Index: high, Scale: 1}, freeEnds)
		g.MOVQ(left, src)
		g.CMPQ(unreadEnds, freeEnds)
		g.CMOVQHI(last, src)
		g.CMOVQHI(last, right)
		g.CMOVQLS(next, left)
		for i := range v {
			g.VMOVDQU32(Mem{Base: src, Disp: 4 * lanes512 * i}, v[i])
		}
	}
	stay, leave, count := g.K(), g.K(), g.GP64()
	// write moves the keys of v to the free elements.
	write := func(v []reg.VecVirtual) {
		for i := range v {
			g.VPCMPUD(U8(2), pivot, v[i], stay) // up to pivot
			g.divideVector(v[i], stay, leave, at, high, count, counts)
		}
	}
	var v, w []reg.VecVirtual
	for range group512 {
		v, w = append(v, g.ZMM()), append(w, g.ZMM())
	}
	group := g.Load(g.Param("group"), g.GP64())
	for i := range v {
		g.VMOVDQU32(Mem{Base: group, Disp: 4 * lanes512 * i}, v[i])
	}
	g.Label("loop")
	read(w)
	write(v)
	for i := range v {
		g.VMOVDQA32(w[i], v[i])
	}
	g.DECQ(groups)
	g.JNZ(LabelRef("loop"))
	g.Load(g.Param("group"), group)
	for i := range v {
		g.VMOVDQU32(v[i], Mem{Base: group, Disp: 4 * lanes512 * i})
	}
	g.SUBQ(low, at)
	g.SHRQ(U8(2), at)
	g.Store(at, g.ReturnIndex(0))
	g.SUBQ(from, left)
	g.SHRQ(U8(2), left)
	g.Store(left, g.ReturnIndex(1))
	g.ret()
}

// divideVector moves the keys of v in the lanes of stay to at, and the others to the end at high, and moves both. Storing whole vectors at
// the end would overwrite other keys: the mask comes from the signs of a vector in memory, because the port that moves integers to
// masks is the one that compresses.
func (g *gen) divideVector(v reg.VecVirtual, stay, leave reg.OpmaskVirtual, at, high, count, counts reg.GPVirtual) {
	lower, upper, have, signs := g.ZMM(), g.ZMM(), g.K(), g.ZMM()
	g.KMOVW(stay, count.As32())
	g.KNOTW(stay, leave)
	g.POPCNTL(count.As32(), count.As32())
	g.VMOVDQU32(Mem{Base: counts, Index: count, Scale: 4}, signs)
	g.VPMOVD2M(signs, have)
	g.VPCOMPRESSD_Z(v, stay, lower)
	g.VPCOMPRESSD_Z(v, leave, upper)
	g.LEAQ(Mem{Base: high, Index: count, Scale: 4, Disp: -4 * lanes512}, high)
	g.VMOVDQU32(lower, Mem{Base: at})
	g.VMOVDQU32(upper, have, Mem{Base: high})
	g.LEAQ(Mem{Base: at, Index: count, Scale: 4}, at)
}

// laneCounts returns a constant of two vectors of ones and zeros: from element i on, 16-i elements are ones.
func (g *gen) laneCounts() Mem {
	if g.counts == (Mem{}) {
		words := make([]uint64, lanes512)
		for i := range lanes512 / 2 {
			words[i] = 1<<64 - 1
		}
		g.counts = g.global("laneCounts", words...)
	}
	return g.counts
}

// divideKeys512 writes the kernel that computes the keys of elements and divides them like partition, to the two ends of the free part of
// another array.
func (g *gen) divideKeys512(float bool) {
	name, result, more := "sortDivideWordsAVX512", "int", ""
	if float {
		name, result, more = "sortDivideFloatsAVX512", "(lows int, special uint32)", " special is 0 only if no element is -0 or NaN."
	}
	g.function(name, "func(dst, src *uint32, free, n int, pivot, flip uint32) "+result,
		name+" moves the keys of n elements of src, with the bits inverted that are set in flip, to the two ends of the free elements at dst:",
		"keys up to pivot to the lower end. It returns their number. free and n are positive multiples of 16."+more)
	dst, src, free, n := g.Load(g.Param("dst"), g.GP64()), g.Load(g.Param("src"), g.GP64()), g.Load(g.Param("free"), g.GP64()), g.Load(g.Param("n"), g.GP64())
	pivot, flip, v := g.ZMM(), g.ZMM(), g.ZMM()
	g.VPBROADCASTD(g.Load(g.Param("pivot"), g.GP32()), pivot)
	g.VPBROADCASTD(g.Load(g.Param("flip"), g.GP32()), flip)
	at, high, count, counts := g.GP64(), g.GP64(), g.GP64(), g.GP64()
	stay, leave := g.K(), g.K()
	g.MOVQ(dst, at)
	g.LEAQ(Mem{Base: dst, Index: free, Scale: 4}, high)
	g.LEAQ(g.laneCounts(), counts)
	convert, finish := func() {}, func() {}
	if float {
		convert, finish = g.floatKeys512(v)
	}
	g.Label("loop")
	g.VMOVDQU32(Mem{Base: src}, v)
	convert()
	g.VPXORD(flip, v, v)
	g.VPCMPUD(U8(2), pivot, v, stay) // up to pivot
	g.divideVector(v, stay, leave, at, high, count, counts)
	g.ADDQ(I32(4*lanes512), src)
	g.SUBQ(I32(lanes512), n)
	g.JNZ(LabelRef("loop"))
	g.SUBQ(dst, at)
	g.SHRQ(U8(2), at)
	g.Store(at, g.ReturnIndex(0))
	finish()
	g.ret()
}

// floatKeys512 returns code that converts the floats in v to keys, like floatKeys, and code for the end of the loop.
func (g *gen) floatKeys512(v reg.VecVirtual) (convert, finish func()) {
	top, zero, sign, special, nan, k := g.ZMM(), g.ZMM(), g.ZMM(), g.GP32(), g.K(), g.K()
	w := g.GP32()
	g.MOVL(U32(1<<31), w)
	g.VPBROADCASTD(w, top)
	g.VPXORD(zero, zero, zero)
	g.XORL(special, special)
	convert = func() {
		g.VPCMPEQD(top, v, k)
		g.VCMPPS(U8(3), v, v, nan) // unordered
		g.KORW(nan, k, k)
		g.KMOVW(k, w)
		g.ORL(w, special)
		g.VADDPS(zero, v, v) // -0 + 0 is +0
		g.VPSRAD(U8(31), v, sign)
		g.VPORD(top, sign, sign)
		g.VPXORD(sign, v, v)
		g.VPTERNLOGD(U8(0xff), v, v, nan, v)
	}
	return convert, func() { g.Store(special, g.ReturnIndex(1)) }
}
