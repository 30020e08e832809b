package cpu

import (
	"maps"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// cores has a function for each operation with a core in this driver. The functions below add the
// groups of operations of package portable, whose documentation says when to call them.
var cores = map[*op.Operation]func(d *processor) core{}

func enter(c func(d *processor) core, os ...*op.Operation) {
	for _, o := range os {
		cores[o] = c
	}
}

// UseReductions adds the reductions.
func UseReductions() {
	UsePrograms()
	useWordReductions()
	reductions := map[*op.Operation]simd.Reduction{
		op.Sum: simd.ReduceSum, op.Dot: simd.ReduceDot, op.Mean: simd.ReduceMean, op.Var: simd.ReduceVar,
		op.Min: simd.ReduceMin, op.Max: simd.ReduceMax, op.ArgMin: simd.ReduceArgMin, op.ArgMax: simd.ReduceArgMax,
		op.NormL1: simd.ReduceSumAbs, op.NormL2: simd.ReduceNorm, op.NormLinf: simd.ReduceMaxAbs,
		op.LogSumExp: simd.ReduceLogSumExp,
	}
	for o, kind := range reductions {
		enter(func(d *processor) core { return &reduceTask{d: d, kind: kind, cost: &d.plainOf(o).cost} }, o)
	}
	enter(func(d *processor) core { return &foldTask{d: d} }, op.Prod, op.Any, op.All, op.CountNonzero)
}

// UseRows adds the operations of class [op.Row].
func UseRows() {
	UsePrograms()
	enter(func(d *processor) core { return &rowTask{d: d} }, op.Softmax, op.LogSoftmax, op.LayerNorm, op.RMSNorm)
	enter(func(d *processor) core { return &cumsumTask{d: d} }, op.Cumsum)
	maps.Copy(columnScans, map[*op.Operation]string{op.Cumsum: "add", op.Cumprod: "mul", op.Cummax: "maximum", op.Cummin: "minimum"})
	enter(func(d *processor) core { return &scanTask{d: d} }, op.Cumprod, op.Cummax, op.Cummin, op.LogCumsumExp)
}

// UseProducts adds the products of matrices and vectors.
func UseProducts() {
	UsePrograms()
	enter(func(d *processor) core { return &productTask{d: d} }, op.MatMul, op.MatVec)
}

// UseConv2D adds convolutions.
func UseConv2D() {
	UsePrograms()
	enter(func(d *processor) core { return &convTask{d: d} }, op.Conv2D)
}

// UseAttention adds attention and rope.
func UseAttention() {
	UsePrograms()
	enter(func(d *processor) core { return &attentionTask{d: d} }, op.Attention)
	enter(func(d *processor) core { return &ropeTask{d: d} }, op.Rope)
}

// UseOrder adds sort and topk.
func UseOrder() {
	UsePrograms()
	enter(func(d *processor) core { return &sortTask{d: d} }, op.Sort)
	enter(func(d *processor) core { return &topKTask{d: d} }, op.TopK)
}

// UseMoves adds gather and transpose.
func UseMoves() {
	UsePrograms()
	enter(func(d *processor) core { return &gatherTask{d: d} }, op.Gather)
	enter(func(d *processor) core { return &transposeTask{mapTask: mapTask{d: d}} }, op.Transpose)
}

// UseAll adds all operations, and links the code that only graphs of several operations use.
func UseAll() {
	for _, use := range []func(){UseReductions, UseRows, UseProducts, UseConv2D, UseAttention, UseOrder, UseMoves} {
		use()
	}
	driver.UseFactors()
	linkChains()
	simd.UseBlocks()
	mapNamed = simd.Map
	enter(func(d *processor) core { return &quantTask{d: d} }, op.MatMulQ)
	enter(func(d *processor) core { return &expertsTask{d: d} }, op.MatMulExperts)
	enter(func(d *processor) core { return &concatTask{d: d} }, op.Concat)
	enter(func(d *processor) core { return &iotaTask{d: d} }, op.Iota)
	enter(func(d *processor) core { return &scatterTask{d: d} }, op.Scatter)
	enter(func(d *processor) core { return &placeTask{} }, op.SliceAt, op.Update)
	enter(func(d *processor) core { return &factorTask{d: d} }, op.Cholesky, op.SolveTriangular, op.LU, op.Solve, op.QR, op.Eigh, op.SVD)
}
