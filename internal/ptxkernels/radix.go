package ptxkernels

import (
	"fmt"
	"math/bits"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// A radix sort orders the elements of rows by one 8-bit digit after the other, from the lowest. One
// launch counts the digits of all passes in one read of the rows. Then each pass is one launch
// (Adinets and Merrill, "Onesweep", 2022). A block ranks a tile of a row by the digit, looks back
// to count the elements of earlier tiles with each digit, sorts the tile in shared memory, and
// writes the elements of each digit contiguously. Blocks take tiles in the order in which they
// start, so that a block waits only for blocks that have started.

const (
	radixBits   = 8
	radixDigits = 1 << radixBits
	// radixCountBits is the number of bits in a word of the look-back that count elements. The bits
	// above are the flag: see [radixBlock.flag].
	radixCountBits = 28
)

// radixTile is the schedule of a block of a pass. Each warp has contiguous elements of the tile.
type radixTile struct {
	Lanes, Items int // threads, and elements of each thread
	Look         int // tiles that a thread looks back at once
	Blocks       int // minimum number of blocks on a multiprocessor; 0 for the assembler's choice
}

func (t radixTile) size() int  { return t.Lanes * t.Items }
func (t radixTile) warps() int { return t.Lanes / 32 }

// radixOrder maps the bits of elements to keys.
type radixOrder struct {
	Type       op.DType
	Descending bool
	Rows       bool // elements are ids of type i32, sorted by the row that they select
	Skip       int  // number of low bits of the keys that the order ignores
	Passes     int
}

// orderOf returns the order of elements of type t.
func orderOf(t op.DType, descending bool) radixOrder {
	return radixOrder{Type: t, Descending: descending, Passes: t.Size() * 8 / radixBits}
}

// bucketsOf returns the order of ids by bucket of 1<<skip rows, for rows below extent. Ids outside the range are last.
func bucketsOf(extent, skip int) radixOrder {
	return radixOrder{Type: op.I32, Rows: true, Skip: skip, Passes: ceil(bits.Len(uint(extent))-skip, radixBits)}
}

// extent declares the parameter with the number of rows, or returns 0 if elements are not ids.
func (o radixOrder) extent(k *ptx.Kernel) ptx.U32 {
	if !o.Rows {
		return ptx.U(0)
	}
	return ptx.Param[ptx.U32](k, "extent")
}

// made returns the value to sort for an element: the row of an id, otherwise the element.
func (o radixOrder) made(x, extent ptx.U32) ptx.U32 {
	if !o.Rows {
		return x
	}
	return x.Add(x.S32().Shr(ptx.U(31)).U32().And(extent)).Min(extent) // negative ids count from the end
}

// key returns the key of an element with the bits x. Keys have the order of the elements. The keys
// of NaN are above all others, and both zeros have the same key.
func (o radixOrder) key(x ptx.U32) ptx.U32 {
	if o.Rows {
		return x
	}
	magnitude, inf := uint32(0x7fff), uint32(0x7c00)
	top := uint32(1) << (8*o.Type.Size() - 1)
	switch o.Type {
	case op.U32:
	case op.I32:
		x = x.Xor(ptx.U(top))
	case op.F32:
		x = x.B32().Float().Add(ptx.F(0)).Bits().U32() // maps -0 to 0 and all NaN to 0x7fffffff
		x = x.Xor(x.S32().Shr(ptx.U(31)).U32().Or(ptx.U(top)))
	default:
		if o.Type == op.BF16 {
			inf = 0x7f80
		}
		size := x.And(ptx.U(magnitude))
		key := ptx.Select(x.Ge(ptx.U(top)).And(size.Ne(ptx.U(0))), x.Xor(ptx.U(2*top-1)), size.Or(ptx.U(top)))
		x = ptx.Select(size.Gt(ptx.U(inf)), ptx.U(2*top-1), key)
	}
	if o.Descending {
		return x.Not()
	}
	return x
}

// digit returns the digit of an element that begins at bit shift of its key.
func (o radixOrder) digit(x, shift ptx.U32) ptx.U32 {
	return o.key(x).Shr(shift).And(ptx.U(radixDigits - 1))
}

// elements declares an array of elements of the order's type, or of their bits in four bytes.
func (o radixOrder) elements(k *ptx.Kernel, name string, words bool) radixArray {
	if words || o.Type.Size() == 4 {
		return radixArray{words: ptx.GlobalParam[ptx.U32](k, name)}
	}
	return radixArray{halves: ptx.GlobalParam[ptx.U16](k, name), half: true}
}

// radixArray is an array of elements, read and written by their bits.
type radixArray struct {
	words  ptx.Global[ptx.U32]
	halves ptx.Global[ptx.U16]
	half   bool
}

func (a radixArray) at(i ptx.U32) radixArray {
	if a.half {
		a.halves = a.halves.At(i)
	} else {
		a.words = a.words.At(i)
	}
	return a
}

func (a radixArray) offset(n int) radixArray {
	if a.half {
		a.halves = a.halves.Offset(n)
	} else {
		a.words = a.words.Offset(n)
	}
	return a
}

func (a radixArray) load() ptx.U32 {
	if a.half {
		return a.halves.Load().U32()
	}
	return a.words.Load()
}

func (a radixArray) load4() (v [4]ptx.U32) {
	if !a.half {
		return a.words.Load4()
	}
	for i, x := range a.halves.Load4() {
		v[i] = x.U32()
	}
	return v
}

func (a radixArray) store4(v [4]ptx.U32) {
	if !a.half {
		a.words.Store4(v)
		return
	}
	var h [4]ptx.U16
	for i, x := range v {
		h[i] = x.U16()
	}
	a.halves.Store4(h)
}

func (a radixArray) store(x ptx.U32) {
	if a.half {
		a.halves.Store(x.U16())
	} else {
		a.words.Store(x)
	}
}

var radixKernels kernelCache[any]

func radixKernel(spec any, name string, lanes int, build func(k *ptx.Kernel)) *Kernel {
	return radixKernels.of(spec, func() *Kernel {
		return &Kernel{Name: name, Target: ptx.SM80, Block: [3]uint32{uint32(lanes), 1, 1}, Build: build}
	})
}

// radixSort is a sort of rows.
type radixSort struct {
	radixOrder
	tile       radixTile
	rows, cols int
	limit      int // number of elements to write for each row
	d          *Device

	// For ids: the number of rows, the values that move with the ids, and an array with one element
	// for each row that the first launch copies (unless its type is op.InvalidType).
	extent int
	values radixValues
	copied radixValues
	to     Arg
}

// radixValues is an array and its type.
type radixValues struct {
	Type  op.DType
	array Arg
}

// sort adds the launches that sort x to sorted. They also permute the indices of the elements, or
// the values, to moved.
func (r *radixSort) sort(p *Plan, x, sorted, moved Arg) {
	passes, tiles := r.Passes, ceil(r.cols, r.tile.size())
	totals := p.temporary(r.rows*passes*radixDigits + passes)
	state := p.temporary(r.rows * tiles * radixDigits)
	var halves [2][2]Arg
	for i := range min(passes-1, 2) {
		halves[i] = [2]Arg{p.temporary(r.rows * r.cols), p.temporary(r.rows * r.cols)}
	}
	p.Stages = append(p.Stages, r.counts(x, totals, state, tiles))
	from := [2]Arg{x, r.values.array}
	for i := range passes {
		s := radixPass{radixOrder: r.radixOrder, radixTile: r.tile, First: i == 0, Last: i == passes-1}
		if s.First {
			s.Values = r.values.Type
		}
		to := halves[i%2]
		if s.Last {
			to = [2]Arg{sorted, moved}
		}
		p.Stages = append(p.Stages, r.pass(s, i, tiles, from, to, totals, state))
		from = to
	}
}

// counts returns the launch that counts digits, and clears the words of the look-back.
func (r *radixSort) counts(x, totals, state Arg, tiles int) Stage {
	s := radixCount{radixOrder: r.radixOrder, Wide: r.cols%4 == 0, Copied: r.copied.Type}
	each := radixCountLanes * radixCountItems
	// Blocks add their counts to global counters, so few blocks are faster.
	if few := ceil(r.rows*r.cols, radixCountBlocks*r.d.Multiprocessors); few > each {
		each = ceil(few, each) * each
	}
	parts := ceil(r.cols, each)
	if s.Copied != op.InvalidType { // there is only one row
		parts = max(parts, min(ceil(r.extent, radixCopyEach), radixCountBlocks*r.d.Multiprocessors))
	}
	blocks := r.rows * parts
	words := r.rows * tiles * radixDigits / 4
	args := []Arg{x, totals, state, word(uint32(r.cols)), word(uint32(parts)), word(uint32(each)), word(uint32(words)), word(uint32(ceil(words, blocks)))}
	if s.Rows {
		args = append(args, word(uint32(r.extent)))
	}
	if s.Copied != op.InvalidType {
		args = append(args, r.copied.array, r.to, word(uint32(ceil(r.extent/4, blocks))))
	}
	return Stage{Kernel: radixKernel(s, "radix_count", radixCountLanes, s.build), Grid: [3]uint32{uint32(blocks), 1, 1}, Zero: totals.Array.Index, Args: args}
}

// pass returns the launch of a pass.
func (r *radixSort) pass(s radixPass, i, tiles int, from, to [2]Arg, totals, state Arg) Stage {
	args := []Arg{from[0]}
	if s.moves() {
		args = append(args, from[1])
	}
	tickets := totals
	tickets.Off = int64(4 * r.rows * r.Passes * radixDigits)
	args = append(args, to[0], to[1], totals, tickets, state, word(uint32(r.cols)), word(uint32(tiles)), word(uint32(i)))
	if s.Last {
		args = append(args, word(uint32(r.limit)))
	}
	if s.First && s.Rows {
		args = append(args, word(uint32(r.extent)))
	}
	return Stage{Kernel: radixKernel(s, "radix_pass", s.Lanes, s.build), Grid: [3]uint32{uint32(r.rows * tiles), 1, 1}, Args: args, Zero: -1}
}

// radixFits reports whether rows can be sorted by digits.
func radixFits(r *portable.Request, d *Device, cols int) bool {
	return d.Target >= ptx.SM80 && r.Post == nil && cols > radixShortest && cols < 1<<radixCountBits
}

// name returns the name of the variant.
func (t radixTile) name() string { return fmt.Sprintf("radix%dx%d", t.Lanes, t.Items) }

// radixTiles are the fastest tiles of many on an H100 (2026-11-25). Rows that fit into the first tile use it,
// and longer rows use the second.
var radixTiles = [2]radixTile{{Lanes: 256, Items: 16, Look: 4, Blocks: 4}, {Lanes: 512, Items: 16, Look: 4, Blocks: 2}}

// chooseRadixTile returns the tile for rows of cols elements.
func chooseRadixTile(cols int) radixTile {
	if cols <= radixTiles[0].size() {
		return radixTiles[0]
	}
	return radixTiles[1]
}
