package batch

// RopeInputs has the operands of [Batch.Rope] in addition to the elements. The zero Value means
// that an operand is absent.
type RopeInputs struct {
	// Positions, of i32, is [t]: the position of each row.
	Positions Value
	// Frequencies, of f32, is [d/2]: the angle between one position and the next for each pair, in
	// place of the powers of Theta. Models with an extended context use such frequencies.
	Frequencies Value
}
