package fakehost

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/rayo-go/rayo/internal/webgpu"
)

type buffer struct {
	d        *Device
	bytes    []byte
	usage    webgpu.Usage
	mapped   bool
	pending  bool // it is going to be
	flying   int  // submissions under way that use it
	released bool
}

// NewBuffer implements [webgpu.HostDevice].
func (d *Device) NewBuffer(size int64, u webgpu.Usage) (webgpu.HostBuffer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("NewBuffer"); err != nil {
		return nil, err
	}
	if size <= 0 || size%4 != 0 || size > d.adapter.Buffer || u > webgpu.Output || u >= webgpu.Input && !d.adapter.Mappable || u == webgpu.Upload && d.host.Remote {
		d.violate("NewBuffer(%d, %d)", size, u)
	}
	if d.host.Memory > 0 && d.bytes+size > d.host.Memory {
		return nil, fmt.Errorf("%d bytes: %w", size, webgpu.ErrOutOfMemory)
	}
	d.bytes += size
	d.buffers++
	b := &buffer{d: d, bytes: make([]byte, size), usage: u, mapped: u == webgpu.Upload || u == webgpu.Input}
	// Storage begins with anything. Doubling takes no time under the race detector either.
	if size > 0 {
		b.bytes[0] = 0xA5
	}
	for n := 1; n < len(b.bytes); n *= 2 {
		copy(b.bytes[n:], b.bytes[:n])
	}
	return b, nil
}

// Mapped implements [webgpu.HostBuffer].
func (b *buffer) Mapped() []byte {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if b.released || b.flying > 0 || b.d.host.Remote {
		b.d.violate("Mapped of a buffer in use, released or remote")
	}
	if !b.mapped {
		return nil
	}
	return b.bytes
}

// Unmap implements [webgpu.HostBuffer].
func (b *buffer) Unmap() {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if b.released {
		b.d.violate("Unmap of a released buffer")
	}
	b.mapped = false
}

// Release implements [webgpu.HostBuffer].
func (b *buffer) Release() {
	d := b.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.released || b.flying > 0 && d.failure == nil || d.closed {
		d.violate("Release of a buffer: released %v, in use %d, closed %v", b.released, b.flying, d.closed)
	}
	b.released = true
	d.buffers--
	d.bytes -= int64(len(b.bytes))
}

type pipeline struct {
	d        *Device
	kernel   Kernel
	bindings []webgpu.BindingKind
	flying   int
	released bool
}

// NewPipeline implements [webgpu.HostDevice].
func (d *Device) NewPipeline(s *webgpu.Shader) (webgpu.HostPipeline, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("NewPipeline"); err != nil {
		return nil, err
	}
	k := d.host.Kernels[s.Entry]
	if k == nil {
		return nil, &webgpu.CompileError{Label: s.Label, Message: "no kernel is called " + s.Entry}
	}
	d.others++
	return &pipeline{d: d, kernel: k, bindings: append([]webgpu.BindingKind(nil), s.Bindings...)}, nil
}

// Release implements [webgpu.HostPipeline].
func (p *pipeline) Release() {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	if p.released || p.flying > 0 && p.d.failure == nil || p.d.closed {
		p.d.violate("Release of a pipeline: released %v, in use %d, closed %v", p.released, p.flying, p.d.closed)
	}
	p.released = true
	p.d.others--
}

type group struct {
	d        *Device
	ranges   []webgpu.HostRange
	flying   int
	released bool
}

// NewGroup implements [webgpu.HostDevice].
func (d *Device) NewGroup(p webgpu.HostPipeline, r []webgpu.HostRange) (webgpu.HostGroup, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("NewGroup"); err != nil {
		return nil, err
	}
	kinds := p.(*pipeline).bindings
	if len(kinds) != len(r) || p.(*pipeline).released {
		d.violate("NewGroup of %d ranges for %d bindings", len(r), len(kinds))
	}
	for i, a := range r {
		b := a.Buffer.(*buffer)
		align, limit, usage := d.adapter.StorageAlign, d.adapter.Binding, webgpu.Storage
		if kinds[i] == webgpu.Block {
			align, limit, usage = d.adapter.UniformAlign, d.adapter.UniformBytes, webgpu.Uniform
		}
		if b.released || (b.usage == webgpu.Uniform) != (usage == webgpu.Uniform) || b.usage == webgpu.Upload || b.usage == webgpu.Readback || a.Off < 0 || a.Bytes <= 0 || a.Bytes%4 != 0 || a.Off%align != 0 || a.Bytes > limit || a.Off+a.Bytes > int64(len(b.bytes)) {
			d.violate("NewGroup: %d bytes at %d of %d, usage %d, released %v", a.Bytes, a.Off, len(b.bytes), b.usage, b.released)
		}
		for j, c := range r {
			if i != j && kinds[i] == webgpu.ReadWrite && c.Buffer == a.Buffer {
				d.violate("NewGroup: a buffer that is written is bound twice")
			}
		}
	}
	d.others++
	return &group{d: d, ranges: append([]webgpu.HostRange(nil), r...)}, nil
}

// Release implements [webgpu.HostGroup].
func (g *group) Release() {
	g.d.mu.Lock()
	defer g.d.mu.Unlock()
	if g.released || g.flying > 0 && g.d.failure == nil || g.d.closed {
		g.d.violate("Release of a group: released %v, in use %d, closed %v", g.released, g.flying, g.d.closed)
	}
	g.released = true
	g.d.others--
}

// Submit implements [webgpu.HostDevice].
func (d *Device) Submit(c []webgpu.HostCommand, remap []webgpu.HostBuffer) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("Submit"); err != nil {
		return 0, err
	}
	d.submitted += 3 // tickets rise, and not by one
	s := submission{commands: append([]webgpu.HostCommand(nil), c...), ticket: d.submitted}
	for i := range s.commands {
		d.check(&s.commands[i])
	}
	for _, b := range remap {
		m := b.(*buffer)
		if m.mapped || m.pending || m.released || m.usage == webgpu.Storage || m.usage == webgpu.Uniform {
			d.violate("a buffer of usage %d is to be mapped: mapped %v, pending %v", m.usage, m.mapped, m.pending)
		}
		m.pending = true
		s.remap = append(s.remap, m)
	}
	d.fly(s, 1)
	d.queue = append(d.queue, s)
	d.recent[s.ticket%uint64(len(d.recent))] = s
	d.changed.Broadcast()
	return s.ticket, nil
}

// gone reports whether something that the command uses is released.
func gone(c *webgpu.HostCommand) bool {
	buffers := []webgpu.HostBuffer{c.Src, c.Dst}
	if c.Do == webgpu.Dispatch {
		for _, r := range c.Group.(*group).ranges {
			buffers = append(buffers, r.Buffer)
		}
		if c.Pipeline.(*pipeline).released || c.Group.(*group).released {
			return true
		}
	}
	return slices.ContainsFunc(buffers, func(b webgpu.HostBuffer) bool { return b != nil && b.(*buffer).released })
}

// check reports commands that would crash a library.
func (d *Device) check(c *webgpu.HostCommand) {
	span := func(b webgpu.HostBuffer, off int64) {
		m := b.(*buffer)
		if m.released || m.mapped || m.pending || off < 0 || off%4 != 0 || c.Bytes <= 0 || c.Bytes%4 != 0 || off+c.Bytes > int64(len(m.bytes)) {
			d.violate("command %d: %d bytes at %d of %d, mapped %v, released %v", c.Do, c.Bytes, off, len(m.bytes), m.mapped, m.released)
		}
	}
	switch c.Do {
	case webgpu.Dispatch:
		for _, n := range c.Grid {
			if n == 0 || n > d.adapter.Target.Limits.Grid {
				d.violate("a grid of %v", c.Grid)
			}
		}
		if c.Pipeline.(*pipeline).released || c.Group.(*group).released {
			d.violate("a dispatch of what is released")
		}
		for _, r := range c.Group.(*group).ranges {
			if m := r.Buffer.(*buffer); m.mapped || m.pending {
				d.violate("a dispatch over a buffer of usage %d: mapped %v, pending %v", m.usage, m.mapped, m.pending)
			}
		}
	case webgpu.Copy:
		span(c.Src, c.From)
		span(c.Dst, c.To)
		if c.Src == c.Dst {
			d.violate("a copy within a buffer")
		}
	case webgpu.Clear:
		span(c.Dst, c.To)
	}
}

// fly counts the use of everything in s.
func (d *Device) fly(s submission, n int) {
	for i := range s.commands {
		c := &s.commands[i]
		if c.Src != nil {
			c.Src.(*buffer).flying += n
		}
		if c.Dst != nil {
			c.Dst.(*buffer).flying += n
		}
		if c.Do == webgpu.Dispatch {
			c.Pipeline.(*pipeline).flying += n
			c.Group.(*group).flying += n
			for _, r := range c.Group.(*group).ranges {
				r.Buffer.(*buffer).flying += n
			}
		}
	}
}

// run is the device.
func (d *Device) run() {
	defer close(d.ended)
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		for !d.closed && (len(d.queue) == 0 || d.hanging || d.failure != nil) {
			d.changed.Wait()
		}
		if d.closed {
			return
		}
		s := d.queue[0]
		d.mu.Unlock()
		time.Sleep(d.host.Delay)
		d.mu.Lock()
		if d.hanging || d.failure != nil || d.closed {
			continue
		}
		d.mu.Unlock()
		if s.write != nil {
			s.write()
			d.mu.Lock()
			d.queue = d.queue[1:]
			continue
		}
		marks := map[uint32]uint64{}
		for i := range s.commands {
			d.do(&s.commands[i], marks)
		}
		d.mu.Lock()
		d.fly(s, -1)
		for _, b := range s.remap {
			b.mapped, b.pending = true, false
		}
		d.queue = d.queue[1:]
		d.done = s.ticket
		if notify := d.notify; notify != nil {
			d.mu.Unlock()
			notify(s.ticket, d.host.fail("Complete"))
			d.mu.Lock()
		}
	}
}

func (d *Device) do(c *webgpu.HostCommand, marks map[uint32]uint64) {
	switch c.Do {
	case webgpu.Dispatch:
		var list [][]byte
		for _, r := range c.Group.(*group).ranges {
			list = append(list, r.Buffer.(*buffer).bytes[r.Off:r.Off+r.Bytes])
		}
		c.Pipeline.(*pipeline).kernel(c.Grid, list)
	case webgpu.Copy:
		copy(c.Dst.(*buffer).bytes[c.To:c.To+c.Bytes], c.Src.(*buffer).bytes[c.From:])
	case webgpu.Clear:
		clear(c.Dst.(*buffer).bytes[c.To : c.To+c.Bytes])
	case webgpu.Stamp:
		d.clock += 500
		marks[c.Mark] = d.clock
	case webgpu.Stamps:
		for i := range c.Bytes {
			binary.LittleEndian.PutUint64(c.Dst.(*buffer).bytes[c.To+8*i:], marks[uint32(i)])
		}
	}
}
