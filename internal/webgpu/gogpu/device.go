//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/gogpu/wgpu/hal/vulkan/vk"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// device is an open device with one queue. Vulkan wants calls on a queue, a pool
// of descriptors or a pool of commands to come one at a time: each has a mutex, or
// belongs to one submission.
type device struct {
	*physical
	host   *host
	handle vk.Device
	cmds   *vk.Commands
	queue  vk.Queue
	memory allocator
	groups pools

	// line is a semaphore that counts the submissions that are complete.
	line vk.Semaphore

	submit    sync.Mutex // protects the queue and the fields below
	submitted uint64     // tickets
	flying    []*recorder
	idle      []*recorder

	objects sync.Mutex
	layouts map[string]*layout // by the kinds of bindings
	live    map[any]struct{}   // objects that are not released yet
	closed  bool

	lose sync.Once
	lost chan struct{}
}

// Open implements [webgpu.Host].
func (h *host) Open(ctx context.Context, index int) (webgpu.HostDevice, error) {
	if _, err := h.Adapters(ctx); err != nil {
		return nil, err
	}
	if index < 0 || index >= len(h.physicals) {
		return nil, fmt.Errorf("adapter %d of %d: %w", index, len(h.physicals), webgpu.ErrNoAdapter)
	}
	p := &h.physicals[index]
	d := &device{physical: p, host: h, cmds: vk.NewCommands(), layouts: map[string]*layout{}, live: map[any]struct{}{}, lost: make(chan struct{})}

	var extensions []string
	if p.portable {
		extensions = append(extensions, "VK_KHR_portability_subset")
	}
	names := newTexts(extensions)
	priority := float32(1)
	create := &vk.DeviceCreateInfo{
		SType: vk.StructureTypeDeviceCreateInfo,
		PNext: (*uintptr)(unsafe.Pointer(&vk.PhysicalDeviceVulkan12Features{SType: vk.StructureTypePhysicalDeviceVulkan12Features, TimelineSemaphore: 1})),
		PQueueCreateInfos: &vk.DeviceQueueCreateInfo{
			SType: vk.StructureTypeDeviceQueueCreateInfo, QueueFamilyIndex: p.family, QueueCount: 1, PQueuePriorities: &priority,
		},
		QueueCreateInfoCount:  1,
		EnabledExtensionCount: uint32(len(extensions)), PpEnabledExtensionNames: names.address(),
		PEnabledFeatures: &vk.PhysicalDeviceFeatures{RobustBufferAccess: 1},
	}
	h.mu.Lock()
	r := h.cmds.CreateDevice(p.handle, create, nil, &d.handle)
	h.mu.Unlock()
	runtime.KeepAlive(names)
	if r != vk.Success {
		return nil, fmt.Errorf("%s: %w", p.adapter.Name, failure(r))
	}
	if err := d.cmds.LoadDevice(d.handle); err != nil {
		return nil, fmt.Errorf("%s: %w", p.adapter.Name, err)
	}
	d.cmds.GetDeviceQueue(d.handle, p.family, 0, &d.queue)
	counter := &vk.SemaphoreCreateInfo{
		SType: vk.StructureTypeSemaphoreCreateInfo,
		PNext: (*uintptr)(unsafe.Pointer(&vk.SemaphoreTypeCreateInfo{SType: typeSemaphoreType, SemaphoreType: vk.SemaphoreTypeTimeline})),
	}
	if r := d.cmds.CreateSemaphore(d.handle, counter, nil, &d.line); r != vk.Success {
		d.cmds.DestroyDevice(d.handle, nil)
		return nil, fmt.Errorf("%s: %w", p.adapter.Name, failure(r))
	}
	d.memory.device, d.groups.device = d, d
	h.open.Add(1)
	return d, nil
}

// Adapter implements [webgpu.HostDevice].
func (d *device) Adapter() *webgpu.Adapter { return &d.adapter }

// Lost implements [webgpu.HostDevice].
func (d *device) Lost() <-chan struct{} { return d.lost }

// fail returns the error of a result, and closes Lost if the result means a lost device.
func (d *device) fail(r vk.Result) error {
	if r == vk.ErrorDeviceLost {
		d.lose.Do(func() { close(d.lost) })
	}
	return failure(r)
}

// gone reports whether the device is lost.
func (d *device) gone() bool {
	select {
	case <-d.lost:
		return true
	default:
		return false
	}
}

// keep notes an object that Close frees if nobody releases it.
func (d *device) keep(o any) {
	d.objects.Lock()
	defer d.objects.Unlock()
	d.live[o] = struct{}{}
}

// drop reports whether the object was kept until now, and not released before.
func (d *device) drop(o any) bool {
	d.objects.Lock()
	defer d.objects.Unlock()
	_, ok := d.live[o]
	delete(d.live, o)
	return ok
}

// Close implements [webgpu.HostDevice]. It does not free the resources of a device that does not
// respond, because freeing them would block or crash.
func (d *device) Close() {
	d.submit.Lock()
	defer d.submit.Unlock()
	if d.closed {
		return
	}
	d.closed = true
	d.retire()
	if d.gone() || len(d.flying) > 0 {
		return
	}
	d.objects.Lock()
	var left []interface{ Release() }
	for o := range d.live {
		left = append(left, o.(interface{ Release() }))
	}
	d.objects.Unlock()
	for _, o := range left {
		o.Release()
	}
	for _, r := range d.idle {
		r.free()
	}
	for _, l := range d.layouts {
		l.free(d)
	}
	d.groups.free()
	d.memory.free()
	d.cmds.DestroySemaphore(d.handle, d.line, nil)
	d.cmds.DestroyDevice(d.handle, nil)
	d.host.open.Add(-1)
}
