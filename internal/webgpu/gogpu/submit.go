//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/gogpu/wgpu/hal/vulkan/vk"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// recorder records a submission. When that is complete it serves another.
type recorder struct {
	device  *device
	pool    vk.CommandPool
	buffer  vk.CommandBuffer
	stamps  vk.QueryPool
	marks   uint32 // that stamps has room for
	ticket  uint64
	touched map[vk.Buffer]bool // by copies since the last barrier; true if written
	running bool               // a dispatch since the last barrier
}

// recorder returns one that is not in use.
func (d *device) recorder() (*recorder, error) {
	if n := len(d.idle); n > 0 {
		r := d.idle[n-1]
		d.idle = d.idle[:n-1]
		return r, nil
	}
	r := &recorder{device: d, touched: map[vk.Buffer]bool{}}
	pool := &vk.CommandPoolCreateInfo{SType: vk.StructureTypeCommandPoolCreateInfo, Flags: vk.CommandPoolCreateFlags(vk.CommandPoolCreateTransientBit), QueueFamilyIndex: d.family}
	if e := d.cmds.CreateCommandPool(d.handle, pool, nil, &r.pool); e != vk.Success {
		return nil, d.fail(e)
	}
	one := &vk.CommandBufferAllocateInfo{SType: vk.StructureTypeCommandBufferAllocateInfo, CommandPool: r.pool, Level: vk.CommandBufferLevelPrimary, CommandBufferCount: 1}
	if e := d.cmds.AllocateCommandBuffers(d.handle, one, &r.buffer); e != vk.Success {
		r.free()
		return nil, d.fail(e)
	}
	return r, nil
}

func (r *recorder) free() {
	d := r.device
	if r.stamps != 0 {
		d.cmds.DestroyQueryPool(d.handle, r.stamps, nil)
	}
	d.cmds.DestroyCommandPool(d.handle, r.pool, nil) // with its buffer
}

// Submit implements [webgpu.HostDevice].
func (d *device) Submit(list []webgpu.HostCommand, _ []webgpu.HostBuffer) (uint64, error) {
	d.submit.Lock()
	defer d.submit.Unlock()
	if d.closed {
		return 0, webgpu.ErrClosed
	}
	if d.gone() {
		return 0, webgpu.ErrDeviceLost
	}
	d.retire()
	r, err := d.recorder()
	if err != nil {
		return 0, err
	}
	if err := r.record(list); err != nil {
		d.cmds.ResetCommandPool(d.handle, r.pool, 0)
		d.idle = append(d.idle, r)
		return 0, err
	}
	ticket := d.submitted + 1
	info := &vk.SubmitInfo{
		SType: vk.StructureTypeSubmitInfo,
		PNext: (*uintptr)(unsafe.Pointer(&vk.TimelineSemaphoreSubmitInfo{SType: typeTimeline, SignalSemaphoreValueCount: 1, PSignalSemaphoreValues: &ticket})),

		CommandBufferCount: 1, PCommandBuffers: &r.buffer,
		SignalSemaphoreCount: 1, PSignalSemaphores: &d.line,
	}
	if e := d.cmds.QueueSubmit(d.queue, 1, info, 0); e != vk.Success {
		d.cmds.ResetCommandPool(d.handle, r.pool, 0)
		d.idle = append(d.idle, r)
		return 0, d.fail(e)
	}
	d.submitted, r.ticket = ticket, ticket
	d.flying = append(d.flying, r)
	return ticket, nil
}

// retire takes the recorders of complete submissions back.
func (d *device) retire() (done uint64, err error) {
	if e := d.cmds.GetSemaphoreCounterValue(d.handle, d.line, &done); e != vk.Success {
		return 0, d.fail(e)
	}
	// A driver that has lost its device may let the counter jump to the end.
	if done > d.submitted {
		return 0, d.fail(vk.ErrorDeviceLost)
	}
	n := 0
	for n < len(d.flying) && d.flying[n].ticket <= done {
		r := d.flying[n]
		if e := d.cmds.ResetCommandPool(d.handle, r.pool, 0); e != vk.Success {
			return done, d.fail(e)
		}
		d.idle = append(d.idle, r)
		n++
	}
	d.flying = append(d.flying[:0], d.flying[n:]...)
	return done, nil
}

// Poll implements [webgpu.HostDevice].
func (d *device) Poll() (uint64, error) {
	d.submit.Lock()
	defer d.submit.Unlock()
	if d.closed {
		return 0, webgpu.ErrClosed
	}
	return d.retire()
}

// patience is how long a wait lasts before it looks at whether the device is still open.
const patience = 500 * time.Millisecond

// Wait implements [webgpu.HostDevice].
func (d *device) Wait(ticket uint64) error {
	for {
		info := &vk.SemaphoreWaitInfo{SType: typeSemaphoreWait, SemaphoreCount: 1, PSemaphores: &d.line, PValues: &ticket}
		switch r := d.cmds.WaitSemaphores(d.handle, info, uint64(patience)); r {
		case vk.Success:
			return nil
		case vk.Timeout:
		default:
			return d.fail(r)
		}
		if d.gone() {
			return webgpu.ErrDeviceLost
		}
		d.submit.Lock()
		closed := d.closed
		d.submit.Unlock()
		if closed {
			return webgpu.ErrClosed
		}
	}
}

// What submissions do, for barriers.
const (
	stages = vk.PipelineStageFlags(vk.PipelineStageComputeShaderBit | vk.PipelineStageTransferBit)
	writes = vk.AccessFlags(vk.AccessShaderWriteBit | vk.AccessTransferWriteBit)
	access = writes | vk.AccessFlags(vk.AccessShaderReadBit|vk.AccessUniformReadBit|vk.AccessTransferReadBit)
)

// barrier makes earlier writes visible to later commands.
func (r *recorder) barrier(after vk.PipelineStageFlags, how vk.AccessFlags) {
	b := &vk.MemoryBarrier{SType: vk.StructureTypeMemoryBarrier, SrcAccessMask: writes, DstAccessMask: how}
	r.device.cmds.CmdPipelineBarrier(r.buffer, stages, after, 0, 1, b, 0, nil, 0, nil)
	clear(r.touched)
	r.running = false
}

// before inserts a barrier if the next command needs one. There is no barrier between independent
// copies, such as copies of operands or of results.
func (r *recorder) before(c *webgpu.HostCommand) {
	switch c.Do {
	case webgpu.Dispatch:
		if r.running || len(r.touched) > 0 {
			r.barrier(stages, access)
		}
		r.running = true
	case webgpu.Copy, webgpu.Clear, webgpu.Stamps:
		dst := c.Dst.(*buffer).handle
		_, used := r.touched[dst]
		var src vk.Buffer
		if c.Do == webgpu.Copy {
			src = c.Src.(*buffer).handle
			used = used || r.touched[src]
		}
		if r.running || used {
			r.barrier(stages, access)
		}
		r.touched[dst] = true
		if src != 0 {
			r.touched[src] = r.touched[src] || src == dst
		}
	}
}

func (r *recorder) record(list []webgpu.HostCommand) error {
	d := r.device
	if e := d.cmds.BeginCommandBuffer(r.buffer, &vk.CommandBufferBeginInfo{SType: vk.StructureTypeCommandBufferBeginInfo, Flags: vk.CommandBufferUsageFlags(vk.CommandBufferUsageOneTimeSubmitBit)}); e != vk.Success {
		return d.fail(e)
	}
	if err := r.measure(list); err != nil {
		return err
	}
	r.barrier(stages, access) // after the submissions before
	for i := range list {
		c := &list[i]
		r.before(c)
		switch c.Do {
		case webgpu.Dispatch:
			p := c.Pipeline.(*pipeline)
			d.cmds.CmdBindPipeline(r.buffer, vk.PipelineBindPointCompute, p.handle)
			d.cmds.CmdBindDescriptorSets(r.buffer, vk.PipelineBindPointCompute, p.layout.pipeline, 0, 1, &c.Group.(*group).handle, 0, nil)
			d.cmds.CmdDispatch(r.buffer, c.Grid[0], c.Grid[1], c.Grid[2])
		case webgpu.Copy:
			d.cmds.CmdCopyBuffer(r.buffer, c.Src.(*buffer).handle, c.Dst.(*buffer).handle, 1, &vk.BufferCopy{SrcOffset: vk.DeviceSize(c.From), DstOffset: vk.DeviceSize(c.To), Size: vk.DeviceSize(c.Bytes)})
		case webgpu.Clear:
			d.cmds.CmdFillBuffer(r.buffer, c.Dst.(*buffer).handle, vk.DeviceSize(c.To), vk.DeviceSize(c.Bytes), 0)
		case webgpu.Stamp:
			d.cmds.CmdWriteTimestamp(r.buffer, vk.PipelineStageBottomOfPipeBit, r.stamps, c.Mark)
		case webgpu.Stamps:
			d.cmds.CmdCopyQueryPoolResults(r.buffer, r.stamps, 0, uint32(c.Bytes), c.Dst.(*buffer).handle, uint64(c.To), 8, vk.QueryResultFlags(vk.QueryResult64Bit|vk.QueryResultWaitBit))
		default:
			return fmt.Errorf("command %d: %w", c.Do, webgpu.ErrInvalid)
		}
	}
	r.barrier(vk.PipelineStageFlags(vk.PipelineStageHostBit), vk.AccessFlags(vk.AccessHostReadBit))
	if e := d.cmds.EndCommandBuffer(r.buffer); e != vk.Success {
		return d.fail(e)
	}
	return nil
}

// measure makes room for the times that are noted.
func (r *recorder) measure(list []webgpu.HostCommand) error {
	d := r.device
	marks := uint32(0)
	for i := range list {
		switch c := &list[i]; {
		case c.Do != webgpu.Stamp:
		case !d.adapter.Clocks:
			return fmt.Errorf("the device has no clocks: %w", webgpu.ErrUnsupported)
		case c.Mark >= 1<<20:
			return errors.New("too many times to note")
		default:
			marks = max(marks, c.Mark+1)
		}
	}
	if marks == 0 {
		return nil
	}
	if marks > r.marks {
		if r.stamps != 0 {
			d.cmds.DestroyQueryPool(d.handle, r.stamps, nil)
			r.stamps, r.marks = 0, 0
		}
		n := max(marks, 64)
		create := &vk.QueryPoolCreateInfo{SType: vk.StructureTypeQueryPoolCreateInfo, QueryType: vk.QueryTypeTimestamp, QueryCount: n}
		if e := d.cmds.CreateQueryPool(d.handle, create, nil, &r.stamps); e != vk.Success {
			return d.fail(e)
		}
		r.marks = n
	}
	d.cmds.CmdResetQueryPool(r.buffer, r.stamps, 0, marks)
	return nil
}
