package op

// Float16 is the bits of an IEEE 754 binary16, as arrays of F16 hold it.
type Float16 uint16

// Float32 returns the value.
func (f Float16) Float32() float32 { return F16ToFloat32(uint16(f)) }

// BFloat16 is the bits of a bfloat16, as arrays of BF16 hold it.
type BFloat16 uint16

// Float32 returns the value.
func (f BFloat16) Float32() float32 { return BF16ToFloat32(uint16(f)) }
