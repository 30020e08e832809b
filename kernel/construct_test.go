package kernel_test

import (
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
)

// everything uses every construct of the builder.
var everything = kernel.New("everything", func(b *kernel.Builder, p *struct {
	N     uint32
	Shift int32
	Scale float32
}) {
	b.LocalSize(8, 4, 2)
	b.Budget(1000)
	x := kernel.Input[kernel.Vec4F](b, "x")
	h := kernel.Input[kernel.F16](b, "h")
	y := kernel.Output[kernel.F32](b, "y")
	z := kernel.InOut[kernel.I32](b, "z")
	a := kernel.Atomic[kernel.U32](b, "a")
	tile := kernel.Shared[kernel.F32](b, "tile", 64)
	flags := kernel.SharedAtomic[kernel.I32](b, "flags", 4)

	lane := b.Lane()
	tile.Set(lane, b.F32(&p.Scale))
	b.Barrier()
	i := b.GlobalX().Add(b.GlobalY()).Add(b.GlobalZ()).Add(b.Group())
	i = i.Add(b.LocalX()).Add(b.LocalY()).Add(b.LocalZ()).Add(b.GroupX().Mul(b.GroupsY())).Add(b.GroupZ().Mul(b.GroupsZ()))
	n := b.U32(&p.N).Min(x.Len()).Min(a.Len()).Sub(flags.Len())

	sum := kernel.NewVar(b, "sum", kernel.F(0))
	parts := kernel.NewVars(b, "parts", 2, kernel.Vec4F{})
	b.For(kernel.U(0), n, func(k kernel.U32) {
		v := x.At(k)
		for j := range parts {
			parts[j].Set(parts[j].Get().Fma(v, v.Scale(h.At(i).F32())))
		}
		b.If(v.X().Lt(kernel.F(0)), b.Continue).Else(func() { sum.Set(sum.Get().Add(v.Dot(v))) })
		b.If(v.Y().Gt(v.Z()).And(v.W().Ne(kernel.F(1))), b.Break)
	})
	b.ForI32(b.I32(&p.Shift), kernel.I(9), kernel.I(2), func(k kernel.I32) {
		z.Set(k.U32(), z.At(k.U32()).Shl(k.U32()).Shr(kernel.U(1)).Neg().Abs().Div(kernel.I(3)).Mod(k))
	})
	iterations := kernel.NewVar(b, "turns", kernel.U(0))
	b.While(func() kernel.Bool { return iterations.Get().Lt(n) }, func() { iterations.Set(iterations.Get().Add(kernel.U(1))) })
	b.Loop(func() {
		b.If(iterations.Get().Eq(kernel.U(0)), b.Break)
		iterations.Set(iterations.Get().Shr(kernel.U(1)))
	})

	s := sum.Get()
	s = s.Add(s.Sub(s.Mul(s)).Div(s).Neg().Abs().Min(s).Max(s).Fma(s, s).MulAdd(s, s).Sqrt().Floor().Ceil().Trunc().Round().CopySign(s).Square())
	s = s.Add(s.Exp().Exp2().Expm1().Log().Log2().Log1p().Tanh().Sigmoid().Erf().Erfc().NormCDF().Sin().Cos().Atan().Pow(s).Recip().Rsqrt())
	s = s.Ldexp(s.Round().Min(kernel.F(4)).Max(kernel.F(-4)))
	u := i.Div(kernel.U(7)).Mod(n).And(i).Or(n).Xor(i).Not().CountOnes().LeadingZeros().TrailingZeros().ReverseBits().MulHigh(n)
	d := u.Dot4I8(i, kernel.I(0)).Add(u.Dot4U8(i, u).I32())
	pk := s.Splat2().PackHalf().UnpackHalf().X().Add(u.UnpackI8().X().F32()).Add(u.UnpackU8().Sum().F32())
	d = d.Add(b.Vec4I(d, d.Neg(), d, d).PackI8().I32())
	s = s.Add(pk).Add(s.AsU32().AsF32()).Add(d.AsF32())
	s = kernel.Select(s.Le(pk).Or(s.Ge(pk)).Xor(s.Eq(pk)).Not(), s, pk)
	s = s.Add(b.Vec2F(s, pk).At(1)).Add(kernel.Select(s.Lt(pk), parts[0].Get(), parts[1].Get()).Sum())

	for _, c := range []ir.Code{ir.RoundF16, ir.RoundBF16} {
		s = kernel.As[kernel.F32](b, inline(b, []*ir.Node{ir.NewRound(c, ir.NewArg(0, ir.F32))}, []kernel.Dynamic{kernel.Dyn(s)}, nil)[0])
	}

	b.Barrier()
	b.If(tile.Uniform(kernel.U(0)).Lt(kernel.F(9)), func() { b.Barrier() })
	s = s.Add(kernel.SubgroupAdd(b, s)).Add(kernel.SubgroupMin(b, s)).Add(kernel.SubgroupMax(b, s))
	s = s.Add(kernel.SubgroupScanAdd(b, s)).Add(kernel.SubgroupXor(b, s, 1)).Add(kernel.SubgroupFirst(b, s))
	s = s.Add(kernel.SubgroupShuffle(b, s, kernel.U(0))).Add(kernel.SubgroupAnd(b, u).Or(kernel.SubgroupOr(b, u)).F32())
	u = u.Add(b.SubgroupSize()).Add(b.SubgroupLane()).Add(b.Subgroup())
	old := a.Add(u, u).Add(a.Sub(u, u)).Add(a.Min(u, u)).Add(a.Max(u, u)).Add(a.And(u, u)).Add(a.Or(u, u)).Add(a.Xor(u, u))
	old = old.Add(a.Exchange(u, u)).Add(a.CompareExchange(u, u, i)).Add(a.Load(u))
	a.Store(u, old)
	flags.Add(kernel.U(3), kernel.I(1))
	b.If(kernel.SubgroupOr(b, i.Gt(n)), func() { y.Set(i, s.Add(tile.At(i.Mod(kernel.U(64))))) })
	b.If(i.Gt(n), b.Return)
	y.Set(i.Add(kernel.U(1)), s)
})

func TestEveryConstruct(t *testing.T) {
	p, err := everything.Program()
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(p); err != nil {
		t.Fatal(err)
	}
	used := map[ir.Code]bool{}
	for _, in := range p.Code {
		used[in.Code] = true
	}
	for c := ir.Add; c <= ir.Return; c++ {
		if c.Arity() > 0 || c >= ir.BuiltIn {
			if near := c >= ir.Exp2Approx && c <= ir.SqrtInRange; !used[c] && !near { // made from others
				t.Errorf("%v does not occur", c)
			}
		}
	}
	if q := ir.ExpandMath(p, nil); q != nil {
		if err := ir.Verify(q); err != nil {
			t.Errorf("expanded: %v", err)
		}
	}
	t.Log(everything)
}
