//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package wgpunative

// #include <stdlib.h>
// #include "native.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/wgsl"
)

// Linked says that the library is part of the program.
const Linked = true

// The graphics interfaces that the library may use. OpenGL is not one of them: it writes to the
// standard error, and its results are wrong.
const (
	vulkan = C.WG_BACKEND_VULKAN
	metal  = C.WG_BACKEND_METAL
	dx12   = C.WG_BACKEND_DX12
)

// New returns the library.
func New() (webgpu.Host, error) { return &host{}, nil }

// host is the library. Adapters are listed once, in the first call that needs them.
type host struct {
	mu       sync.Mutex
	listed   bool
	instance unsafe.Pointer
	adapters []C.wg_adapter
	infos    []webgpu.Adapter
	limits   []C.wg_limits
	err      error
}

// Name implements [webgpu.Host].
func (h *host) Name() string {
	v := uint32(C.wgpuGetVersion())
	return fmt.Sprintf("wgpu-native %d.%d.%d.%d", v>>24, v>>16&0xff, v>>8&0xff, v&0xff)
}

// Adapters implements [webgpu.Host].
func (h *host) Adapters(ctx context.Context) ([]webgpu.Adapter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.listed {
		h.list()
	}
	return append([]webgpu.Adapter(nil), h.infos...), h.err
}

// maxAdapters is the maximum number of adapters in the list.
const maxAdapters = 64

func (h *host) list() {
	h.listed = true
	r := instance()
	if h.err = failure(r); h.err != nil {
		return
	}
	h.instance = r.handle
	h.adapters = make([]C.wg_adapter, maxAdapters)
	r = C.rayo_adapters(h.instance, backends, &h.adapters[0], maxAdapters)
	if err := failure(r); err != nil {
		h.err, h.adapters = err, nil
		return
	}
	h.adapters = h.adapters[:r.number]
	if len(h.adapters) == 0 {
		h.err = fmt.Errorf("there is no Vulkan, Metal or D3D12 driver with a device: %w", webgpu.ErrNoAdapter)
		return
	}
	for _, a := range h.adapters {
		info, limits := describe(a)
		h.infos, h.limits = append(h.infos, info), append(h.limits, limits)
	}
}

// environment is locked while an instance is created with a changed environment: only C's copy is
// changed, so programs that Go starts do not inherit it.
var environment sync.Mutex

// instance returns an instance of the library. It writes nothing to the standard error.
func instance() C.rayo_result {
	environment.Lock()
	defer environment.Unlock()
	defer C.rayo_loud(C.rayo_quiet())
	return C.rayo_instance(backends)
}

// describe reads the properties of an adapter.
func describe(a C.wg_adapter) (webgpu.Adapter, C.wg_limits) {
	var info C.wg_adapter_info
	var l C.wg_limits
	C.wgpuAdapterGetInfo(a, &info)
	C.wgpuAdapterGetLimits(a, &l)
	has := func(f C.wg_enum) bool { return C.wgpuAdapterHasFeature(a, f) != 0 }
	d := webgpu.Adapter{
		Name:     view(info.device),
		Driver:   view(info.vendor) + " " + view(info.description),
		Vendor:   uint32(info.vendor_id),
		Device:   uint32(info.device_id),
		Mappable: has(C.WG_FEATURE_MAPPABLE),
		Clocks:   has(C.WG_FEATURE_TIMESTAMPS) && has(C.WG_FEATURE_TIMESTAMPS_IN_ENCODERS),
		Target: wgsl.Target{
			Consumer: wgsl.Naga,
			Limits: wgsl.Limits{
				Invocations:    uint32(l.invocations),
				Size:           [3]uint32{uint32(l.size_x), uint32(l.size_y), uint32(l.size_z)},
				WorkgroupBytes: uint32(l.workgroup_bytes),
				Bindings:       int(min(l.storage_buffers, l.bindings)),
				Grid:           uint32(l.grid),
			},
			SubgroupSize: [2]uint32{uint32(info.subgroup_min), uint32(info.subgroup_max)},
		},
		Limits: webgpu.Limits{
			Buffer:       int64(min(l.buffer_bytes, 1<<62)),
			Binding:      int64(min(l.storage_bytes, 1<<62)) &^ 3,
			UniformBytes: int64(min(l.uniform_bytes, 1<<62)) &^ 3,
			StorageAlign: int64(l.storage_align),
			UniformAlign: int64(l.uniform_align),
		},
	}
	if has(C.WG_FEATURE_HALF) {
		d.Target.Features |= wgsl.Half
	}
	if has(C.WG_FEATURE_SUBGROUPS) && has(C.WG_FEATURE_SUBGROUP_BARRIER) {
		d.Target.Features |= wgsl.Subgroups
	}
	// The library does not report the subgroup size.
	if d.Target.SubgroupSize == [2]uint32{} && (d.Vendor == webgpu.NVIDIA || d.Vendor == webgpu.Apple) {
		d.Target.SubgroupSize = [2]uint32{32, 32}
	}
	switch info.api {
	case C.WG_API_VULKAN:
		d.API = "Vulkan"
	case C.WG_API_METAL:
		d.API = "Metal"
	case C.WG_API_D3D12:
		d.API = "D3D12"
	default:
		d.API = fmt.Sprintf("API %d", info.api)
	}
	switch info._type {
	case 1:
		d.Type = webgpu.Discrete
	case 2:
		d.Type = webgpu.Integrated
	case 3:
		d.Type, d.Target.Unfused = webgpu.Software, true
	default:
		d.Type = webgpu.Other
	}
	C.wgpuAdapterInfoFreeMembers(info)
	return d, l
}

// wanted are the features with which devices are opened, if the adapter has them.
var wanted = []C.uint32_t{
	C.WG_FEATURE_TIMESTAMPS, C.WG_FEATURE_TIMESTAMPS_IN_ENCODERS,
	C.WG_FEATURE_HALF, C.WG_FEATURE_SUBGROUPS, C.WG_FEATURE_SUBGROUP_BARRIER,
	C.WG_FEATURE_MAPPABLE,
}

// Open implements [webgpu.Host].
func (h *host) Open(ctx context.Context, index int) (webgpu.HostDevice, error) {
	if _, err := h.Adapters(ctx); err != nil {
		return nil, err
	}
	if index < 0 || index >= len(h.adapters) {
		return nil, fmt.Errorf("adapter %d of %d: %w", index, len(h.adapters), webgpu.ErrNoAdapter)
	}
	a := h.adapters[index]
	var features []C.uint32_t
	for _, f := range wanted {
		if C.wgpuAdapterHasFeature(a, f) != 0 {
			features = append(features, f)
		}
	}
	limits := h.limits[index]
	var first *C.uint32_t
	if len(features) > 0 {
		first = &features[0]
	}
	r := C.rayo_open(a, &limits, first, C.size_t(len(features)))
	if err := failure(r); err != nil {
		return nil, fmt.Errorf("%s: %w", h.infos[index].Name, err)
	}
	d := &device{d: (*C.rayo_device)(r.handle), adapter: h.infos[index], lost: make(chan struct{})}
	d.adapter.Tick = float64(C.rayo_tick(d.d))
	return d, nil
}

// view returns the text of a string of the library.
func view(t C.wg_text) string {
	if t.data == nil || t.length == 0 || t.length > 1<<20 {
		return ""
	}
	return C.GoStringN(t.data, C.int(t.length))
}

// failure returns the error of a call, or nil.
func failure(r C.rayo_result) error {
	if r.message == nil {
		return nil
	}
	text := C.GoString(r.message)
	C.free(unsafe.Pointer(r.message))
	switch r.kind {
	case C.WG_ERROR_OUT_OF_MEMORY:
		return fmt.Errorf("%w: %s", webgpu.ErrOutOfMemory, text)
	case C.RAYO_LOST:
		return fmt.Errorf("%w: %s", webgpu.ErrDeviceLost, text)
	}
	return errors.New(text)
}
