package batch

import (
	"fmt"

	"github.com/rayo-go/rayo/op"
)

// The methods of this file compute random numbers from a key, a u32 array of shape [2]: see
// [op.Key]. The key is an operand, so one plan serves every seed. The bits of an element depend
// only on the key and the element's index: they are the same on every device, and the same as in
// JAX.

// Iota returns n consecutive numbers of u32. The first is start, one u32. They wrap at
// 2^32.
//
// Execute or Compile returns [op.ErrShape] for a start of another shape, and [op.ErrUnsupported]
// for one of another type. See docs/OPS.md#iota.
func (b *Batch) Iota(start Value, n int) Value { return b.apply(op.Iota, op.IotaOf(n), start) }

// Arange returns the n numbers start + i·step, where start and step are single
// elements of one type, f32, i32 or u32; numbers of integers wrap. The product is
// rounded, then the sum.
//
// Execute or Compile returns [op.ErrShape] for other shapes, and [op.ErrUnsupported] for other
// types.
func (b *Batch) Arange(start, step Value, n int) Value {
	i := b.Iota(b.word(0), n)
	if t := start.Type(); t != op.U32 {
		i = b.Cast(i, t)
	}
	return b.Add(start, b.Mul(i, step))
}

// RandomBits returns random bits of u32 in an array of the shape. For the seed 1:
//
//	k := op.Key(1)
//	key := batch.Upload(b, k[:])
//
// Execute or Compile returns [op.ErrShape] for a key of another shape, and [op.ErrUnsupported]
// for one of another type.
func (b *Batch) RandomBits(key Value, shape ...int) Value {
	if b.unusable() {
		return Value{}
	}
	s, err := b.checked(shape)
	n := 0
	if err == nil {
		n, err = s.Size()
	}
	if err == nil && b.own(key) && !key.Shape().Equal(op.Shape{2}) {
		err = fmt.Errorf("key of shape %v: expected [2]: %w", key.Shape(), op.ErrShape)
	}
	if err != nil {
		return b.failOp(op.Threefry, err, []Value{key})
	}
	bits := b.Threefry(b.Slice(key, 0, 0, 1, 1), b.Slice(key, 0, 1, 2, 1), b.Iota(b.word(0), n))
	return b.Reshape(bits, shape...)
}

// Uniform returns random numbers of f32 in [0, 1). They are multiples of 2^-23, made of the
// upper 23 bits of [Batch.RandomBits] with the same key.
func (b *Batch) Uniform(key Value, shape ...int) Value {
	bits := b.RandomBits(key, shape...)
	return b.Scale(b.Cast(b.ShiftRight(bits, b.word(9)), op.F32), 0x1p-23)
}

// Normal returns random numbers of f32 of the standard normal distribution: √2·erfinv(u)
// with u uniform in (-1, 1). The key is that of [Batch.RandomBits]. All devices give the
// same numbers within the tolerance of docs/OPS.md#erfinv.
func (b *Batch) Normal(key Value, shape ...int) Value {
	const least = -1 + 0x1p-24
	u := b.AddScalar(b.Scale(b.Uniform(key, shape...), 2), least)
	return b.Scale(b.Erfinv(u), 1.4142135623730951)
}

// Bernoulli returns random truth values; each is true with probability p. The
// key is that of [Batch.RandomBits].
func (b *Batch) Bernoulli(key Value, p float32, shape ...int) Value {
	return b.Less(b.Uniform(key, shape...), b.Const(p))
}

// word returns the number v of u32.
func (b *Batch) word(v float32) Value { return b.Cast(b.Const(v, 1), op.U32) }
