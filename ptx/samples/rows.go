package samples

import (
	"math"

	"github.com/rayo-go/rayo/ptx"
)

// warp runs body for the elements from begin to end that are this lane's: every
// 32nd. It returns the first that is not, beyond the end.
func warp(k *ptx.Kernel, begin, end ptx.U32, body func(i ptx.U32)) ptx.Var[ptx.U32] {
	i := ptx.NewVar(k, begin)
	k.While(func() ptx.Pred { return i.Live().Lt(end) }, func() {
		body(i.Live())
		ptx.AddTo(i, ptx.U(32))
	})
	return i
}

// sum returns the sum of x over the lanes of a warp, in each of them.
func sum(x ptx.F32) ptx.F32 {
	for d := uint32(16); d > 0; d /= 2 {
		x = x.Add(ptx.ShuffleXor(x, ptx.U(d)))
	}
	return x
}

// Softmax is y = softmax(x) along rows of n elements, a block of one warp each. Sums
// are of powers of two, as the hardware has those, and run along with the greatest
// element so far, or rather the least of x·-log2 e: where that falls by d, what
// was summed before counts for 2**-d of it. What is left is exp(x-m)/s =
// 2**(x·log2 e + least - log2 s). It is written from the end to the beginning: what
// was read last is what the cache still has.
func Softmax(k *ptx.Kernel) {
	x, y, n := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y"), ptx.Param[ptx.U32](k, "n")
	begin := k.Special(ptx.CtaidX).MulAdd(n, k.Special(ptx.TidX))
	end := k.Special(ptx.CtaidX).MulAdd(n, n)
	least, total := ptx.NewVar(k, ptx.F(math.MaxFloat32)), ptx.NewVar(k, ptx.F(0))
	i := warp(k, begin, end, func(i ptx.U32) {
		v, before := x.At(i).Load().Mul(ptx.F(-math.Log2E)), least.Get()
		ptx.MinTo(least, v)
		ptx.ScaleAddTo(total, least.Live().Sub(before).Ex2Approx(), least.Live().Sub(v).Ex2Approx())
	})
	// The lanes combine their results in pairs whose numbers differ by d.
	d := ptx.NewVar(k, ptx.U(1))
	k.Repeat(func() ptx.Pred {
		v, s, before := ptx.ShuffleXor(least.Live(), d.Live()), ptx.ShuffleXor(total.Live(), d.Live()), least.Get()
		ptx.MinTo(least, v)
		ptx.ScaleAddTo(total, least.Live().Sub(before).Ex2Approx(), s.Mul(least.Live().Sub(v).Ex2Approx()))
		ptx.AddTo(d, d.Live())
		return d.Live().Lt(ptx.U(32))
	})
	low := least.Live().Sub(total.Live().Lg2Approx())
	k.While(func() ptx.Pred { return i.Live().Ne(begin) }, func() {
		ptx.SubTo(i, ptx.U(32))
		y.At(i.Live()).Store(x.At(i.Live()).Load().Fma(ptx.F(math.Log2E), low).Ex2Approx())
	})
}

// LayerNorm is y = (x - mean) / sqrt(variance + epsilon) · gamma + beta along rows of n elements, a
// block of one warp each. The variance is computed from the differences from the mean, which avoids
// cancellation.
func LayerNorm(k *ptx.Kernel) {
	x, gamma, beta := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "gamma"), ptx.GlobalParam[ptx.F32](k, "beta")
	y, n, epsilon := ptx.GlobalParam[ptx.F32](k, "y"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.F32](k, "epsilon")
	lane, row := k.Special(ptx.TidX), k.Special(ptx.CtaidX).Mul(n)
	from, to := x.At(row), y.At(row)
	one := n.F32().Rcp()
	mean, spread := ptx.NewVar(k, ptx.F(0)), ptx.NewVar(k, ptx.F(0))
	warp(k, lane, n, func(i ptx.U32) { ptx.AddTo(mean, from.At(i).Load()) })
	m := sum(mean.Live()).Mul(one)
	warp(k, lane, n, func(i ptx.U32) {
		d := from.At(i).Load().Sub(m)
		ptx.MulAddTo(spread, d, d)
	})
	scale := sum(spread.Live()).Fma(one, epsilon).RsqrtApprox()
	warp(k, lane, n, func(i ptx.U32) {
		d := from.At(i).Load().Sub(m).Mul(scale)
		to.At(i).Store(d.Fma(gamma.At(i).Load(), beta.At(i).Load()))
	})
}
