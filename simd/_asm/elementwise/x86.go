package main

import (
	"fmt"

	"github.com/rayo-go/rayo/internal/ir"
)

// x86 writes AVX-512 if wide is set, otherwise AVX2 with FMA.
type x86 struct {
	wide bool
	near bool // no operand of a normal distribution function is below -nearLimit
	// stream kernels use non-temporal stores. The caller must order the stores with a fence.
	stream bool
	// ahead kernels process blocks that the caller has already read, and prefetch the next block.
	ahead bool
}

func (x x86) level() string {
	if x.wide {
		return "AVX512"
	}
	return "AVX2"
}

// lanes returns the floats in a vector.
func (x x86) lanes() int {
	if x.wide {
		return 16
	}
	return 8
}

// registers returns the available registers. K0 means no mask, and K1 is the mask of the tail; on
// AVX2, the mask of the tail is the last vector register.
func (x x86) registers(tail bool) registers {
	switch {
	case x.wide:
		return registers{32, 6}
	case tail:
		return registers{15, 0}
	}
	return registers{16, 0}
}

func (x x86) native(c ir.Code) bool {
	switch c {
	case ir.Round, ir.RoundF16, ir.RoundBF16:
		return true
	case ir.Ldexp, ir.CopySign, ir.Tanh, ir.Erf, ir.NormCDF, ir.Log, ir.Log2:
		return x.wide
	}
	return false
}

// The predicates of VCMPPS, and the predicates for swapped operands.
var predicates = map[ir.Code][2]int{ir.Eq: {0, 0}, ir.Ne: {4, 4}, ir.Lt: {17, 30}, ir.Le: {18, 29}}

var x86Float = map[ir.Code]string{ir.Add: "VADDPS", ir.Sub: "VSUBPS", ir.Mul: "VMULPS", ir.Div: "VDIVPS", ir.Min: "VMINPS", ir.Max: "VMAXPS"}
var x86Bits = map[ir.Code]string{ir.And: "VANDPS", ir.Or: "VORPS", ir.Xor: "VXORPS"}
var x86Rounding = map[ir.Code]int{ir.Round: 8, ir.Floor: 9, ir.Ceil: 10, ir.Trunc: 11}

const signBit = 1 << 31

// blockLength is mapBlock of package simd.
const blockLength = 512

var second = []int{1}

func (x x86) emit(s *selector, n *ir.Node) *value {
	arg := func(i int) *value { return s.value(n.Args[i]) }
	t := n.Args[0].Type
	switch {
	case n.Code == ir.Convert:
		return x.convert(s, n)
	case t == ir.Bool && n.Code != ir.Select:
		return x.logic(s, n)
	case t.Integer():
		return x.integer(s, n)
	}
	switch n.Code {
	case ir.Add, ir.Mul, ir.Sub, ir.Div:
		op := x86Float[n.Code]
		a, b := arg(0), arg(1)
		if n.Code.Commutes() {
			return s.commuting(op, second, a, b)
		}
		return s.plain(op, second, a, b)
	case ir.Min, ir.Max:
		return x.extreme(s, n)
	case ir.Neg:
		if m := n.Args[0]; m.Code == ir.Abs {
			return s.plain("VORPS", second, s.value(m.Args[0]), s.constant(signBit))
		}
		return s.plain("VXORPS", second, arg(0), s.constant(signBit))
	case ir.Abs:
		return s.plain("VANDPS", second, arg(0), s.constant(signBit-1))
	case ir.Fma:
		return x.fma(s, n)
	case ir.Sqrt:
		return s.plain("VSQRTPS", nil, arg(0))
	case ir.Floor, ir.Ceil, ir.Trunc, ir.Round:
		op := "VROUNDPS"
		if x.wide {
			op = "VRNDSCALEPS"
		}
		return s.add(instruction{op: op, src: []*value{arg(0)}, tied: -1, imm: x86Rounding[n.Code]})
	case ir.RoundF16:
		half := s.add(instruction{op: "VCVTPS2PH", src: []*value{arg(0)}, tied: -1}) // imm 0: to nearest even
		return s.plain("VCVTPH2PS", nil, half)
	case ir.RoundBF16:
		if x.wide {
			return x.roundBF16(s, arg(0))
		}
		return s.value(roundBF16(n.Args[0]))
	case ir.CopySign:
		a, b := arg(0), arg(1)
		return s.add(instruction{op: "VPTERNLOGD", src: []*value{a, b, s.constant(signBit)}, tied: 0, folds: []int{2}, imm: 0xD8})
	case ir.Ldexp:
		return s.plain("VSCALEFPS", second, arg(0), arg(1))
	case ir.Eq, ir.Ne, ir.Lt, ir.Le:
		return x.compare(s, n)
	case ir.Select:
		return x.choose(s, n)
	case ir.Tanh:
		return x.odd(s, n, tanhTable)
	case ir.Erf:
		return x.odd(s, n, erfTable)
	case ir.NormCDF:
		return x.normCDF(s, n)
	case ir.Log, ir.Log2:
		return x.logarithm(s, n)
	}
	check(fmt.Errorf("%s has no instructions for %v of %v", x.level(), n.Code, t))
	return nil
}

// extreme selects a minimum or maximum that is NaN if either operand is. The instruction returns
// its second operand if either is NaN, so a constant must be the first operand.
func (x x86) extreme(s *selector, n *ir.Node) *value {
	op, a, b := x86Float[n.Code], n.Args[0], n.Args[1]
	if fixedNode(b) {
		a, b = b, a
	}
	va, vb := s.value(a), s.value(b)
	y := s.plain(op, nil, va, vb)
	if fixedNode(a) {
		return y
	}
	const unordered = 3
	m := s.add(instruction{op: "VCMPPS", dst: x.truth(), src: []*value{va, va}, tied: -1, imm: unordered})
	return x.blend(s, m, va, y)
}

// truth returns a new truth value.
func (x x86) truth() *value {
	if x.wide {
		return &value{class: predicate}
	}
	return &value{class: vector}
}

// blend returns a in lanes where m holds, otherwise b.
func (x x86) blend(s *selector, m, a, b *value) *value {
	if x.wide {
		if b.fixed && b.bits != nil && len(b.bits) == 1 && b.bits[0] == 0 {
			return s.plain("VMOVAPS.Z", nil, m, a)
		}
		return s.plain("VBLENDMPS", second, m, a, b)
	}
	return s.plain("VBLENDVPS", second, m, a, b)
}

func (x x86) choose(s *selector, n *ir.Node) *value {
	m, a, b := s.value(n.Args[0]), s.value(n.Args[1]), s.value(n.Args[2])
	if n.Type == ir.Bool && x.wide {
		yes := s.mask("KANDW", m, a)
		no := s.mask("KANDNW", m, b)
		return s.mask("KORW", yes, no)
	}
	return x.blend(s, m, a, b)
}

func (s *selector) mask(op string, src ...*value) *value {
	return s.add(instruction{op: op, dst: &value{class: predicate}, src: src, tied: -1})
}

func (x x86) compare(s *selector, n *ir.Node) *value {
	a, b := s.value(n.Args[0]), s.value(n.Args[1])
	imm := predicates[n.Code][0]
	if loose(a) && !loose(b) {
		a, b, imm = b, a, predicates[n.Code][1]
	}
	return s.add(instruction{op: "VCMPPS", dst: x.truth(), src: []*value{a, b}, tied: -1, folds: second, imm: imm})
}

func (x x86) logic(s *selector, n *ir.Node) *value {
	a := s.value(n.Args[0])
	if n.Code == ir.Not {
		if x.wide {
			return s.mask("KNOTW", a)
		}
		return x.flip(s, a)
	}
	b := s.value(n.Args[1])
	if x.wide {
		return s.mask(map[ir.Code]string{ir.And: "KANDW", ir.Or: "KORW", ir.Xor: "KXORW"}[n.Code], a, b)
	}
	return s.commuting(x86Bits[n.Code], second, a, b)
}

// fma selects one of the four signs of a fused multiply-add.
func (x x86) fma(s *selector, n *ir.Node) *value {
	a, na := negated(n.Args[0])
	b, nb := negated(n.Args[1])
	c, nc := negated(n.Args[2])
	op := "VFMADD"
	if na != nb {
		op = "VFNMADD"
	}
	va, vb, vc := s.value(a), s.value(b), s.value(c)
	if nc {
		op = op[:len(op)-3] + "SUB"
	}
	return s.add(instruction{op: op, src: []*value{va, vb, vc}, tied: anyTied, folds: []int{2, 1, 0}})
}

func (x x86) load(s *selector, n *ir.Node) *value {
	v := s.add(instruction{op: "load", tied: -1, mem: string("xyz"[n.Index])})
	if n.Type != ir.Bool {
		return v
	}
	if x.wide {
		return s.add(instruction{op: "VPTESTMD", dst: x.truth(), src: []*value{v, v}, tied: -1})
	}
	v = s.plain("VPCMPEQD", second, v, s.constant(0))
	return s.plain("VXORPS", second, v, s.constant(1<<32-1))
}

func (x x86) store(s *selector, v *value, t ir.Type) {
	if t == ir.Bool {
		if x.wide {
			v = s.plain("VMOVAPS.Z", nil, v, s.constant(1))
		} else {
			v = s.add(instruction{op: "VPSRLD", src: []*value{v}, tied: -1, imm: 31})
		}
	}
	s.code = append(s.code, &instruction{op: "store", src: []*value{v}, tied: -1, mem: "dst", copy: s.copy})
}

// The printing.
