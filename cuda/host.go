package cuda

import (
	"errors"
	"sync"
	"unsafe"
)

// HostMemory is memory of the host that the system does not move or swap, so
// that the device reads and writes it by itself: copies from and to it are
// truly asynchronous and twice as fast, and kernels can use it directly. It is
// safe for concurrent use.
type HostMemory struct {
	dev   *Device
	guard guard
	addr  uintptr
	ptr   Ptr
	size  int64
	user  []byte // the memory that LockHost was given
}

// AllocHost allocates n bytes. They are zero. Locked memory is scarce, and
// allocating it takes milliseconds: keep it.
func (d *Device) AllocHost(n int64) (*HostMemory, error) {
	if n < 0 || n > 1<<46 {
		return nil, invalid("%d bytes", n)
	}
	if d == nil || d.prim == nil || !d.guard.enter() {
		return nil, closed("device")
	}
	f := newFrame()
	defer f.release()
	addr, ptr, err := d.allocHost(f, max(n, 1))
	if err != nil {
		d.leave()
		return nil, err
	}
	h := &HostMemory{dev: d, addr: addr, ptr: ptr, size: n}
	clear(at(addr, int(n)))
	if err := d.adopt(h); err != nil {
		return nil, err
	}
	return h, nil
}

// LockHost locks the pages of b, so that copies from and to b are like those of memory that
// [Device.AllocHost] returns. It takes about as long as copying b. b must begin and end at multiples of
// the system's page size, and must be writable. Close unlocks the pages; b remains valid, and is kept
// from being freed until then. The error is [ErrLocked] if some pages are locked already, also by another Device.
func (d *Device) LockHost(b []byte) (*HostMemory, error) {
	if len(b) == 0 {
		return nil, invalid("no bytes to lock")
	}
	if d == nil || d.prim == nil || !d.guard.enter() {
		return nil, closed("device")
	}
	f := newFrame()
	defer f.release()
	const portable, mapped = 1, 2
	f.Args[0], f.Args[1], f.Args[2] = address(b), uintptr(len(b)), portable|mapped
	if err := d.prim.call(f, cuMemHostRegister); err != nil {
		d.leave()
		return nil, err
	}
	h := &HostMemory{dev: d, addr: address(b), size: int64(len(b)), user: b}
	f.Args[0], f.Args[1], f.Args[2] = f.out(1), h.addr, 0
	err := d.prim.call(f, cuMemHostGetDevicePointer)
	h.ptr = Ptr(f.Out[1])
	if adopted := d.adopt(h); err == nil {
		err = adopted
	}
	if err != nil {
		_ = h.Close()
		return nil, err
	}
	return h, nil
}

// allocHost allocates memory of the host and returns its addresses on the host
// and on the device.
func (d *Device) allocHost(f *frame, n int64) (addr uintptr, ptr Ptr, err error) {
	const portable, mapped = 1, 2
	f.Args[0], f.Args[1], f.Args[2] = f.out(0), uintptr(n), portable|mapped
	if err := d.prim.call(f, cuMemHostAlloc); err != nil {
		return 0, 0, err
	}
	addr = f.ptr(0)
	f.Args[0], f.Args[1], f.Args[2] = f.out(1), addr, 0
	if err := d.prim.call(f, cuMemHostGetDevicePointer); err != nil {
		d.freeHost(f, addr)
		return 0, 0, err
	}
	return addr, Ptr(f.Out[1]), nil
}

func (d *Device) freeHost(f *frame, addr uintptr) {
	f.Args[0] = addr
	d.prim.destroy(f, cuMemFreeHost)
}

// Bytes returns the memory, or nil after Close. It must not be touched after
// Close, and not while the device is using it.
func (h *HostMemory) Bytes() []byte {
	if h == nil || h.dev == nil || !h.guard.open() {
		return nil
	}
	return at(h.addr, int(h.size))
}

// Write copies src into the memory, from off on, so that a device reads it soonest:
// much at a time with several threads, and past the caches of the processor.
func (h *HostMemory) Write(off int64, src []byte) error {
	if err := h.enter(off, int64(len(src))); err != nil {
		return err
	}
	defer h.leave()
	h.dev.copyParts(at(h.addr+uintptr(off), len(src)), src, copyOut)
	return nil
}

// Read copies from the memory, from offset off, to dst. Large copies use several threads. They
// flush the memory from their caches, because the device will write it again.
func (h *HostMemory) Read(dst []byte, off int64) error {
	if err := h.enter(off, int64(len(dst))); err != nil {
		return err
	}
	defer h.leave()
	h.dev.copyParts(dst, at(h.addr+uintptr(off), len(dst)), copyIn)
	return nil
}

// hostCopy is a copy in parts.
type hostCopy struct {
	dst, src []byte
	copy     func(dst, src []byte)
}

// Part implements workers.Task.
func (t *hostCopy) Part(i int) {
	lo, hi := i*copyPart, min((i+1)*copyPart, len(t.src))
	t.copy(t.dst[lo:hi], t.src[lo:hi])
}

// copyParts copies with several threads if it is worth it.
func (d *Device) copyParts(dst, src []byte, f func(dst, src []byte)) {
	n := len(src)
	if n < copyParallel {
		copy(dst, src)
		return
	}
	d.copyWorkers().Do((n+copyPart-1)/copyPart, &hostCopy{dst, src, f})
}

// Ptr returns the address under which kernels find the memory, or 0 after Close.
func (h *HostMemory) Ptr() Ptr {
	if h == nil || h.dev == nil || !h.guard.open() {
		return 0
	}
	return h.ptr
}

// Size returns the size in bytes, or 0 after Close.
func (h *HostMemory) Size() int64 { return int64(len(h.Bytes())) }

// Close frees the memory. It waits for work that the device does with it.
// Closing again does nothing. If the pages of [Device.LockHost] cannot be unlocked, for example because
// a stream is captured at the same time, Close returns the error, and the pages stay locked.
func (h *HostMemory) Close() error {
	if h == nil || h.dev == nil {
		return nil
	}
	if h.guard.close() {
		return h.destroy()
	}
	return nil
}

// keptLocked has the memory whose pages could not be unlocked. It must not be freed.
var keptLocked sync.Map

func (h *HostMemory) destroy() (err error) {
	f := newFrame()
	defer f.release()
	if h.user == nil {
		h.dev.freeHost(f, h.addr)
	} else if err = h.unlock(f); err != nil && !errors.Is(err, ErrDeviceLost) {
		keptLocked.Store(h, nil)
	}
	h.dev.orphan(h)
	return err
}

// unlock unlocks the pages of LockHost. The driver does not wait for the copies that use them.
func (h *HostMemory) unlock(f *frame) error {
	if err := h.dev.prim.call(f, cuCtxSynchronize); err != nil {
		return err
	}
	f.Args[0] = h.addr
	if err := h.dev.prim.call(f, cuMemHostUnregister); err != nil {
		return err
	}
	h.user = nil
	return nil
}

// enter begins a call that uses n bytes of the memory from off on.
func (h *HostMemory) enter(off, n int64) error {
	if h == nil || h.dev == nil || !h.guard.enter() {
		return closed("host memory")
	}
	if off < 0 || n < 0 || off > h.size || n > h.size-off {
		h.leave()
		return invalid("%d bytes from %d on of host memory of %d", n, off, h.size)
	}
	return nil
}

func (h *HostMemory) leave() {
	if h.guard.leave() {
		_ = h.destroy()
	}
}

// Number is an element type of slices of numbers.
type Number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// HostSlice returns the memory as a slice of numbers, as many as fit. What Bytes
// says of its lifetime goes for it too.
func HostSlice[T Number](h *HostMemory) []T {
	b := h.Bytes()
	var zero T
	n := len(b) / int(unsafe.Sizeof(zero))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// AsBytes returns the bytes of a slice of numbers, which share its memory.
func AsBytes[T Number](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}
