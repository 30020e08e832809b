package cuda

import (
	"context"

	"github.com/rayo-go/rayo/internal/workers"
)

// A ring is memory of the host through which copies between Go's memory and the
// device go: the device cannot reach Go's memory by itself, and the driver's own
// way of copying from it blocks and is half as fast. It is cut into segments,
// which are filled and sent in turn, so that one is filled while others travel.
// It belongs to a stream, whose lock guards it.
type ring struct {
	addr   uintptr
	ptr    Ptr
	events [segments]uintptr
	sent   [segments]bool // the event of the segment is recorded and was not waited for
	at     int            // the segment that is being filled
	filled int            // how much of it is
	task   copyTask
}

const (
	segments    = 8
	segmentSize = 1 << 20
)

// crew returns the threads that copy to and from rings, which are started at the
// first copy that is worth it.
func (d *Device) crew() *workers.Pool {
	d.copiers.Do(func() { d.threads = workers.New(copyThreads) })
	return d.threads
}

// One core copies some 12 GB/s and the bus takes four times that. Copying a
// segment takes one core 90 µs.
const (
	copyThreads  = 8
	copyPart     = 64 << 10
	copyParallel = 256 << 10 // from here on more than one core pays
)

// A copyTask is a copy in parts.
type copyTask struct{ dst, src []byte }

// Part implements workers.Task.
func (t *copyTask) Part(i int) {
	lo, hi := i*copyPart, min((i+1)*copyPart, len(t.src))
	copy(t.dst[lo:hi], t.src[lo:hi])
}

// copy copies src to dst, both of one length.
func (r *ring) copy(d *Device, dst, src []byte) {
	if len(src) < copyParallel {
		copy(dst, src)
		return
	}
	r.task = copyTask{dst, src}
	d.crew().Do((len(src)+copyPart-1)/copyPart, &r.task)
	r.task = copyTask{} // the slice is the caller's again
}

// staging returns the ring of the stream, which is made at first use.
func (s *Stream) staging(f *frame) (*ring, error) {
	if s.ring != nil {
		return s.ring, nil
	}
	r := &ring{}
	var err error
	if r.addr, r.ptr, err = s.dev.allocHost(f, segments*segmentSize); err != nil {
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

// freeRing gives back what the ring has. Nothing may travel through it.
func (s *Stream) freeRing(f *frame, r *ring) {
	for _, e := range r.events {
		if e != 0 {
			f.Args[0] = e
			s.dev.prim.destroy(f, cuEventDestroy)
		}
	}
	s.dev.freeHost(f, r.addr)
}

// advance records that the present segment is sent, and waits until the next
// one can be filled.
func (s *Stream) advance(f *frame, r *ring) error {
	f.Args[0], f.Args[1] = r.events[r.at], s.handle
	if err := s.call(f, cuEventRecord); err != nil {
		return err
	}
	r.sent[r.at] = true
	r.at = (r.at + 1) % segments
	r.filled = 0
	return s.arrived(f, r, r.at)
}

// arrived waits until what was sent through segment i is at its place.
func (s *Stream) arrived(f *frame, r *ring, i int) error {
	if !r.sent[i] {
		return nil
	}
	f.Args[0] = r.events[i]
	if err := s.dev.await(context.Background(), f, cuEventQuery, cuEventSynchronize, s.last.Load()); err != nil {
		return err
	}
	r.sent[i] = false
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
		if r.filled == segmentSize {
			if err := s.advance(f, r); err != nil {
				return err
			}
		}
		n := min(len(src), segmentSize-r.filled)
		from := r.addr + uintptr(r.at*segmentSize+r.filled)
		r.copy(s.dev, at(from, n), src[:n])
		f.Args[0], f.Args[1], f.Args[2], f.Args[3] = uintptr(dst), from, uintptr(n), s.handle
		if err := s.call(f, cuMemcpyHtoDAsync); err != nil {
			return err
		}
		// Places for the next upload are kept apart by a line of the cache.
		r.filled = min((r.filled+n+63)&^63, segmentSize)
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
	if len(dst) <= segmentSize-r.filled {
		from := r.addr + uintptr(r.at*segmentSize+r.filled)
		f.Args[0], f.Args[1], f.Args[2], f.Args[3] = from, uintptr(src), uintptr(len(dst)), s.handle
		if err := s.call(f, cuMemcpyDtoHAsync); err != nil {
			return err
		}
		f.Args[0] = s.handle
		if err := s.dev.await(context.Background(), f, cuStreamQuery, cuStreamSynchronize, s.last.Load()); err != nil {
			return err
		}
		r.copy(s.dev, dst, at(from, len(dst)))
		// Nothing travels any more.
		r.sent, r.filled = [segments]bool{}, 0
		return nil
	}
	// The present segment may hold uploads that are still to travel.
	if r.filled > 0 {
		if err := s.advance(f, r); err != nil {
			return err
		}
	}
	first, asked, got := r.at, 0, 0
	for seg := 0; got < len(dst); {
		// Ask for as much as there are segments.
		for asked < len(dst) && seg < segments {
			i := (first + seg) % segments
			if err := s.arrived(f, r, i); err != nil {
				return err
			}
			n := min(len(dst)-asked, segmentSize)
			f.Args[0], f.Args[1], f.Args[2], f.Args[3] = r.addr+uintptr(i*segmentSize), uintptr(src)+uintptr(asked), uintptr(n), s.handle
			if err := s.call(f, cuMemcpyDtoHAsync); err != nil {
				return err
			}
			f.Args[0], f.Args[1] = r.events[i], s.handle
			if err := s.call(f, cuEventRecord); err != nil {
				return err
			}
			r.sent[i] = true
			asked += n
			seg++
		}
		// Take the oldest.
		if err := s.arrived(f, r, first); err != nil {
			return err
		}
		n := min(len(dst)-got, segmentSize)
		r.copy(s.dev, dst[got:got+n], at(r.addr+uintptr(first*segmentSize), n))
		got += n
		first = (first + 1) % segments
		seg--
	}
	r.at, r.filled = first, 0
	return s.arrived(f, r, first)
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
