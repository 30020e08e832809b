package samples

import (
	"math"

	"github.com/rayo-go/rayo/ptx"
)

// warp runs body for the elements from begin to end that are this lane's: every
// 32nd.
func warp(k *ptx.Kernel, begin, end ptx.U32, body func(i ptx.U32)) {
	i := ptx.NewVar(k, begin)
	k.While(func() ptx.Pred { return i.Live().Lt(end) }, func() {
		body(i.Live())
		ptx.AddTo(i, ptx.U(32))
	})
}

// sum returns the sum of x over the lanes of a warp, in each of them.
func sum(x ptx.F32) ptx.F32 {
	for d := uint32(16); d > 0; d /= 2 {
		x = x.Add(ptx.ShuffleXor(x, ptx.U(d)))
	}
	return x
}

// top returns the greatest x of the lanes of a warp, in each of them.
func top(x ptx.F32) ptx.F32 {
	for d := uint32(16); d > 0; d /= 2 {
		x = x.Max(ptx.ShuffleXor(x, ptx.U(d)))
	}
	return x
}

// Softmax is y = softmax(x) along rows of n elements, a block of one warp each.
// In steps of e to the power of: exp(x-m)/s = 2**(x·log2 e - (m·log2 e + log2 s)).
func Softmax(k *ptx.Kernel) {
	x, y, n := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y"), ptx.Param[ptx.U32](k, "n")
	begin := k.Special(ptx.CtaidX).MulAdd(n, k.Special(ptx.TidX))
	end := k.Special(ptx.CtaidX).MulAdd(n, n)
	greatest, total := ptx.NewVar(k, ptx.F(float32(math.Inf(-1)))), ptx.NewVar(k, ptx.F(0))
	warp(k, begin, end, func(i ptx.U32) { ptx.MaxTo(greatest, x.At(i).Load()) })
	low := top(greatest.Live()).Mul(ptx.F(-math.Log2E))
	warp(k, begin, end, func(i ptx.U32) {
		ptx.AddTo(total, x.At(i).Load().Fma(ptx.F(math.Log2E), low).Ex2Approx())
	})
	low = low.Sub(sum(total.Live()).Lg2Approx())
	warp(k, begin, end, func(i ptx.U32) {
		y.At(i).Store(x.At(i).Load().Fma(ptx.F(math.Log2E), low).Ex2Approx())
	})
}

// LayerNorm is y = (x - mean) / sqrt(variance + epsilon) · gamma + beta along rows
// of n elements, a block of one warp each. The variance is that of what is left
// after the mean is taken away: nothing cancels.
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
