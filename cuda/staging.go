package cuda

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/workers"
)

// A ring is a staging buffer of locked host memory for copies between Go memory and the device. The
// device cannot access Go memory directly, and the driver's own copy from pageable memory blocks
// and is half as fast. For uploads, the ring has two halves: one is filled while the other is transferred. Each
// half is sent in chunks, so that the bus does not wait for a whole half. The lock of the stream to
// which it belongs protects it.
type ring struct {
	addr   uintptr
	ptr    Ptr
	events [2 * chunks]uintptr // of the chunks
	sent   [2]bool             // the event of the last chunk of the half is recorded and was not waited for
	at     int                 // the half that is being filled
	filled int                 // bytes of that half that are filled
	up     uploadTask
	down   downloadTask
}

const (
	halfSize  = 4 << 20
	chunkSize = 1 << 20 // 21 µs of the bus, and 5 µs of calls
	chunks    = halfSize / chunkSize
)

// copyWorkers returns the threads that copy to and from rings, which are started at the
// first copy that is worth it.
func (d *Device) copyWorkers() *workers.Pool {
	d.copiers.Do(func() { d.threads = workers.New(copyThreads) })
	return d.threads
}

// One core copies 6 to 12 GB/s, and the bus takes 55. Beside an H200 with 16 cores of a Xeon, 10 threads copy
// 40 GB/s, and 8 or 15 threads 35.
const (
	copyThreads  = 10
	copyPart     = 64 << 10
	copyParallel = 256 << 10 // the minimum size for several threads
)

// An uploadTask is a copy from Go's memory to a half of the ring, in parts. The thread that ends a
// chunk sends it.
type uploadTask struct {
	s    *Stream
	user []byte
	half []byte // the part of the ring that receives user, of equal length
	dst  Ptr

	left [chunks]atomic.Int32 // parts of a chunk that are not copied
	err  atomic.Pointer[error]
}

// run does the copy with several threads if it is worth it.
func (t *uploadTask) run() error {
	n := len(t.user)
	t.err.Store(nil)
	for c := 0; c*chunkSize < n; c++ {
		t.left[c].Store(int32((min(chunkSize, n-c*chunkSize) + copyPart - 1) / copyPart))
	}
	parts := (n + copyPart - 1) / copyPart
	if n < copyParallel {
		for i := range parts {
			t.Part(i)
		}
	} else {
		t.s.dev.copyWorkers().Do(parts, t)
	}
	t.user = nil // the slice is the caller's again
	if e := t.err.Load(); e != nil {
		return *e
	}
	return nil
}

// Part implements workers.Task.
func (t *uploadTask) Part(i int) {
	lo, hi := i*copyPart, min((i+1)*copyPart, len(t.user))
	c := lo / chunkSize
	copyOut(t.half[lo:hi], t.user[lo:hi])
	if t.left[c].Add(-1) > 0 {
		return
	}
	from, to := c*chunkSize, min((c+1)*chunkSize, len(t.user))
	f := newFrame()
	defer f.release()
	f.Args[0], f.Args[1], f.Args[2], f.Args[3] = uintptr(t.dst)+uintptr(from), address(t.half[from:]), uintptr(to-from), t.s.handle
	if err := t.s.call(f, cuMemcpyHtoDAsync); err != nil {
		t.fail(err)
	}
}

func (t *uploadTask) fail(err error) { t.err.CompareAndSwap(nil, &err) }

// A downloadTask is a copy to Go's memory by way of the ring, which is divided into slots of one chunk
// each. Chunk c uses slot c modulo slots; the threads copy the parts of chunks in their order, and
// the thread that copies the last part of a chunk begins the next transfer to its slot. All threads
// work on one task until the end, because they would otherwise wait for each other in between.
type downloadTask struct {
	s    *Stream
	r    *ring
	user []byte
	src  Ptr

	mu    sync.Mutex          // held by the thread that waits for a transfer
	ready atomic.Int32        // number of chunks that have arrived
	begun [slots]atomic.Int32 // number of transfers to the slot that were begun
	left  [slots]atomic.Int32 // parts of the slot's chunk that are not copied
	err   atomic.Pointer[error]
}

const slots = 2 * chunks

func (t *downloadTask) fail(err error) { t.err.CompareAndSwap(nil, &err) }

// chunk returns the bytes of chunk c, and its slot.
func (t *downloadTask) chunk(c int) (user []byte, slot int) {
	return t.user[c*chunkSize : min((c+1)*chunkSize, len(t.user))], c % slots
}

// run does the copy.
func (t *downloadTask) run() error {
	t.err.Store(nil)
	t.ready.Store(0)
	for i := range t.begun {
		t.begun[i].Store(0)
	}
	for c := 0; c < slots && c*chunkSize < len(t.user); c++ {
		t.transfer(c)
	}
	t.s.dev.copyWorkers().Do((len(t.user)+copyPart-1)/copyPart, t)
	t.user = nil // the slice is the caller's again
	if e := t.err.Load(); e != nil {
		return *e
	}
	return nil
}

// transfer begins the transfer of a chunk.
func (t *downloadTask) transfer(c int) {
	user, slot := t.chunk(c)
	f := newFrame()
	defer f.release()
	f.Args[0], f.Args[1], f.Args[2], f.Args[3] = t.r.slot(slot), uintptr(t.src)+uintptr(c*chunkSize), uintptr(len(user)), t.s.handle
	err := t.s.call(f, cuMemcpyDtoHAsync)
	if err == nil {
		f.Args[0], f.Args[1] = t.r.events[slot], t.s.handle
		err = t.s.call(f, cuEventRecord)
	}
	if err != nil {
		t.fail(err)
	}
	t.begun[slot].Add(1)
}

// Part implements workers.Task.
func (t *downloadTask) Part(i int) {
	const parts = chunkSize / copyPart
	c := i / parts
	user, slot := t.chunk(c)
	if !t.await(c) {
		return
	}
	lo := i % parts * copyPart
	hi := min(lo+copyPart, len(user))
	copyIn(user[lo:hi], at(t.r.slot(slot), len(user))[lo:hi])
	if t.left[slot].Add(-1) == 0 && (c+slots)*chunkSize < len(t.user) {
		t.transfer(c + slots)
	}
}

// await waits until chunk c has arrived, or reports false after an error. One thread asks the driver
// for all.
func (t *downloadTask) await(c int) bool {
	for spin := 1; int(t.ready.Load()) <= c; spin++ {
		if t.err.Load() != nil {
			return false
		}
		if t.mu.TryLock() {
			if next := int(t.ready.Load()); next <= c && int(t.begun[next%slots].Load()) > next/slots {
				t.arrive(next)
			}
			t.mu.Unlock()
		}
		if spin%64 == 0 {
			runtime.Gosched()
		}
	}
	return true
}

// arrive waits for the transfer of chunk c, the next one.
func (t *downloadTask) arrive(c int) {
	user, slot := t.chunk(c)
	f := newFrame()
	defer f.release()
	f.Args[0] = t.r.events[slot]
	if err := t.s.dev.await(context.Background(), f, cuEventQuery, cuEventSynchronize, t.s.last.Load()); err != nil {
		t.fail(err)
		return
	}
	t.left[slot].Store(int32((len(user) + copyPart - 1) / copyPart))
	t.ready.Add(1)
}

// staging returns the ring of the stream, which is made at first use.
func (s *Stream) staging(f *frame) (*ring, error) {
	if s.ring != nil {
		return s.ring, nil
	}
	r := &ring{}
	var err error
	if r.addr, r.ptr, err = s.dev.allocHost(f, 2*halfSize); err != nil {
		return nil, err
	}
	for i := range r.events {
		if r.events[i], err = s.dev.newEvent(f, false); err != nil {
			s.freeRing(f, r)
			return nil, err
		}
	}
	s.ring = r
	return r, nil
}

// freeRing frees the ring's resources. No transfer may be using it.
func (s *Stream) freeRing(f *frame, r *ring) {
	for _, e := range r.events {
		if e != 0 {
			f.Args[0] = e
			s.dev.prim.destroy(f, cuEventDestroy)
		}
	}
	s.dev.freeHost(f, r.addr)
}

// half returns the address of a half, and slot that of a slot.
func (r *ring) half(i int) uintptr { return r.addr + uintptr(i*halfSize) }
func (r *ring) slot(i int) uintptr { return r.addr + uintptr(i*chunkSize) }

// advance records that the present half is sent, and waits until the other one
// can be filled.
func (s *Stream) advance(f *frame, r *ring) error {
	f.Args[0], f.Args[1] = r.events[r.at*chunks+chunks-1], s.handle
	if err := s.call(f, cuEventRecord); err != nil {
		return err
	}
	r.sent[r.at] = true
	r.at = 1 - r.at
	r.filled = 0
	return s.arrived(f, r, r.at)
}

// arrived waits until the transfers of a half are complete.
func (s *Stream) arrived(f *frame, r *ring, half int) error {
	if !r.sent[half] {
		return nil
	}
	f.Args[0] = r.events[half*chunks+chunks-1]
	if err := s.dev.await(context.Background(), f, cuEventQuery, cuEventSynchronize, s.last.Load()); err != nil {
		return err
	}
	r.sent[half] = false
	return nil
}

// Upload puts a copy of src to dst into the stream. It returns when src may be
// changed again, which is usually before the copy is done.
func (s *Stream) Upload(dst Ptr, src []byte) error {
	f, err := s.beginStaging("Upload")
	if err != nil {
		return err
	}
	defer s.end()
	if len(src) == 0 {
		return nil
	}
	r, err := s.staging(f)
	if err != nil {
		return err
	}
	for len(src) > 0 {
		if r.filled == halfSize {
			if err := s.advance(f, r); err != nil {
				return err
			}
		}
		n := min(len(src), halfSize-r.filled)
		t := &r.up
		t.s, t.user, t.dst = s, src[:n], dst
		t.half = at(r.half(r.at)+uintptr(r.filled), n)
		if err := t.run(); err != nil {
			return err
		}
		// The upload positions are a cache line apart.
		r.filled = min((r.filled+n+63)&^63, halfSize)
		src, dst = src[n:], dst+Ptr(n)
	}
	return nil
}

// Download copies from src to dst after everything that is in the stream, and
// waits for that.
func (s *Stream) Download(dst []byte, src Ptr) error {
	f, err := s.beginStaging("Download")
	if err != nil {
		return err
	}
	defer s.end()
	if len(dst) == 0 {
		return nil
	}
	r, err := s.staging(f)
	if err != nil {
		return err
	}
	// A transfer to a half runs after the uploads from it, because they are in the same stream.
	if len(dst) < copyParallel {
		f.Args[0], f.Args[1], f.Args[2], f.Args[3] = r.addr, uintptr(src), uintptr(len(dst)), s.handle
		if err := s.call(f, cuMemcpyDtoHAsync); err != nil {
			return err
		}
		f.Args[0] = s.handle
		if err := s.dev.await(context.Background(), f, cuStreamQuery, cuStreamSynchronize, s.last.Load()); err != nil {
			return err
		}
		copy(dst, at(r.addr, len(dst)))
	} else {
		t := &r.down
		t.s, t.r, t.user, t.src = s, r, dst, src
		if err := t.run(); err != nil {
			f.Args[0] = s.handle
			_ = s.call(f, cuStreamSynchronize) // transfers that were begun write to the ring
			r.sent, r.filled = [2]bool{}, 0
			return err
		}
	}
	r.sent, r.filled = [2]bool{}, 0 // no transfer is running
	return nil
}

// beginStaging locks the stream for a copy that the host takes part in, which
// cannot become part of a graph.
func (s *Stream) beginStaging(what string) (*frame, error) {
	f, err := s.begin()
	if err != nil {
		return nil, err
	}
	if s.capturing.Load() {
		s.end()
		return nil, capturing(what)
	}
	return f, nil
}
