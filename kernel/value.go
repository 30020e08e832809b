package kernel

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// handle is the representation of every value: an instruction of a builder, or a constant, which
// belongs to no builder. All value types have it as their underlying type, so that generic code
// converts between them.
type handle struct {
	b    *Builder // nil for a constant
	id   ir.Value
	bits uint32 // bits of a constant, the same in every component; see ir.Const
}

// kind is the type of a value: an ir.Type and, above it, the width.
type kind uint16

func kindOf(t ir.Type, width uint8) kind { return kind(t) | kind(width)<<8 }

func (k kind) typ() ir.Type        { return ir.Type(k) }
func (k kind) width() uint8        { return uint8(k >> 8) }
func (k kind) scalar() kind        { return k&0xff | 1<<8 }
func (k kind) with(t ir.Type) kind { return k&^0xff | kind(t) }

func (k kind) String() string {
	switch k.width() {
	case 2:
		return "vec2<" + k.typ().String() + ">"
	case 4:
		return "vec4<" + k.typ().String() + ">"
	}
	return k.typ().String()
}

// Scalar lists the scalar numbers of 32 bits.
type Scalar interface{ F32 | I32 | U32 }

// Integer lists the types for atomic operations.
type Integer interface{ I32 | U32 }

// Element lists the types of elements of memory.
type Element interface {
	F32 | I32 | U32 | F16 |
		Vec2F | Vec4F | Vec2I | Vec4I | Vec2U | Vec4U | Vec2H | Vec4H
}

// Value lists all types of values.
type Value interface {
	F32 | I32 | U32 | F16 | Bool |
		Vec2F | Vec4F | Vec2I | Vec4I | Vec2U | Vec4U | Vec2H | Vec4H | Vec2B | Vec4B
}

// F returns the constant v.
func F(v float32) F32 { return F32{bits: math.Float32bits(v)} }

// I returns the constant v.
func I(v int32) I32 { return I32{bits: uint32(v)} }

// U returns the constant v.
func U(v uint32) U32 { return U32{bits: v} }

// N returns the constant n, for example a number of elements or an index in Go. If n is negative or
// has more than 32 bits, its use is an error.
func N(n int) U32 {
	if n < 0 || uint64(n) > math.MaxUint32 {
		return U32{b: tooBig}
	}
	return U32{bits: uint32(n)}
}

// H returns the constant v, rounded to a half float.
func H(v float32) F16 { return F16{bits: math.Float32bits(ir.NearestHalf(float64(v)))} }

// B returns the constant v.
func B(v bool) Bool {
	if v {
		return Bool{bits: 1}
	}
	return Bool{}
}

// Constant returns the value of x if it is known while the kernel is built.
func (x U32) Constant() (v uint32, ok bool) { return x.bits, x.b == nil }

// Constant returns the value of x if it is known while the kernel is built.
func (x I32) Constant() (v int32, ok bool) { return int32(x.bits), x.b == nil }

// Constant returns the value of x if it is known while the kernel is built.
func (x F32) Constant() (v float32, ok bool) { return math.Float32frombits(x.bits), x.b == nil }

// Constant returns the value of x if it is known while the kernel is built.
func (x Bool) Constant() (v, ok bool) { return x.bits != 0, x.b == nil }

// Select returns a if c is true, and otherwise b. Both are computed.
func Select[T Value](c Bool, a, b T) T {
	return T(choose(kindFor[T](), handle(c), kBool, handle(a), handle(b)))
}
