package webgpu

import (
	"context"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/portable"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/op"
)

// operations has what only operations that are not elementwise need, after [UseOperations].
var operations struct {
	prepare     func(e *preparer, s *driver.Step) error
	cutUp       func(w *windows) error
	byReference func(o *op.Operation) bool
	reads       func(o *op.Operation, at int, s op.Shape, l *op.Layout) bool
	writes      func(o *op.Operation, s op.Shape, l *op.Layout) bool
}

// UseOperations links the preparation of operations that are not elementwise. Pages call it before
// they use one; other programs call it before main begins.
func UseOperations() {
	operations.prepare, operations.cutUp, operations.byReference = (*preparer).operation, (*windows).operation, byReference
	operations.reads, operations.writes = portable.Reads, portable.Writes
}

// graphs has what only graphs other than one elementwise operation over float32 need, after [UseGraphs]: users' kernels
// and types of one and two bytes.
var graphs struct {
	launch    func(e *preparer, s *driver.Step) error
	widen     func(e *preparer, dst, src arrayRef, o driver.Operand) error
	narrow    func(e *preparer, dst, src arrayRef, o driver.Operand) error
	copyBytes func(e *preparer, dst, src arrayRef) error
	narrows   func(d *device, ctx context.Context) error
}

// UseGraphs links the preparation of graphs other than one elementwise operation over float32. Pages call it before
// they make one; other programs call it before main begins.
func UseGraphs() {
	if graphs.launch != nil {
		return // another group of operations has called it
	}
	irhook.Verify = ir.Verify
	widenings, narrowings, unpackings = makeWidenings(), makeNarrowings(), makeUnpackings()
	packing, byteCopy, narrowKernel = makePacking(), makeByteCopy(), makeNarrowKernel()
	graphs.launch, graphs.widen, graphs.narrow = (*preparer).launch, (*preparer).widen, (*preparer).narrow
	graphs.copyBytes, graphs.narrows = (*preparer).copyBytes, (*device).measureNarrows
}

// hosted is a step that the host computes: a *hostStep.
type hosted interface {
	downloads(r *recorder) []gpu.Transfer
	run(ctx context.Context, r *recorder, from []gpu.Transfer) ([]gpu.Transfer, error)
}
