//go:build cgo && !nowebgpu && !js

package devicetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/driver/webgpu"
	"github.com/rayo-go/rayo/internal/testutil"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wgsl"
)

// collector is a mask that keeps the text of every pipeline and compiles a pipeline at its first use. So a plan that
// never runs takes no time to compile, and its texts may use features that lavapipe does not have.
type collector struct {
	*mask
	mu    sync.Mutex
	texts map[string]string // the label of each text
}

func (c *collector) Open(ctx context.Context, index int) (gpu.HostDevice, error) {
	d, err := c.mask.Open(ctx, index)
	if err != nil {
		return nil, err
	}
	return &collecting{d, c}, nil
}

type collecting struct {
	gpu.HostDevice
	collector *collector
}

func (d *collecting) NewPipeline(s *gpu.Shader) (gpu.HostPipeline, error) {
	d.collector.mu.Lock()
	d.collector.texts[s.Text] = s.Label
	d.collector.mu.Unlock()
	own := *s
	// naga does not accept these directives, which Tint requires.
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

// prepare compiles a plan of the graph over inputs of a type, without running it.
func (r *graph) prepare(ctx context.Context, dev *device.Device, d op.DType) error {
	g := *r
	g.nodes = slices.Clone(r.nodes)
	for i := range g.nodes {
		g.nodes[i].source.Type = d
	}
	k, err := (&player{dev: dev}).record(ctx, &g)
	if err != nil {
		return err
	}
	var outs []batch.Value
	for _, i := range r.sinks() {
		outs = append(outs, k.values[i])
	}
	if len(outs) == 0 {
		return nil
	}
	plan, err := k.b.Compile(ctx, outs...)
	if err != nil {
		return err
	}
	return plan.Close()
}

// prepareHalves compiles a plan that converts an odd number of elements of two bytes, and whole vectors of them, to
// float32 and back, and copies them unchanged.
func prepareHalves(ctx context.Context, dev *device.Device, d op.DType) error {
	b := batch.New(dev)
	x := newArray(d, 33).upload(b, op.Shape{3, 11})
	y := newArray(d, 36).upload(b, op.Shape{3, 12})
	plan, err := b.Compile(ctx, b.Softmax(x), b.Reshape(x, 11, 3), b.Softmax(y))
	if err != nil {
		return err
	}
	return plan.Close()
}

// TestWebGPUShaders compiles the kernels of plans of random graphs with the WGSL compilers:
// fused chains and trees of elementwise operations, prologues of reductions, epilogues of
// products, and conversions of half floats.
func TestWebGPUShaders(t *testing.T) {
	n := 60
	if short() {
		n = 8
	}
	seed := testutil.Seed(t)
	var graphs []*graph
	for i := range n {
		g, err := newGraph(seed+uint64(i), 6+i%28, deviations{}, scope{})
		if err != nil {
			t.Fatal(err)
		}
		graphs = append(graphs, g)
	}
	const all = wgsl.Half | wgsl.Subgroups | wgsl.Dot4
	for _, c := range []struct {
		name, compiler string
		consumer       wgsl.Consumer
		features       wgsl.Feature
	}{
		{"naga", "naga", wgsl.Naga, 0},
		{"naga_all", "naga", wgsl.Naga, all},
		{"naga_go", "naga", wgsl.NagaGo, wgsl.Dot4},
		{"tint", "tint", wgsl.Tint, 0},
		{"tint_all", "tint", wgsl.Tint, all},
	} {
		t.Run(c.name, func(t *testing.T) {
			testutil.Need(t, c.compiler)
			texts := collect(t, func(a *gpu.Adapter) {
				a.Target.Consumer, a.Target.Features, a.Target.Narrows = c.consumer, c.features, c.features&wgsl.Half != 0
			})
			dev := start(t, openMasked)
			for i, g := range graphs {
				types := []op.DType{op.F32, op.F16, op.BF16}
				if i%4 != 0 {
					types = types[:1]
				}
				for _, d := range types {
					if err := g.prepare(t.Context(), dev, d); err != nil {
						t.Fatalf("%v: %v\n%v", d, err, g)
					}
				}
			}
			for _, d := range []op.DType{op.F16, op.BF16} {
				if err := prepareHalves(t.Context(), dev, d); err != nil {
					t.Fatalf("%v: %v", d, err)
				}
			}
			texts.compile(t, c.compiler)
		})
	}
}

// collect installs a collector between the driver and lavapipe until the end of the test.
func collect(t *testing.T, change func(a *gpu.Adapter)) *collector {
	t.Helper()
	c := &collector{mask: wear(t, &mask{change: change}), texts: map[string]string{}}
	webgpu.Substitute = c // wear ends that
	return c
}

// compile compiles the collected texts with a WGSL compiler.
func (c *collector) compile(t *testing.T, compiler string) {
	t.Helper()
	texts, kinds := map[string]string{}, map[string]int{}
	for text, label := range c.texts {
		texts[fmt.Sprintf("%s %d", label, len(texts))] = text
		kinds[label]++
	}
	t.Logf("%d texts: %v", len(texts), kinds)
	for _, label := range []string{"map", "widen", "narrow", "copy_bytes", "reduce_sum", "matmul"} {
		if kinds[label] == 0 {
			t.Errorf("no text of %s", label)
		}
	}
	testutil.Judge(t, compiler, texts)
}
