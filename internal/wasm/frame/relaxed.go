package frame

import "slices"

// RelaxedProbe is a module that engines accept if they have the instructions that [Relaxed] writes.
const RelaxedProbe = "\x00asm\x01\x00\x00\x00" +
	"\x01\x04\x01\x60\x00\x00" + // a type of functions, without parameters and results
	"\x03\x02\x01\x00" + // a function of that type
	"\x0a\x10\x01\x0e\x01\x01\x7b\x20\x00\x20\x00\x20\x00\xfd\x85\x02\x1a\x0b" // with a variable: drop(madd(v, v, v))

// Relaxed returns a module with f32x4.relaxed_madd in place of each product and sum that [wasm.Func.MulAdd] of package
// wasm wrote: f32x4.mul, nop, local.get and f32x4.add. The new instructions, filled up with nops, are as long as the old
// ones, so that no other bytes move. No other bytes of a module are equal to these: fd e6 01 is f32x4.mul or a number, an
// instruction follows both, and 01 is nop, which only MulAdd writes.
func Relaxed(module []byte) []byte {
	m := slices.Clone(module)
	for i := 0; i+9 <= len(m); i++ {
		if string(m[i:i+5]) != "\xfd\xe6\x01\x01\x20" {
			continue
		}
		add := i + 5 // after the variable, whose number has one byte or more
		for m[add]&0x80 != 0 && add+4 < len(m) {
			add++
		}
		add++
		if add+3 <= len(m) && string(m[add:add+3]) == "\xfd\xe4\x01" {
			copy(m[i:], "\x01\x01\x01")
			copy(m[add:], "\xfd\x85\x02")
		}
	}
	return m
}
