package cuda

// What passes between the processor and the device through memory of the host
// passes once: a line that stays in the cache of some core has to be fetched from
// there when the device reads it, or given up when it writes it, and the bus waits
// for that, twice as long as for the data. So the lines that are written for the
// device go past the caches, and those that were read are given up at once. That is
// a third of the speed of one core: it pays where several copy.

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
