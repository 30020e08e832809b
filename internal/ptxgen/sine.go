package ptxgen

import (
	"math"
	"sync"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/ptx"
)

// The expansions of Sin and Cos hold up to ir.TrigLimit. Beyond it a branch subtracts multiples of
// a quarter turn in integers, with enough digits of 2/pi, and the expansions compute the sine of
// the rest.

// sine returns the sine or cosine of x.
func (g *lowering) sine(c ir.Code, x ptx.U32) ptx.U32 {
	r := register[ptx.F32](g, x)
	y := ptx.NewVar(g.k, g.ofAngle(c, r))
	m := r.Abs()
	g.k.If(m.Gt(ptx.F(ir.TrigLimit)).And(m.Lt(ptx.F(float32(math.Inf(1))))), func() {
		turn, angle := g.reduceAngle(r)
		if c == ir.Cos {
			turn = turn.Add(ptx.U(1))
		}
		sin, cos := g.ofAngle(ir.Sin, angle), g.ofAngle(ir.Cos, angle)
		v := ptx.Select(turn.And(ptx.U(1)).Ne(ptx.U(0)), cos, sin)
		sign := turn.And(ptx.U(2)).Shl(ptx.U(30))
		if c == ir.Sin {
			sign = sign.Xor(r.Bits().U32().And(ptx.U(1 << 31)))
		}
		y.Set(v.Bits().U32().Xor(sign).B32().Float())
	})
	return ptx.U32(y.Get())
}

// expansions has the expansions of Sin and Cos.
var expansions = sync.OnceValue(func() map[ir.Code][]*ir.Node {
	m := make(map[ir.Code][]*ir.Node)
	for _, c := range []ir.Code{ir.Sin, ir.Cos} {
		n, err := ir.New(c, ir.NewArg(0, ir.F32))
		if err != nil {
			panic("BUG: " + err.Error())
		}
		m[c], _ = ir.Flatten(ir.Lower(n, func(d ir.Code) bool { return d != c && native(d) }))
	}
	return m
})

// ofAngle returns the expansion of c at x.
func (g *lowering) ofAngle(c ir.Code, x ptx.F32) ptx.F32 {
	list := expansions()[c]
	return ptx.F32(g.expressions(list, []ptx.U32{ptx.U32(x)})[len(list)-1])
}

// reduceAngle returns the multiple of a quarter turn that is nearest to |x|, modulo 4, and the
// remaining angle. |x| must be finite and greater than 2**16.
func (g *lowering) reduceAngle(x ptx.F32) (turn ptx.U32, angle ptx.F32) {
	bits := x.Bits().U32()
	m := bits.And(ptx.U(1<<23 - 1)).Or(ptx.U(1 << 23)) // |x| = m * 2**e
	// Skip the bits of 2/pi whose product with m * 2**e is a whole number of turns. The other bits
	// begin e-2 bits after the point.
	skip := bits.Shr(ptx.U(23)).And(ptx.U(255)).Sub(ptx.U(150 + 2 - 32))
	at, shift := skip.Shr(ptx.U(5)), skip.And(ptx.U(31))
	var w [4]ptx.U32
	for i := range w {
		w[i] = ptx.U(ir.TwoOverPi[i])
		for j := 1; j < 5; j++ {
			w[i] = ptx.Select(at.Eq(ptx.U(uint32(j))), ptx.U(ir.TwoOverPi[i+j]), w[i])
		}
	}
	var f [3]ptx.U32 // 2**e as a fraction of a turn
	for i := range f {
		f[i] = w[i+1].FunnelLeft(w[i], shift)
	}
	// The upper 64 of the 96 bits of m * 2**e as a fraction of a turn.
	low := m.MulHigh(f[2])
	middle := m.MulWide(f[1]).Add(low.U64())
	whole := middle.Add(m.MulWide(f[0]).Shl(ptx.U(32)))
	quarter := whole.Add(ptx.UL(1 << 61)).Shr(ptx.U(62))
	rest := whole.Sub(quarter.Shl(ptx.U(62))).S64()
	return quarter.U32(), rest.F64().Mul(ptx.D(math.Pi * 0x1p-63)).F32()
}
