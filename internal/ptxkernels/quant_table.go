package ptxkernels

import (
	"slices"

	"github.com/rayo-go/rayo/ptx"
)

// tableBytes is the size of the table in shared memory.
func (f *levelDecoder) tableBytes() int {
	switch {
	case f.table != nil:
		return 32 + 16
	case f.grid != nil:
		return 32 + f.grid.Rows*(4*f.gridWords()*f.copies+2)
	}
	return 0
}

// share writes the levels of the table and their summands, or a grid, to shared memory. It returns
// the lane's address of the table, which is valid after the next barrier of the block.
func (f *levelDecoder) share(k *ptx.Kernel, tid ptx.U32, threads int) (t ptx.Shared[ptx.B32]) {
	if f == nil || f.table == nil && f.grid == nil {
		return t
	}
	k.Align(16)
	if f.grid != nil {
		return f.shareGrid(k, tid, threads)
	}
	t = ptx.DynamicShared[ptx.B32](k, 8)
	k.If(tid.Eq(ptx.U(0)), func() {
		for i, w := range append(levelWords(f.table), levelWords(summands(f.table))...) {
			t.Offset(i).Store(ptx.B(w))
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

// gridWords is the number of words for the levels of a code. A level takes a byte, or a nibble if the grid is shifted.
func (f *levelDecoder) gridWords() int {
	if f.shifted {
		return 1
	}
	return f.grid.Width / 4
}

// shareGrid writes the indices of levels, which are constants of the kernel, to shared memory and expands them to the levels of all
// codes. The copies of the levels of one code follow each other.
func (f *levelDecoder) shareGrid(k *ptx.Kernel, tid ptx.U32, threads int) ptx.Shared[ptx.B32] {
	words := f.gridWords()
	places := ptx.DynamicShared[ptx.B32](k, f.grid.Rows/2)
	t := ptx.DynamicShared[ptx.B32](k, f.grid.Rows*words*f.copies)
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
	var bytes [2]uint32 // bytes of the levels
	for i, l := range levels {
		if f.shifted {
			l++
		}
		bytes[i/4] |= uint32(uint8(l)) << (8 * (i % 4))
	}
	k.Sync()
	k.For(tid, ptx.N(f.grid.Rows), ptx.N(threads), func(i ptx.U32) {
		place := ptx.CastShared[ptx.U16](places).At(i).Load().U32()
		var w []ptx.B32
		if f.grid.Width == 4 {
			w = append(w, ptx.B(bytes[0]).Permute(ptx.B(bytes[1]), place))
		} else {
			for half := range 2 { // expand two bits to four
				v := place.Shr(ptx.N(8 * half)).And(ptx.U(0xff))
				v = v.Or(v.Shl(ptx.U(4))).And(ptx.U(0x0f0f))
				w = append(w, ptx.B(bytes[0]).Permute(ptx.B(0), v.Or(v.Shl(ptx.U(2))).And(ptx.U(0x3333))))
			}
		}
		if f.shifted {
			w = []ptx.B32{w[0].Or(w[1].Shl(ptx.U(4)))}
		}
		at := t.At(i.Mul(ptx.N(words * f.copies)))
		for j := range f.copies {
			for n := range words {
				at.Offset(words*j + n).Store(w[n])
			}
		}
	})
	return t.At(tid.And(ptx.N(f.copies - 1)).Mul(ptx.N(words)))
}

// gridCode returns the levels of a code.
func (c *levelLane) gridCode(code ptx.U32) ptx.Shared[ptx.B32] {
	return c.table.At(code.Mul(ptx.N(c.code.gridWords() * c.code.copies)))
}
