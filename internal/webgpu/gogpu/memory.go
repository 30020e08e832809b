//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/gogpu/wgpu/hal/vulkan/vk"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// Properties of memory. Every device has coherent memory, which the host accesses without flushes.
const (
	local    = vk.MemoryPropertyFlags(vk.MemoryPropertyDeviceLocalBit)
	visible  = vk.MemoryPropertyFlags(vk.MemoryPropertyHostVisibleBit)
	coherent = vk.MemoryPropertyFlags(vk.MemoryPropertyHostCoherentBit)
	cached   = vk.MemoryPropertyFlags(vk.MemoryPropertyHostCachedBit)
)

// wishes lists the preferred properties of the memory for each usage, best first. The host reads
// uncached memory at a tenth of the speed.
var wishes = [...][]vk.MemoryPropertyFlags{
	webgpu.Storage:  {local, 0},
	webgpu.Uniform:  {local, 0},
	webgpu.Upload:   {visible | coherent},
	webgpu.Readback: {visible | coherent | cached, visible | coherent},
}

// usages are the usage flags of buffers.
var usages = [...]vk.BufferUsageFlagBits{
	webgpu.Storage:  vk.BufferUsageStorageBufferBit | vk.BufferUsageTransferSrcBit | vk.BufferUsageTransferDstBit,
	webgpu.Uniform:  vk.BufferUsageUniformBufferBit | vk.BufferUsageTransferSrcBit | vk.BufferUsageTransferDstBit,
	webgpu.Upload:   vk.BufferUsageTransferSrcBit,
	webgpu.Readback: vk.BufferUsageTransferDstBit,
}

// buffer implements [webgpu.HostBuffer]. Memory that the host sees stays mapped.
type buffer struct {
	device *device
	handle vk.Buffer
	place  place
	mapped []byte
}

// NewBuffer implements [webgpu.HostDevice].
func (d *device) NewBuffer(size int64, u webgpu.Usage) (webgpu.HostBuffer, error) {
	if int(u) >= len(usages) {
		return nil, fmt.Errorf("usage %d: %w", u, webgpu.ErrInvalid)
	}
	b := &buffer{device: d}
	create := &vk.BufferCreateInfo{SType: vk.StructureTypeBufferCreateInfo, Size: vk.DeviceSize(size), Usage: vk.BufferUsageFlags(usages[u]), SharingMode: vk.SharingModeExclusive}
	if r := d.cmds.CreateBuffer(d.handle, create, nil, &b.handle); r != vk.Success {
		return nil, d.fail(r)
	}
	var needs vk.MemoryRequirements
	d.cmds.GetBufferMemoryRequirements(d.handle, b.handle, &needs)
	err := d.memory.take(&b.place, &needs, u)
	if err == nil {
		if r := d.cmds.BindBufferMemory(d.handle, b.handle, b.place.block.memory, vk.DeviceSize(b.place.off)); r != vk.Success {
			err = d.fail(r)
		}
	}
	if err != nil {
		b.destroy()
		return nil, err
	}
	if m := b.place.block.mapped; m != nil {
		b.mapped = m[b.place.off : b.place.off+size : b.place.off+size]
	}
	d.keep(b)
	return b, nil
}

// Mapped implements [webgpu.HostBuffer].
func (b *buffer) Mapped() []byte { return b.mapped }

// Unmap implements [webgpu.HostBuffer]: submissions see the earlier writes.
func (b *buffer) Unmap() {}

// Release implements [webgpu.HostBuffer].
func (b *buffer) Release() {
	if b.device.drop(b) {
		b.destroy()
	}
}

func (b *buffer) destroy() {
	b.device.cmds.DestroyBuffer(b.device.handle, b.handle, nil)
	b.device.memory.give(&b.place)
}

// Drivers allow few allocations, some only 4096: small buffers share blocks.
const (
	blockBytes = 16 << 20
	smallBytes = 1 << 20
)

// allocator gives memory to buffers.
type allocator struct {
	mu     sync.Mutex
	device *device
	blocks []*block // that are shared
}

// block is one allocation of the driver.
type block struct {
	kind   uint32 // of memory
	memory vk.DeviceMemory
	mapped []byte
	shared bool
	holes  []hole // of a shared block: its free ranges, in order and merged
	used   int    // places
}

type hole struct{ off, end int64 }

// place is a part of a block.
type place struct {
	block *block
	hole
}

// take finds memory for a buffer.
func (a *allocator) take(p *place, needs *vk.MemoryRequirements, u webgpu.Usage) error {
	kind := -1
	for _, want := range wishes[u] {
		for i, f := range a.device.physical.memory {
			if kind < 0 && f&want == want && needs.MemoryTypeBits>>i&1 != 0 {
				kind = i
			}
		}
	}
	if kind < 0 {
		return fmt.Errorf("no memory of the device is for buffers of usage %d: %w", u, webgpu.ErrUnsupported)
	}
	size, align := int64(needs.Size), max(int64(needs.Alignment), 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if size > smallBytes {
		b, err := a.allocate(uint32(kind), size)
		if err != nil {
			return err
		}
		*p = place{b, hole{0, size}}
		return nil
	}
	for _, b := range a.blocks {
		if b.kind == uint32(kind) && b.cut(p, size, align) {
			return nil
		}
	}
	b, err := a.allocate(uint32(kind), blockBytes)
	if err != nil {
		return err
	}
	b.shared, b.holes = true, []hole{{0, blockBytes}}
	a.blocks = append(a.blocks, b)
	b.cut(p, size, align)
	return nil
}

// cut takes the first hole that is large enough.
func (b *block) cut(p *place, size, align int64) bool {
	for i, h := range b.holes {
		off := (h.off + align - 1) / align * align
		if off+size > h.end {
			continue
		}
		var rest []hole
		if off > h.off {
			rest = append(rest, hole{h.off, off})
		}
		if off+size < h.end {
			rest = append(rest, hole{off + size, h.end})
		}
		b.holes = slices.Replace(b.holes, i, i+1, rest...)
		b.used++
		*p = place{b, hole{off, off + size}}
		return true
	}
	return false
}

// give takes a place back.
func (a *allocator) give(p *place) {
	b := p.block
	if b == nil {
		return
	}
	p.block = nil
	a.mu.Lock()
	defer a.mu.Unlock()
	if !b.shared {
		a.release(b)
		return
	}
	i, _ := slices.BinarySearchFunc(b.holes, p.off, func(h hole, off int64) int { return int(h.off - off) })
	b.holes = slices.Insert(b.holes, i, p.hole)
	if i+1 < len(b.holes) && b.holes[i].end == b.holes[i+1].off {
		b.holes[i].end = b.holes[i+1].end
		b.holes = slices.Delete(b.holes, i+1, i+2)
	}
	if i > 0 && b.holes[i-1].end == b.holes[i].off {
		b.holes[i-1].end = b.holes[i].end
		b.holes = slices.Delete(b.holes, i, i+1)
	}
	if b.used--; b.used > 0 {
		return
	}
	// One empty block of a kind is kept for the next.
	if slices.ContainsFunc(a.blocks, func(o *block) bool { return o != b && o.kind == b.kind && o.used == 0 }) {
		a.blocks = slices.DeleteFunc(a.blocks, func(o *block) bool { return o == b })
		a.release(b)
	}
}

// allocate asks the driver for memory, and maps it where the host may see it.
func (a *allocator) allocate(kind uint32, size int64) (*block, error) {
	d := a.device
	b := &block{kind: kind}
	if r := d.cmds.AllocateMemory(d.handle, &vk.MemoryAllocateInfo{SType: vk.StructureTypeMemoryAllocateInfo, AllocationSize: vk.DeviceSize(size), MemoryTypeIndex: kind}, nil, &b.memory); r != vk.Success {
		return nil, fmt.Errorf("%d bytes: %w", size, d.fail(r))
	}
	if f := d.physical.memory[kind]; f&visible != 0 && f&coherent != 0 {
		o := newOut()
		r := d.cmds.MapMemory(d.handle, b.memory, 0, vk.DeviceSize(size), 0, o.address())
		runtime.KeepAlive(o)
		if r == vk.Success && o.value == 0 {
			r = vk.ErrorMemoryMapFailed
		}
		if r != vk.Success {
			d.cmds.FreeMemory(d.handle, b.memory, nil)
			return nil, fmt.Errorf("%d bytes do not map: %w", size, d.fail(r))
		}
		b.mapped = o.bytes(size)
	}
	return b, nil
}

func (a *allocator) release(b *block) { a.device.cmds.FreeMemory(a.device.handle, b.memory, nil) }

// free frees the cached memory.
func (a *allocator) free() {
	for _, b := range a.blocks {
		a.release(b)
	}
	a.blocks = nil
}
