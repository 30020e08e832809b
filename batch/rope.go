package batch

import "github.com/rayo-go/rayo/op"

// RopeInputs are the operands of [Batch.RopeWith] in addition to the elements. The zero Value means
// that an operand is absent.
type RopeInputs struct {
	// Positions, of i32, is [t]: the position of each row.
	Positions Value
	// Frequencies, of f32, is [d/2]: the angle between one position and the next for each pair, in
	// place of the powers of Theta. Models with an extended context use such frequencies.
	Frequencies Value
}

// RopeWith is [Batch.Rope] with positions, or with frequencies that are no powers.
//
// # Errors
//
//   - [op.ErrShape] and [op.ErrUnsupported] at Execute, if shapes or element types do not fit.
func (r *Batch) RopeWith(x Value, in RopeInputs, opts ...op.RopeOpts) Value {
	return r.apply(op.Rope, op.AttrsOf(opts), x, in.Positions, in.Frequencies)
}
