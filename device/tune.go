package device

import (
	"context"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/op"
)

// Tuned is what [Device.Tune] measured.
type Tuned = engine.Tuned

// Tune measures the ways in which the device can compute an operation over
// operands of the given types and shapes (see kernel/lib), and makes it prefer
// the fastest for operands of about these sizes, now and in later processes: the
// choice is stored with the identity of the device.
//
// # Errors
//   - [ErrUnsupported] if there is no choice: the CPU, for one, has kernels of its own for most operations.
//   - [ErrShape] and the others of the operation; the error of ctx.
//   - an error of the file system, if the choice could not be stored; it holds for this process then.
func (d *Device) Tune(ctx context.Context, o *op.Operation, a op.Attrs, types []op.DType, shapes []op.Shape) (Tuned, error) {
	if o == nil {
		return Tuned{}, d.wrap(ErrUnsupported, o)
	}
	if len(types) != len(shapes) {
		return Tuned{}, d.wrap(ErrShape, o, shapes...)
	}
	t, err := d.Engine().Tune(ctx, o, &a, types, shapes)
	return t, d.wrap(err, o, shapes...)
}
