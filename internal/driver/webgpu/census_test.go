//go:build cgo && !nowebgpu && !js

package webgpu_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/driver/webgpu"
	"github.com/rayo-go/rayo/internal/testutil"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/wgpunative"
)

// census is a host over lavapipe, or over a GPU on request, that counts the live objects of
// the library and the submissions.
type census struct {
	gpu.Host
	buffers, bytes, pipelines, groups atomic.Int64
	submits, dispatches               atomic.Int64
}

// takeCensus inserts a census between the driver and the library until the end of the test.
func takeCensus(t *testing.T) *census {
	t.Helper()
	if !testutil.OnGPU() {
		testutil.Vulkan(t, "lavapipe")
	}
	h, err := wgpunative.New()
	if err != nil {
		testutil.Missing(t, "vulkan", err)
	}
	c := &census{Host: h}
	webgpu.Substitute = c
	t.Cleanup(func() { webgpu.Substitute = nil })
	return c
}

// open opens the device, with the census before it.
func open(t *testing.T) *device.Device {
	t.Helper()
	options := []device.Option{device.Require(device.WebGPU)}
	if !testutil.OnGPU() {
		options = append(options, device.WithName("software"))
	}
	d, err := device.Open(t.Context(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// living returns the number of live objects of a library.
type living struct{ buffers, bytes, pipelines, groups int64 }

func (c *census) living() living {
	return living{c.buffers.Load(), c.bytes.Load(), c.pipelines.Load(), c.groups.Load()}
}

func (l living) String() string {
	return fmt.Sprintf("%d buffers of %d bytes, %d pipelines, %d groups", l.buffers, l.bytes, l.pipelines, l.groups)
}

func (c *census) Open(ctx context.Context, index int) (gpu.HostDevice, error) {
	d, err := c.Host.Open(ctx, index)
	if err != nil {
		return nil, err
	}
	return &registry{d, c}, nil
}

// registry is a device whose objects are counted.
type registry struct {
	gpu.HostDevice
	c *census
}

type countedBuffer struct {
	gpu.HostBuffer
	c     *census
	bytes int64
}

func (b *countedBuffer) Release() {
	b.c.buffers.Add(-1)
	b.c.bytes.Add(-b.bytes)
	b.HostBuffer.Release()
}

type countedPipeline struct {
	gpu.HostPipeline
	c *census
}

func (p *countedPipeline) Release() {
	p.c.pipelines.Add(-1)
	p.HostPipeline.Release()
}

type countedGroup struct {
	gpu.HostGroup
	c *census
}

func (g *countedGroup) Release() {
	g.c.groups.Add(-1)
	g.HostGroup.Release()
}

func (r *registry) NewBuffer(size int64, u gpu.Usage) (gpu.HostBuffer, error) {
	b, err := r.HostDevice.NewBuffer(size, u)
	if err != nil {
		return nil, err
	}
	r.c.buffers.Add(1)
	r.c.bytes.Add(size)
	return &countedBuffer{b, r.c, size}, nil
}

func (r *registry) NewPipeline(s *gpu.Shader) (gpu.HostPipeline, error) {
	p, err := r.HostDevice.NewPipeline(s)
	if err != nil {
		return nil, err
	}
	r.c.pipelines.Add(1)
	return &countedPipeline{p, r.c}, nil
}

func (r *registry) NewGroup(p gpu.HostPipeline, list []gpu.HostRange) (gpu.HostGroup, error) {
	bare := make([]gpu.HostRange, len(list))
	for i, b := range list {
		b.Buffer = bareBuffer(b.Buffer)
		bare[i] = b
	}
	g, err := r.HostDevice.NewGroup(p.(*countedPipeline).HostPipeline, bare)
	if err != nil {
		return nil, err
	}
	r.c.groups.Add(1)
	return &countedGroup{g, r.c}, nil
}

func (r *registry) Submit(list []gpu.HostCommand, remap []gpu.HostBuffer) (uint64, error) {
	bare, mapped := make([]gpu.HostCommand, len(list)), make([]gpu.HostBuffer, len(remap))
	for i, c := range list {
		c.Src, c.Dst = bareBuffer(c.Src), bareBuffer(c.Dst)
		if c.Do == gpu.Dispatch {
			c.Pipeline, c.Group = c.Pipeline.(*countedPipeline).HostPipeline, c.Group.(*countedGroup).HostGroup
			r.c.dispatches.Add(1)
		}
		bare[i] = c
	}
	for i, b := range remap {
		mapped[i] = bareBuffer(b)
	}
	r.c.submits.Add(1)
	return r.HostDevice.Submit(bare, mapped)
}

func bareBuffer(b gpu.HostBuffer) gpu.HostBuffer {
	if b == nil {
		return nil
	}
	return b.(*countedBuffer).HostBuffer
}
