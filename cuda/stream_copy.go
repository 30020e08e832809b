package cuda

// What passes between the processor and the device through memory of the host
// passes once: a line that stays in the cache of some core has to be fetched from
// there when the device reads it, or given up when it writes it, which takes half as
// long again as the way over the bus. So the lines that are written for the device
// go past the caches, and those that are read of it stay in the smallest.

// streamLeast is from how many bytes on that matters.
const streamLeast = 4 << 10

const line = 64

// copyOut is copy to memory that a device reads next.
func copyOut(dst, src []byte) { copyLines(dst, src, linesOut) }

// copyIn is copy from memory that a device writes next.
func copyIn(dst, src []byte) { copyLines(dst, src, linesIn) }

// copyLines copies whole lines of the memory of the device by f, and what is left
// at both ends as ever. Both slices are of one length.
func copyLines(dst, src []byte, f func(dst, src *byte, n int)) {
	if len(src) < streamLeast || !streams {
		copy(dst, src)
		return
	}
	head := int(-address(dst) & (line - 1))
	body := (len(src) - head) &^ (line - 1)
	copy(dst[:head], src[:head])
	f(&dst[head], &src[head], body)
	copy(dst[head+body:], src[head+body:])
}
