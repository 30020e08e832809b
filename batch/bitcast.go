package batch

import (
	"fmt"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// Bitcast records the bits of x as elements of another type of 32 bits: f32, i32 or u32. It
// changes no bit, while [Batch.Cast] converts the number. It fuses with the operations
// before and after it.
//
//	exponent := b.ShiftRight(b.Bitcast(b.Abs(x), op.I32), b.Cast(b.Const(23, 1), op.I32))
//
// The result has the shape of x. If x already has type to, the result is x. The payload of
// a NaN is not defined. Devices that flush subnormal floats may turn them into 0.
//
// Execute or Compile returns [op.ErrUnsupported] for another type of x or another to.
// See docs/OPS.md#bitcast_f32.
func (b *Batch) Bitcast(x Value, to op.DType) Value {
	o := op.Bitcast(to)
	if o == nil {
		return b.failOp(op.BitcastF32, fmt.Errorf("bitcast to %v: expected f32, i32 or u32: %w", to, device.ErrUnsupported), []Value{x})
	}
	if b.own(x) && x.Type() == to {
		return x
	}
	return b.apply(o, op.Attrs{}, x)
}
