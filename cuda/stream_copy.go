package cuda

// Host memory for transfers between the processor and the device should not stay in the processor's
// caches: the device must fetch a cached line from its core before it reads it, or invalidate it
// before it writes it, and this takes the bus twice as long as the data itself. Copies for the
// device therefore use non-temporal stores, and copies from it flush the lines that they have read.
// This costs one core two thirds of its speed, so it pays only if several cores copy.

// streamLeast is from how many bytes on that matters.
const streamLeast = 4 << 10

const line = 64

// copyOut is copy to memory that a device reads next. Both are of one length.
func copyOut(dst, src []byte) {
	if !streams || len(src) < streamLeast {
		copy(dst, src)
		return
	}
	head := int(-address(dst) & (line - 1))
	body := (len(src) - head) &^ (line - 1)
	copy(dst[:head], src[:head])
	linesOut(&dst[head], &src[head], body)
	copy(dst[head+body:], src[head+body:])
}

// copyIn is copy from memory that a device writes next. Both are of one length.
func copyIn(dst, src []byte) {
	if !flushed || len(src) < streamLeast {
		copy(dst, src)
		return
	}
	// The first line is not given up, as something else may lie before it.
	head := line + int(-address(src)&(line-1))
	body := (len(src) - head) &^ (line - 1)
	copy(dst[:head], src[:head])
	linesIn(&dst[head], &src[head], body)
	copy(dst[head+body:], src[head+body:])
}
