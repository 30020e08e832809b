//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/gogpu/wgpu/hal/vulkan/vk"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/wgsl"
)

// Linked means that the program contains the library.
const Linked = true

// New returns the library.
func New() (webgpu.Host, error) { return &host{}, nil }

// host is Vulkan, with an instance for all devices that it opens.
type host struct {
	mu        sync.Mutex
	listed    bool
	err       error
	instance  vk.Instance
	cmds      *vk.Commands
	physicals []physical
	open      *atomic.Int64 // number of open devices
}

// physical is an adapter with the data for opening it.
type physical struct {
	handle   vk.PhysicalDevice
	adapter  webgpu.Adapter
	family   uint32 // family of the queue
	memory   []vk.MemoryPropertyFlags
	portable bool // needs VK_KHR_portability_subset
}

// Name implements [webgpu.Host].
func (h *host) Name() string { return "gogpu 0.33.0" }

// Adapters implements [webgpu.Host].
func (h *host) Adapters(ctx context.Context) ([]webgpu.Adapter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.listed {
		h.listed = true
		h.err = h.list()
	}
	var l []webgpu.Adapter
	for i := range h.physicals {
		l = append(l, h.physicals[i].adapter)
	}
	return l, h.err
}

// version is the lowest supported version of instances and devices: the first with timeline
// semaphores.
const version = 1<<22 | 2<<12

func (h *host) list() error {
	if err := vk.Init(); err != nil {
		return fmt.Errorf("%w: %w", webgpu.ErrNoAdapter, err)
	}
	h.cmds = vk.NewCommands()
	if err := h.cmds.LoadGlobal(); err != nil {
		return fmt.Errorf("%w: %w", webgpu.ErrNoAdapter, err)
	}
	if err := h.create(); err != nil {
		return err
	}
	var n uint32
	if r := h.cmds.EnumeratePhysicalDevices(h.instance, &n, nil); r != vk.Success || n == 0 {
		return h.empty(r)
	}
	handles := make([]vk.PhysicalDevice, n)
	if r := h.cmds.EnumeratePhysicalDevices(h.instance, &n, &handles[0]); r != vk.Success && r != vk.Incomplete {
		return h.empty(r)
	}
	var why error
	for _, p := range handles[:n] {
		if d, err := h.describe(p); err != nil {
			why = errors.Join(why, err)
		} else {
			h.physicals = append(h.physicals, d)
		}
	}
	if len(h.physicals) == 0 {
		if why == nil {
			return h.empty(vk.Success)
		}
		return fmt.Errorf("%w: %w", webgpu.ErrNoAdapter, why)
	}
	// Each opened device has its own host. The last host frees the instance, unless a device is not
	// closed.
	h.open = new(atomic.Int64)
	cmds, open := h.cmds, h.open
	runtime.AddCleanup(h, func(instance vk.Instance) {
		if open.Load() == 0 {
			cmds.DestroyInstance(instance, nil)
		}
	}, h.instance)
	return nil
}

// create makes the instance and loads its functions.
func (h *host) create() error {
	// It requests no extension for windows: then Mesa's device selection layer does not look for a
	// screen, and Wayland's library does not print an error without one.
	var extensions []string
	var flags vk.InstanceCreateFlags
	// Devices that do not implement all of Vulkan, such as macOS's, are listed only on request.
	const portability = "VK_KHR_portability_enumeration"
	if has(portability, func(n *uint32, p *vk.ExtensionProperties) vk.Result {
		return h.cmds.EnumerateInstanceExtensionProperties(0, n, p)
	}) {
		extensions = append(extensions, portability)
		flags = vk.InstanceCreateFlags(vk.InstanceCreateEnumeratePortabilityBitKhr)
	}
	name := newText("rayo")
	names := newTexts(extensions)
	app := &vk.ApplicationInfo{SType: vk.StructureTypeApplicationInfo, PApplicationName: name.address(), PEngineName: name.address(), ApiVersion: version}
	create := &vk.InstanceCreateInfo{
		SType: vk.StructureTypeInstanceCreateInfo, Flags: flags, PApplicationInfo: app,
		EnabledExtensionCount: uint32(len(extensions)), PpEnabledExtensionNames: names.address(),
	}
	var instance vk.Instance
	r := h.cmds.CreateInstance(create, nil, &instance)
	runtime.KeepAlive(name)
	runtime.KeepAlive(names)
	if r == vk.ErrorIncompatibleDriver {
		return fmt.Errorf("%w: there is no Vulkan driver", webgpu.ErrNoAdapter)
	}
	if r != vk.Success || instance == 0 {
		return fmt.Errorf("%w: Vulkan does not start: %w", webgpu.ErrNoAdapter, failure(r))
	}
	// The bindings load all functions and report an error because the functions for windows are
	// missing: their extension, which servers may lack, is not requested.
	if err := h.cmds.LoadInstance(instance); err != nil && !h.cmds.HasPhysicalDeviceFeatures2() {
		return fmt.Errorf("%w: %w", webgpu.ErrNoAdapter, err)
	}
	vk.SetDeviceProcAddr(instance)
	h.instance = instance
	return nil
}

// empty frees the instance, which has no device.
func (h *host) empty(r vk.Result) error {
	h.cmds.DestroyInstance(h.instance, nil)
	h.instance = 0
	if r != vk.Success {
		return fmt.Errorf("%w: no driver of Vulkan lists its devices: %w", webgpu.ErrNoAdapter, failure(r))
	}
	return fmt.Errorf("%w: no driver of Vulkan has a device", webgpu.ErrNoAdapter)
}

// has reports whether a list of extensions contains the given name.
func has(name string, list func(*uint32, *vk.ExtensionProperties) vk.Result) bool {
	var n uint32
	if r := list(&n, nil); r != vk.Success || n == 0 {
		return false
	}
	all := make([]vk.ExtensionProperties, n)
	if r := list(&n, &all[0]); r != vk.Success && r != vk.Incomplete {
		return false
	}
	return slices.ContainsFunc(all[:n], func(e vk.ExtensionProperties) bool { return goText(e.ExtensionName[:]) == name })
}

// Types of structures without a constant in the bindings.
const (
	typeDriver        vk.StructureType = 1000196000 // VkPhysicalDeviceDriverProperties
	typeSubgroup      vk.StructureType = 1000094000 // VkPhysicalDeviceSubgroupProperties
	typeSemaphoreType vk.StructureType = 1000207002 // VkSemaphoreTypeCreateInfo
	typeSemaphoreWait vk.StructureType = 1000207004 // VkSemaphoreWaitInfo
	typeTimeline      vk.StructureType = 1000207003 // VkTimelineSemaphoreSubmitInfo
)

// describe reads the properties of a device.
func (h *host) describe(p vk.PhysicalDevice) (physical, error) {
	driver := &vk.PhysicalDeviceDriverProperties{SType: typeDriver}
	largest := &vk.PhysicalDeviceMaintenance3Properties{SType: vk.StructureTypePhysicalDeviceMaintenance3Properties, PNext: (*uintptr)(unsafe.Pointer(driver))}
	all := &vk.PhysicalDeviceProperties2{SType: vk.StructureTypePhysicalDeviceProperties2}
	h.cmds.GetPhysicalDeviceProperties(p, &all.Properties)
	a := &all.Properties
	name := goText(a.DeviceName[:])
	if a.ApiVersion < version {
		return physical{}, fmt.Errorf("%s has Vulkan %d.%d, not 1.2", name, a.ApiVersion>>22&0x7f, a.ApiVersion>>12&0x3ff)
	}
	all.PNext = (*uintptr)(unsafe.Pointer(largest))
	h.cmds.GetPhysicalDeviceProperties2(p, all)
	features12 := &vk.PhysicalDeviceVulkan12Features{SType: vk.StructureTypePhysicalDeviceVulkan12Features}
	features := &vk.PhysicalDeviceFeatures2{SType: vk.StructureTypePhysicalDeviceFeatures2, PNext: (*uintptr)(unsafe.Pointer(features12))}
	h.cmds.GetPhysicalDeviceFeatures2(p, features)
	if features12.TimelineSemaphore == 0 || features.Features.RobustBufferAccess == 0 {
		return physical{}, fmt.Errorf("%s lacks timeline semaphores or checked accesses to buffers", name)
	}

	d := physical{handle: p}
	families, ok := h.computeFamily(&d)
	if !ok {
		return physical{}, fmt.Errorf("%s has no compute queue", name)
	}
	var memory vk.PhysicalDeviceMemoryProperties
	h.cmds.GetPhysicalDeviceMemoryProperties(p, &memory)
	for _, t := range memory.MemoryTypes[:min(memory.MemoryTypeCount, 32)] {
		d.memory = append(d.memory, t.PropertyFlags)
	}
	d.portable = has("VK_KHR_portability_subset", func(n *uint32, e *vk.ExtensionProperties) vk.Result {
		return h.cmds.EnumerateDeviceExtensionProperties(p, 0, n, e)
	})

	l := &a.Limits
	d.adapter = webgpu.Adapter{
		Name:   name,
		Driver: fmt.Sprintf("%s %s", goText(driver.DriverName[:]), goText(driver.DriverInfo[:])),
		API:    "Vulkan",
		Vendor: a.VendorID,
		Device: a.DeviceID,
		Clocks: families[d.family].TimestampValidBits == 64 && l.TimestampPeriod > 0,
		Tick:   float64(l.TimestampPeriod),
		Target: wgsl.Target{
			Consumer: wgsl.NagaGo,
			Limits: wgsl.Limits{
				Invocations:    l.MaxComputeWorkGroupInvocations,
				Size:           l.MaxComputeWorkGroupSize,
				WorkgroupBytes: l.MaxComputeSharedMemorySize,
				// More uniform buffers have no use, and a descriptor set takes memory for each.
				Bindings: int(min(l.MaxPerStageDescriptorStorageBuffers, l.MaxDescriptorSetStorageBuffers, 64)),
				Grid:     min(l.MaxComputeWorkGroupCount[0], l.MaxComputeWorkGroupCount[1], l.MaxComputeWorkGroupCount[2], 65535),
			},
		},
		Limits: webgpu.Limits{
			Buffer:       int64(min(uint64(largest.MaxMemoryAllocationSize), 1<<46)) &^ 3,
			Binding:      int64(l.MaxStorageBufferRange) &^ 3,
			UniformBytes: int64(min(l.MaxUniformBufferRange, 1<<16)) &^ 3,
			StorageAlign: max(int64(l.MinStorageBufferOffsetAlignment), 4),
			UniformAlign: max(int64(l.MinUniformBufferOffsetAlignment), 4),
		},
	}
	d.adapter.Type = webgpu.Other
	if t, ok := adapterTypes[a.DeviceType]; ok {
		d.adapter.Type = t
	}
	d.adapter.Target.Unfused = d.adapter.Type == webgpu.Software
	return d, nil
}

// adapterTypes has the types of adapters by the types of Vulkan, except webgpu.Other.
var adapterTypes = map[vk.PhysicalDeviceType]webgpu.AdapterType{
	vk.PhysicalDeviceTypeDiscreteGpu:   webgpu.Discrete,
	vk.PhysicalDeviceTypeIntegratedGpu: webgpu.Integrated,
	vk.PhysicalDeviceTypeVirtualGpu:    webgpu.Virtual,
	vk.PhysicalDeviceTypeCpu:           webgpu.Software,
}

// computeFamily sets the first family of queues that compute. It returns the properties of all families, and whether there is one.
func (h *host) computeFamily(d *physical) ([]vk.QueueFamilyProperties, bool) {
	var n uint32
	h.cmds.GetPhysicalDeviceQueueFamilyProperties(d.handle, &n, nil)
	families := make([]vk.QueueFamilyProperties, max(n, 1))
	h.cmds.GetPhysicalDeviceQueueFamilyProperties(d.handle, &n, &families[0])
	for i := range families[:n] {
		if f := &families[i]; f.QueueCount > 0 && f.QueueFlags&vk.QueueFlags(vk.QueueComputeBit) != 0 {
			d.family = uint32(i)
			return families, true
		}
	}
	return nil, false
}

// result is the result of a Vulkan function.
type result vk.Result

// Error returns the number, and the name if it has one.
func (r result) Error() string {
	name := map[result]string{
		-1: "out of host memory", -2: "out of device memory", -3: "initialization failed", -4: "device lost",
		-6: "layer not present", -7: "extension not present", -8: "feature not present", -9: "incompatible driver",
		-10: "too many objects", -11: "format not supported", -12: "fragmented pool", -13: "unknown", 1: "not ready", 2: "timeout",
	}[r]
	if name == "" {
		return fmt.Sprintf("Vulkan result %d", int32(r))
	}
	return fmt.Sprintf("%s (Vulkan result %d)", name, int32(r))
}

// Unwrap returns the corresponding error of package webgpu.
func (r result) Unwrap() error {
	switch vk.Result(r) {
	case vk.ErrorOutOfHostMemory, vk.ErrorOutOfDeviceMemory, vk.ErrorFragmentedPool:
		return webgpu.ErrOutOfMemory
	case vk.ErrorDeviceLost:
		return webgpu.ErrDeviceLost
	}
	return nil
}

func failure(r vk.Result) error { return result(r) }

// goText returns the text before the first zero.
func goText(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
