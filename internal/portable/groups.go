//go:build !js || !nowebgpu

package portable

import (
	"math"

	"github.com/rayo-go/rayo/op"
)

// The functions of this file register the kernels of groups of operations. In pages, a method of
// package device calls the function of its operation's group, and package batch calls [UseAll]. The
// linker therefore leaves out the kernels of groups that a page does not use. Other programs call
// [UseAll] before main begins, and have all kernels.

// UseReductions registers the reductions.
func UseReductions() {
	register(reduceFamily(1, 0, &sums), op.Sum, op.Dot, op.NormL1, op.NormL2)
	register(reduceFamily(1, float32(math.NaN()), &sums), op.Mean)
	register(reduceFamily(3, float32(math.NaN()), &variances), op.Var)
	register(reduceFamily(1, 0, &extremes), op.Min, op.Max, op.NormLinf)
	register(reduceFamily(2, 0, &places), op.ArgMin, op.ArgMax)
	register(&family{variants: foldSchedules.names(), plan: planFold}, op.Prod, op.LogSumExp, op.Any, op.All, op.CountNonzero)
}

// UseRows registers the operations of class [op.Row].
func UseRows() {
	register(softmaxFamily(), op.Softmax, op.LogSoftmax)
	register(rowFamily(&layerNorms), op.LayerNorm)
	register(rowFamily(&rmsNorms), op.RMSNorm)
	register(&family{plan: planCumsum, variants: append(cumsumSchedules.names(), scanSchedules.names()...)}, op.Cumsum)
	register(&family{variants: scanSchedules.names(), plan: planScan}, op.Cumprod, op.Cummax, op.Cummin, op.LogCumsumExp)
}

// UseProducts registers the products of matrices and vectors.
func UseProducts() {
	register(&family{plan: planMatMul, variants: matMulSchedules.names()}, op.MatMul)
	register(&family{plan: planMatVec, variants: matVecSchedules.names()}, op.MatVec)
}

// UseConv2D registers correlations.
func UseConv2D() {
	register(&family{plan: planConv2D, variants: convSchedules.names()}, op.Conv2D)
}

// UseAttention registers attention and rotary position embeddings.
func UseAttention() {
	register(&family{plan: planAttention, variants: attentionSchedules.names(), reads: readsAttention, writes: writesAttention}, op.Attention)
	register(&family{plan: planRope, reads: readsRope}, op.Rope)
}

// UseOrder registers sort and topk.
func UseOrder() {
	register(&family{plan: planSort, variants: sortSchedules.names()}, op.Sort)
	register(&family{plan: planTopK, variants: topKSchedules.names()}, op.TopK)
}

// UseMoves registers gather and transpose, and the kernels of elementwise programs with tiles.
func UseMoves() {
	useTiles()
	register(&family{plan: planGather, variants: gatherSchedules.names(), quantised: true}, op.Gather)
	register(&family{plan: planTranspose, variants: transposeSchedules.names()}, op.Transpose)
}

// UseAll registers the kernels of all operations.
func UseAll() {
	for _, use := range []func(){UseReductions, UseRows, UseProducts, UseConv2D, UseAttention, UseOrder, UseMoves} {
		use()
	}
	concats, factors, jacobis := concatSchedules.names(), factorSchedules.names(), jacobiSchedules.names()
	register(&family{plan: planConcat, variants: concats, reads: func(_ int, _ op.Shape, l *op.Layout) bool { return neighbours(l) }}, op.Concat)
	register(&family{plan: planSliceAt, variants: concats}, op.SliceAt)
	register(&family{plan: planUpdate, variants: concats, reads: func(at int, _ op.Shape, l *op.Layout) bool { return at == 2 && neighbours(l) }}, op.Update)
	register(&family{plan: planScatter, variants: scatterSchedules.get().names()}, op.Scatter)
	register(&family{plan: planIota}, op.Iota)
	register(&family{plan: planMatMulQ, variants: matMulQSchedules.names(), quantised: true}, op.MatMulQ)
	register(&family{plan: planExperts, quantised: true}, op.MatMulExperts)
	register(&family{plan: planCholesky, variants: factors}, op.Cholesky)
	register(&family{plan: planSolveTriangular, variants: factors}, op.SolveTriangular)
	register(&family{plan: planSolve, variants: factors}, op.Solve)
	register(&family{plan: planLU, variants: factors}, op.LU)
	register(&family{plan: planQR, variants: factors}, op.QR)
	register(&family{plan: planEigh, variants: jacobis}, op.Eigh)
	register(&family{plan: planSVD, variants: jacobis}, op.SVD)
}
