package main

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// Kernels that round their results to a 16-bit type and store them as float32, so that a chain of
// operations on half floats needs no separate rounding pass.

// shortCodes are the codes of few instructions whose results have to be rounded. A separate kernel
// rounds the results of longer ones, at little extra cost.
var shortCodes = map[ir.Code]bool{ir.Add: true, ir.Sub: true, ir.Mul: true, ir.Div: true, ir.Fma: true, ir.Sqrt: true}

// short reports whether k has one or two codes, all of shortCodes.
func (k *kernel) short() bool {
	list, _ := ir.Flatten(k.root)
	codes := 0
	for _, n := range list {
		switch {
		case n.Type != ir.F32:
			return false
		case shortCodes[n.Code]:
			codes++
		case n.Code.Arity() > 0:
			return false
		}
	}
	return 0 < codes && codes <= 2
}

// rounded adds a variant of the kernels of short expressions for each 16-bit type, with the type
// appended to the name: add.f16, code.mul.vs.bf16.
func (l *list) rounded() {
	for _, k := range l.kernels[:len(l.kernels):len(l.kernels)] {
		if !k.short() {
			continue
		}
		for _, r := range []struct {
			d op.DType
			c ir.Code
		}{{op.F16, ir.RoundF16}, {op.BF16, ir.RoundBF16}} {
			for _, name := range k.names {
				l.add(name+"."+r.d.String(), ir.NewRound(r.c, k.root))
			}
		}
	}
}

// quietNaN is a table of VFIXUPIMMPS. If the second operand is NaN, the result is this NaN, made
// quiet; otherwise the destination is unchanged.
const quietNaN = 0x22

// roundBF16 selects the rounding of the function roundBF16 in fewer instructions: VPTESTMD tests
// the last bit that is kept, and VFIXUPIMMPS handles NaN.
func (x x86) roundBF16(s *selector, v *value) *value {
	odd := s.add(instruction{op: "VPTESTMD", dst: x.truth(), src: []*value{v, s.constant(1 << 16)}, tied: -1, folds: second})
	r := s.plain("VPADDD", second, v, s.constant(0x7fff))
	r = s.add(instruction{op: "VPADDD.merge", src: []*value{r, s.constant(1), odd}, tied: 0})
	r = s.add(instruction{op: "VFIXUPIMMPS", src: []*value{r, v, s.constant(quietNaN)}, tied: 0, folds: []int{2}})
	return s.plain("VANDPS", second, r, s.constant(0xffff0000))
}

// roundBF16 returns the code of a rounding to bfloat16 by arithmetic on the bits of x: it adds half
// a unit minus one, plus the last kept bit, which carries into the kept bits (round half to even).
// NaN is made quiet instead, because all its set mantissa bits may be cut off.
func roundBF16(x *ir.Node) *ir.Node {
	word := func(v uint32) *ir.Node { return ir.NewConst(float64(v), ir.U32) }
	bits := ir.NewBitcast(x, ir.U32)
	odd := build(ir.And, build(ir.Shr, bits, word(16)), word(1))
	carried := build(ir.Add, build(ir.Add, bits, word(0x7fff)), odd)
	quiet := build(ir.Or, bits, word(0x400000))
	r := build(ir.Select, build(ir.Eq, x, x), carried, quiet)
	return ir.NewBitcast(build(ir.And, r, word(0xffff0000)), ir.F32)
}
