package ptx

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// handle is what every value is: a register of a kernel, or a constant, which belongs to no kernel.
// All value types have it as their underlying type.
type handle struct {
	k *Kernel // nil for a constant
	v val     // the upper half of a constant of 64 bits
	c uint32  // the age of the kernel; the (lower half of a) constant
}

// val is an operand: its tag in the upper 4 bits, and its number in the others.
type val uint32

const (
	tagShift = 28
	payload  = 1<<tagShift - 1
)

// The tags of operands. The tag of a register is its class plus 1.
const (
	tagSmall   val = 7 + iota // the number itself
	tagSigned                 // consts, printed as a signed number
	tagBig                    // consts, printed as an unsigned number
	tagF32                    // consts, the bits of a float
	tagF64                    // consts, the bits of a double
	tagParam                  // params
	tagShared                 // shared
	tagSpecial                // specials
	tagLabel
)

func (v val) tag() val  { return v >> tagShift }
func (v val) n() uint32 { return uint32(v & payload) }

func tagged(tag val, n int) val { return tag<<tagShift | val(n) }

// class is what registers are declared as.
type class uint8

const (
	classP class = iota // .pred
	classH              // .b16
	classR              // .b32
	classD              // .b64
	classF              // .f32
	classG              // .f64
	numClasses
)

// classes says how registers of a class are declared and called.
var classes = [numClasses]struct{ typ, prefix string }{
	{".pred", "%p"}, {".b16", "%h"}, {".b32", "%r"}, {".b64", "%d"}, {".f32", "%f"}, {".f64", "%g"},
}

func (c class) reg(n uint32) val { return val(c+1)<<tagShift | val(n) }

// class returns the class of a register.
func (v val) class() (c class, ok bool) {
	c = class(v.tag() - 1)
	return c, c < numClasses
}

// kind is a type of value.
type kind uint8

// kindInfo describes a kind.
type kindInfo struct {
	name   string
	suffix string // of loads and stores
	class  class
	size   uint8 // bytes of an element in memory
	mov    code
	sel    code
}

// F returns the constant v.
func F(v float32) F32 { return F32{c: math.Float32bits(v)} }

// D returns the constant v.
func D(v float64) F64 { return F64(constant64(math.Float64bits(v))) }

// U returns the constant v.
func U(v uint32) U32 { return U32{c: v} }

// S returns the constant v.
func S(v int32) S32 { return S32{c: uint32(v)} }

// B returns the constant v.
func B(v uint32) B32 { return B32{c: v} }

// UL returns the constant v.
func UL(v uint64) U64 { return U64(constant64(v)) }

// SL returns the constant v.
func SL(v int64) S64 { return S64(constant64(uint64(v))) }

// H returns the constant v, rounded to a half float.
func H(v float32) F16 { return F16{c: halfBits(v)} }

// H2 returns the constant with both halves v, rounded to a half float.
func H2(v float32) F16x2 { return F16x2{c: halfBits(v) * 0x10001} }

// BF returns the constant v, rounded to a BF16.
func BF(v float32) BF16 { return BF16{c: brainBits(v)} }

// BF2 returns the constant with both halves v, rounded to a BF16.
func BF2(v float32) BF16x2 { return BF16x2{c: brainBits(v) * 0x10001} }

func brainBits(v float32) uint32 {
	bits := math.Float32bits(v)
	if v != v {
		return bits>>16 | 0x40
	}
	return (bits + 0x7fff + bits>>16&1) >> 16 // to nearest, ties to even
}

// Is returns the constant v.
func Is(v bool) Pred {
	if v {
		return Pred{c: 1}
	}
	return Pred{}
}

// N returns the constant n, a number of elements or an index as Go counts them.
// A negative n and one of more than 32 bits are mistakes where they are used.
func N(n int) U32 {
	if n < 0 || uint64(n) > math.MaxUint32 {
		return U32{k: tooBig}
	}
	return U32{c: uint32(n)}
}

func constant64(bits uint64) handle { return handle{v: val(bits >> 32), c: uint32(bits)} }

// bits returns the bits of a constant.
func (h handle) bits() uint64 { return uint64(h.v)<<32 | uint64(h.c) }

// Constant returns the value of x if it is known while the kernel is built.
func (x U32) Constant() (v uint32, ok bool) { return x.c, x.k == nil }

func halfBits(v float32) uint32 {
	f := math.Float32bits(ir.NearestHalf(float64(v)))
	sign, exp, frac := f>>16&0x8000, int(f>>23&0xff)-127+15, f>>13&0x3ff
	switch {
	case f<<1 == 0:
		return sign
	case f>>23&0xff == 0xff:
		if f<<9 != 0 {
			frac |= 0x200
		}
		return sign | 0x7c00 | frac
	case exp <= 0: // subnormal: the fraction with its leading 1, shifted down
		return sign | (f&0x7fffff|0x800000)>>(14-exp)
	}
	return sign | uint32(exp)<<10 | frac
}

// Reg returns a register that holds x, which may be a constant.
func Reg[T Value](k *Kernel, x T) T {
	k = k.owner()
	kd := kindFor[T]()
	return T(k.result(kinds[kd].mov, k.use(handle(x), kd), 0, 0))
}

// Select returns a where p holds, else b.
func Select[T Value](p Pred, a, b T) T {
	return T(choose(handle(p), handle(a), handle(b), kindFor[T]()))
}

func choose(p, a, b handle, kd kind) handle {
	if p.k == nil {
		if p.c != 0 {
			return a
		}
		return b
	}
	k := p.k
	if kd == kPred { // selp has no form for it
		a, b, p := Pred(a), Pred(b), Pred(p)
		return handle(p.And(a).Or(p.Not().And(b)))
	}
	return k.result(kinds[kd].sel, k.use(a, kd), k.use(b, kd), k.use(p, kPred))
}
