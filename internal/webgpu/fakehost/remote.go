package fakehost

import (
	"bytes"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// remote is a device whose memory the host cannot access, as in a page.
type remote struct{ *Device }

// Write implements [webgpu.Remote].
func (d remote) Write(h webgpu.HostBuffer, off int64, from []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("Write"); err != nil {
		return err
	}
	b := h.(*buffer)
	if b.released || b.usage > webgpu.Uniform || off < 0 || off%4 != 0 || len(from) == 0 || len(from)%4 != 0 || off+int64(len(from)) > int64(len(b.bytes)) {
		d.violate("Write of %d bytes at %d of %d, usage %d, released %v", len(from), off, len(b.bytes), b.usage, b.released)
		return nil
	}
	from = bytes.Clone(from)
	d.queue = append(d.queue, submission{write: func() { copy(b.bytes[off:], from) }})
	d.changed.Broadcast()
	return nil
}

// Read implements [webgpu.Remote].
func (d remote) Read(h webgpu.HostBuffer, off int64, to []byte) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("Read"); err != nil {
		return err
	}
	b := h.(*buffer)
	if b.released || b.flying > 0 || !b.mapped || b.usage != webgpu.Readback || off < 0 || off+int64(len(to)) > int64(len(b.bytes)) {
		d.violate("Read of %d bytes at %d of %d, usage %d, mapped %v, in use %d", len(to), off, len(b.bytes), b.usage, b.mapped, b.flying)
		return nil
	}
	copy(to, b.bytes[off:])
	return nil
}

// Poll implements [webgpu.HostDevice]: a Remote is not asked.
func (d remote) Poll() (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.violate("Poll of a Remote")
	return d.done, nil
}

// Notify implements [webgpu.Remote].
func (d remote) Notify(f func(ticket uint64, err error)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notify = f
}
