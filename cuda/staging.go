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
// and is half as fast. The ring has two halves: one is filled while the other is transferred. Each
// half is sent in chunks, so that the bus does not wait for a whole half. The lock of the stream to
// which it belongs protects it.
type ring struct {
	addr   uintptr
	ptr    Ptr
	events [2 * chunks]uintptr // of the chunks
	sent   [2]bool             // the event of the last chunk of the half is recorded and was not waited for
	at     int                 // the half that is being filled
	filled int                 // how much of it is
	task   copyTask
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

// One core copies some 12 GB/s and the bus takes four times that.
const (
	copyThreadsDefault = 8
	copyPart           = 64 << 10
	copyParallel       = 256 << 10 // from here on more than one core pays
)

var copyThreads = copyThreadsDefault

// A copyTask is a copy between Go's memory and a half of the ring, in parts: the
// thread that ends a chunk sends it, and chunks that arrive are taken as they come.
type copyTask struct {
	s    *Stream
	up   bool
	user []byte
	half []byte // as much of the ring
	dst  Ptr    // of an upload

	left [chunks]atomic.Int32 // parts of a chunk that are not copied

	events  []uintptr // of the chunks of a download
	mu      sync.Mutex
	arrived atomic.Int32

	err atomic.Pointer[error]
}

func (t *copyTask) fail(err error) { t.err.CompareAndSwap(nil, &err) }

// run does the copy with several threads if it is worth it.
func (t *copyTask) run() error {
	n := len(t.user)
	t.err.Store(nil)
	t.arrived.Store(0)
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
func (t *copyTask) Part(i int) {
	lo, hi := i*copyPart, min((i+1)*copyPart, len(t.user))
	c := lo / chunkSize
	if !t.up {
		if t.await(c) {
			if len(t.user) < copyParallel {
				copy(t.user[lo:hi], t.half[lo:hi])
			} else {
				copyIn(t.user[lo:hi], t.half[lo:hi])
			}
		}
		return
	}
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

// await waits until chunk c of a download is there. One thread asks the driver
// for all.
func (t *copyTask) await(c int) bool {
	for spin := 1; int(t.arrived.Load()) <= c; spin++ {
		if t.err.Load() != nil {
			return false
		}
		if t.mu.TryLock() {
			if next := int(t.arrived.Load()); next <= c {
				f := newFrame()
				f.Args[0] = t.events[next]
				if err := t.s.dev.await(context.Background(), f, cuEventQuery, cuEventSynchronize, t.s.last.Load()); err != nil {
					t.fail(err)
				} else {
					t.arrived.Add(1)
				}
				f.release()
			}
			t.mu.Unlock()
		} else if spin%64 == 0 {
			runtime.Gosched()
		}
	}
	return true
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

// half returns the address of a half.
func (r *ring) half(i int) uintptr { return r.addr + uintptr(i*halfSize) }

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
		t := &r.task
		t.s, t.up, t.user, t.dst = s, true, src[:n], dst
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
	if len(dst) <= min(chunkSize, halfSize-r.filled) {
		from := r.half(r.at) + uintptr(r.filled)
		f.Args[0], f.Args[1], f.Args[2], f.Args[3] = from, uintptr(src), uintptr(len(dst)), s.handle
		if err := s.call(f, cuMemcpyDtoHAsync); err != nil {
			return err
		}
		f.Args[0] = s.handle
		if err := s.dev.await(context.Background(), f, cuStreamQuery, cuStreamSynchronize, s.last.Load()); err != nil {
			return err
		}
		t := &r.task
		t.s, t.up, t.user, t.half = s, false, dst, at(from, len(dst))
		t.events = nil
		return s.settled(r, t.take())
	}
	// The present half may hold uploads that are still to travel.
	if r.filled > 0 {
		if err := s.advance(f, r); err != nil {
			return err
		}
	}
	// While one half is taken the other is under way.
	first, asked := r.at, 0
	for w := 0; w*halfSize < len(dst); w++ {
		for ; asked < w+2 && asked*halfSize < len(dst); asked++ {
			from := asked * halfSize
			if err := s.ask(f, r, (first+asked)&1, src+Ptr(from), min(len(dst)-from, halfSize)); err != nil {
				return err
			}
		}
		half, got := (first+w)&1, w*halfSize
		n := min(len(dst)-got, halfSize)
		t := &r.task
		t.s, t.up, t.user, t.half = s, false, dst[got:got+n], at(r.half(half), n)
		t.events = r.events[half*chunks:][:chunks]
		if err := t.run(); err != nil {
			return err
		}
	}
	return s.settled(r, nil)
}

// take is run of a download that has arrived.
func (t *copyTask) take() error {
	n := len(t.user)
	t.err.Store(nil)
	t.arrived.Store(chunks)
	if n < copyParallel {
		copy(t.user, t.half)
	} else {
		t.s.dev.copyWorkers().Do((n+copyPart-1)/copyPart, t)
	}
	t.user = nil
	return nil
}

// settled records that no transfer is running.
func (s *Stream) settled(r *ring, err error) error {
	r.sent, r.filled = [2]bool{}, 0
	return err
}

// ask has n bytes copied from src to a half of the ring.
func (s *Stream) ask(f *frame, r *ring, half int, src Ptr, n int) error {
	if err := s.arrived(f, r, half); err != nil {
		return err
	}
	for c := 0; c*chunkSize < n; c++ {
		at := uintptr(c * chunkSize)
		f.Args[0], f.Args[1], f.Args[2], f.Args[3] = r.half(half)+at, uintptr(src)+at, uintptr(min(chunkSize, n-c*chunkSize)), s.handle
		if err := s.call(f, cuMemcpyDtoHAsync); err != nil {
			return err
		}
		f.Args[0], f.Args[1] = r.events[half*chunks+c], s.handle
		if err := s.call(f, cuEventRecord); err != nil {
			return err
		}
	}
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
