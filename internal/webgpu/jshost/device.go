//go:build js && !nowebgpu

package jshost

import (
	"context"
	"errors"
	"sync"
	"syscall/js"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/webgpu"
)

// device is an open device.
type device struct {
	v, queue js.Value
	adapter  webgpu.Adapter
	lost     chan struct{}
	once     sync.Once

	uncaptured js.Func

	mu      sync.Mutex // protects the fields below, and calls between error scopes; no goroutine waits for a promise while it is held
	closed  bool
	notify  func(ticket uint64, err error)
	last    uint64           // ticket
	done    uint64           // all tickets up to it are over
	over    map[uint64]error // those beyond it that are over
	fault   error            // that no scope has caught
	layouts map[string]layout
	clock   clock
	sent    js.Value // an array through which bytes go to the queue
}

// newDevice returns the device of a GPUDevice.
func newDevice(v js.Value, a webgpu.Adapter) *device {
	d := &device{v: v, queue: v.Get("queue"), adapter: a, lost: make(chan struct{}), over: map[uint64]error{}, layouts: map[string]layout{}}
	then(v.Get("lost"), func(info js.Value, err error) {
		if err == nil {
			err = errors.New(text(info.Get("reason")) + " " + text(info.Get("message")))
		}
		d.lose(err)
	})
	d.uncaptured = js.FuncOf(func(_ js.Value, args []js.Value) any {
		args[0].Call("preventDefault") // or it is written to the console
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.fault == nil {
			d.fault = failure(args[0].Get("error"))
		}
		return nil
	})
	v.Set("onuncapturederror", d.uncaptured)
	return d
}

// Adapter implements [webgpu.HostDevice].
func (d *device) Adapter() *webgpu.Adapter { return &d.adapter }

// Lost implements [webgpu.HostDevice].
func (d *device) Lost() <-chan struct{} { return d.lost }

// lose marks the device as lost.
func (d *device) lose(err error) {
	d.mu.Lock()
	notify, closed := d.notify, d.closed
	d.mu.Unlock()
	if closed {
		return
	}
	d.once.Do(func() { close(d.lost) })
	if notify != nil {
		notify(0, fmt.Errorf("%w: %w", webgpu.ErrDeviceLost, err))
	}
}

// Close implements [webgpu.HostDevice].
func (d *device) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	_ = try(func() {
		d.v.Set("onuncapturederror", nil)
		d.clock.free()
		d.v.Call("destroy")
	})
	d.uncaptured.Release()
}

// The kinds of errors that a scope catches.
var kinds = []string{"validation", "out-of-memory", "internal"}

// scoped calls f between error scopes, and returns the promises of their errors, one for each kind:
// of a GPUError, or null. d.mu is held.
func (d *device) scoped(f func()) (wrong []any, err error) {
	err = try(func() {
		for _, k := range kinds {
			d.v.Call("pushErrorScope", k)
		}
	})
	if err != nil {
		return nil, err
	}
	err = try(f)
	if popped := try(func() {
		for range kinds {
			wrong = append(wrong, d.v.Call("popErrorScope"))
		}
	}); err == nil {
		err = popped
	}
	return wrong, err
}

// first returns the first error of the scopes, or nil.
func first(results js.Value) error {
	for i := range kinds {
		if e := results.Index(i); e.Type() == js.TypeObject {
			return failure(e)
		}
	}
	return nil
}

// create calls f between error scopes, and waits for the errors.
func (d *device) create(f func()) error {
	d.mu.Lock()
	wrong, err := d.scoped(f)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	results, err := await(context.Background(), all(wrong))
	if err != nil {
		return d.failed(err)
	}
	return first(results)
}

// failed returns the error of a promise that was rejected because the device was lost.
func (d *device) failed(err error) error {
	select {
	case <-d.lost:
		return fmt.Errorf("%w: %w", webgpu.ErrDeviceLost, err)
	default:
		return err
	}
}
