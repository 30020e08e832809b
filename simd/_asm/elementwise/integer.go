package main

import (
	"fmt"

	"github.com/rayo-go/rayo/internal/ir"
)

// The instructions of integers, by operation and type. An integer has 32 bits.
var (
	x86Int = map[ir.Code]string{ir.Add: "VPADDD", ir.Sub: "VPSUBD", ir.Mul: "VPMULLD", ir.And: "VANDPS", ir.Or: "VORPS", ir.Xor: "VXORPS"}

	x86Signed   = map[ir.Code]string{ir.Min: "VPMINSD", ir.Max: "VPMAXSD", ir.Shr: "VPSRAD"}
	x86Unsigned = map[ir.Code]string{ir.Min: "VPMINUD", ir.Max: "VPMAXUD", ir.Shr: "VPSRLD"}

	neonInt      = map[ir.Code]string{ir.Add: "add", ir.Sub: "sub", ir.Mul: "mul", ir.Abs: "abs", ir.Neg: "neg", ir.Eq: "cmeq"}
	neonSigned   = map[ir.Code]string{ir.Min: "smin", ir.Max: "smax", ir.Shr: "sshr", ir.Lt: "cmgt", ir.Le: "cmge"}
	neonUnsigned = map[ir.Code]string{ir.Min: "umin", ir.Max: "umax", ir.Shr: "ushr", ir.Lt: "cmhi", ir.Le: "cmhs"}
)

// integerPredicates are the immediates of VPCMPD and VPCMPUD.
var integerPredicates = map[ir.Code]int{ir.Eq: 0, ir.Lt: 1, ir.Le: 2, ir.Ne: 4}

// integer selects instructions for n, whose first operand is an integer.
func (x x86) integer(s *selector, n *ir.Node) *value {
	arg := func(i int) *value { return s.value(n.Args[i]) }
	typed := x86Signed
	if n.Args[0].Type == ir.U32 {
		typed = x86Unsigned
	}
	switch n.Code {
	case ir.Add, ir.Sub, ir.Mul, ir.And, ir.Or, ir.Xor:
		if n.Code.Commutes() {
			return s.commuting(x86Int[n.Code], second, arg(0), arg(1))
		}
		return s.plain(x86Int[n.Code], second, arg(0), arg(1))
	case ir.Min, ir.Max:
		return s.commuting(typed[n.Code], second, arg(0), arg(1))
	case ir.Neg:
		return s.plain("VPSUBD", second, s.constant(0), arg(0))
	case ir.Abs:
		return s.plain("VPABSD", nil, arg(0))
	case ir.Not:
		return s.plain("VXORPS", second, arg(0), s.constant(1<<32-1))
	case ir.Shl, ir.Shr:
		op := "VPSLLD"
		if n.Code == ir.Shr {
			op = typed[ir.Shr]
		}
		if n.Args[1].Code == ir.Const {
			return s.add(instruction{op: op, src: []*value{arg(0)}, tied: -1, imm: int(n.Args[1].Value)})
		}
		return s.plain(op[:len(op)-1]+"VD", second, arg(0), arg(1)) // a count for each lane
	case ir.Eq, ir.Ne, ir.Lt, ir.Le:
		return x.compareIntegers(s, n)
	}
	check(fmt.Errorf("%s has no instructions for %v of %v", x.level(), n.Code, n.Args[0].Type))
	return nil
}

// compareIntegers selects a comparison. AVX2 has equality and the signed a > b. Unsigned a ≤ b is
// min(a, b) = a; the other comparisons are negations.
func (x x86) compareIntegers(s *selector, n *ir.Node) *value {
	a, b := s.value(n.Args[0]), s.value(n.Args[1])
	signed := n.Args[0].Type == ir.I32
	if x.wide {
		op := "VPCMPUD"
		if signed {
			op = "VPCMPD"
		}
		return s.add(instruction{op: op, dst: x.truth(), src: []*value{a, b}, tied: -1, folds: second, imm: integerPredicates[n.Code]})
	}
	equal := func(a, b *value) *value { return s.commuting("VPCMPEQD", second, a, b) }
	switch {
	case n.Code == ir.Eq:
		return equal(a, b)
	case n.Code == ir.Ne:
		return x.flip(s, equal(a, b))
	case n.Code == ir.Lt && signed:
		return s.plain("VPCMPGTD", second, b, a)
	case signed:
		return x.flip(s, s.plain("VPCMPGTD", second, a, b))
	case n.Code == ir.Lt:
		a, b = b, a
	}
	notGreater := equal(s.commuting("VPMINUD", second, a, b), a)
	if n.Code == ir.Lt {
		return x.flip(s, notGreater)
	}
	return notGreater
}

// flip negates a truth value.
func (x x86) flip(s *selector, m *value) *value {
	if x.wide {
		return s.mask("KNOTW", m)
	}
	return s.plain("VXORPS", second, m, s.constant(1<<32-1))
}

// one returns the bits of 1 of a type.
func one(t ir.Type) uint32 { return constBits(ir.NewConst(1, t)) }

// convert selects a conversion between types.
func (x x86) convert(s *selector, n *ir.Node) *value {
	v := s.value(n.Args[0])
	switch from, to := n.Args[0].Type, n.Type; {
	case from == ir.Bool && x.wide:
		return s.plain("VMOVAPS.Z", nil, v, s.constant(one(to)))
	case from == ir.Bool:
		return s.plain("VANDPS", second, v, s.constant(one(to)))
	case to == ir.Bool && from == ir.F32:
		return s.add(instruction{op: "VCMPPS", dst: x.truth(), src: []*value{v, s.constant(0)}, tied: -1, folds: second, imm: predicates[ir.Ne][0]})
	case to == ir.Bool && x.wide:
		return s.add(instruction{op: "VPTESTMD", dst: x.truth(), src: []*value{v, v}, tied: -1})
	case to == ir.Bool:
		return x.flip(s, s.plain("VPCMPEQD", second, v, s.constant(0)))
	case from.Integer() && to.Integer():
		return v
	case from == ir.I32 && to == ir.F32:
		return s.plain("VCVTDQ2PS", nil, v)
	case from == ir.F32 && to == ir.I32:
		return x.truncate(s, v)
	}
	check(fmt.Errorf("%s does not convert %v to %v", x.level(), n.Args[0].Type, n.Type))
	return nil
}

// truncate converts floats to i32. The instruction returns -2^31 for all floats that do not fit. If
// the kernel saturates, floats from 2^31 on become 2^31-1, and NaN becomes 0.
func (x x86) truncate(s *selector, v *value) *value {
	y := s.plain("VCVTTPS2DQ", nil, v)
	if !s.saturates {
		return y
	}
	const notBelow, ordered = 13, 7
	compare := func(w *value, imm int) *value {
		return s.add(instruction{op: "VCMPPS", dst: x.truth(), src: []*value{v, w}, tied: -1, folds: second, imm: imm})
	}
	high := compare(s.float(1<<31), notBelow)
	if x.wide {
		y = x.blend(s, high, s.constant(1<<31-1), y)
		return s.plain("VMOVAPS.Z", nil, compare(v, ordered), y)
	}
	y = s.commuting("VXORPS", second, y, high)
	return s.commuting("VANDPS", second, y, compare(v, ordered))
}

// neonInteger selects instructions for n with integer operands a, or returns nil if there are none.
func neonInteger(s *selector, n *ir.Node, a []*value) *value {
	typed := neonSigned
	if n.Args[0].Type == ir.U32 {
		typed = neonUnsigned
	}
	switch n.Code {
	case ir.Shl, ir.Shr:
		return neonShifted(s, n, a, typed[ir.Shr])
	case ir.Ne:
		return s.plain("mvn", nil, s.plain("cmeq", nil, a...))
	case ir.Lt, ir.Le:
		return s.plain(typed[n.Code], nil, a[1], a[0])
	}
	for _, table := range []map[ir.Code]string{neonInt, typed} {
		if op, ok := table[n.Code]; ok {
			return s.plain(op, nil, a...)
		}
	}
	return nil
}

// neonShifted selects a shift. NEON shifts by a count in each lane: to the left, or to the right if
// the count is negative.
func neonShifted(s *selector, n *ir.Node, a []*value, right string) *value {
	if n.Args[1].Code == ir.Const {
		op := "shl"
		if n.Code == ir.Shr {
			op = right
		}
		return s.add(instruction{op: op, src: a[:1], tied: -1, imm: int(n.Args[1].Value)})
	}
	count := a[1]
	if n.Code == ir.Shr {
		count = s.plain("neg", nil, count)
	}
	return s.plain(right[:1]+"shl", nil, a[0], count) // sshl or ushl
}

// neonConvert selects a conversion of a between types. Conversions to integers saturate.
func neonConvert(s *selector, n *ir.Node, a *value) *value {
	switch from, to := n.Args[0].Type, n.Type; {
	case from == ir.Bool:
		return s.plain("and", nil, a, s.constant(one(to)))
	case to == ir.Bool && from == ir.F32:
		return s.plain("mvn", nil, s.plain("fcmeq", nil, a, s.constant(0)))
	case to == ir.Bool:
		return s.plain("cmtst", nil, a, a)
	case from.Integer() && to.Integer():
		return a
	default:
		return s.plain(map[[2]ir.Type]string{{ir.I32, ir.F32}: "scvtf", {ir.U32, ir.F32}: "ucvtf", {ir.F32, ir.I32}: "fcvtzs", {ir.F32, ir.U32}: "fcvtzu"}[[2]ir.Type{from, to}], nil, a)
	}
}
