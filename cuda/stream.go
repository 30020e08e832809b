package cuda

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A Stream is a queue of work. Work in one stream runs in order; work in different streams may run
// concurrently. It is safe for concurrent use; calls from different goroutines are queued one after
// the other.
//
// Calls that put work into a stream return when it is queued. The failure of a kernel is an error
// of a later call, usually of the call that waits.
type Stream struct {
	dev    *Device
	prim   *primary // of dev
	handle uintptr

	mu        sync.Mutex               // for putting work into the queue
	f         *frame                   // the call that does
	last      atomic.Pointer[Function] // the last launch
	closed    bool
	direct    uintptr // address of cuLaunchKernel, or 0 where a launch takes more than calling it
	lib       library // its device
	sync      bool    // see WithSynchronousLaunches
	capturing atomic.Bool

	guard guard // counts waiting calls
	pool  *pool
	ring  *ring // for copies from and to memory of Go
}

// NewStream makes a stream. If the device is busy, streams with lower priority numbers run first: 0
// is the usual priority, -1 and below are more urgent. A number outside the device's range is
// clamped.
func (d *Device) NewStream(priority int) (*Stream, error) {
	if d == nil || d.prim == nil || !d.guard.enter() {
		return nil, closed("device")
	}
	f := newFrame()
	defer f.release()
	f.Args[0], f.Args[1] = f.out(0), f.out(1)
	err := d.prim.call(f, cuCtxGetStreamPriorityRange)
	if err == nil {
		priority = max(min(priority, f.int(0)), f.int(1))
		const nonBlocking = 1 // no call may use a stream without a handle
		f.Args[0], f.Args[1], f.Args[2] = f.out(0), nonBlocking, uintptr(priority)
		err = d.prim.call(f, cuStreamCreateWithPriority)
	}
	if err != nil {
		d.leave()
		return nil, err
	}
	s := &Stream{dev: d, prim: d.prim, handle: f.ptr(0), f: new(frame), sync: d.opts.sync}
	if !s.sync {
		s.direct, _ = s.prim.drv.find(cuLaunchKernel) // where it is missing, calling it says so
		s.lib = s.prim.drv.lib
	}
	s.pool = newPool(d, s)
	d.mu.Lock()
	d.pools[s.pool] = struct{}{}
	d.mu.Unlock()
	if err := d.adopt(s); err != nil {
		return nil, err
	}
	return s, nil
}

// Device returns the device of the stream.
func (s *Stream) Device() *Device {
	if s == nil {
		return nil
	}
	return s.dev
}

// begin locks the stream for putting work into it.
func (s *Stream) begin() (*frame, error) {
	if s == nil || s.dev == nil {
		return nil, closed("stream")
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, closed("stream")
	}
	return s.f, nil
}

func (s *Stream) end() { s.mu.Unlock() }

// call calls a function for this stream.
func (s *Stream) call(f *frame, e entry) error {
	return s.prim.callAfter(f, e, s.last.Load())
}

// enter begins a call that does not put work into the stream.
func (s *Stream) enter(what string) (*frame, error) {
	if s == nil || s.dev == nil || !s.guard.enter() {
		return nil, closed("stream")
	}
	if s.capturing.Load() {
		s.leave()
		return nil, capturing(what)
	}
	return newFrame(), nil
}

func (s *Stream) exit(f *frame) {
	f.release()
	s.leave()
}

func (s *Stream) leave() {
	if s.guard.leave() {
		s.destroy()
	}
}

// Synchronize waits for everything in the stream, in the way that
// [WithScheduling] has chosen.
func (s *Stream) Synchronize() error { return s.Wait(context.Background()) }

// Wait waits for everything in the stream, or until the context ends: its error
// is returned then, and the work goes on. With a context that can end it polls.
func (s *Stream) Wait(ctx context.Context) error {
	f, err := s.enter("Wait")
	if err != nil {
		return err
	}
	defer s.exit(f)
	f.Args[0] = s.handle
	return s.dev.await(ctx, f, cuStreamQuery, cuStreamSynchronize, s.last.Load())
}

// Done reports whether everything in the stream is finished.
func (s *Stream) Done() (bool, error) {
	f, err := s.enter("Done")
	if err != nil {
		return false, err
	}
	defer s.exit(f)
	f.Args[0] = s.handle
	err = s.call(f, cuStreamQuery)
	if err == errNotReady {
		return false, nil
	}
	return err == nil, err
}

// spinning is how long a wait that can be cancelled polls before it sleeps.
const spinning = 100 * time.Microsecond

// await waits for the handle in the frame, which query asks about and block
// waits for. The driver's own waiting notices the end soonest, and cannot be
// cancelled.
func (d *Device) await(ctx context.Context, f *frame, query, block entry, last *Function) error {
	if ctx == nil || ctx.Done() == nil {
		return d.prim.callAfter(f, block, last)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	start := time.Now()
	for i := 0; ; i++ {
		if err := d.prim.callAfter(f, query, last); err != errNotReady {
			return err
		}
		if i%16 == 15 {
			runtime.Gosched()
			if time.Since(start) > spinning {
				break
			}
		}
	}
	// Each pause is a small part of the time waited so far.
	const shortest, longest, part = 20 * time.Microsecond, time.Millisecond, 16
	timer := time.NewTimer(shortest)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		if err := d.prim.callAfter(f, query, last); err != errNotReady {
			return err
		}
		timer.Reset(min(max(time.Since(start)/part, shortest), longest))
	}
}

// Record marks the present end of the stream with the event.
func (s *Stream) Record(e *Event) error {
	if err := e.enter(s.Device()); err != nil {
		return err
	}
	defer e.leave()
	f, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end()
	f.Args[0], f.Args[1] = e.handle, s.handle
	return s.call(f, cuEventRecord)
}

// After makes the work that is submitted to the stream from now on wait, on the device, for the
// recorded event, which may belong to another stream or device. An event that was never recorded
// does not block.
func (s *Stream) After(e *Event) error {
	if err := e.enter(nil); err != nil {
		return err
	}
	defer e.leave()
	f, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end()
	f.Args[0], f.Args[1], f.Args[2] = s.handle, e.handle, 0
	return s.call(f, cuStreamWaitEvent)
}

// Close makes the stream unusable. The device still finishes the stream's work. Closing again does
// nothing.
func (s *Stream) Close() error {
	if s == nil || s.dev == nil {
		return nil
	}
	s.mu.Lock()
	s.closed, s.direct = true, 0
	s.mu.Unlock()
	if s.guard.close() {
		s.destroy()
	}
	return nil
}

// destroy frees the stream's resources when no call uses it any more.
func (s *Stream) destroy() {
	f := newFrame()
	defer f.release()
	if s.ring != nil {
		// Copies out of the ring may still be under way.
		f.Args[0] = s.handle
		s.dev.prim.destroy(f, cuStreamSynchronize)
		s.freeRing(f, s.ring)
	}
	s.pool.retire(f)
	f.Args[0] = s.handle
	s.dev.prim.destroy(f, cuStreamDestroy)
	s.dev.orphan(s)
}
