//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package devicetest

import (
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/internal/devicehook"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestWebGPUFlows computes rows with the single-pass kernels, which rayo would not choose for
// so few elements or for this device. Mesa's lavapipe does not start workgroups in order, so
// many lanes compute the partial results that they wait for.
func TestWebGPUFlows(t *testing.T) {
	for _, dir := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} { // where choices are stored
		t.Setenv(dir, t.TempDir())
	}
	open := webGPU(t, "lavapipe")
	first := open(t)
	target, _ := devicehook.Engine(first).Target()
	identity := devicehook.Engine(first).Info().Identity
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	g := newGenerator(testutil.Seed(t))
	var cases []Case
	var choices driver.Variants
	for _, x := range []struct {
		o       *op.Operation
		variant string
		shape   op.Shape
	}{
		{op.Softmax, "flow256", op.Shape{129, 32804}},
		{op.LogSoftmax, "edgesflow256", op.Shape{259, 16389}},
		{op.LayerNorm, "edgesflow128", op.Shape{131, 24579}},
		{op.LayerNorm, "flow256", op.Shape{260, 12344}},
		{op.RMSNorm, "edgesflow256", op.Shape{259, 20001}},
		{op.RMSNorm, "flow128", op.Shape{257, 8200}},
	} {
		c := Case{Op: x.o, In: []Tensor{g.tensor(op.F32, x.shape, g.tame)}}
		r := &portable.Request{Op: x.o, Attrs: x.o.Defaults(), Target: target, In: []portable.Array{{Type: op.F32, Shape: x.shape}}, Out: []portable.Array{{Type: op.F32, Shape: x.shape}}}
		for range len(x.o.Inputs()) - 1 {
			c.In = append(c.In, g.tensor(op.F32, x.shape[1:], g.tame))
			r.In = append(r.In, portable.Array{Type: op.F32, Shape: x.shape[1:]})
		}
		if target.Subgroups {
			x.variant += "-subgroups"
		}
		key := portable.Key(r)
		choices.Set(identity, key, x.variant)
		if err := choices.Store(identity, key); err != nil {
			t.Fatal(err)
		}
		r.Tuning = portable.Tuning{key: x.variant}
		if p, err := portable.For(r); err != nil || p.Variant != x.variant {
			t.Fatalf("%v of %v is not taken by %s: %v", x.o, x.shape, x.variant, err)
		}
		cases = append(cases, c)
	}
	if short() {
		g.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
		cases = cases[:1]
	}
	dev := start(t, open)
	free := deviationsOf(t.Context(), dev)
	for i := range cases {
		t.Run(fmt.Sprintf("%v/%v", cases[i].Op, cases[i].In[0].Shape), func(t *testing.T) {
			if err := cases[i].runBatch(t.Context(), dev, free); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWebGPULongRows computes rows that are so many, or so long, that plans choose other kernels for them than for the
// rows of TestWebGPU.
func TestWebGPULongRows(t *testing.T) {
	testutil.Need(t, "long")
	dev := start(t, webGPU(t, "lavapipe"))
	free := deviationsOf(t.Context(), dev)
	g := newGenerator(testutil.Seed(t))
	type rows struct {
		o     *op.Operation
		shape op.Shape
	}
	all := []rows{
		{op.Softmax, op.Shape{129, 32801}},
		{op.LogSoftmax, op.Shape{128, 40002}},
		{op.LayerNorm, op.Shape{130, 32803}},
		{op.RMSNorm, op.Shape{129, 32802}},
		{op.LayerNorm, op.Shape{2731, 6145}},
		{op.LayerNorm, op.Shape{129, 65543}},
		{op.Softmax, op.Shape{128, 65537}},
		{op.LogSoftmax, op.Shape{44, 98309}},
		{op.LayerNorm, op.Shape{29, 147459}},
	}
	if onGPU { // these devices use a single-pass kernel, which takes too long in software
		all = append(all, rows{op.Softmax, op.Shape{513, 65540}}, rows{op.LogSoftmax, op.Shape{67, 524309}}, rows{op.RMSNorm, op.Shape{300, 131071}},
			rows{op.LayerNorm, op.Shape{350, 100000}}, rows{op.LayerNorm, op.Shape{170, 200003}})
	}
	for _, x := range all {
		t.Run(fmt.Sprintf("%v/%v", x.o, x.shape), func(t *testing.T) {
			c := Case{Op: x.o, In: []Tensor{g.tensor(op.F32, x.shape, g.tame)}}
			for range len(x.o.Inputs()) - 1 {
				c.In = append(c.In, g.tensor(op.F32, x.shape[1:], g.tame))
			}
			// A single call is a batch too, so only the kernels need a test here.
			if err := c.runBatch(t.Context(), dev, free); err != nil {
				t.Error(err)
			}
		})
	}
}
