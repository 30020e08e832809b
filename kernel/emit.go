package kernel

import (
	"math"
	"math/bits"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// The functions of this file make the instructions for the methods in values_gen.go. If all
// operands are constants, the result is a constant.

// unary applies c to a value of kind from.
func unary(c ir.Code, k, from kind, x handle) handle {
	b := x.b
	if b == nil {
		v, _ := ir.Fold(c, k.typ(), from.typ(), x.bits, 0, 0)
		return handle{bits: v}
	}
	return handle{b: b, id: b.pure(head(c, k, 0), b.use(x, from), 0, 0, 0)}
}

// binary applies c to values of kind from.
func binary(c ir.Code, k, from kind, x, y handle) handle { return flagged(c, 0, k, from, x, y) }

// flagged is binary with a flag.
func flagged(c ir.Code, flag uint8, k, from kind, x, y handle) handle {
	b := x.b
	if y.b == nil {
		if b == nil {
			v, _ := ir.Fold(c, k.typ(), from.typ(), x.bits, y.bits, 0)
			return handle{bits: v}
		}
		if r, ok := identity(c, from, x, y.bits); ok {
			return r
		}
	} else if b == nil {
		b = y.b
		if commutes(c) {
			if r, ok := identity(c, from, y, x.bits); ok {
				return r
			}
		}
	}
	p := b.use(x, from)
	return handle{b: b, id: b.pure(head(c, k, flag), p, b.use(y, from), 0, 0)}
}

// commutes reports whether an identity of c is also valid for the first operand.
func commutes(c ir.Code) bool {
	switch c {
	case ir.Add, ir.Mul, ir.And, ir.Or, ir.Xor:
		return true
	}
	return false
}

// identity returns the result of c for x and a constant y, if the result is exact and needs no
// instruction or a simpler one.
func identity(c ir.Code, k kind, x handle, y uint32) (handle, bool) {
	const one = 0x3f800000
	switch t := k.typ(); {
	case t == ir.F32 || t == ir.F16:
		switch c {
		case ir.Mul, ir.Div:
			return x, y == one
		case ir.Sub:
			return x, y == 0 // not Add: -0 + 0 is 0
		}
	case t == ir.Bool:
		switch c {
		case ir.And:
			if y == 0 {
				return handle{}, true
			}
			return x, true
		case ir.Or:
			if y != 0 {
				return handle{bits: 1}, true
			}
			return x, true
		case ir.Xor:
			return x, y == 0
		}
	default:
		switch c {
		case ir.Add, ir.Sub, ir.Xor, ir.Shl, ir.Shr:
			return x, y == 0
		case ir.Or:
			return x, y == 0
		case ir.Mul:
			if y == 0 {
				return handle{}, true
			}
			return x, y == 1
		case ir.And:
			if y == 0 {
				return handle{}, true
			}
			return x, y == math.MaxUint32
		case ir.IDiv:
			if t == ir.U32 && bits.OnesCount32(y) == 1 {
				return binary(ir.Shr, k, k, x, handle{bits: uint32(bits.TrailingZeros32(y))}), true
			}
			return x, y == 1
		case ir.IMod:
			if t == ir.U32 && bits.OnesCount32(y) == 1 {
				return binary(ir.And, k, k, x, handle{bits: y - 1}), true
			}
		}
	}
	return handle{}, false
}

// ternary applies c, with a flag, to three values of kind k.
func ternary(c ir.Code, flag uint8, k kind, x, y, z handle) handle {
	b := firstBuilder(x, y, z)
	if b == nil {
		v, _ := ir.Fold(c, k.typ(), k.typ(), x.bits, y.bits, z.bits)
		return handle{bits: v}
	}
	p, q := b.use(x, k), b.use(y, k)
	return handle{b: b, id: b.pure(head(c, k, flag), p, q, b.use(z, k), 0)}
}

func firstBuilder(x, y, z handle) *Builder {
	switch {
	case x.b != nil:
		return x.b
	case y.b != nil:
		return y.b
	}
	return z.b
}

// choose returns x if c, of kind ck, is true, and otherwise y.
func choose(k kind, c handle, ck kind, x, y handle) handle {
	if c.b == nil {
		if c.bits != 0 {
			return x
		}
		return y
	}
	b := c.b
	if k.width() > 1 && ck.width() == 1 {
		c = splat(k.with(ir.Bool), c)
	}
	p, q := b.use(c, k.with(ir.Bool)), b.use(x, k)
	return handle{b: b, id: b.pure(head(ir.Select, k, 0), p, q, b.use(y, k), 0)}
}

// shift applies Shl or Shr. The count n is a U32 or a vector of U32.
func shift(c ir.Code, k kind, x, n handle) handle {
	if n.b == nil && n.bits > 31 {
		if x.b != nil {
			return x.b.fail("shift by %d is out of range: the count must be from 0 to 31", n.bits)
		}
		return handle{b: shifted}
	}
	if k.typ() == ir.I32 {
		n = unary(ir.Bitcast, k, k.with(ir.U32), n)
	}
	return binary(c, k, k, x, n)
}

// splat returns a vector of kind k with equal components.
func splat(k kind, x handle) handle {
	if x.b == nil {
		return x
	}
	return handle{b: x.b, id: x.b.pure(head(ir.Splat, k, 0), x.b.use(x, k.scalar()), 0, 0, 0)}
}

// extract returns component i of a vector of kind k.
func extract(k kind, i int, x handle) handle {
	if x.b == nil {
		return x
	}
	if i < 0 || i >= int(k.width()) {
		return x.b.fail("component %d is out of range for a %v", i, k)
	}
	v := x.b.use(x, k)
	if int(v) < len(x.b.code) {
		switch in := &x.b.code[v]; in.code() {
		case ir.Compose:
			return handle{b: x.b, id: [4]ir.Value{in.args[0], in.args[1], in.args[2], ir.Value(in.imm)}[i]}
		case ir.Splat:
			return handle{b: x.b, id: in.args[0]}
		}
	}
	return handle{b: x.b, id: x.b.pure(head(ir.Extract, k.scalar(), uint8(i)), v, 0, 0, 0)}
}

// compose2 returns the vector of two components.
func (b *Builder) compose2(k kind, x, y handle) handle {
	if b = b.owner(); x.b == nil && y.b == nil && x.bits == y.bits {
		return x
	}
	p := b.use(x, k.scalar())
	return handle{b: b, id: b.pure(head(ir.Compose, k, 0), p, b.use(y, k.scalar()), 0, 0)}
}

// compose4 returns the vector of four components.
func (b *Builder) compose4(k kind, x, y, z, w handle) handle {
	if b = b.owner(); firstBuilder(x, y, z) == nil && w.b == nil && x.bits == y.bits && y.bits == z.bits && z.bits == w.bits {
		return x
	}
	s := k.scalar()
	p, q, r := b.use(x, s), b.use(y, s), b.use(z, s)
	t := b.use(w, s)
	if int(t) >= len(b.code) {
		return handle{b: b}
	}
	state := b.code[p].state | b.code[q].state | b.code[r].state | b.code[t].state
	return handle{b: b, id: b.intern(head(ir.Compose, k, 0), p, q, r, uint32(t), live|state&unsure)}
}

// dot returns the sum of the products of the components of two vectors of kind k.
func dot(k kind, x, y handle) handle {
	b := x.b
	if b == nil {
		if b = y.b; b == nil {
			p := binary(ir.Mul, k.scalar(), k.scalar(), x, y)
			return binary(ir.Mul, k.scalar(), k.scalar(), p, handle{bits: math.Float32bits(float32(k.width()))})
		}
	}
	p := b.use(x, k)
	return handle{b: b, id: b.pure(head(ir.Dot, k.scalar(), 0), p, b.use(y, k), 0, 0)}
}

// dot4 applies Dot4I8 or Dot4U8. x and y may be constants without a builder even if acc has one.
func dot4(c ir.Code, k kind, x, y, acc handle) handle {
	b := firstBuilder(x, y, acc)
	if b == nil {
		sum := acc.bits
		for i := 0; i < 32; i += 8 {
			p, q := uint32(uint8(x.bits>>i)), uint32(uint8(y.bits>>i))
			if c == ir.Dot4I8 {
				p, q = uint32(int32(int8(p))), uint32(int32(int8(q)))
			}
			sum += p * q
		}
		return handle{bits: sum}
	}
	p, q := b.use(x, kU32), b.use(y, kU32)
	return handle{b: b, id: b.pure(head(c, k, 0), p, q, b.use(acc, k), 0)}
}

// pack applies PackHalf and similar codes. All components of a constant vector are equal, so pack
// does not fold a constant that unpacks to unequal components.
func pack(c ir.Code, k, from kind, x handle) handle {
	if b := x.b; b != nil {
		return handle{b: b, id: b.pure(head(c, k, 0), b.use(x, from), 0, 0, 0)}
	}
	return packConstant(c, x.bits)
}

// packConstant folds the codes that pack applies.
func packConstant(c ir.Code, x uint32) handle {
	low, same := x&0xff, x == x&0xff*0x01010101
	switch c {
	case ir.PackHalf:
		h := uint32(op.F16FromFloat32(math.Float32frombits(x)))
		return handle{bits: h | h<<16}
	case ir.PackI8:
		return handle{bits: low * 0x01010101}
	case ir.UnpackHalf:
		low, same = math.Float32bits(op.F16ToFloat32(uint16(x))), x>>16 == x&0xffff
	case ir.UnpackI8:
		low = uint32(int32(int8(low)))
	}
	if !same {
		return handle{b: unequal}
	}
	return handle{bits: low}
}
