package webgpu

// copyThreads is the largest number of threads that copy at once. One core copies about 12 GB/s, and
// the bus four times as much.
const (
	copyThreads  = 8
	copyPart     = 64 << 10
	copyParallel = 256 << 10 // size in bytes from which several cores are faster
)

// copies copies bytes with the fastest number of threads. dst and src must have the same length.
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
