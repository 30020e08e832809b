package ptxkernels

import (
	"slices"

	"github.com/rayo-go/rayo/ptx"
)

// Kernels that multiply by digits decode some formats with a grid in another order. Lane t of four decodes parts t and t+4 alone,
// while in the order of a levelDecoder the four lanes share each part. The lane multiplies levels by the small factors of their
// weights before the mma. All products of a group then have the same factor, so they are added to the same integers, and a lane reads
// each byte of its parts and extracts each factor only once.

// ownLevels decodes the parts of a lane.
type ownLevels struct {
	weights  []int32 // the values of 1 in the sums, in levelDecoder.unit
	unsigned bool    // the factors of ownProduct are bytes from 0 to 255
	// products returns products with the activations of slot n, 0 to 7: see ownOrder.
	products func(n int) []ownProduct
}

// ownProduct is a product of an mma with the activations of a slot, which is added to a sum. The factors are indexed by row and step.
type ownProduct struct {
	sum     int
	factors [2][2]ptx.B32
}

// ownOrder returns the first of four adjacent activations of a group. slot is 8·n + 4·step + lane. In a slot, a lane has the eight
// activations of one code of a grid; or, in pairs of slots, the first four of two codes, then the last four of these.
func ownOrder(slot ptx.U32, pairs bool) ptx.U32 {
	n, step, lane := slot.Shr(ptx.U(3)), slot.Shr(ptx.U(2)).And(ptx.U(1)), slot.And(ptx.U(3))
	if pairs {
		n, step = n.And(ptx.U(6)).Or(step), n.And(ptx.U(1))
	}
	part := n.And(ptx.U(4)).Add(lane)
	return part.MulAdd(ptx.U(32), n.And(ptx.U(3)).MulAdd(ptx.U(8), step.Shl(ptx.U(2))))
}

// ownLevels multiplies a group with digits.
func (c *digitLane) ownLevels(f *levelDecoder, bytes int) {
	lane := c.newLevelLane(f, bytes, &c.constants)
	l, whole := f.own(lane), f.open(lane).whole
	x := c.parts(8)
	sums := make([][]*integers, len(c.units))
	for m := range sums {
		for range l.weights {
			sums[m] = append(sums[m], c.newIntegers())
		}
	}
	for n := range 8 {
		for _, p := range l.products(n) {
			for m := range sums {
				if l.unsigned {
					w := p.factors
					c.k.MmaU8S8((*[4]ptx.Var[ptx.S32])(sums[m][p.sum]), [4]ptx.B32{w[0][0], w[1][0], w[0][1], w[1][1]}, x(m, n))
					continue
				}
				c.multiplyTo(sums[m][p.sum], p.factors, x(m, n))
			}
		}
	}
	scale := [2]ptx.F32{whole(0), whole(1)}
	for m, all := range sums {
		sum := c.newIntegers()
		for i, w := range l.weights {
			all[i].addTo(sum, [2]ptx.S32{ptx.S(w), ptx.S(w)})
		}
		unit := c.units[m].Mul(ptx.F(f.unit))
		sum.scaleTo(&c.total[0][m], [2]ptx.F32{scale[0].Mul(unit), scale[1].Mul(unit)})
	}
}

// ownRows returns the rows at the lane's offset, if a part has n bytes.
func (c *levelLane) ownRows(n int) (y [2]ptx.Shared[ptx.U8]) {
	for r := range y {
		y[r] = c.row[r].At(c.quad.Mul(ptx.N(n)))
	}
	return y
}

// ownPart is a part of 32 weights: four codes of a grid.
type ownPart struct {
	factor func(j int) ptx.S32 // the small factor of a code
	code   func(j int) ptx.U32 // the offset of a code in the grid
	signs  func(j int) ptx.U32 // the offset of the signs in their table
}

// ownSelected decodes a format whose grid and signs select levels. A level is base·a + b with small a and b. Words of all values of a
// and of b, and of their negatives, are multiplied by the factor; then the selectors select bytes of these words.
func (c *levelLane) ownSelected(part func(r, half int) *ownPart) *ownLevels {
	levels, _ := c.code.gridCodes()
	base, a, b := splitLevels(levels, 127/int(2*c.code.factors+1))
	parts := map[levelWord]*ownPart{}
	return &ownLevels{weights: []int32{int32(base), 1}, products: func(n int) []ownProduct {
		y := []ownProduct{{sum: 0}, {sum: 1}}
		for r := range 2 {
			at := levelWord{r: r, off: n / 4}
			p := parts[at]
			if p == nil {
				p = part(r, n/4)
				parts[at] = p
			}
			f, j := p.factor(n%4).B32().U32(), n%4
			v := c.gridWord(p.code(j)).Or(ptx.CastShared[ptx.B32](c.table.signs.At(p.signs(j))).Load())
			for i, values := range [][]int{a, b} {
				plus, minus := timesBytes(f, values), timesBytes(f, negatives(values))
				for step := range 2 {
					y[i].factors[r][step] = plus.Permute(minus, v.Shr(ptx.N(16*step)).U32())
				}
			}
		}
		return y
	}}
}

// splitLevels returns numbers of at most limit, in absolute value, with levels[i] = base·a[i] + b[i].
func splitLevels(levels []int8, limit int) (base int, a, b []int) {
	small := func(x int) bool { return -limit <= x && x <= limit }
	for base = 1; base < 128; base++ {
		a, b = nil, nil
		for _, l := range levels {
			x := (2*int(l) + base) / (2 * base)
			a, b = append(a, x), append(b, int(l)-base*x)
		}
		if !slices.ContainsFunc(append(slices.Clone(a), b...), func(x int) bool { return !small(x) }) {
			return base, a, b
		}
	}
	panic("ptxkernels: no base splits the levels of the grid")
}

func negatives(v []int) (y []int) {
	for _, x := range v {
		y = append(y, -x)
	}
	return y
}

// timesBytes returns a word of f times up to four signed bytes. f is positive and no product overflows its byte. A negative byte
// borrows 1 from the byte above, which the summand returns.
func timesBytes(f ptx.U32, v []int) ptx.B32 {
	var word, carry uint32
	for i, x := range v {
		word += uint32(x) << (8 * i)
		if x < 0 {
			carry += 1 << (8*i + 8)
		}
	}
	if carry == 0 {
		return f.Mul(ptx.U(word)).B32()
	}
	return f.MulAdd(ptx.U(word), ptx.U(carry)).B32()
}

// fieldBytes returns the first four fields of n bits of a word of 16 bits as bytes, with n at most 3. It moves every other field by one
// product, because bits of all four would collide.
func fieldBytes(w ptx.U32, n int) ptx.U32 {
	move := func(first int) (mask, by, to uint32) {
		for i := first; i < 4; i += 2 {
			mask |= (1<<n - 1) << (n * i)
			by |= 1 << ((8 - n) * i)
			to |= (1<<n - 1) << (8 * i)
		}
		return mask, by, to
	}
	mask, by, to := move(0)
	even := w.And(ptx.U(mask)).Mul(ptx.U(by)).And(ptx.U(to))
	mask, by, to = move(1)
	return w.And(ptx.U(mask)).Mul(ptx.U(by)).And(ptx.U(to)).Or(even)
}

// ownCode returns the offset in the grid of code j of four: byte j of two words, and above it byte j of high, which is below 128.
func (c *levelLane) ownCode(words func(i int) (ptx.U32, int), high ptx.U32, j int) ptx.U32 {
	low, at := words(j / 2)
	zero := uint32(0xc+j) * 0x1100 // copies of the top bit of a byte of high
	return c.ownOffset(low.Permute(high, ptx.U(zero|uint32(4+j)<<4|uint32(at/8+j%2))))
}

// ownOffset returns the offset in the grid of a code.
func (c *levelLane) ownOffset(code ptx.U32) ptx.U32 { return code.MulAdd(c.entry, c.table.gridCopy) }

// pairAt returns bytes off to off+3 of a row as two words of 16 bits.
func pairAt(p ptx.Shared[ptx.U8], off int) [2]ptx.U32 {
	return [2]ptx.U32{wordIn(p, off), wordIn(p, off+2)}
}

// fourBytes returns a function for the four bytes of a row at off. It returns the offset of the entry of byte i in a table: see byteEntry.
func (c *levelLane) fourBytes(p ptx.Shared[ptx.U8], off int) func(i, size int, offset ptx.U32) ptx.U32 {
	words := c.twoWords(p, off)
	return func(i, size int, offset ptx.U32) ptx.U32 {
		w, at := words(i / 2)
		return byteEntry(w.B32(), at/8+i%2, size, offset)
	}
}

// twoWords returns a function for the two words of 16 bits of a row at off. It returns a word that has word i, and the bit there at
// which it begins.
func (c *levelLane) twoWords(p ptx.Shared[ptx.U8], off int) func(i int) (ptx.U32, int) {
	if c.aligned(off) {
		w := ptx.CastShared[ptx.U32](p.Offset(off)).Load()
		return func(i int) (ptx.U32, int) { return w, 16 * i }
	}
	w := pairAt(p, off)
	return func(i int) (ptx.U32, int) { return w[i], 0 }
}

func (c *levelLane) ownIQ2XS() *ownLevels {
	at, one := c.ownRows(8), c.ownRows(1)
	return c.ownSelected(func(r, half int) *ownPart {
		scales := byteIn(one[r], 66+4*half)
		codes := [2]func(i int) (ptx.U32, int){c.twoWords(at[r], 2+32*half), c.twoWords(at[r], 6+32*half)}
		return &ownPart{
			factor: func(j int) ptx.S32 { return c.odd(scales, 4*(j/2)) },
			code: func(j int) ptx.U32 {
				w, at := codes[j/2](j % 2)
				return c.gridField(w, at, 9)
			},
			signs: func(j int) ptx.U32 {
				w, at := codes[j/2](j % 2)
				return field(w, at+9, 7, c.signEntry()).Or(c.table.signCopy)
			},
		}
	})
}

func (c *levelLane) ownIQ2S() *ownLevels {
	at, one := c.ownRows(4), c.ownRows(1)
	return c.ownSelected(func(r, half int) *ownPart {
		scales, codes, signs := byteIn(one[r], 74+4*half), c.twoWords(at[r], 2+16*half), c.fourBytes(at[r], 34+16*half)
		high := fieldBytes(byteIn(one[r], 66+4*half), 2)
		return &ownPart{
			factor: func(j int) ptx.S32 { return c.odd(scales, 4*(j/2)) },
			code:   func(j int) ptx.U32 { return c.ownCode(codes, high, j) },
			signs:  func(j int) ptx.U32 { return signs(j, c.signEntry(), c.table.signCopy) },
		}
	})
}

// ownShift is a part of 32 weights of a format with a shifted grid.
type ownShift struct {
	factor func(j int) ptx.U32 // the small factor of a code
	code   func(j int) ptx.U32 // the offset of a code in the grid
	shift  func(j int) ptx.B32 // four copies of the factor times 7, or times 9 if the weights are shifted by -1/8
}

// ownShifted decodes a format with a shifted grid. With L = 0, 1 or 2, a weight is the factor times 8·L - 7 or 8·L - 9. Factors times
// L, at most 30, and the same numbers times 4 have separate sums, which saves a shift.
func (c *levelLane) ownShifted(part func(r, half int) *ownShift) *ownLevels {
	type decoded struct{ first, second, shift ptx.B32 }
	codes, parts := map[levelWord]decoded{}, map[levelWord]*ownShift{}
	decode := func(r, n int) decoded {
		at := levelWord{r: r, off: n}
		d, ok := codes[at]
		if ok {
			return d
		}
		p := parts[levelWord{r: r, off: n / 4}]
		if p == nil {
			p = part(r, n/4)
			parts[levelWord{r: r, off: n / 4}] = p
		}
		v, f := c.gridWord(p.code(n%4)), p.factor(n%4)
		d = decoded{
			first:  v.And(ptx.B(0x03030303)).U32().Mul(f).B32(),
			second: v.And(ptx.B(0x0c0c0c0c)).U32().Mul(f).B32(),
			shift:  p.shift(n % 4),
		}
		codes[at] = d
		return d
	}
	return &ownLevels{weights: []int32{8, 2, -1}, unsigned: true, products: func(n int) []ownProduct {
		y := []ownProduct{{sum: n % 2}, {sum: 2}}
		for r := range 2 {
			for step := range 2 {
				d := decode(r, n&^1+step)
				y[0].factors[r][step], y[1].factors[r][step] = [2]ptx.B32{d.first, d.second}[n%2], d.shift
			}
		}
		return y
	}}
}

func (c *levelLane) ownIQ1S() *ownLevels {
	at, two := c.ownRows(4), c.ownRows(2)
	return c.ownShifted(func(r, half int) *ownShift {
		codes, rest := c.twoWords(at[r], 2+16*half), wordIn(two[r], 34+8*half)
		high, factor := fieldBytes(rest, 3), c.odd(rest, 12).B32().U32()
		shift := rest.Shr(ptx.U(15)).MulAdd(ptx.U(0x02020202), ptx.U(0x07070707)).Mul(factor).B32()
		return &ownShift{
			factor: func(int) ptx.U32 { return factor },
			code:   func(j int) ptx.U32 { return c.ownCode(codes, high, j) },
			shift:  func(int) ptx.B32 { return shift },
		}
	})
}

func (c *levelLane) ownIQ1M() *ownLevels {
	at, two := c.ownRows(4), c.ownRows(2)
	odd := c.quad.And(ptx.U(1)) // two parts share a word of factors
	return c.ownShifted(func(r, half int) *ownShift {
		words := ptx.CastShared[ptx.B32](at[r]).Offset(16 / 4 * half).Load().U32()
		// The bits above codes and, in the fourth bits, their shifts.
		nibbles := wordIn(two[r], 32+8*half).Permute(ptx.U(0), ptx.U(0x1100)).B32()
		high := nibbles.Shr(ptx.U(4)).And(ptx.B(0x0f000f00)).Or(nibbles.And(ptx.B(0x000f000f)))
		minus := high.Shr(ptx.U(2)).And(ptx.B(0x02020202))
		high = high.And(ptx.B(0x07070707))
		scales := wordIn(c.row[r].At(c.quad.Sub(odd)), 48+4*half).Shr(odd.Mul(ptx.U(6)))
		var factors, seven [2]ptx.U32
		for i := range factors {
			factors[i] = c.odd(scales, 3*i).B32().U32()
			seven[i] = factors[i].Mul(ptx.U(0x07070707))
		}
		return &ownShift{
			factor: func(j int) ptx.U32 { return factors[j/2] },
			code: func(j int) ptx.U32 {
				return c.ownCode(func(i int) (ptx.U32, int) { return words, 16 * i }, high.U32(), j)
			},
			shift: func(j int) ptx.B32 { return bytesOf(minus, j).U32().MulAdd(factors[j/2], seven[j/2]).B32() },
		}
	})
}
