package ptxgen

import "github.com/rayo-go/rayo/ptx"

// squareRoot equals the instruction sqrt.rn bit for bit, but has no branch. The expansion of
// sqrt.rn has a branch, which prevents the assembler from interleaving the code of several
// elements.

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
	// The reciprocal square root y of 0 is infinity, and that of infinity is 0; these are the only
	// values with y/2 == y.
	r := ptx.NewVar(g.k, ptx.Select(half.Eq(y), x.Live(), root))
	g.k.When(tiny, func() { r.Set(r.Live().Mul(ptx.F(0x1p-48))) })
	return ptx.U32(r.Get())
}

// normalRoot is squareRoot for x in [2^-96, 2^126].
func normalRoot(x ptx.F32) ptx.F32 {
	_, _, root := rootOf(x)
	return root
}

// rootOf returns the reciprocal square root y of x, half of y, and the square root. The square root
// has one Newton correction: the exact error of its square, times half of y.
func rootOf(x ptx.F32) (y, half, root ptx.F32) {
	y = x.RsqrtApproxFlush()
	half = y.Mul(ptx.F(0.5))
	r := x.Mul(y)
	return y, half, r.Neg().Fma(r, x).Fma(half, r)
}
