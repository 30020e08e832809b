//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A layoutReader decodes blocks from their description in package block. It serves the formats that
// have no decoder of their own.
type layoutReader struct{ quantised }

// gridOf returns the levels that a kernel reads from an array, which is bound after the blocks: the
// levels of a codebook or a table. A formula replaces a table of two levels.
func gridOf(t op.DType) []int8 {
	if foursOf()[t.Block()] != nil || !t.Quantized() {
		return nil
	}
	l := &t.Block().Layout().Level
	switch {
	case l.Grid != nil:
		return l.Grid.Levels()
	case len(l.Table) > 2:
		return l.Table
	}
	return nil
}

// withGrid returns the operands of q. If quantised operand i has levels (see gridOf), their array
// follows it.
func (p *planner) withGrid(q *request, i int) []Ref {
	in := q.inputs()
	t := q.In[i].Type
	levels := gridOf(t)
	if levels == nil {
		return in
	}
	numbers := make([]float32, len(levels))
	for i, v := range levels {
		numbers[i] = float32(v)
	}
	out := append([]Ref(nil), in[:i+1]...)
	return append(append(out, p.constant(numbers)), in[i+1:]...)
}

// share returns the number of the item that element j belongs to, if a block has the given number
// of items.
func (x layoutReader) share(j kernel.U32, items int) kernel.U32 {
	return j.Div(kernel.U(uint32(x.format.Elements() / items)))
}

// factor returns the scale of element j of the block at byte at. If the format has a second scale
// for parts of the block, factor returns the product of both scales.
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

// widthOf returns the number of bits of one integer of n.
func widthOf(n block.Number) int {
	bits := 0
	for _, f := range n {
		bits = max(bits, f.Shift+f.Bits)
	}
	return bits
}

// decodeFloat returns the number with the given bits in encoding e.
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
			item := i.Sub(u(uint32(f.First))) // an item before the first becomes a large unsigned number
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

// field returns item i of a field. If the field has no item i, the result is arbitrary bits of the
// block.
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
	// Callers may request an item that the field lacks: the minimum keeps the position within the
	// block.
	bit = bit.Min(u(uint32(8*x.format.Bytes() - f.Bits)))
	place, shift := at.Add(bit.Shr(u(3))), bit.And(u(7))
	return x.bits(place, shift, f.Bits).And(u(1<<f.Bits - 1))
}

// bits returns count bits from the given bit of byte at on, in its lowest bits. Higher bits are
// arbitrary. count is at most 25.
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
