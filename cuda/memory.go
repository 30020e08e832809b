package cuda

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// A Ptr is an address in the memory of a device, or of memory of the host that is mapped into the
// device. It is a number: it is valid as long as the [Memory] or [HostMemory] that it came from is
// not freed.
type Ptr uint64

// Memory is memory of a device. The zero value has no memory. Copies of a Memory share the memory:
// freeing one frees all, and freeing again does nothing.
type Memory struct {
	b   *block
	gen uint64
}

// Ptr returns the address, which is a multiple of 256, or 0 after Free.
func (m Memory) Ptr() Ptr {
	if m.b == nil || m.b.gen.Load() != m.gen {
		return 0
	}
	return m.b.ptr
}

// Size returns the size that was asked for in bytes, or 0 after Free.
func (m Memory) Size() int64 {
	if m.b == nil || m.b.gen.Load() != m.gen {
		return 0
	}
	return m.b.asked
}

// Free gives the memory back. What work in the stream it was allocated from does
// with it until now is still good; work in other streams must be finished, or
// that stream be made to wait for it with [Stream.After].
func (m Memory) Free() error {
	if m.b == nil || m.b.gen.Load() != m.gen {
		return nil
	}
	p := m.b.pool
	if !p.dev.guard.enter() {
		return nil // Close has freed it
	}
	defer p.dev.leave()
	p.put(m)
	return nil
}

// A block is memory that the driver gave. The generation changes when it is
// freed, so that a Memory knows whether it still owns the block.
type block struct {
	ptr        Ptr
	size       int64 // size of the driver's allocation
	asked      int64 // size that the present owner requested
	gen        atomic.Uint64
	pool       *pool
	prev, next *block // in the list of owned blocks of the pool
}

// Alloc allocates n bytes that belong to no stream, for memory that lives long:
// it asks the driver each time, which takes some 50 µs. The contents are
// arbitrary. Free waits for the device.
func (d *Device) Alloc(n int64) (Memory, error) {
	if d == nil || d.prim == nil || !d.guard.enter() {
		return Memory{}, closed("device")
	}
	defer d.leave()
	return d.alloc(d.own, n)
}

// Alloc allocates n bytes for work that is put into this stream from now on, or into streams that
// wait for it. The contents are arbitrary. It reuses freed memory of the stream at once, without
// calling the driver.
func (s *Stream) Alloc(n int64) (Memory, error) {
	if s == nil || s.dev == nil || !s.guard.enter() {
		return Memory{}, closed("stream")
	}
	defer s.leave()
	return s.dev.alloc(s.pool, n)
}

// alloc takes memory from a pool. If the device is full everything that is kept
// for later is given back, and it is tried once more.
func (d *Device) alloc(p *pool, n int64) (Memory, error) {
	if n < 0 {
		return Memory{}, invalid("%d bytes", n)
	}
	if n > d.prim.info.Memory {
		return Memory{}, fmt.Errorf("cuda: %w: cannot allocate %d bytes on a device with %d bytes", ErrOutOfMemory, n, d.prim.info.Memory)
	}
	m, err := p.get(n)
	if err == nil || !errors.Is(err, ErrOutOfMemory) {
		return m, err
	}
	if d.trim() != nil {
		return Memory{}, err
	}
	if m, err = p.get(n); err != nil {
		return Memory{}, fmt.Errorf("%w (asked for %d bytes)", err, n)
	}
	return m, nil
}

// Trim gives memory that is kept for later allocations back to the system. It
// waits for the device.
func (d *Device) Trim() error {
	if d == nil || d.prim == nil || !d.guard.enter() {
		return closed("device")
	}
	defer d.leave()
	return d.trim()
}

func (d *Device) trim() error {
	d.mu.Lock()
	var all []*pool
	for p := range d.pools {
		all = append(all, p)
	}
	d.mu.Unlock()
	f := newFrame()
	defer f.release()
	for _, p := range all {
		p.trim(f)
	}
	if err := d.prim.call(f, cuCtxSynchronize); err != nil {
		return err
	}
	if d.prim.pool == 0 {
		return nil
	}
	f.Args[0], f.Args[1] = d.prim.pool, 0
	return d.prim.call(f, cuMemPoolTrimTo)
}

// Usage is the memory that a Device has allocated from the driver, in bytes.
type Usage struct {
	Used int64 // owned by the program
	Kept int64 // freed by it, and kept for later allocations
}

// Usage returns the memory that this Device has allocated from the driver.
func (d *Device) Usage() Usage {
	var u Usage
	if d == nil || d.prim == nil || !d.guard.enter() {
		return u
	}
	defer d.leave()
	d.mu.Lock()
	defer d.mu.Unlock()
	for p := range d.pools {
		p.mu.Lock()
		u.Used += p.used
		u.Kept += p.cached
		p.mu.Unlock()
	}
	return u
}
