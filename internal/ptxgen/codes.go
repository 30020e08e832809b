package ptxgen

import (
	"math"
	"math/bits"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/ptx"
)

func number(bits uint32) float32 { return math.Float32frombits(bits) }

// operation computes one component from the components of the operands. Unused operands are 0.
type operation func(g *lowering, a, b, c ptx.U32) ptx.U32

// register moves x to a register if it is a constant, so that an instruction with only constant
// operands is executed by the device.
func register[T ptx.Value](g *lowering, x ptx.U32) T {
	if _, ok := x.Constant(); ok {
		return ptx.Reg(g.k, T(x))
	}
	return T(x)
}

func monadic[T, R ptx.Value](f func(T) R) operation {
	return func(g *lowering, a, _, _ ptx.U32) ptx.U32 { return ptx.U32(f(register[T](g, a))) }
}

func dyadic[T, R ptx.Value](f func(x, y T) R) operation {
	return func(g *lowering, a, b, _ ptx.U32) ptx.U32 {
		if _, ok := b.Constant(); ok {
			a = ptx.U32(register[T](g, a))
		}
		return ptx.U32(f(T(a), T(b)))
	}
}

func triadic[T, R ptx.Value](f func(x, y, z T) R) operation {
	return func(g *lowering, a, b, c ptx.U32) ptx.U32 { return ptx.U32(f(register[T](g, a), T(b), T(c))) }
}

// floats has the operations of float32.
var floats = [256]operation{
	ir.Add:      dyadic(ptx.F32.Add),
	ir.Sub:      dyadic(ptx.F32.Sub),
	ir.Mul:      dyadic(ptx.F32.Mul),
	ir.Div:      dyadic(ptx.F32.Div),
	ir.Neg:      monadic(ptx.F32.Neg),
	ir.Abs:      monadic(ptx.F32.Abs),
	ir.Min:      extreme(ptx.F32.MinNaN, ptx.F32.Min),
	ir.Max:      extreme(ptx.F32.MaxNaN, ptx.F32.Max),
	ir.Fma:      triadic(ptx.F32.Fma),
	ir.Sqrt:     squareRoot,
	ir.Floor:    monadic(ptx.F32.Floor),
	ir.Ceil:     monadic(ptx.F32.Ceil),
	ir.Trunc:    monadic(ptx.F32.Trunc),
	ir.Round:    monadic(ptx.F32.Round),
	ir.CopySign: dyadic(func(x, y ptx.F32) ptx.F32 { return y.CopySign(x) }),
	ir.RoundF16: monadic(func(x ptx.F32) ptx.F32 { return x.F16().F32() }),
	ir.RoundBF16: func(g *lowering, a, _, _ ptx.U32) ptx.U32 {
		return ptx.U32(Narrow(g.k, register[ptx.F32](g, a)).F32())
	},
	ir.Recip: monadic(ptx.F32.RcpApprox),   // error of 1 ULP
	ir.Rsqrt: monadic(ptx.F32.RsqrtApprox), // error of 1 ULP; keeps subnormal x

	ir.Exp2Approx:  monadic(ptx.F32.Ex2ApproxFlush),
	ir.RecipApprox: monadic(ptx.F32.RcpApproxFlush),
	ir.FmaUnit:     triadic(ptx.F32.FmaSaturate),
	ir.SqrtInRange: monadic(normalRoot),
	ir.Eq:          dyadic(ptx.F32.Eq),
	ir.Ne:          dyadic(ptx.F32.Ne),
	ir.Lt:          dyadic(ptx.F32.Lt),
	ir.Le:          dyadic(ptx.F32.Le),
}

// extreme returns Min or Max. The result is NaN if an operand is NaN, and -0 is less than 0.
func extreme(f, older func(x, y ptx.F32) ptx.F32) operation {
	return func(g *lowering, a, b, _ ptx.U32) ptx.U32 {
		x, y := register[ptx.F32](g, a), ptx.F32(b)
		if g.target >= ptx.SM80 {
			return ptx.U32(f(x, y))
		}
		// The sum of NaN and anything is NaN.
		return ptx.U32(ptx.Select(x.IsNaN(y), x.Add(y), older(x, y)))
	}
}

// logic has the operations of Bool.
var logic = [256]operation{
	ir.And: dyadic(ptx.Pred.And),
	ir.Or:  dyadic(ptx.Pred.Or),
	ir.Xor: dyadic(ptx.Pred.Xor),
	ir.Not: monadic(ptx.Pred.Not),
}

// words has the operations of integers that do not depend on the sign.
var words = [256]operation{
	ir.Add: dyadic(ptx.U32.Add),
	ir.Sub: dyadic(ptx.U32.Sub),
	ir.Mul: dyadic(ptx.U32.Mul),
	ir.Neg: monadic(func(x ptx.U32) ptx.U32 { return x.S32().Neg().U32() }),
	ir.Eq:  dyadic(ptx.U32.Eq),
	ir.Ne:  dyadic(ptx.U32.Ne),
	ir.And: dyadic(ptx.U32.And),
	ir.Or:  dyadic(ptx.U32.Or),
	ir.Xor: dyadic(ptx.U32.Xor),
	ir.Not: monadic(ptx.U32.Not),
	ir.Shl: func(g *lowering, a, n, _ ptx.U32) ptx.U32 { return register[ptx.U32](g, a).Shl(count(n)) },

	ir.CountOnes:     monadic(ptx.U32.CountOnes),
	ir.LeadingZeros:  monadic(ptx.U32.LeadingZeros),
	ir.TrailingZeros: monadic(func(x ptx.U32) ptx.U32 { return x.ReverseBits().LeadingZeros() }),
	ir.ReverseBits:   monadic(ptx.U32.ReverseBits),
}

// count returns a shift count modulo 32, like the compilers of other targets.
func count(n ptx.U32) ptx.U32 { return n.And(ptx.U(31)) }

// unsigned has the other operations of U32.
var unsigned = [256]operation{
	ir.Abs:     monadic(func(x ptx.U32) ptx.U32 { return x }),
	ir.Min:     dyadic(ptx.U32.Min),
	ir.Max:     dyadic(ptx.U32.Max),
	ir.Lt:      dyadic(ptx.U32.Lt),
	ir.Le:      dyadic(ptx.U32.Le),
	ir.Shr:     func(g *lowering, a, n, _ ptx.U32) ptx.U32 { return register[ptx.U32](g, a).Shr(count(n)) },
	ir.MulHigh: dyadic(ptx.U32.MulHigh),
	ir.IDiv: func(g *lowering, a, b, _ ptx.U32) ptx.U32 {
		if n, ok := b.Constant(); ok {
			return quotient(register[ptx.U32](g, a), max(n, 1))
		}
		return register[ptx.U32](g, a).Div(b.Max(ptx.U(1)))
	},
	ir.IMod: func(g *lowering, a, b, _ ptx.U32) ptx.U32 {
		a = register[ptx.U32](g, a)
		if n, ok := b.Constant(); ok {
			return a.Sub(quotient(a, max(n, 1)).Mul(ptx.U(max(n, 1))))
		}
		return a.Rem(b.Max(ptx.U(1)))
	},
}

// quotient returns a/n, where n is not 0. It multiplies by the reciprocal of n, because NVIDIA's assembler
// computes the reciprocal in each lane, in about twenty instructions. See Granlund and Montgomery,
// Division by Invariant Integers using Multiplication, 1994.
func quotient(a ptx.U32, n uint32) ptx.U32 {
	// n is at most 2^shift. The reciprocal is 2^(32+shift)/n, rounded up; it has 33 bits.
	shift := uint32(bits.Len32(n - 1))
	if n == 1<<shift {
		return a.Shr(ptx.U(shift))
	}
	for s := range shift {
		// A reciprocal of 32 bits is sufficient if the error is small.
		if m := (1<<(32+s)-1)/uint64(n) + 1; m < 1<<32 && m*uint64(n)-1<<(32+s) <= 1<<s {
			return a.MulHigh(ptx.U(uint32(m))).Shr(ptx.U(s))
		}
	}
	high := a.MulHigh(ptx.U(uint32((1<<shift-uint64(n))<<32/uint64(n)) + 1)) // without the highest bit of the reciprocal
	return high.Add(a.Sub(high).Shr(ptx.U(1))).Shr(ptx.U(shift - 1))
}

// signed has the other operations of I32.
var signed = [256]operation{
	ir.Abs:  monadic(ptx.S32.Abs),
	ir.Min:  dyadic(ptx.S32.Min),
	ir.Max:  dyadic(ptx.S32.Max),
	ir.Lt:   dyadic(ptx.S32.Lt),
	ir.Le:   dyadic(ptx.S32.Le),
	ir.Shr:  func(g *lowering, a, n, _ ptx.U32) ptx.U32 { return register[ptx.S32](g, a).Shr(count(n)).U32() },
	ir.IDiv: func(g *lowering, a, b, _ ptx.U32) ptx.U32 { return g.divideSigned(a, b, ptx.S32.Div) },
	ir.IMod: func(g *lowering, a, b, _ ptx.U32) ptx.U32 { return g.divideSigned(a, b, ptx.S32.Rem) },
}

// divideSigned applies f to a and b, or to a and 1 if b is 0 or the quotient overflows.
func (g *lowering) divideSigned(a, b ptx.U32, f func(x, y ptx.S32) ptx.S32) ptx.U32 {
	x := register[ptx.S32](g, a)
	if n, ok := b.Constant(); ok && n != math.MaxUint32 {
		return f(x, ptx.S(int32(max(n, 1)))).U32()
	}
	least := x.Eq(ptx.S(math.MinInt32))
	y := b.S32()
	bad := least
	if _, ok := b.Constant(); !ok {
		bad = y.Eq(ptx.S(0)).Or(y.Eq(ptx.S(-1)).And(least))
	}
	return f(x, ptx.Select(bad, ptx.S(1), ptx.S32(register[ptx.S32](g, b)))).U32()
}

// operations returns the operation of a code on a type, or nil.
func operations(c ir.Code, t ir.Type) operation {
	switch t {
	case ir.F32, ir.F16:
		return floats[c]
	case ir.Bool:
		return logic[c]
	case ir.U32:
		if f := unsigned[c]; f != nil {
			return f
		}
	case ir.I32:
		if f := signed[c]; f != nil {
			return f
		}
	}
	return words[c]
}

// compute lowers a componentwise instruction.
func (g *lowering) compute(in *ir.Instr, out *value) {
	from := g.p.Code[in.Args[0]].Type
	switch in.Code {
	case ir.Select:
		for c := range int(in.Width) {
			out[c] = g.choose(in.Type, g.comp(in.Args[0], c), g.comp(in.Args[1], c), g.comp(in.Args[2], c))
		}
		return
	case ir.Convert:
		for c := range int(in.Width) {
			out[c] = g.convert(from, in.Type, g.comp(in.Args[0], c))
		}
		return
	case ir.Bitcast:
		for c := range int(in.Width) {
			out[c] = bitcast(from, in.Type, g.comp(in.Args[0], c))
		}
		return
	case ir.Dot:
		out[0] = g.dot(in)
		return
	case ir.Dot4I8, ir.Dot4U8, ir.PackHalf, ir.UnpackHalf, ir.PackI8, ir.UnpackI8, ir.UnpackU8:
		g.packed(in, out)
		return
	case ir.Sin, ir.Cos:
		for c := range int(in.Width) {
			out[c] = g.narrow(in.Type, g.sine(in.Code, g.wide(in.Type, g.comp(in.Args[0], c))))
		}
		return
	}
	f := operations(in.Code, from)
	if f == nil {
		g.lacks = in.Code // unreachable: Verify accepts the same codes
		return
	}
	args, n := in.Operands()
	for c := range int(in.Width) {
		var x [3]ptx.U32
		for k, a := range args[:n] {
			x[k] = g.comp(a, c)
		}
		switch {
		case from == ir.F16 && in.Code == ir.Fma:
			out[c] = triadic(ptx.F16.Fma)(g, x[0], x[1], x[2])
			continue
		case from == ir.F16:
			for k := range n {
				x[k] = ptx.U32(register[ptx.F16](g, x[k]).F32())
			}
		}
		out[c] = f(g, x[0], x[1], x[2])
		if in.Type == ir.F16 {
			out[c] = ptx.U32(register[ptx.F32](g, out[c]).F16())
		}
	}
}

// wide returns a float of type t as a float32.
func (g *lowering) wide(t ir.Type, x ptx.U32) ptx.U32 {
	if t == ir.F16 {
		return ptx.U32(register[ptx.F16](g, x).F32())
	}
	return x
}

// narrow returns a float32 as a float of type t.
func (g *lowering) narrow(t ir.Type, x ptx.U32) ptx.U32 {
	if t == ir.F16 {
		return ptx.U32(register[ptx.F32](g, x).F16())
	}
	return x
}

// choose returns a if cond is true, and otherwise b.
func (g *lowering) choose(t ir.Type, cond, a, b ptx.U32) ptx.U32 {
	p := ptx.Pred(cond)
	switch t {
	case ir.F32:
		return ptx.U32(ptx.Select(p, ptx.F32(a), ptx.F32(b)))
	case ir.F16:
		return ptx.U32(ptx.Select(p, ptx.F16(a), ptx.F16(b)))
	case ir.Bool:
		return ptx.U32(ptx.Select(p, ptx.Pred(a), ptx.Pred(b)))
	}
	return ptx.Select(p, a, b)
}
