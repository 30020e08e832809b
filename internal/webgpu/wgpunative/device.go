//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package wgpunative

// #include "native.h"
import "C"

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// device is an open device.
type device struct {
	d       *C.rayo_device
	adapter webgpu.Adapter
	lost    chan struct{}
	once    sync.Once

	mu       sync.Mutex // of submissions, for their order
	commands []C.rayo_command
	remap    []*C.rayo_buffer
	ahead    ahead
}

// Adapter implements [webgpu.HostDevice].
func (d *device) Adapter() *webgpu.Adapter { return &d.adapter }

// Lost implements [webgpu.HostDevice]. The library says so in some call.
func (d *device) Lost() <-chan struct{} { return d.lost }

// failure is failure of a call of the device.
func (d *device) failure(r C.rayo_result) error {
	err := failure(r)
	if err == nil {
		return nil
	}
	var why *C.char
	if C.rayo_lost(d.d, &why) != 0 || errors.Is(err, webgpu.ErrDeviceLost) {
		d.once.Do(func() { close(d.lost) })
		if !errors.Is(err, webgpu.ErrDeviceLost) {
			err = fmt.Errorf("%w: %w", webgpu.ErrDeviceLost, err)
		}
	}
	return err
}

// Close implements [webgpu.HostDevice].
func (d *device) Close() {
	d.ahead.forget(d.d)
	C.rayo_close(d.d)
	d.d = nil
}

// buffer is memory of a device.
type buffer struct {
	d    *device
	b    *C.rayo_buffer
	size int64
}

// NewBuffer implements [webgpu.HostDevice].
func (d *device) NewBuffer(size int64, u webgpu.Usage) (webgpu.HostBuffer, error) {
	var usage C.uint64_t
	mapping, mapped := C.int(0), C.int(0)
	switch u {
	case webgpu.Storage:
		usage = C.WG_STORAGE | C.WG_COPY_SRC | C.WG_COPY_DST
	case webgpu.Uniform:
		usage = C.WG_UNIFORM | C.WG_COPY_SRC | C.WG_COPY_DST
	case webgpu.Upload:
		usage, mapping, mapped = C.WG_MAP_WRITE|C.WG_COPY_SRC, C.WG_MAP_WRITE, 1
	case webgpu.Readback:
		usage, mapping = C.WG_MAP_READ|C.WG_COPY_DST, C.WG_MAP_READ
	case webgpu.Input:
		usage, mapping, mapped = C.WG_MAP_WRITE|C.WG_STORAGE|C.WG_COPY_SRC|C.WG_COPY_DST, C.WG_MAP_WRITE, 1
	case webgpu.Output:
		usage, mapping = C.WG_MAP_READ|C.WG_STORAGE|C.WG_COPY_SRC|C.WG_COPY_DST, C.WG_MAP_READ
	default:
		return nil, fmt.Errorf("usage %d: %w", u, webgpu.ErrInvalid)
	}
	r := C.rayo_new_buffer(d.d, usage, C.uint64_t(size), mapping, mapped)
	if err := d.failure(r); err != nil {
		return nil, err
	}
	return &buffer{d, (*C.rayo_buffer)(r.handle), size}, nil
}

// Mapped implements [webgpu.HostBuffer].
func (b *buffer) Mapped() []byte {
	p := C.rayo_mapped(b.b)
	if p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(p), b.size)
}

// Unmap implements [webgpu.HostBuffer].
func (b *buffer) Unmap() { C.rayo_unmap(b.b) }

// Release implements [webgpu.HostBuffer].
func (b *buffer) Release() {
	b.d.ahead.forget(b.d.d)
	C.rayo_free_buffer(b.b)
}

// pipeline is a compiled kernel.
type pipeline struct {
	d *device
	p *C.rayo_pipeline
}

// NewPipeline implements [webgpu.HostDevice].
func (d *device) NewPipeline(s *webgpu.Shader) (webgpu.HostPipeline, error) {
	trusted := C.int(0)
	if s.Trusted {
		trusted = 1
	}
	var bindings *C.uint8_t
	if len(s.Bindings) > 0 {
		bindings = (*C.uint8_t)(unsafe.Pointer(&s.Bindings[0]))
	}
	r := C.rayo_new_pipeline(d.d, chars(s.Text), C.size_t(len(s.Text)), chars(s.Entry), C.size_t(len(s.Entry)), bindings, C.size_t(len(s.Bindings)), trusted)
	kind := r.kind
	if err := d.failure(r); err != nil {
		// The compiler panics at some texts.
		if (kind == C.WG_ERROR_VALIDATION || kind == C.WG_ERROR_INTERNAL) && !errors.Is(err, webgpu.ErrDeviceLost) {
			return nil, mistake(s, err.Error())
		}
		return nil, err
	}
	return &pipeline{d, (*C.rayo_pipeline)(r.handle)}, nil
}

// chars returns the bytes of a string.
func chars(s string) *C.char {
	if s == "" {
		return nil
	}
	return (*C.char)(unsafe.Pointer(unsafe.StringData(s)))
}

// Release implements [webgpu.HostPipeline].
func (p *pipeline) Release() {
	p.d.ahead.forget(p.d.d)
	C.rayo_free_pipeline(p.p)
}

// group is buffers bound to a pipeline.
type group struct {
	d *device
	g unsafe.Pointer
}

// NewGroup implements [webgpu.HostDevice].
func (d *device) NewGroup(p webgpu.HostPipeline, ranges []webgpu.HostRange) (webgpu.HostGroup, error) {
	list := make([]C.rayo_range, len(ranges)+1)
	for i, r := range ranges {
		list[i] = C.rayo_range{r.Buffer.(*buffer).b, C.uint64_t(r.Off), C.uint64_t(r.Bytes)}
	}
	r := C.rayo_new_group(d.d, p.(*pipeline).p, &list[0], C.size_t(len(ranges)))
	if err := d.failure(r); err != nil {
		return nil, err
	}
	return &group{d, r.handle}, nil
}

// Release implements [webgpu.HostGroup].
func (g *group) Release() {
	g.d.ahead.forget(g.d.d)
	C.rayo_free_group(g.g)
}
