package webgpu

// copyThreads is how many threads copy at once. One core copies some 12 GB/s, and
// the bus takes four times that.
const (
	copyThreads  = 8
	copyPart     = 64 << 10
	copyParallel = 256 << 10 // from here on more than one core pays
)

// copies copies bytes with as many threads as pay. dst and src must have the same length.
func (d *Device) copies(dst, src []byte) {
	if len(src) < copyParallel {
		copy(dst, src)
		return
	}
	d.threads().Do((len(src)+copyPart-1)/copyPart, &copyTask{dst, src})
}

type copyTask struct{ dst, src []byte }

// Part implements [workers.Task].
func (t *copyTask) Part(i int) {
	lo, hi := i*copyPart, min((i+1)*copyPart, len(t.src))
	copy(t.dst[lo:hi], t.src[lo:hi])
}
