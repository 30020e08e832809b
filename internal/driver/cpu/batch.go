package cpu

import (
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// batchCores make the cores of the operations that only package batch records, once
// [UseBatch] was called.
var batchCores map[*op.Operation]func(d *processor) core

// UseBatch enters the kernels of the operations that only package batch records. The linker leaves
// them out of pages that do not import that package; other programs always have them. It is
// called before main begins.
func UseBatch() {
	driver.UseFactors()
	linkChains()
	place := func(*processor) core { return &placeTask{} }
	factor := func(d *processor) core { return &factorTask{d: d} }
	batchCores = map[*op.Operation]func(d *processor) core{
		op.MatMulQ:       func(d *processor) core { return &quantTask{d: d} },
		op.MatMulExperts: func(d *processor) core { return &expertsTask{d: d} },
		op.Concat:        func(d *processor) core { return &concatTask{d: d} },
		op.Iota:          func(d *processor) core { return &iotaTask{d: d} },
		op.Scatter:       func(d *processor) core { return &scatterTask{d: d} },
		op.SliceAt:       place, op.Update: place,
		op.Cholesky: factor, op.SolveTriangular: factor, op.LU: factor, op.Solve: factor, op.QR: factor, op.Eigh: factor, op.SVD: factor,
	}
}
