//go:build cgo && !nowebgpu && !js

package devicetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/driver/webgpu"
	"github.com/rayo-go/rayo/internal/testutil"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/wgpunative"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wgsl"
)

// collector is a host over lavapipe that keeps the text of every pipeline, and
// compiles one when it is first used: a plan that never runs costs no compiling, and
// its texts may be for a device that lavapipe is not.
type collector struct {
	gpu.Host
	change func(a *gpu.Adapter) // what adapters say

	mu    sync.Mutex
	texts map[string]string // the label of each text
}

func (c *collector) Adapters(ctx context.Context) ([]gpu.Adapter, error) {
	all, err := c.Host.Adapters(ctx)
	for i := range all {
		c.change(&all[i])
	}
	return all, err
}

func (c *collector) Open(ctx context.Context, index int) (gpu.HostDevice, error) {
	d, err := c.Host.Open(ctx, index)
	if err != nil {
		return nil, err
	}
	a := *d.Adapter()
	c.change(&a)
	return &collecting{d, c, a}, nil
}

type collecting struct {
	gpu.HostDevice
	collector *collector
	adapter   gpu.Adapter
}

func (d *collecting) Adapter() *gpu.Adapter { return &d.adapter }

func (d *collecting) NewPipeline(s *gpu.Shader) (gpu.HostPipeline, error) {
	d.collector.mu.Lock()
	d.collector.texts[s.Text] = s.Label
	d.collector.mu.Unlock()
	own := *s
	// What Tint wants to be told naga does not take.
	own.Text = strings.Replace(own.Text, "enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n", "", 1)
	return &deferred{d: d.HostDevice, shader: own}, nil
}

// deferred is a pipeline that is compiled when it is first used.
type deferred struct {
	d      gpu.HostDevice
	shader gpu.Shader
	once   sync.Once
	p      gpu.HostPipeline
	err    error
}

func (l *deferred) now() (gpu.HostPipeline, error) {
	l.once.Do(func() { l.p, l.err = l.d.NewPipeline(&l.shader) })
	return l.p, l.err
}

func (l *deferred) Release() {
	l.once.Do(func() {})
	if l.p != nil {
		l.p.Release()
	}
}

func (d *collecting) NewGroup(p gpu.HostPipeline, r []gpu.HostRange) (gpu.HostGroup, error) {
	own, err := p.(*deferred).now()
	if err != nil {
		return nil, err
	}
	return d.HostDevice.NewGroup(own, r)
}

func (d *collecting) Submit(list []gpu.HostCommand, remap []gpu.HostBuffer) (uint64, error) {
	own := append([]gpu.HostCommand(nil), list...)
	for i := range own {
		if own[i].Pipeline != nil {
			own[i].Pipeline = own[i].Pipeline.(*deferred).p
		}
	}
	return d.HostDevice.Submit(own, remap)
}

// prepare makes a plan of the graph over inputs of a type, and runs nothing.
func (r *graph) prepare(ctx context.Context, dev *device.Device, d op.DType) error {
	b := batch.New(dev)
	var values, outs []batch.Value
	for _, x := range r.inputs {
		values = append(values, newArray(d, len(x.Data)).upload(b, x.Shape))
	}
	for _, n := range r.nodes {
		var in []batch.Value
		for _, a := range n.args {
			in = append(in, values[a])
		}
		v, err := n.c.record(b, in)
		if err != nil {
			return err
		}
		values = append(values, v[0])
	}
	for _, i := range r.sinks() {
		outs = append(outs, values[i])
	}
	if len(outs) == 0 {
		return nil
	}
	plan, err := b.Compile(ctx, outs...)
	if err != nil {
		return err
	}
	return plan.Close()
}

// prepareHalves makes a plan that widens an odd number of elements of two bytes,
// narrows them, and copies them as they are.
func prepareHalves(ctx context.Context, dev *device.Device, d op.DType) error {
	b := batch.New(dev)
	x := newArray(d, 33).upload(b, op.Shape{3, 11})
	plan, err := b.Compile(ctx, b.Softmax(x), b.Reshape(x, 11, 3))
	if err != nil {
		return err
	}
	return plan.Close()
}

// TestWebGPUShaders has the compilers of WGSL judge what plans of random graphs are
// made of: chains and trees of elementwise operations that are one kernel, what is
// computed before a reduction and after a product, and what widens and narrows half
// floats.
func TestWebGPUShaders(t *testing.T) {
	n := 60
	if short() {
		n = 8
	}
	seed := freshSeed(t)
	var graphs []*graph
	for i := range n {
		g, err := newGraph(seed+uint64(i), 6+i%28, liberties{})
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	for _, consumer := range []wgsl.Consumer{wgsl.Naga, wgsl.Tint} {
		for _, features := range []wgsl.Feature{0, wgsl.Half | wgsl.Subgroups | wgsl.Dot4} {
			t.Run(fmt.Sprintf("%v/%d", consumer, features), func(t *testing.T) {
				testutil.Need(t, consumer.String())
				c := collect(t, func(a *gpu.Adapter) {
					a.Target.Consumer, a.Target.Features = consumer, features
				})
				dev := start(t, openMasked)
				for i, g := range graphs {
					for k, d := range []op.DType{op.F32, op.F16, op.BF16} {
						if k > 0 && i%4 != 0 {
							continue
						}
						if err := g.prepare(t.Context(), dev, d); err != nil && !errors.Is(err, device.ErrUnsupported) {
							t.Fatalf("%v: %v\n%v", d, err, g)
						}
					}
				}
				for _, d := range []op.DType{op.F16, op.BF16} {
					if err := prepareHalves(t.Context(), dev, d); err != nil {
						t.Fatalf("%v: %v", d, err)
					}
				}
				c.judge(t, consumer.String())
			})
		}
	}
}

// collect puts a collector between the driver and lavapipe until the end of the
// test.
func collect(t *testing.T, change func(a *gpu.Adapter)) *collector {
	t.Helper()
	testutil.Vulkan(t, "lavapipe")
	h, err := wgpunative.New()
	if err != nil {
		testutil.Missing(t, "vulkan", err)
	}
	c := &collector{Host: h, change: change, texts: map[string]string{}}
	webgpu.Substitute = c
	t.Cleanup(func() { webgpu.Substitute = nil })
	return c
}

// judge has a compiler judge what was collected.
func (c *collector) judge(t *testing.T, compiler string) {
	t.Helper()
	texts, kinds := map[string]string{}, map[string]int{}
	for text, label := range c.texts {
		texts[fmt.Sprintf("%s %d", label, len(texts))] = text
		kinds[label]++
	}
	t.Logf("%d texts: %v", len(texts), kinds)
	for _, label := range []string{"map", "widen", "narrow", "copy_halves", "reduce_sum", "matmul"} {
		if kinds[label] == 0 {
			t.Errorf("no text of %s", label)
		}
	}
	testutil.Judge(t, compiler, texts)
}
