package ptx

import (
	"math"
	"math/bits"
)

// fold says how an instruction is folded if operands are constants.
type fold uint8

const (
	foldNone fold = iota
	foldSame      // the same bits
	foldAdd
	foldSub
	foldMul
	foldMulWide
	foldMulAdd
	foldDiv
	foldRem
	foldMin
	foldMax
	foldNeg
	foldAnd
	foldOr
	foldXor
	foldNot
	foldShl
	foldShr
	foldEq
	foldNe
	foldLt
	foldLe
	foldGt
	foldGe
)

// width returns the number of bits of an integer kind.
func (kd kind) width() uint { return 8 * uint(kinds[kd].size) }

func (kd kind) signed() bool { return kd == kS32 || kd == kS64 }

// trim reduces a constant to the bits of the kind.
func (kd kind) trim(bits uint64) handle {
	switch {
	case kd == kPred:
		return handle{c: uint32(bits & 1)}
	case kd.width() <= 32:
		return handle{c: uint32(bits)}
	}
	return constant64(bits)
}

// int returns a constant as a number. For signed kinds it extends the sign.
func (kd kind) int(x handle) int64 {
	if kd == kS32 {
		return int64(int32(x.c))
	}
	return int64(x.bits())
}

func fold1(o code, x handle) (handle, bool) {
	d := &descs[o]
	switch d.fold {
	case foldSame:
		return x, true
	case foldNot:
		return d.kinds[0].trim(^x.bits()), true
	case foldNeg:
		switch kd := d.kinds[0]; kd {
		case kF32:
			return handle{c: x.c ^ 1<<31}, true
		case kF64:
			return constant64(x.bits() ^ 1<<63), true
		default:
			return kd.trim(-x.bits()), true
		}
	}
	return handle{}, false
}

// fold2 folds an instruction with at least one constant operand.
func fold2(o code, x, y handle) (handle, bool) {
	d := &descs[o]
	if d.fold == foldNone {
		return handle{}, false
	}
	switch kd := d.kinds[1]; kd {
	case kF32, kF64:
		return foldFloat(d.fold, kd, x, y)
	case kF16, kF16x2, kBF16, kBF16x2:
		return handle{}, false
	default:
		if x.k == nil && y.k == nil {
			return foldInts(d.fold, kd, x, y)
		}
		return simplify(d.fold, kd, x, y)
	}
}

// foldFloat folds operations with a single correct result: Go rounds to nearest even, as the
// instructions do.
func foldFloat(f fold, kd kind, x, y handle) (handle, bool) {
	if x.k != nil || y.k != nil {
		// x*1 is x, but x+0 is not x for x = -0.
		if f == foldMul && isOne(kd, y) {
			return x, true
		}
		if f == foldMul && isOne(kd, x) {
			return y, true
		}
		return handle{}, false
	}
	a, b := kd.float(x), kd.float(y)
	switch f {
	case foldEq:
		return handle(Is(a == b)), true
	case foldNe:
		return handle(Is(a != b)), true
	case foldLt:
		return handle(Is(a < b)), true
	case foldLe:
		return handle(Is(a <= b)), true
	case foldGt:
		return handle(Is(a > b)), true
	case foldGe:
		return handle(Is(a >= b)), true
	}
	if kd == kF32 {
		r, ok := folded(f, float32(a), float32(b))
		return handle(F(r)), ok
	}
	r, ok := folded(f, a, b)
	return handle(D(r)), ok
}

// folded returns a sum, a difference or a product. ok is false for NaN, because the bits of a NaN
// depend on the device.
func folded[T float32 | float64](f fold, a, b T) (r T, ok bool) {
	switch f {
	case foldAdd:
		r = a + b
	case foldSub:
		r = a - b
	case foldMul:
		r = a * b
	default:
		return 0, false
	}
	return r, r == r
}

func (kd kind) float(x handle) float64 {
	if kd == kF32 {
		return float64(math.Float32frombits(x.c))
	}
	return math.Float64frombits(x.bits())
}

func isOne(kd kind, x handle) bool { return x.k == nil && kd.float(x) == 1 }

func foldInts(f fold, kd kind, x, y handle) (handle, bool) {
	a, b := x.bits(), y.bits()
	if kd == kPred {
		a, b = a&1, b&1
	}
	less := a < b
	if kd.signed() {
		less = kd.int(x) < kd.int(y)
	}
	r := uint64(0)
	switch f {
	case foldAdd:
		r = a + b
	case foldSub:
		r = a - b
	case foldMul:
		r = a * b
	case foldMulWide:
		return constant64(a * b), true
	case foldAnd:
		r = a & b
	case foldOr:
		r = a | b
	case foldXor:
		r = a ^ b
	case foldMin, foldMax:
		if r = b; less == (f == foldMin) {
			r = a
		}
	case foldDiv, foldRem:
		if b == 0 || kd.signed() {
			return handle{}, false
		}
		if r = a / b; f == foldRem {
			r = a % b
		}
	case foldShl:
		r = a << b
	case foldShr:
		if r = a >> b; kd.signed() {
			r = uint64(kd.int(x) >> b)
		}
	case foldEq:
		return handle(Is(a == b)), true
	case foldNe:
		return handle(Is(a != b)), true
	case foldLt:
		return handle(Is(less)), true
	case foldGe:
		return handle(Is(!less)), true
	case foldLe:
		return handle(Is(less || a == b)), true
	case foldGt:
		return handle(Is(!less && a != b)), true
	default:
		return handle{}, false
	}
	return kd.trim(r), true
}

// simplify folds instructions whose result does not depend on the variable operand, or is that
// operand.
func simplify(f fold, kd kind, x, y handle) (handle, bool) {
	if x.k == nil {
		switch f {
		case foldAdd, foldMul, foldAnd, foldOr, foldXor:
			x, y = y, x
		default:
			return handle{}, false
		}
	}
	b := y.bits()
	all := uint64(1)<<kd.width() - 1
	if kd == kPred {
		b, all = b&1, 1
	}
	switch {
	case b == 0 && (f == foldAdd || f == foldSub || f == foldOr || f == foldXor || f == foldShl || f == foldShr),
		b == 1 && (f == foldMul || f == foldDiv),
		b == all && f == foldAnd:
		return x, true
	case b == 0 && (f == foldMul || f == foldAnd):
		return y, true
	case b == all && f == foldOr:
		return y, true
	case f == foldMul && b&(b-1) == 0:
		return op2(shlOf(kd), x, handle(N(bits.TrailingZeros64(b)))), true
	// The assembler uses the same sequence of about twenty instructions for all divisors.
	case f == foldDiv && !kd.signed() && b&(b-1) == 0 && b > 0:
		return op2(shrOf(kd), x, handle(N(bits.TrailingZeros64(b)))), true
	case f == foldRem && !kd.signed() && b&(b-1) == 0 && b > 0:
		return op2(andOf(kd), x, kd.trim(b-1)), true
	}
	return handle{}, false
}

// shrOf and andOf return the instructions of unsigned kinds.
func shrOf(kd kind) code {
	if kd == kU64 {
		return opShrU64
	}
	return opShrU32
}

func andOf(kd kind) code {
	if kd == kU64 {
		return opAndU64
	}
	return opAndU32
}

func shlOf(kd kind) code {
	switch kd {
	case kU32:
		return opShlU32
	case kS32:
		return opShlS32
	case kU64:
		return opShlU64
	}
	return opShlS64
}

func fold3(o code, x, y, z handle) (handle, bool) {
	d := &descs[o]
	if d.fold != foldMulAdd {
		return handle{}, false
	}
	mul, add := opMulU32, opAddU32
	switch d.kinds[0] {
	case kS32:
		mul, add = opMulS32, opAddS32
	case kU64:
		mul, add = opMulU64, opAddU64
	case kS64:
		mul, add = opMulS64, opAddS64
	}
	switch {
	case x.k == nil && y.k == nil, x.k == nil && x.bits() <= 1, y.k == nil && y.bits() <= 1:
		return op2(add, op2(mul, x, y), z), true
	case z.k == nil && z.bits() == 0:
		return op2(mul, x, y), true
	}
	return handle{}, false
}
