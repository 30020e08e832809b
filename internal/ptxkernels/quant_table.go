package ptxkernels

import (
	"slices"

	"github.com/rayo-go/rayo/ptx"
)

// sharedTable is the table of a levelDecoder in shared memory.
type sharedTable struct {
	levels ptx.Shared[ptx.B32] // of a format with a table: the levels, then their summands
	// Of TQ1_0: a word for each byte, see shareTrits. tritCopy is like gridCopy.
	trits    ptx.Shared[ptx.U8]
	tritCopy ptx.U32
	// Of a format with a grid: a word for each code, and one or two words for each combination of
	// eight signs. An entry has several copies of its words in different banks. grid and signs are the
	// same for all lanes; gridCopy and signCopy are the offsets in bytes of the lane's copy in an entry.
	grid, signs        ptx.Shared[ptx.U8]
	gridCopy, signCopy ptx.U32
	copies             tableCopies
}

// tableCopies has the numbers of copies of the words of tables. With 32 copies each lane reads its own bank.
type tableCopies struct{ grid, signs, trits int }

// tableCopies returns the numbers of copies. A kernel has a small table if decoding does not limit its speed, or if there is
// little shared memory. A grid has at least four copies; fewer were not measured.
func (f *levelDecoder) tableCopies(small bool) tableCopies {
	if small {
		return tableCopies{max(f.copies/2, 4), 8, 4}
	}
	return tableCopies{f.copies, 32, 32}
}

// tableBytes is the size of the table in shared memory.
func (f *levelDecoder) tableBytes(small bool) int {
	c := f.tableCopies(small)
	switch {
	case f.table != nil:
		return 32 + 16
	case f.trits:
		return 32 + 256*4*c.trits
	case f.grid != nil:
		return 32 + f.grid.Rows*(4*c.grid+2) + f.signCodes()*4*c.signs
	}
	return 0
}

// share writes the levels of the table and their summands, or a grid, to shared memory. The result
// is valid after the next barrier of the block.
func (f *levelDecoder) share(k *ptx.Kernel, tid ptx.U32, threads int, small bool) (t sharedTable) {
	if f == nil || f.table == nil && f.grid == nil && !f.trits {
		return t
	}
	k.Align(16)
	if f.trits {
		return f.shareTrits(k, tid, threads, f.tableCopies(small))
	}
	if f.grid != nil {
		return f.shareGrid(k, tid, threads, f.tableCopies(small))
	}
	t.levels = ptx.DynamicShared[ptx.B32](k, 8)
	k.If(tid.Eq(ptx.U(0)), func() {
		for i, w := range append(levelWords(f.table), levelWords(summands(f.table))...) {
			t.levels.Offset(i).Store(ptx.B(w))
		}
	})
	return t
}

// summands returns the first summand of each level. The second summand of the level of code n is 0,
// or -1 if the first summand of code n^8 is negative. See summandsOf.
func summands(levels []int8) []int8 {
	y := slices.Clone(levels)
	for n := range y {
		if levels[n^8] < 0 {
			y[n]++
		}
	}
	return y
}

// levelWords returns levels as bytes, four in a word.
func levelWords(levels []int8) []uint32 {
	y := make([]uint32, len(levels)/4)
	for i, l := range levels {
		y[i/4] |= uint32(uint8(l)) << (8 * (i % 4))
	}
	return y
}

// gridCodes returns the distinct levels of a grid and, for each code, 16 bits with the indices of
// its levels in this list.
func (f *levelDecoder) gridCodes() (levels []int8, codes []uint32) {
	all := f.grid.Levels()
	levels = slices.Clone(all)
	slices.Sort(levels)
	levels = slices.Compact(levels)
	bits := 16 / f.grid.Width
	for i := range f.grid.Rows {
		v := uint32(0)
		for j, l := range all[i*f.grid.Width:][:f.grid.Width] {
			v |= uint32(slices.Index(levels, l)) << (bits * j)
		}
		codes = append(codes, v)
	}
	return levels, codes
}

// signCodes is the number of entries of the table of signs.
func (f *levelDecoder) signCodes() int {
	return [...]int{noSigns: 0, sevenSigns: 128, eightSigns: 256}[f.signs]
}

// selected reports whether a word of the grid and a word of signs select the levels of eight weights
// from the positive and the negative levels.
func (f *levelDecoder) selected() bool { return f.grid.Width == 8 && !f.shifted }

// shareGrid writes the indices of levels, which are constants of the kernel, to shared memory and expands them to the levels of all
// codes. The copies of the word of one code follow each other.
func (f *levelDecoder) shareGrid(k *ptx.Kernel, tid ptx.U32, threads int, c tableCopies) (t sharedTable) {
	places := ptx.DynamicShared[ptx.B32](k, f.grid.Rows/2)
	grid := ptx.DynamicShared[ptx.B32](k, f.grid.Rows*c.grid)
	levels, codes := f.gridCodes()
	warps := threads / 32
	for w := range warps {
		k.If(tid.Eq(ptx.N(32*w)), func() {
			for i := 4 * w; i < len(codes)/2; i += 4 * warps {
				var v [4]ptx.B32
				for j := range v {
					v[j] = ptx.B(codes[2*(i+j)] | codes[2*(i+j)+1]<<16)
				}
				places.Offset(i).Store4(v)
			}
		})
	}
	k.Sync()
	k.For(tid, ptx.N(f.grid.Rows*c.grid), ptx.N(threads), func(i ptx.U32) {
		place := ptx.CastShared[ptx.U16](places).At(i.Div(ptx.N(c.grid))).Load().U32()
		grid.At(i).Store(f.gridWord(levels, place))
	})
	t.grid = ptx.CastShared[ptx.U8](grid)
	t.gridCopy, t.copies = tid.And(ptx.N(c.grid-1)).Shl(ptx.U(2)), c
	if n := f.signCodes(); n > 0 {
		signs := ptx.DynamicShared[ptx.B32](k, n*c.signs)
		k.For(tid, ptx.N(n*c.signs), ptx.N(threads), func(i ptx.U32) {
			signs.At(i).Store(f.signWord(i.Div(ptx.N(c.signs)), i.And(ptx.U(1))))
		})
		t.signs, t.signCopy = ptx.CastShared[ptx.U8](signs), tid.And(ptx.N(c.signs-1)).Shl(ptx.U(2))
		if !f.selected() { // two words
			t.signCopy = tid.And(ptx.N(c.signs/2 - 1)).Shl(ptx.U(3))
		}
	}
	return t
}

// gridWord returns the word of a code: the levels of four weights; or nibbles that select levels; or, if the grid is
// shifted, bytes with two indices of levels each. place has the indices of the levels.
func (f *levelDecoder) gridWord(levels []int8, place ptx.U32) ptx.B32 {
	if f.grid.Width == 4 {
		var v [8]int8
		copy(v[:], levels)
		w := levelWords(v[:])
		return ptx.B(w[0]).Permute(ptx.B(w[1]), place)
	}
	if !f.shifted {
		return spread(place, 16, 2, 4).B32()
	}
	// Byte i has the index of the level of weight i in bits 0 and 1, and that of weight i+4 in bits 2 and 3.
	first, second := spread(place.And(ptx.U(0xff)), 8, 2, 8), spread(place.Shr(ptx.U(8)), 8, 2, 8)
	return first.Or(second.Shl(ptx.U(2))).B32()
}

// spread moves the fields of a word with the given number of bits, which are width bits wide, to distances of step bits.
func spread(v ptx.U32, bits, width, step int) ptx.U32 {
	for half := bits / 2; half >= width; half /= 2 {
		mask := uint32(0)
		for i := 0; i < bits/half; i++ {
			mask |= (1<<half - 1) << (i * half * step / width)
		}
		v = v.Or(v.Shl(ptx.N(half*step/width - half))).And(ptx.U(mask))
	}
	return v
}

// signWord returns a word of the table of signs. half is 1 if it is for the last four of eight weights.
func (f *levelDecoder) signWord(signs, half ptx.U32) ptx.B32 {
	if f.signs == sevenSigns { // the number of negative weights is even
		signs = signs.CountOnes().Shl(ptx.U(7)).And(ptx.U(0x80)).Or(signs)
	}
	if f.selected() {
		return spread(signs, 8, 1, 4).Shl(ptx.U(2)).B32()
	}
	four := signs.Shr(half.Shl(ptx.U(2))).And(ptx.U(15))
	return spread(four, 4, 1, 8).Mul(ptx.U(0xff)).B32()
}

// shareTrits writes a word for each byte v to shared memory. Digit n of v is (v·3ⁿ mod 256)·3 / 256. Byte n of the word has digit n
// minus 1 in the top two bits, for n below 4, and below them digit 4 minus 1.
func (f *levelDecoder) shareTrits(k *ptx.Kernel, tid ptx.U32, threads int, c tableCopies) (t sharedTable) {
	words := ptx.DynamicShared[ptx.B32](k, 256*c.trits)
	k.For(tid, ptx.N(256*c.trits), ptx.N(threads), func(i ptx.U32) {
		v, w := i.Div(ptx.N(c.trits)), ptx.U(0)
		for n := range 5 {
			v = v.And(ptx.U(0xff)).Mul(ptx.U(3))
			level := v.Shr(ptx.U(8)).Add(ptx.U(3)).And(ptx.U(3))
			if n < 4 {
				w = w.Or(level.Shl(ptx.N(8*n + 6)))
			} else {
				w = w.Or(level.Mul(ptx.U(0x10101010)))
			}
		}
		words.At(i).Store(w.B32())
	})
	return sharedTable{trits: ptx.CastShared[ptx.U8](words), tritCopy: tid.And(ptx.N(c.trits - 1)).Shl(ptx.U(2)), copies: c}
}
