//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A layoutReader decodes single elements of blocks from their description, for formats without a
// hand-written decoder.
type layoutReader struct{ quantised }

// hasGrid reports whether kernels take the codebook of a type as an array behind the
// blocks.
func hasGrid(t op.DType) bool {
	return foursOf[t.Block()] == nil && t.Quantized() && t.Block().Layout().Level.Grid != nil
}

// withGrid returns the operands of q, with the codebook of the quantised one of index i
// behind it, if it has one.
func (p *planner) withGrid(q *request, i int) []Ref {
	in := q.inputs()
	t := q.In[i].Type
	if !hasGrid(t) {
		return in
	}
	levels := t.Block().Layout().Level.Grid.Levels()
	numbers := make([]float32, len(levels))
	for i, v := range levels {
		numbers[i] = float32(v)
	}
	out := append([]Ref(nil), in[:i+1]...)
	return append(append(out, p.constant(numbers)), in[i+1:]...)
}

// element returns element i of the array.
func (x layoutReader) element(i kernel.U32) kernel.F32 {
	n := kernel.U(uint32(x.format.Elements()))
	at, j := i.Div(n).Mul(kernel.U(uint32(x.format.Bytes()))), i.Mod(n)
	l := x.format.Layout()
	v := x.factor(&l.Scale, &l.Sub, at, j).Mul(x.level(&l.Level, at, j))
	if l.Bias.Encoding != block.NoFloat {
		v = v.Add(x.factor(&l.Bias, &l.SubBias, at, j))
	}
	return v
}

// share returns which of so many items element j belongs to.
func (x layoutReader) share(j kernel.U32, items int) kernel.U32 {
	return j.Div(kernel.U(uint32(x.format.Elements() / items)))
}

// factor returns the scale of element j of the block at byte at, times its small
// factor.
func (x layoutReader) factor(f *block.Float, sub *block.Integer, at, j kernel.U32) kernel.F32 {
	u := kernel.U
	v := decodeFloat(f.Encoding, x.number(f.Number, at, x.share(j, f.Number.Items())))
	if sub.Number == nil {
		return v
	}
	k := x.number(sub.Number, at, x.share(j, sub.Number.Items()))
	small := k.F32()
	if sub.Signed {
		unused := u(uint32(32 - widthOf(sub.Number)))
		small = k.Shl(unused).I32().Shr(unused).F32()
	}
	return v.Mul(small.Mul(kernel.F(sub.Mul)).Add(kernel.F(sub.Add)))
}

// widthOf returns the bits of one integer of n.
func widthOf(n block.Number) int {
	bits := 0
	for _, f := range n {
		bits = max(bits, f.Shift+f.Bits)
	}
	return bits
}

// level returns the part of element j that the scale multiplies.
func (x layoutReader) level(l *block.Level, at, j kernel.U32) kernel.F32 {
	u := kernel.U
	code := x.number(l.Number, at, x.share(j, l.Number.Items()))
	var v kernel.F32
	switch {
	case l.Grid != nil:
		width := u(uint32(l.Grid.Width))
		v = x.grid(code.Mul(width).Add(j.Mod(width)))
	case l.Table != nil:
		v = signedByte(lookUp(l.Table, code))
	case l.Signed:
		unused := u(uint32(32 - widthOf(l.Number)))
		v = code.Shl(unused).I32().Shr(unused).F32()
	default:
		v = code.F32().Add(kernel.F(float32(l.Offset)))
	}
	if l.Signs != nil {
		v = kernel.Select(x.negative(l, at, j), v.Neg(), v)
	}
	if l.Shift != nil {
		less := x.number(l.Shift, at, x.share(j, l.Shift.Items())).Eq(u(1))
		v = v.Add(kernel.Select(less, kernel.F(-0.125), kernel.F(0.125)))
	}
	return v
}

// negative reports the sign of element j. Of 7 bits for 8 elements the last sign makes
// the number of negative ones even.
func (x layoutReader) negative(l *block.Level, at, j kernel.U32) kernel.Bool {
	u := kernel.U
	items := l.Signs.Items()
	signs := x.number(l.Signs, at, x.share(j, items))
	if items < x.format.Elements() {
		signs = signs.Or(signs.CountOnes().And(u(1)).Shl(u(7))).Shr(j.And(u(7))).And(u(1))
	}
	return signs.Eq(u(1))
}

// lookUp returns a byte of a table of up to 16.
func lookUp(table []int8, code kernel.U32) kernel.U32 {
	u := kernel.U
	var w [4]kernel.U32
	for i := range w {
		bits := uint32(0)
		for j := range 4 {
			if k := 4*i + j; k < len(table) {
				bits |= uint32(uint8(table[k])) << (8 * j)
			}
		}
		w[i] = u(bits)
	}
	upper := code.And(u(8)).Ne(u(0))
	second := code.And(u(4)).Ne(u(0))
	word := kernel.Select(second, kernel.Select(upper, w[3], w[1]), kernel.Select(upper, w[2], w[0]))
	return word.Shr(code.And(u(3)).Shl(u(3)))
}

// decodeFloat returns the number that bits encode.
func decodeFloat(e block.Encoding, bits kernel.U32) kernel.F32 {
	u := kernel.U
	switch e {
	case block.Binary16:
		return bits.UnpackHalf().At(0)
	case block.E8M0:
		small := kernel.Select(bits.Eq(u(0)), u(0x200000), u(0x400000))
		return kernel.Select(bits.Lt(u(2)), small, bits.Sub(u(1)).Shl(u(23))).AsF32()
	case block.UE4M3:
		exponent, mantissa := bits.Shr(u(3)).And(u(15)), bits.And(u(7)).F32()
		v := exponent.Add(u(119)).Shl(u(23)).AsF32().Mul(mantissa.Mul(kernel.F(0.125)).Add(kernel.F(1)))
		v = kernel.Select(exponent.Eq(u(0)), mantissa.Mul(kernel.F(0x1p-10)), v)
		return kernel.Select(bits.And(u(0x7f)).Eq(u(0x7f)), kernel.F(0), v)
	}
	return kernel.F(1)
}

// number returns item i of the numbers of the block at byte at.
func (x layoutReader) number(n block.Number, at, i kernel.U32) kernel.U32 {
	u := kernel.U
	total := u(0)
	for k := range n {
		f := &n[k]
		v := x.field(f, at, i)
		if f.Shift > 0 {
			v = v.Shl(u(uint32(f.Shift)))
		}
		if f.First > 0 || f.Items() < n.Items() {
			item := i.Sub(u(uint32(f.First))) // of one before the first it is large
			v = kernel.Select(item.Lt(u(uint32(f.Items()))), v, u(0))
		}
		if k == 0 {
			total = v
		} else {
			total = total.Add(v)
		}
	}
	return total
}

// field returns item i of a field, or of an i that the field lacks some bits of
// the block.
func (x layoutReader) field(f *block.Field, at, i kernel.U32) kernel.U32 {
	u := kernel.U
	if f.First > 0 || f.Items() == 1 {
		i = i.Sub(u(uint32(f.First)))
	}
	bit := u(uint32(f.At))
	for k, s := range f.Steps {
		digit := i
		if k < len(f.Steps)-1 || f.First > 0 {
			digit = i.Mod(u(uint32(s.Count)))
		}
		bit = bit.Add(digit.Mul(u(uint32(s.Stride))))
		if k < len(f.Steps)-1 {
			i = i.Div(u(uint32(s.Count)))
		}
	}
	// A field that has not all items may be asked for another: that stays in the block.
	bit = bit.Min(u(uint32(8*x.format.Bytes() - f.Bits)))
	place, shift := at.Add(bit.Shr(u(3))), bit.And(u(7))
	if f.Ternary {
		return ternaryDigit(x.byteAt(place), shift)
	}
	return x.bits(place, shift, f.Bits).And(u(1<<f.Bits - 1))
}

func (x layoutReader) byteAt(at kernel.U32) kernel.U32 {
	u := kernel.U
	return x.one(at.Shr(u(2))).Shr(at.And(u(3)).Shl(u(3))).And(u(255))
}

// bits returns at least so many bits, no more than 25, from a bit of a byte on.
func (x layoutReader) bits(at, shift kernel.U32, count int) kernel.U32 {
	u := kernel.U
	i := at.Shr(u(2))
	from := at.And(u(3)).Shl(u(3)).Add(shift)
	low := x.one(i).Shr(from)
	if count == 1 {
		return low
	}
	// The remaining bits of a field are in the next word, which is read only if necessary.
	crosses := from.Add(u(uint32(count))).Gt(u(32))
	next := x.one(i.Add(kernel.Select(crosses, u(1), u(0))))
	high := next.Shl(u(32).Sub(from).And(u(31)))
	return low.Or(kernel.Select(crosses, high, u(0)))
}

// ternaryDigit returns digit n of a byte to base 3.
func ternaryDigit(v, n kernel.U32) kernel.U32 {
	u := kernel.U
	// 1, 3, 9 and 27 in the bytes of a word, and 81.
	power := kernel.Select(n.Eq(u(4)), u(81), u(0x1b090301).Shr(n.And(u(3)).Shl(u(3))).And(u(255)))
	return v.Mul(power).And(u(255)).Mul(u(3)).Shr(u(8))
}
