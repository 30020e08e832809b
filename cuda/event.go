package cuda

import (
	"context"
	"fmt"
	"math"
	"time"
)

// An Event marks a point in a stream, so that the host, or another stream, can
// wait for it. It is safe for concurrent use.
type Event struct {
	dev    *Device
	handle uintptr
	timing bool
	guard  guard
}

// NewEvent makes an event. One with timing can be given to [Elapsed], and costs
// the device a little more.
func (d *Device) NewEvent(timing bool) (*Event, error) {
	if d == nil || d.prim == nil || !d.guard.enter() {
		return nil, closed("device")
	}
	f := newFrame()
	defer f.release()
	handle, err := d.newEvent(f, timing)
	if err != nil {
		d.leave()
		return nil, err
	}
	e := &Event{dev: d, handle: handle, timing: timing}
	if err := d.adopt(e); err != nil {
		return nil, err
	}
	return e, nil
}

func (d *Device) newEvent(f *frame, timing bool) (uintptr, error) {
	const disableTiming = 2
	f.Args[0], f.Args[1] = f.out(0), disableTiming
	if timing {
		f.Args[1] = 0
	}
	err := d.prim.call(f, cuEventCreate)
	return f.ptr(0), err
}

// enter begins a call that uses the event, for the device unless it is nil.
func (e *Event) enter(d *Device) error {
	if e == nil || e.dev == nil || !e.guard.enter() {
		return closed("event")
	}
	if d != nil && d.prim != nil && d.prim != e.dev.prim {
		e.leave()
		return foreign("event")
	}
	return nil
}

func (e *Event) leave() {
	if e.guard.leave() {
		e.destroy()
	}
}

// Synchronize waits for the point that the event marks.
func (e *Event) Synchronize() error { return e.Wait(context.Background()) }

// Wait waits for the point that the event marks, or until the context ends: its
// error is returned then.
func (e *Event) Wait(ctx context.Context) error {
	if err := e.enter(nil); err != nil {
		return err
	}
	defer e.leave()
	f := newFrame()
	defer f.release()
	f.Args[0] = e.handle
	return e.dev.await(ctx, f, cuEventQuery, cuEventSynchronize, nil)
}

// Done reports whether the point that the event marks is past.
func (e *Event) Done() (bool, error) {
	if err := e.enter(nil); err != nil {
		return false, err
	}
	defer e.leave()
	f := newFrame()
	defer f.release()
	f.Args[0] = e.handle
	err := e.dev.prim.call(f, cuEventQuery)
	if err == errNotReady {
		return false, nil
	}
	return err == nil, err
}

// Elapsed returns the time between two points, as the device measured it, to
// about half a microsecond. Both events must be made with timing and be past.
func Elapsed(from, to *Event) (time.Duration, error) {
	if err := from.enter(nil); err != nil {
		return 0, err
	}
	defer from.leave()
	if err := to.enter(from.dev); err != nil {
		return 0, err
	}
	defer to.leave()
	if !from.timing || !to.timing {
		return 0, invalid("an event without timing")
	}
	f := newFrame()
	defer f.release()
	f.Args[0], f.Args[1], f.Args[2] = f.out(0), from.handle, to.handle
	if err := from.dev.prim.call(f, cuEventElapsedTime); err != nil {
		if err == errNotReady {
			err = fmt.Errorf("cuda: %w: an event is not past yet", ErrInvalid)
		}
		return 0, err
	}
	ms := float64(math.Float32frombits(uint32(f.int(0))))
	return time.Duration(ms * float64(time.Millisecond)), nil
}

// Close makes the event unusable. Closing again does nothing.
func (e *Event) Close() error {
	if e == nil || e.dev == nil {
		return nil
	}
	if e.guard.close() {
		e.destroy()
	}
	return nil
}

func (e *Event) destroy() {
	f := newFrame()
	defer f.release()
	f.Args[0] = e.handle
	e.dev.prim.destroy(f, cuEventDestroy)
	e.dev.orphan(e)
}
