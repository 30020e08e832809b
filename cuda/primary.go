package cuda

import (
	"fmt"
	"sync/atomic"
)

// A primary is the primary context of a device, which all Devices of that
// ordinal in the process share: if one of them loses it, all have.
type primary struct {
	drv     *driver
	context uintptr
	lost    atomic.Pointer[Error]
	ordinal int
	dev     int32
	pool    uintptr // the device's memory pool, or 0 if it has no pool
	info    Info
	refs    int // guarded by drv.mu
}

// retain returns the primary context of a device and counts a user of it.
func (d *driver) retain(ordinal int, flags uintptr) (*primary, error) {
	if err := d.use(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.primaries[ordinal]; p != nil {
		if lost := p.lost.Load(); lost != nil {
			return nil, fmt.Errorf("cuda: device %d is still open: %w", ordinal, lost)
		}
		p.refs++
		return p, nil
	}
	f := newFrame()
	defer f.release()
	dev, err := d.device(f, ordinal)
	if err != nil {
		return nil, err
	}
	p := &primary{drv: d, ordinal: ordinal, dev: dev, refs: 1}
	if p.info, err = d.info(f, ordinal, dev); err != nil {
		return nil, err
	}
	if flags != 0 {
		// A context that something else in the process has begun keeps its flags.
		f.Args[0], f.Args[1] = uintptr(dev), flags
		_ = d.call(f, cuDevicePrimaryCtxSetFlags, 0)
	}
	f.Args[0], f.Args[1] = f.out(0), uintptr(dev)
	if err := d.call(f, cuDevicePrimaryCtxRetain, 0); err != nil {
		return nil, err
	}
	p.context = f.ptr(0)
	if err := p.keepMemory(f); err != nil {
		p.drop(f)
		return nil, err
	}
	d.primaries[ordinal] = p
	return p, nil
}

// keepMemory tells the pool of the device to keep freed memory: by default the driver returns all
// of it to the system at each wait for a stream.
func (p *primary) keepMemory(f *frame) error {
	if !p.info.MemoryPools {
		return nil
	}
	f.Args[0], f.Args[1] = f.out(0), uintptr(p.dev)
	if err := p.drv.call(f, cuDeviceGetDefaultMemPool, p.context); err != nil {
		return err
	}
	pool := f.ptr(0)
	const releaseThreshold = 4
	f.Args[0], f.Args[1], f.Args[2] = pool, releaseThreshold, f.out(1)
	f.Out[1] = ^uint64(0)
	if err := p.drv.call(f, cuMemPoolSetAttribute, p.context); err != nil {
		return err
	}
	p.pool = pool
	return nil
}

// release ends a use of the context. The last one gives it back, and resets it
// if it is lost, so that the device can be opened again.
func (p *primary) release() {
	p.drv.mu.Lock()
	defer p.drv.mu.Unlock()
	if p.refs--; p.refs > 0 {
		return
	}
	delete(p.drv.primaries, p.ordinal)
	f := newFrame()
	defer f.release()
	p.drop(f)
}

// drop gives the context back.
func (p *primary) drop(f *frame) {
	if p.lost.Load() != nil {
		f.Args[0] = uintptr(p.dev)
		_ = p.drv.call(f, cuDevicePrimaryCtxReset, 0)
	} else if p.pool != 0 {
		// Other contexts cannot use the memory that the pool keeps.
		f.Args[0], f.Args[1] = p.pool, 0
		_ = p.drv.call(f, cuMemPoolTrimTo, p.context)
	}
	f.Args[0] = uintptr(p.dev)
	_ = p.drv.call(f, cuDevicePrimaryCtxRelease, 0)
}

// call calls a function with the context current. The first error after which
// the context is of no use is what every call returns from then on.
func (p *primary) call(f *frame, e entry) error { return p.callAfter(f, e, nil) }

// callAfter is call in a stream whose last launch was of fn. The error of a failed kernel mentions
// fn, because the driver does not say which kernel failed.
//
// callAfter first calls a function with a stream argument without binding the context, because the
// stream implies the context and binding costs as much as a short call. The driver refuses if it
// needs a context nonetheless, or if another library's context is bound. Then callAfter repeats the
// call with the context bound, and only an error of this call counts. The context stays bound, so
// that later first calls succeed.
func (p *primary) callAfter(f *frame, e entry, fn *Function) error {
	if p.lost.Load() == nil && streamed[e] {
		switch p.drv.callUnbound(f, e) {
		case codeSuccess:
			return nil
		case codeNotReady:
			return errNotReady
		}
	}
	return p.callBound(f, e, fn)
}

// callBound is callAfter with the context bound.
func (p *primary) callBound(f *frame, e entry, fn *Function) error {
	if lost := p.lost.Load(); lost != nil {
		f.Result = uintptr(lost.Code)
		return lost
	}
	err := p.drv.call(f, e, p.context)
	if err == nil || err == errNotReady {
		return err
	}
	failed, ok := err.(*Error)
	if !ok || !failed.Code.sticky() {
		return err
	}
	if fn != nil {
		failed.Detail = "the last launch in this stream was of " + fn.name
	}
	if !p.lost.CompareAndSwap(nil, failed) {
		return p.lost.Load()
	}
	return failed
}

// destroy calls a function that frees a resource. It is called for a lost context too, and ignores
// errors.
func (p *primary) destroy(f *frame, e entry) { _ = p.drv.call(f, e, p.context) }
