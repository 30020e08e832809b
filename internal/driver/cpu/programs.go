package cpu

import (
	"context"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// planning has what plans of programs need, after [UsePrograms].
var planning struct {
	prepare func(d *processor, ctx context.Context, p *driver.Program) (driver.Executable, error)
	fuses   func(d *processor, o *op.Operation, at driver.Place) bool
	reads   func(d *processor, o *op.Operation, at int, s op.Shape, l *op.Layout) bool
	writes  func(d *processor, o *op.Operation, s op.Shape, t op.DType, l *op.Layout) bool
}

// composed computes an elementwise operation that has no kernel of its own.
var composed = evaluate

// UsePrograms links the compiler of elementwise programs. Pages link it if they compute more than
// single elementwise operations of the catalogue.
func UsePrograms() {
	if planning.prepare == nil {
		enter(func(*processor) core { return &reshapeTask{} }, op.Reshape)
		planning.prepare, planning.fuses = (*processor).prepare, (*processor).fuses
		planning.reads, planning.writes = (*processor).reads, (*processor).writes
		composed, mapNamed = (*processor).elementwisePrepared, simd.VectorMap
	}
}

// Prepare implements [driver.Device].
func (d *processor) Prepare(ctx context.Context, p *driver.Program) (driver.Executable, error) {
	if planning.prepare == nil {
		return nil, fmt.Errorf("BUG: the page did not link the compiler of elementwise programs: %w", driver.ErrUnsupported)
	}
	return planning.prepare(d, ctx, p)
}

// Fuses implements [driver.Device].
func (d *processor) Fuses(o *op.Operation, at driver.Place) bool {
	return planning.fuses != nil && planning.fuses(d, o, at)
}

// Reads implements [driver.Strided].
func (d *processor) Reads(o *op.Operation, at int, s op.Shape, l *op.Layout) bool {
	return planning.reads != nil && planning.reads(d, o, at, s, l)
}

// Writes implements [driver.Strided].
func (d *processor) Writes(o *op.Operation, s op.Shape, t op.DType, l *op.Layout) bool {
	return planning.writes != nil && planning.writes(d, o, s, t, l)
}

// evaluate computes the expression of o in float64, one element after the other. It serves pages
// without programs, in browsers without SIMD128.
func evaluate(_ *processor, ctx context.Context, o *op.Operation, a *op.Attrs, dst, x, y, z []float32) error {
	_, arity := o.Arity()
	e, err := irhook.Expression(o, a, []op.DType{op.F32, op.F32, op.F32}[:arity])
	if err != nil {
		return err
	}
	v := ir.NewEvaluator(e)
	var params [len(a.F)]float64
	for i := range params {
		params[i] = float64(a.Float(i))
	}
	in := [][]float32{x, y, z}[:arity]
	args := make([]float64, arity)
	for i := range dst {
		if i%callElements == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		for k := range args {
			args[k] = float64(in[k][i])
		}
		dst[i] = float32(v.Eval(args, params[:]))
	}
	return nil
}
