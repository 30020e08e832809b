package cuda

// Copy puts a copy of n bytes from src to dst into the stream, both on devices.
// It must not overlap itself.
func (s *Stream) Copy(dst, src Ptr, n int64) error {
	return s.move(cuMemcpyDtoDAsync, uintptr(dst), uintptr(src), n)
}

// CopyFromHost puts a copy of n bytes of h, from off on, to dst into the stream.
// They must not change until it is done.
func (s *Stream) CopyFromHost(dst Ptr, h *HostMemory, off, n int64) error {
	if err := h.enter(off, n); err != nil {
		return err
	}
	defer h.leave()
	return s.move(cuMemcpyHtoDAsync, uintptr(dst), h.addr+uintptr(off), n)
}

// CopyToHost puts a copy of n bytes from src to h, from off on, into the stream.
// They are there when it is done.
func (s *Stream) CopyToHost(h *HostMemory, off int64, src Ptr, n int64) error {
	if err := h.enter(off, n); err != nil {
		return err
	}
	defer h.leave()
	return s.move(cuMemcpyDtoHAsync, h.addr+uintptr(off), uintptr(src), n)
}

func (s *Stream) move(e entry, dst, src uintptr, n int64) error {
	if n < 0 {
		return invalid("%d bytes", n)
	}
	f, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end()
	if n == 0 {
		return nil
	}
	f.Args[0], f.Args[1], f.Args[2], f.Args[3] = dst, src, uintptr(n), s.handle
	return s.call(f, e)
}

// Set8 puts setting n bytes to v into the stream.
func (s *Stream) Set8(dst Ptr, v uint8, n int64) error {
	return s.move(cuMemsetD8Async, uintptr(dst), uintptr(v), n)
}

// Set32 puts setting n words of 32 bits to v into the stream. The address must
// be a multiple of 4.
func (s *Stream) Set32(dst Ptr, v uint32, n int64) error {
	return s.move(cuMemsetD32Async, uintptr(dst), uintptr(v), n)
}

// CopyPeer puts a copy of n bytes from src on device from, to dst on device to,
// into the stream. It works between any two devices, and is fastest where they
// are connected and [Device.EnablePeer] was called.
func (s *Stream) CopyPeer(to *Device, dst Ptr, from *Device, src Ptr, n int64) error {
	if n < 0 {
		return invalid("%d bytes", n)
	}
	for _, d := range []*Device{to, from} {
		if d == nil || d.prim == nil || !d.guard.enter() {
			return closed("device")
		}
		defer d.leave()
	}
	f, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end()
	if n == 0 {
		return nil
	}
	f.Args[0], f.Args[1], f.Args[2], f.Args[3], f.Args[4], f.Args[5] =
		uintptr(dst), to.prim.context, uintptr(src), from.prim.context, uintptr(n), s.handle
	return s.call(f, cuMemcpyPeerAsync)
}

// CanAccessPeer reports whether kernels of d can use memory of other directly.
func (d *Device) CanAccessPeer(other *Device) (bool, error) {
	f, err := d.enter()
	if err != nil {
		return false, err
	}
	defer d.exit(f)
	if other == nil || other.prim == nil || !other.guard.enter() {
		return false, closed("device")
	}
	defer other.leave()
	f.Args[0], f.Args[1], f.Args[2] = f.out(0), uintptr(d.prim.dev), uintptr(other.prim.dev)
	err = d.prim.call(f, cuDeviceCanAccessPeer)
	return f.int(0) != 0, err
}

// EnablePeer lets kernels and copies of d use memory of other directly. The
// error wraps [ErrUnsupported] if they are not connected. Enabling twice does
// nothing.
func (d *Device) EnablePeer(other *Device) error {
	can, err := d.CanAccessPeer(other)
	if err != nil {
		return err
	}
	if !can {
		return &Error{Call: entries[cuCtxEnablePeerAccess].name, Code: codeNotSupported, Text: "the devices are not connected"}
	}
	f, err := d.enter()
	if err != nil {
		return err
	}
	defer d.exit(f)
	if !other.guard.enter() {
		return closed("device")
	}
	defer other.leave()
	f.Args[0], f.Args[1] = other.prim.context, 0
	if err := d.prim.call(f, cuCtxEnablePeerAccess); err != nil && f.code() != codePeerAlreadyOn {
		return err
	}
	if other.prim.pool == 0 {
		return nil
	}
	// Memory of a pool has access rights of its own: location kind 1 is a device,
	// then its number, then 3 for reading and writing.
	desc := (*[3]uint32)(f.words(1))
	desc[0], desc[1], desc[2] = 1, uint32(d.prim.dev), 3
	f.Args[0], f.Args[1], f.Args[2] = other.prim.pool, uintptr(f.words(1)), 1
	return other.prim.call(f, cuMemPoolSetAccess)
}
