package batch

import (
	"fmt"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// Bitcast records the bits of x as elements of another type of 32 bits: f32, i32 or
// u32. No bit changes, where [Batch.Cast] converts the number. It fuses with what
// computes x and what reads the result.
//
//	exponent := b.ShiftRight(b.Bitcast(b.Abs(x), op.I32), b.Cast(b.Const(23, 1), op.I32))
//
// The result has the shape of x, and is x where x has type to. Which NaN a NaN is, is not
// defined; a subnormal float may be 0 on devices that flush them.
//
// Another type of x or another to is [op.ErrUnsupported], which Execute or Compile
// returns. docs/OPS.md#bitcast_f32.
func (b *Batch) Bitcast(x Value, to op.DType) Value {
	o := op.Bitcast(to)
	if o == nil {
		return b.failOp(op.BitcastF32, fmt.Errorf("bitcast to %v, not f32, i32 or u32: %w", to, device.ErrUnsupported), []Value{x})
	}
	if b.own(x) && x.Type() == to {
		return x
	}
	return b.apply(o, op.Attrs{}, x)
}
