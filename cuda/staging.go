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
// and is half as fast. The ring has slots: while some are transferred, threads copy to or from
// others. The lock of the stream to which it belongs protects it.
type ring struct {
	addr   uintptr
	ptr    Ptr
	events [slots]uintptr // recorded behind the last transfer of a slot
	sent   [slots]bool    // an upload from the slot is recorded, and was not waited for
	at     int            // the slot that small uploads fill
	filled int            // how much of it is
	task   copyTask
}

const (
	slots    = 8
	slotSize = 1 << 20 // 21 µs of the bus, and 5 µs of calls
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
	copyThreadsDefault = 10
	copyPart           = 64 << 10
	copyParallel       = 256 << 10 // from here on more than one core pays
)

var copyThreads = copyThreadsDefault

const partsOfSlot = slotSize / copyPart

// A copyTask is a copy between Go's memory and the device by way of a ring. The bytes are divided
// into chunks of the size of a slot. Chunk c uses slot first + c, modulo slots; the threads copy
// parts of chunks in their order.
type copyTask struct {
	s     *Stream
	r     *ring
	up    bool
	user  []byte
	mem   Ptr
	first int

	mu    sync.Mutex          // held by the thread that waits for a slot
	ready atomic.Int32        // number of chunks whose slots the threads may copy to or from
	left  [slots]atomic.Int32 // parts of the slot's chunk that are not copied
	// asked counts the chunks that were transferred, or whose transfer was begun, by each slot.
	asked [slots]atomic.Int32
	err   atomic.Pointer[error]
}

func (t *copyTask) fail(err error) { t.err.CompareAndSwap(nil, &err) }

// chunk returns the bytes of chunk c, and its slot.
func (t *copyTask) chunk(c int) (user []byte, slot int) {
	return t.user[c*slotSize : min((c+1)*slotSize, len(t.user))], (t.first + c) % slots
}

// run does the copy.
func (t *copyTask) run() error {
	t.err.Store(nil)
	t.ready.Store(0)
	for i := range t.asked {
		t.asked[i].Store(0)
	}
	if !t.up {
		for c := 0; c < slots && c*slotSize < len(t.user); c++ {
			t.transfer(c)
		}
	}
	t.s.dev.copyWorkers().Do((len(t.user)+copyPart-1)/copyPart, t)
	t.user = nil // the slice is the caller's again
	if e := t.err.Load(); e != nil {
		return *e
	}
	return nil
}

// Part implements workers.Task.
func (t *copyTask) Part(i int) {
	c := i / partsOfSlot
	user, slot := t.chunk(c)
	if !t.await(c) {
		return
	}
	lo := i % partsOfSlot * copyPart
	hi := min(lo+copyPart, len(user))
	ring := at(t.r.slot(slot), len(user))
	if t.up {
		copyOut(ring[lo:hi], user[lo:hi])
	} else {
		copyIn(user[lo:hi], ring[lo:hi])
	}
	switch {
	case t.left[slot].Add(-1) > 0:
	case t.up:
		t.transfer(c)
	case (c+slots)*slotSize < len(t.user):
		t.transfer(c + slots)
	}
}

// transfer begins the transfer of a chunk.
func (t *copyTask) transfer(c int) {
	user, slot := t.chunk(c)
	f := newFrame()
	defer f.release()
	e, dst, src := cuMemcpyHtoDAsync, uintptr(t.mem)+uintptr(c*slotSize), t.r.slot(slot)
	if !t.up {
		e, dst, src = cuMemcpyDtoHAsync, src, dst
	}
	f.Args[0], f.Args[1], f.Args[2], f.Args[3] = dst, src, uintptr(len(user)), t.s.handle
	err := t.s.call(f, e)
	if err == nil {
		err = t.s.record(f, t.r.events[slot])
	}
	if err != nil {
		t.fail(err)
	}
	t.asked[slot].Add(1)
}

// await waits until the threads may copy chunk c, or reports false after an error. One thread asks
// the driver for all.
func (t *copyTask) await(c int) bool {
	for spin := 1; int(t.ready.Load()) <= c; spin++ {
		if t.err.Load() != nil {
			return false
		}
		if t.mu.TryLock() {
			if next := int(t.ready.Load()); next <= c {
				t.prepare(next)
			}
			t.mu.Unlock()
		} else if spin%64 == 0 {
			runtime.Gosched()
		}
	}
	return true
}

// prepare makes the slot of chunk c, the next one, ready, if the transfer for which that has to wait
// was begun.
func (t *copyTask) prepare(c int) {
	user, slot := t.chunk(c)
	begun, wait := int(t.asked[slot].Load()), true
	if t.up {
		begun++ // an upload waits for the transfer of the chunk that had the slot before
		wait = c >= slots || t.r.sent[slot]
	}
	if begun <= c/slots {
		return
	}
	if wait {
		f := newFrame()
		defer f.release()
		if err := t.s.wait(f, t.r.events[slot]); err != nil {
			t.fail(err)
			return
		}
	}
	t.left[slot].Store(int32((len(user) + copyPart - 1) / copyPart))
	t.ready.Add(1)
}

// record records an event in the stream.
func (s *Stream) record(f *frame, event uintptr) error {
	f.Args[0], f.Args[1] = event, s.handle
	return s.call(f, cuEventRecord)
}

// wait waits for an event.
func (s *Stream) wait(f *frame, event uintptr) error {
	f.Args[0] = event
	return s.dev.await(context.Background(), f, cuEventQuery, cuEventSynchronize, s.last.Load())
}

// staging returns the ring of the stream, which is made at first use.
func (s *Stream) staging(f *frame) (*ring, error) {
	if s.ring != nil {
		return s.ring, nil
	}
	r := &ring{}
	var err error
	if r.addr, r.ptr, err = s.dev.allocHost(f, slots*slotSize); err != nil {
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

// slot returns the address of a slot.
func (r *ring) slot(i int) uintptr { return r.addr + uintptr(i*slotSize) }

// advance records that the present slot is sent, and goes on to the next one.
func (s *Stream) advance(f *frame, r *ring) error {
	if err := s.record(f, r.events[r.at]); err != nil {
		return err
	}
	r.sent[r.at] = true
	r.at, r.filled = (r.at+1)%slots, 0
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
	if len(src) < copyParallel {
		return s.uploadFew(f, r, dst, src)
	}
	if r.filled > 0 {
		if err := s.advance(f, r); err != nil {
			return err
		}
	}
	t := &r.task
	t.s, t.r, t.up, t.user, t.mem, t.first = s, r, true, src, dst, r.at
	n := (len(src) + slotSize - 1) / slotSize
	err = t.run()
	for c := range min(n, slots) {
		r.sent[(r.at+c)%slots] = true
	}
	r.at = (r.at + n) % slots
	return err
}

// uploadFew uploads src, which one thread copies. Several such uploads share a slot.
func (s *Stream) uploadFew(f *frame, r *ring, dst Ptr, src []byte) error {
	for len(src) > 0 {
		if r.filled == slotSize {
			if err := s.advance(f, r); err != nil {
				return err
			}
		}
		if r.filled == 0 && r.sent[r.at] {
			if err := s.wait(f, r.events[r.at]); err != nil {
				return err
			}
			r.sent[r.at] = false
		}
		n := min(len(src), slotSize-r.filled)
		from := r.slot(r.at) + uintptr(r.filled)
		copyOut(at(from, n), src[:n])
		f.Args[0], f.Args[1], f.Args[2], f.Args[3] = uintptr(dst), from, uintptr(n), s.handle
		if err := s.call(f, cuMemcpyHtoDAsync); err != nil {
			return err
		}
		// The upload positions are a cache line apart.
		r.filled = min((r.filled+n+63)&^63, slotSize)
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
	// Transfers to a slot run after the uploads from it, because they are in the same stream.
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
		t := &r.task
		t.s, t.r, t.up, t.user, t.mem, t.first = s, r, false, dst, src, 0
		if err := t.run(); err != nil {
			return err
		}
	}
	r.sent, r.filled, r.at = [slots]bool{}, 0, 0 // no transfer is running
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
