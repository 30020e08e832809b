//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/kernel"
)

// unitElements is the number of neighbouring elements of a block that a lane decodes together if
// the format is read by its description. They have one scale. The positions of their bits differ
// from those of the first element by constants that are known when the kernel is built.
const unitElements = 16

// wordFormatOf returns the wordFormat that reads blocks of format f. Some formats have functions of
// their own; the description in package block serves all other formats of unsigned codes.
func wordFormatOf(f block.Format) (w wordFormat, ok bool) {
	if w, ok = wordFormats()[f]; ok {
		return w, true
	}
	if f == block.Invalid || f.Scalar() || f.Layout().Level.Signed {
		return w, false
	}
	w = wordFormat{units: f.Elements() / unitElements, rows: 2, read: func(x wordBlocks, at, unit kernel.U32) []wordGroup {
		return layoutReader{quantised{x}}.unit(at, unit)
	}}
	if f.Layout().Bias.Encoding != block.NoFloat {
		w.rows = 4 // measured on an H200 through Vulkan: Q4_1 1802 GB/s, with two rows 1714; Q2_K 740 and 642
	}
	return w, true
}

// unit returns elements 16·unit to 16·unit+15 of the block at byte at.
func (x layoutReader) unit(at, unit kernel.U32) []wordGroup {
	j := unit.Mul(kernel.U(unitElements))
	scale, bias := x.factors(at, j)
	g := wordGroup{scale: scale}
	if bias != nil {
		least := bias.Neg()
		g.least = &least
	}
	for i, v := range x.levels(at, j, unitElements) {
		g.quads = append(g.quads, wordQuad{j.Add(kernel.U(uint32(4 * i))), v})
	}
	return []wordGroup{g}
}

// quad returns elements 4i to 4i+3 of the array.
func (x layoutReader) quad(i kernel.U32) kernel.Vec4F {
	n := kernel.U(uint32(x.format.Elements() / 4))
	at, j := i.Div(n).Mul(kernel.U(uint32(x.format.Bytes()))), i.Mod(n).Mul(kernel.U(4))
	scale, bias := x.factors(at, j)
	v := x.levels(at, j, 4)[0].Mul(scale.Splat4())
	if bias != nil {
		v = v.Add(bias.Splat4())
	}
	return v
}

// factors returns the scale that multiplies the levels of element j and its neighbours, and the
// bias that is added, if the format has one.
func (x layoutReader) factors(at, j kernel.U32) (scale kernel.F32, bias *kernel.F32) {
	l := x.format.Layout()
	if l.Bias.Encoding != block.NoFloat {
		b := x.factor(&l.Bias, &l.SubBias, at, j)
		bias = &b
	}
	return x.factor(&l.Scale, &l.Sub, at, j), bias
}

// levels returns the levels of n elements from j on: the numbers that the scale multiplies. n is 4
// or 16, and j is a multiple of n; the same holds for the methods below.
func (x layoutReader) levels(at, j kernel.U32, n int) []kernel.Vec4F {
	l := &x.format.Layout().Level
	if l.Grid != nil {
		return x.gridLevels(l, at, j, n)
	}
	v := make([]kernel.Vec4F, n/4)
	for i, w := range x.codes(l.Number, at, j, n) {
		switch {
		case len(l.Table) == 2:
			first, step := float32(l.Table[0]), float32(l.Table[1])-float32(l.Table[0])
			v[i] = x.whole(w, 0).MulAdd(kernel.F(step).Splat4(), kernel.F(first).Splat4())
		case l.Table != nil:
			var e [4]kernel.F32
			for k := range e {
				e[k] = x.grid(w.Shr(kernel.U(uint32(8 * k))).And(kernel.U(255)))
			}
			v[i] = x.b.Vec4F(e[0], e[1], e[2], e[3])
		default:
			v[i] = x.whole(w, -l.Offset)
		}
	}
	return v
}

// gridLevels returns the levels of n elements of a format with a codebook.
func (x layoutReader) gridLevels(l *block.Level, at, j kernel.U32, n int) []kernel.Vec4F {
	u := func(v int) kernel.U32 { return kernel.U(uint32(v)) }
	e := make([]kernel.F32, n)
	for i, width := 0, min(n, l.Grid.Width); i < n; i += width {
		first := x.number(l.Number, at, x.share(j.Add(u(i)), l.Number.Items())).Mul(u(l.Grid.Width))
		if width < l.Grid.Width {
			first = first.Add(j.Mod(u(l.Grid.Width)))
		}
		for k := range width {
			e[i+k] = x.grid(first.Add(u(k)))
		}
	}
	for i := 0; i < n; i += 8 {
		eight := e[i:min(i+8, n)]
		if l.Signs != nil {
			signs := x.signs(l.Signs, at, j, i, n)
			for k, v := range eight {
				eight[k] = kernel.Select(signs.Shr(u(k)).And(u(1)).Eq(u(1)), v.Neg(), v)
			}
		}
		if l.Shift != nil {
			less := x.number(l.Shift, at, x.share(j.Add(u(i)), l.Shift.Items())).Eq(u(1))
			add := kernel.Select(less, kernel.F(-0.125), kernel.F(0.125))
			for k, v := range eight {
				eight[k] = v.Add(add)
			}
		}
	}
	v := make([]kernel.Vec4F, n/4)
	for i := range v {
		v[i] = x.b.Vec4F(e[4*i], e[4*i+1], e[4*i+2], e[4*i+3])
	}
	return v
}

// signs returns the signs of at most eight elements from j+i on, in the lowest bits. If a format
// stores seven bits for eight elements, the last sign makes the number of negative elements even.
func (x layoutReader) signs(f block.Number, at, j kernel.U32, i, n int) kernel.U32 {
	u := kernel.U
	if f.Items() == x.format.Elements() {
		return x.neighbours(&f[0], at, j, n).Shr(u(uint32(i)))
	}
	seven := x.number(f, at, x.share(j.Add(u(uint32(i))), f.Items()))
	signs := seven.Or(seven.CountOnes().And(u(1)).Shl(u(7)))
	if n < 8 {
		signs = signs.Shr(j.And(u(7)))
	}
	return signs
}

// codes returns the codes of n elements: each word has four codes, one in each byte.
func (x layoutReader) codes(fields block.Number, at, j kernel.U32, n int) []kernel.U32 {
	u := func(v int) kernel.U32 { return kernel.U(uint32(v)) }
	all := make([]kernel.U32, n/4)
	for k := range fields {
		f, item := &fields[k], j
		some := f.First > 0 || f.Items() < fields.Items()
		inside := item.Sub(u(f.First)).Lt(u(f.Items())) // an item before the first becomes a large unsigned number
		if some {
			item = kernel.Select(inside, item.Sub(u(f.First)), u(0))
		}
		for i, v := range x.quads(f, at, item, n) {
			if f.Shift > 0 {
				v = v.Shl(u(f.Shift))
			}
			if some {
				v = kernel.Select(inside, v, u(0))
			}
			if k > 0 {
				v = v.Or(all[i])
			}
			all[i] = v
		}
	}
	return all
}

// quads returns n items of a field from i on, one in each byte of the returned words.
func (x layoutReader) quads(f *block.Field, at, i kernel.U32, n int) []kernel.U32 {
	u := kernel.U
	v := make([]kernel.U32, n/4)
	if f.Steps[0].Stride < 8 {
		bits := x.neighbours(f, at, i, n)
		for k := range v {
			v[k] = spread(bits.Shr(u(uint32(4*f.Bits*k))), f.Bits)
		}
		return v
	}
	place, shift := x.place(f, at, i, n)
	words := x.words(place, offsetOf(f, n-4)/32+1)
	for k := range v {
		off := offsetOf(f, 4*k)
		w, s := words[off/32], shift
		if off%8 > 0 {
			s = s.Add(u(uint32(off % 8)))
		}
		if f.Ternary {
			v[k] = ternaryDigits(w, s)
		} else {
			v[k] = w.Shr(s).And(u((1<<f.Bits - 1) * 0x01010101))
		}
	}
	return v
}

// spread moves the lowest four numbers of one or two bits to the bytes of a word. It makes copies
// at different distances, and each byte keeps the bits of another copy.
func spread(v kernel.U32, bits int) kernel.U32 {
	u := kernel.U
	v = v.And(u(1<<(4*bits) - 1))
	all := v
	for i := 1; i < 4; i++ {
		all = all.Or(v.Shl(u(uint32(i * (8 - bits)))))
	}
	return all.And(u((1<<bits - 1) * 0x01010101))
}

// ternaryDigits returns digit n of each byte in base 3. n is 0 to 4.
func ternaryDigits(w, n kernel.U32) kernel.U32 {
	u := kernel.U
	// The powers of three are 1, 3, 9 and 27, which are the bytes of a word, and 81.
	power := kernel.Select(n.Eq(u(4)), u(81), u(0x1b090301).Shr(n.And(u(3)).Shl(u(3))).And(u(255)))
	half := func(w kernel.U32) kernel.U32 {
		return w.And(u(0x00ff00ff)).Mul(power).And(u(0x00ff00ff)).Mul(u(3)).Shr(u(8)).And(u(0x00030003))
	}
	return half(w).Or(half(w.Shr(u(8))).Shl(u(8)))
}

// place returns the byte and the bit of this byte at which item i of a field begins. The caller
// reads items i to i+n-1 together.
func (x layoutReader) place(f *block.Field, at, i kernel.U32, n int) (byteAt, bit kernel.U32) {
	u := func(v int) kernel.U32 { return kernel.U(uint32(v)) }
	total, radix := u(f.At), 1
	for k, s := range f.Steps {
		if radix*s.Count > n { // otherwise the digit is 0
			digit := i.Div(u(radix))
			if k < len(f.Steps)-1 {
				digit = digit.Mod(u(s.Count))
			}
			total = total.Add(digit.Mul(u(s.Stride)))
		}
		radix *= s.Count
	}
	return at.Add(total.Shr(u(3))), total.And(u(7))
}

// offsetOf returns the distance in bits from item 0 to item i of a field.
func offsetOf(f *block.Field, i int) (bits int) {
	for _, s := range f.Steps {
		bits += i % s.Count * s.Stride
		i /= s.Count
	}
	return bits
}

// neighbours returns n items of a field whose bits are contiguous.
func (x layoutReader) neighbours(f *block.Field, at, i kernel.U32, n int) kernel.U32 {
	place, bit := x.place(f, at, i, n)
	if n*f.Bits == 32 {
		return x.words(place, 1)[0] // these items begin at a byte boundary
	}
	return x.bits(place, bit, n*f.Bits)
}

// words returns n words from byte at on, which need not be aligned.
func (x wordBlocks) words(at kernel.U32, n int) []kernel.U32 {
	u := kernel.U
	i, shift := at.Shr(u(2)), at.And(u(3)).Shl(u(3))
	all := make([]kernel.U32, n+1)
	for k := range n {
		all[k] = x.one(i.Add(u(uint32(k))))
	}
	// The word after the last is read only if some of its bytes are needed, because it may be
	// outside of the array.
	all[n] = x.one(i.Add(u(uint32(n - 1))).Add(kernel.Select(shift.Eq(u(0)), u(0), u(1))))
	for k := range n {
		all[k] = all[k].Shr(shift).Or(all[k+1].Shl(u(1)).Shl(u(31).Sub(shift)))
	}
	return all[:n]
}
