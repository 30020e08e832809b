package ptxgen

import "github.com/rayo-go/rayo/ptx"

// The square root equals the result of the instruction sqrt.rn bit for bit, without the branch in
// its expansion: branches prevent adjacent elements from being computed at the same time.

// rootScale scales numbers below rootMin so that no bits are lost.
const (
	rootMin   = 0x1p-96
	rootScale = 0x1p96 // the square of a power of 2
)

// squareRoot returns the square root of a, correctly rounded.
func squareRoot(g *lowering, a, _, _ ptx.U32) ptx.U32 {
	x := ptx.NewVar(g.k, register[ptx.F32](g, a))
	tiny := x.Get().Lt(ptx.F(rootMin)) // including 0 and negative numbers
	g.k.When(tiny, func() { x.Set(x.Live().Mul(ptx.F(rootScale))) })
	y, half, root := rootOf(x.Live())
	// The inverse of the root of 0 and infinity is one of the two, and only they are
	// their own halves.
	r := ptx.NewVar(g.k, ptx.Select(half.Eq(y), x.Live(), root))
	g.k.When(tiny, func() { r.Set(r.Live().Mul(ptx.F(0x1p-48))) })
	return ptx.U32(r.Get())
}

// normalRoot is squareRoot for x in [2^-96, 2^126].
func normalRoot(x ptx.F32) ptx.F32 {
	_, _, root := rootOf(x)
	return root
}

// rootOf returns the inverse of the square root of x, half of it, and from these the
// square root: what its square is off by, exactly, times the half makes up for it.
func rootOf(x ptx.F32) (y, half, root ptx.F32) {
	y = x.RsqrtApproxFlush()
	half = y.Mul(ptx.F(0.5))
	r := x.Mul(y)
	return y, half, r.Neg().Fma(r, x).Fma(half, r)
}
