package device

import (
	"context"
	"time"

	"github.com/rayo-go/rayo/op"
)

// Tuned is the result of [Device.Tune].
type Tuned struct {
	Best  string        // the variant that the device prefers from now on
	Times []VariantTime // in the order of preference without measurement
}

// VariantTime is the least time that a variant took, on the device's clock.
type VariantTime struct {
	Variant string
	Took    time.Duration
}

// Tune measures the kernels from which the device can choose for an operation over operands of
// the given types and shapes. The device then prefers the fastest for operands of about these
// sizes, in later processes too: Tune stores the choice with the identity of the device.
//
// # Errors
//   - [ErrUnsupported] if the device has a single kernel for the operation, as the CPU has for most.
//   - [ErrShape] and the others of the operation; the error of ctx.
//   - an error of the file system if the choice could not be stored; it still applies to this process.
func (d *Device) Tune(ctx context.Context, o *op.Operation, a op.Attrs, types []op.DType, shapes []op.Shape) (Tuned, error) {
	if o == nil {
		return Tuned{}, d.wrap(ErrUnsupported, o)
	}
	if len(types) != len(shapes) {
		return Tuned{}, d.wrap(ErrShape, o, shapes...)
	}
	everything.use()
	t, err := d.engine().Tune(ctx, o, &a, types, shapes)
	tuned := Tuned{Best: t.Best}
	for _, v := range t.Times {
		tuned.Times = append(tuned.Times, VariantTime(v))
	}
	return tuned, d.wrap(err, o, shapes...)
}
