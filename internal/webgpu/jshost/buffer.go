//go:build js && !nowebgpu

package jshost

import (
	"syscall/js"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/jscall"
	"github.com/rayo-go/rayo/internal/webgpu"
)

// The flags of GPUBufferUsage, and of GPUMapMode.
const (
	mapRead      = 0x0001
	copySrc      = 0x0004
	copyDst      = 0x0008
	uniform      = 0x0040
	storage      = 0x0080
	queryResolve = 0x0200

	modeRead = 0x0001
)

// usages are the flags of each usage. Upload buffers are written by the queue, and never mapped.
var usages = map[webgpu.Usage]int{
	webgpu.Storage:  storage | copySrc | copyDst,
	webgpu.Uniform:  uniform | copySrc | copyDst,
	webgpu.Upload:   copySrc | copyDst,
	webgpu.Readback: mapRead | copyDst,
}

// awaited is the size in bytes from which the creation of a buffer waits for an out-of-memory
// error. For smaller buffers, and if the caller must not wait, the error ends the next submission.
const awaited = 1 << 20

// buffer is memory of a device.
type buffer struct {
	v        js.Value
	usage    webgpu.Usage
	from, to int64    // the range of bytes that is mapped
	mapped   js.Value // an array of this range while it is mapped, from the first Read on
}

// NewBuffer implements [webgpu.HostDevice].
func (d *device) NewBuffer(size int64, u webgpu.Usage) (webgpu.HostBuffer, error) {
	flags := usages[u]
	if flags == 0 {
		return nil, fmt.Errorf("usage %d: %w", u, webgpu.ErrInvalid)
	}
	b := &buffer{usage: u}
	make := func() { b.v = d.v.Call("createBuffer", map[string]any{"size": size, "usage": flags}) }
	if size < awaited || jscall.MayWait() != nil {
		if err := try(make); err != nil {
			return nil, err
		}
		return b, nil
	}
	if err := d.create(make); err != nil {
		if b.v.Type() == js.TypeObject {
			b.Release()
		}
		return nil, err
	}
	return b, nil
}

// Mapped implements [webgpu.HostBuffer]: Go cannot reach the memory.
func (b *buffer) Mapped() []byte { return nil }

// Unmap implements [webgpu.HostBuffer].
func (b *buffer) Unmap() {
	if b.usage == webgpu.Readback {
		b.mapped = js.Undefined()
		_ = try(func() { b.v.Call("unmap") })
	}
}

// Release implements [webgpu.HostBuffer].
func (b *buffer) Release() {
	b.mapped = js.Undefined()
	_ = try(func() { b.v.Call("destroy") })
}

// Read implements [webgpu.Remote].
func (d *device) Read(h webgpu.HostBuffer, off int64, to []byte) error {
	b := h.(*buffer)
	if len(to) == 0 {
		return nil
	}
	if off < b.from || int64(len(to)) > b.to-off {
		return fmt.Errorf("%d bytes at %d of a buffer that is mapped from %d to %d: %w", len(to), off, b.from, b.to, webgpu.ErrInvalid)
	}
	err := try(func() {
		if b.mapped.IsUndefined() {
			b.mapped = js.Global().Get("Uint8Array").New(b.v.Call("getMappedRange", b.from, b.to-b.from))
		}
		off -= b.from
		js.CopyBytesToGo(to, b.mapped.Call("subarray", off, off+int64(len(to))))
	})
	if err != nil {
		return d.failed(err)
	}
	return nil
}

// sentBytes is the size of the JavaScript array through which bytes are copied from Go's
// memory to the queue. A view of Go's memory would save this copy, but syscall/js does not
// promise that such a view can be made.
const sentBytes = 1 << 20

// Write implements [webgpu.Remote].
func (d *device) Write(h webgpu.HostBuffer, off int64, from []byte) error {
	b := h.(*buffer)
	d.mu.Lock()
	defer d.mu.Unlock()
	return try(func() {
		if d.sent.IsUndefined() {
			d.sent = js.Global().Get("Uint8Array").New(sentBytes)
		}
		for len(from) > 0 {
			n := js.CopyBytesToJS(d.sent, from)
			d.queue.Call("writeBuffer", b.v, off, d.sent, 0, n)
			off, from = off+int64(n), from[n:]
		}
	})
}
