//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package wgpunative

// #include "native.h"
import "C"

import (
	"unsafe"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// kinds are the commands by their numbers here and there.
var kinds = [...]C.uint32_t{
	webgpu.Dispatch: C.RAYO_DISPATCH,
	webgpu.Copy:     C.RAYO_COPY,
	webgpu.Clear:    C.RAYO_CLEAR,
	webgpu.Stamp:    C.RAYO_STAMP,
	webgpu.Stamps:   C.RAYO_STAMPS,
}

// Submit implements [webgpu.HostDevice]: one call of the library's side for all.
func (d *device) Submit(list []webgpu.HostCommand, remap []webgpu.HostBuffer) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.commands, d.remap = d.commands[:0], d.remap[:0]
	for i := range list {
		h := &list[i]
		c := C.rayo_command{kind: kinds[h.Do], from: C.uint64_t(h.From), to: C.uint64_t(h.To), bytes: C.uint64_t(h.Bytes)}
		switch h.Do {
		case webgpu.Dispatch:
			c.a, c.b = unsafe.Pointer(h.Pipeline.(*pipeline).p), h.Group.(*group).g
			c.x, c.y, c.z = C.uint32_t(h.Grid[0]), C.uint32_t(h.Grid[1]), C.uint32_t(h.Grid[2])
		case webgpu.Copy:
			c.a = unsafe.Pointer(h.Src.(*buffer).b)
			fallthrough
		case webgpu.Clear, webgpu.Stamps:
			c.b = unsafe.Pointer(h.Dst.(*buffer).b)
		case webgpu.Stamp:
			c.x = C.uint32_t(h.Mark)
		}
		d.commands = append(d.commands, c)
	}
	for _, b := range remap {
		d.remap = append(d.remap, b.(*buffer).b)
	}
	again, ready := d.ahead.take(d.d, d.commands)
	r := C.rayo_submit(d.d, ready, unsafe.SliceData(d.commands), C.size_t(len(d.commands)), unsafe.SliceData(d.remap), C.size_t(len(d.remap)))
	if err := d.failure(r); err != nil {
		return 0, err
	}
	if again != nil {
		d.ahead.mu.Lock()
		again.ticket = uint64(r.number)
		d.ahead.mu.Unlock()
	}
	return uint64(r.number), nil
}

// Poll implements [webgpu.HostDevice].
func (d *device) Poll() (uint64, error) {
	r := C.rayo_poll(d.d)
	return uint64(r.number), d.failure(r)
}
