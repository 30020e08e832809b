package ptx

import (
	"strconv"
	"strings"
)

// Swizzle is a permutation of the rows of a tile in shared memory, so that an access to a column
// does not touch a bank twice: the 16-byte piece c of row r is at piece c xor r, modulo the number
// of pieces of a row. Tensor copies write swizzled tiles, and products of warpgroups read them.
type Swizzle uint8

// The swizzles. A tile with a swizzle has rows of that many bytes.
const (
	NoSwizzle Swizzle = iota
	Swizzle128
	Swizzle64
	Swizzle32
)

// Tile describes where a matrix is in shared memory: see [NewTile].
type Tile struct{ desc U64 }

// NewTile describes the matrix at p, which begins at a multiple of 16 bytes. Its core matrices have
// 8 rows of 16 bytes. leading and stride are bytes between them, multiples of 16. For a K-major
// swizzled matrix, leading is ignored and stride is the bytes of 8 rows, 1024 for Swizzle128. It
// needs sm_90a.
func NewTile[T Element](p Shared[T], swizzle Swizzle, leading, stride int) Tile {
	a := address(p)
	k := a.live()
	const most = 1<<18 - 16
	if swizzle > Swizzle32 || leading < 0 || leading > most || leading%16 != 0 || stride < 0 || stride > most || stride%16 != 0 {
		if k.ready() {
			k.failure(ErrLimit, "a tile of swizzle %d, %d and %d bytes apart", swizzle, leading, stride)
		}
		return Tile{U64{k: k, c: k.age}}
	}
	if a.off%16 != 0 {
		k.fail("the offset %d of a tile is not a multiple of 16", a.off)
	}
	at := U32{k: k, v: a.v, c: k.age}
	if a.off != 0 {
		at = at.Add(U(uint32(a.off)))
	}
	low := at.Shr(U(4)).And(U(0x3fff)).U64()
	return Tile{low.Or(UL(uint64(leading/16)<<16 | uint64(stride/16)<<32 | uint64(swizzle)<<62))}
}

// Advance returns the tile that is the given number of bytes further. The number must be a multiple
// of 16, and the tile must stay within the same 256 KiB.
func (t Tile) Advance(bytes U32) Tile { return Tile{t.desc.Add(bytes.Shr(U(4)).U64())} }

// Bits returns the tile in the form that instructions use.
func (t Tile) Bits() U64 { return t.desc }

// Wgmma says how a warpgroup multiplies: D = A B, or D = D + A B. D has 64 rows
// and N columns, which the number of accumulators tells: N is a multiple of 8 up
// to 256 (of 16 beyond 32 for bytes). It is summed while the threads go on:
//
//	k.WgmmaFence()
//	k.WgmmaBF16(acc, a, b, ptx.Wgmma{Add: more})
//	k.WgmmaCommit()
//	k.WgmmaWait(0) // before acc is read
//
// All four warps of the group must execute these instructions together; the number of the first
// warp must be a multiple of 4. Thread t of the group has, with w = t/32 and l = t%32, in
// accumulators 4j and 4j+1 row 16w + l/4 and columns 8j + 2(l%4) and the next, and in 4j+2 and 4j+3
// those 8 rows below. It needs sm_90a.
type Wgmma struct {
	Add              Pred // add the old value of D; the zero value replaces D
	NegateA, NegateB bool
	TransA, TransB   bool // the matrix is stored along M or N instead of K, for elements of 16 bits
}

// Bits of the aux of a wgmma, above N/8.
const (
	wgmmaTransA = 1 << (6 + iota)
	wgmmaTransB
	wgmmaNegateA
	wgmmaNegateB
	wgmmaRegisters // A is in four registers
)

func wgmmaShared[T Value](k *Kernel, o code, acc []Var[T], a, b Tile, w Wgmma) {
	k = k.owner()
	if !wgmmaBegin(k, o, acc) {
		return
	}
	k.list(handle(a.desc), kU64)
	k.wgmma(o, len(acc), b, w, 0)
}

func wgmmaRegs[T, A Value](k *Kernel, o code, acc []Var[T], a [4]A, b Tile, w Wgmma) {
	k = k.owner()
	if !wgmmaBegin(k, o, acc) {
		return
	}
	for _, x := range a {
		k.list(handle(x), kB32)
	}
	k.wgmma(o, len(acc), b, w, wgmmaRegisters)
}

// wgmmaBegin begins the list of operands with the accumulators.
func wgmmaBegin[T Value](k *Kernel, o code, acc []Var[T]) bool {
	if !k.open() || descs[o].target > k.target && !k.admit(o) {
		return false
	}
	n := wgmmaColumns(o, len(acc))
	bytes := descs[o].kinds[0] == kS32
	if n%8 != 0 || n < 8 || n > 256 || bytes && n > 32 && n%16 != 0 {
		k.fail("%d accumulators: D would have %d columns", len(acc), n)
		return false
	}
	// A constant among the accumulators would need an instruction, which must come before the list.
	k.startList()
	for i := range acc {
		k.listVar(acc[i].h, acc[i].kind)
	}
	return true
}

// wgmmaColumns returns the number of columns of D for n accumulators.
func wgmmaColumns(o code, n int) int {
	if descs[o].kinds[0] == kF16x2 {
		return 4 * n
	}
	return 2 * n
}

func (k *Kernel) wgmma(o code, n int, b Tile, w Wgmma, flags uint16) {
	k.list(handle(b.desc), kU64)
	wide := descs[o].kinds[1] == kB32
	switch {
	case wide && (w.TransA || w.TransB):
		k.fail("TransA and TransB are only for elements of 16 bits")
		return
	case flags&wgmmaRegisters != 0 && w.TransA:
		k.fail("TransA is not possible if A is in registers")
		return
	case descs[o].kinds[0] == kS32 && (w.NegateA || w.NegateB):
		k.fail("NegateA and NegateB are not possible for bytes")
		return
	}
	for _, f := range []struct {
		on  bool
		bit uint16
	}{{w.TransA, wgmmaTransA}, {w.TransB, wgmmaTransB}, {w.NegateA, wgmmaNegateA}, {w.NegateB, wgmmaNegateB}} {
		if f.on {
			flags |= f.bit
		}
	}
	add := k.use(handle(w.Add), kPred)
	k.put(o, uint16(wgmmaColumns(o, n)/8)|flags, 0, k.endList(), add, val(n))
}

// WgmmaFence orders the threads' accesses to accumulators, and to A in registers, before later
// products. It needs sm_90a.
func (k *Kernel) WgmmaFence() { k.together(opWgmmaFence) }

// WgmmaCommit makes a group of the products since the last WgmmaCommit.
func (k *Kernel) WgmmaCommit() { k.together(opWgmmaCommit) }

func (k *Kernel) together(o code) {
	if k.open() {
		k.put(o, 0, 0, 0, 0, 0)
	}
}

// WgmmaWait waits until at most n groups of products are incomplete; n is 0 to 7. The accumulators
// of the other groups may then be read.
func (k *Kernel) WgmmaWait(n int) {
	if !k.open() {
		return
	}
	if n < 0 || n > 7 {
		k.failure(ErrLimit, "cannot wait for %d groups of products: the number must be from 0 to 7", n)
		return
	}
	k.put(opWgmmaWait, uint16(n), 0, 0, 0, 0)
}

// RaiseRegisters waits until each thread of the warp may have n registers. n is a multiple of 8
// from 24 to 256, and more than the threads have. All warps of the warpgroup must execute it. The
// kernel needs [Kernel.Block] and [Kernel.MinBlocks]. It needs sm_90a.
func (k *Kernel) RaiseRegisters(n int) { k.registers(opRaiseRegisters, n) }

// DropRegisters releases registers, so that each thread of the warp keeps n: see
// [Kernel.RaiseRegisters].
func (k *Kernel) DropRegisters(n int) { k.registers(opDropRegisters, n) }

func (k *Kernel) registers(o code, n int) {
	if !k.open() {
		return
	}
	if n < 24 || n > 256 || n%8 != 0 {
		k.failure(ErrLimit, "%d registers are invalid: the number must be a multiple of 8 from 24 to 256", n)
		return
	}
	k.put(o, uint16(n), 0, 0, 0, 0)
}

// appendWgmma appends the columns and the operands after them.
func (k *Kernel) appendWgmma(b []byte, in *instr) []byte {
	text := descs[in.op].text
	b = b[:len(b)-len(text)]
	before, after, _ := strings.Cut(text, "$n")
	b = append(b, before...)
	b = strconv.AppendUint(b, 8*uint64(in.aux&63), 10)
	b = append(b, after...)
	list, n := k.lists[in.a:], int(in.c)
	b = k.appendVector(b, list[:n])
	b = append(b, ", "...)
	list = list[n:]
	if in.aux&wgmmaRegisters != 0 {
		b = k.appendVector(b, list[:4])
		list = list[4:]
	} else {
		b = k.appendOperand(b, list[0])
		list = list[1:]
	}
	b = append(b, ", "...)
	b = k.appendOperand(b, list[0])
	b = append(b, ", "...)
	b = k.appendOperand(b, in.b)
	if descs[in.op].kinds[0] == kS32 {
		return b
	}
	one := func(negative bool) {
		if negative {
			b = append(b, ", -1"...)
		} else {
			b = append(b, ", 1"...)
		}
	}
	one(in.aux&wgmmaNegateA != 0)
	one(in.aux&wgmmaNegateB != 0)
	if descs[in.op].kinds[1] == kB32 {
		return b
	}
	bit := func(set bool) {
		if set {
			b = append(b, ", 1"...)
		} else {
			b = append(b, ", 0"...)
		}
	}
	if in.aux&wgmmaRegisters == 0 {
		bit(in.aux&wgmmaTransA != 0)
	}
	bit(in.aux&wgmmaTransB != 0)
	return b
}
