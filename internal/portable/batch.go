//go:build !js || !nowebgpu

package portable

import "github.com/rayo-go/rayo/op"

// UseBatch registers the kernels of the operations that only package batch records. The linker
// leaves them out of pages that do not import that package; other programs always have them.
func UseBatch() {
	concats, factors, jacobis := concatSchedules.names(), factorSchedules.names(), jacobiSchedules.names()
	register(&family{plan: planConcat, variants: concats}, op.Concat)
	register(&family{plan: planSliceAt, variants: concats}, op.SliceAt)
	register(&family{plan: planUpdate, variants: concats}, op.Update)
	register(&family{plan: planScatter, variants: scatterSchedules.names()}, op.Scatter)
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
