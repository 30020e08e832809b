//go:build cgo && !nowebgpu && !js

package devicetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wgsl"
)

// oddLengths has odd lengths, for which the last element of two bytes shares its word with the following data, and
// even lengths next to them.
var oddLengths = []int{1, 2, 3, 5, 6, 127, 128, 2889}

// halvesCases returns cases of each kind of operation over rows of n elements of two bytes, with one row or an odd
// number of rows.
func (g *generator) halvesCases(d op.DType, n int) []Case {
	x := func(s ...int) Tensor { return g.tensor(d, s, g.tame) }
	return []Case{
		{Op: op.Relu, In: []Tensor{g.tensor(d, op.Shape{n}, g.wild)}},
		{Op: op.Add, In: []Tensor{x(3, n), x(n)}},
		{Op: op.Softmax, In: []Tensor{x(3, n)}},
		{Op: op.LogSoftmax, In: []Tensor{x(1, n)}},
		{Op: op.LayerNorm, In: []Tensor{x(3, n), x(n), x(n)}},
		{Op: op.LayerNorm, In: []Tensor{x(2, n), x(n), x(n)}}, // the weights alone are odd
		{Op: op.RMSNorm, In: []Tensor{x(5, n), x(n)}},
		{Op: op.Cumsum, In: []Tensor{x(n)}},
		{Op: op.Sum, In: []Tensor{x(3, n)}},
		{Op: op.Max, Rows: true, In: []Tensor{x(3, n)}},
		{Op: op.Transpose, In: []Tensor{x(3, n)}},
		{Op: op.MatVec, In: []Tensor{x(3, n), x(n)}},
		{Op: op.MatMul, In: []Tensor{x(3, n), x(n, 5)}},
		{Op: op.TopK, Options: op.TopKOpts{K: min(n, 3)}, In: []Tensor{x(3, n)}},
		{Op: op.Gather, In: []Tensor{x(3, n), g.ids(op.Shape{5}, 3)}},
		{Op: op.Reshape, Extents: []int{n, 3}, In: []Tensor{x(3, n)}},
	}
}

// storedAt computes a case over operands in device memory and stores its first result
// at an element of a larger array in device memory. No other element may change.
func storedAt[T device.Element](t *testing.T, dev *device.Device, free deviations, c *Case, at int) error {
	t.Helper()
	ctx := t.Context()
	want, types, err := c.Reference()
	if err != nil {
		return err
	}
	also, err := c.allows(free)
	if err != nil {
		return err
	}
	b := batch.New(dev)
	in := make([]batch.Value, len(c.In))
	for i, x := range c.In {
		a := arrayOf(x)
		if x.Type != types[0] {
			in[i] = a.upload(b, x.Shape)
			continue
		}
		buf, err := device.Upload(ctx, dev, view[T](a), x.Shape...)
		if err != nil {
			return err
		}
		defer buf.Close()
		in[i] = b.Use(buf)
	}
	got := newArray(types[0], len(want[0].Data))
	size := types[0].Size()
	// There is an odd number of other elements, so that the array ends within a word as well.
	all := newArray(types[0], at+got.n+1+(at+got.n)%2)
	for i := range all.data {
		all.data[i] = byte(17 * i)
	}
	to, err := device.Upload(ctx, dev, view[T](all))
	if err != nil {
		return err
	}
	defer to.Close()
	values, err := c.record(b, in)
	if err != nil {
		return err
	}
	b.Store(to, at, values[0])
	if err := b.Execute(ctx); err != nil {
		return err
	}
	after := all.clone()
	if err := device.Read(ctx, view[T](after), to); err != nil {
		return err
	}
	lo, hi := at*size, (at+got.n)*size
	copy(got.data, after.data[lo:hi])
	if err := got.check(c.Op, want[0], &also, 0); err != nil {
		return err
	}
	if !bytes.Equal(after.data[:lo], all.data[:lo]) {
		return fmt.Errorf("what lies before the result has changed")
	}
	if !bytes.Equal(after.data[hi:], all.data[hi:]) {
		return fmt.Errorf("what lies behind the result is %x, not %x", after.data[hi:], all.data[hi:])
	}
	return nil
}

// halves runs the cases of a type with operands and results on the host, and with results that are stored into a
// larger array: at its beginning, at places where WebGPU can bind arrays, and at other places. A store at an odd
// element must give an error.
func halves[T device.Element](t *testing.T, dev *device.Device) {
	d, free := device.TypeOf[T](), deviationsOf(t.Context(), dev)
	g := newGenerator(testutil.Seed(t))
	for _, n := range someOf(g, oddLengths, 3) {
		for k, c := range g.halvesCases(d, n) {
			if err := c.runBatch(t.Context(), dev, free); err != nil {
				t.Errorf("%v: %v", &c, err)
			}
			// Each case uses some of these places; 128 suits all devices.
			places := []int{0, 128, 2, 6}
			for i := range 2 {
				at := places[(k+2*i+n)%len(places)]
				if err := storedAt[T](t, dev, free, &c, at); err != nil {
					t.Errorf("%v, stored at %d: %v", &c, at, err)
				}
			}
		}
		// WebGPU cannot bind or copy data that begin within a word.
		c := g.halvesCases(d, n)[0]
		if err := storedAt[T](t, dev, free, &c, 3); !errors.Is(err, device.ErrUnsupported) {
			t.Errorf("%v, stored at 3: %v", &c, err)
		}
	}
}

// TestWebGPUHalves runs operations over odd numbers of elements of two bytes: on a device with half floats, which
// converts none of them, and on a device without; or on the available GPU.
func TestWebGPUHalves(t *testing.T) {
	if onGPU {
		dev := start(t, webGPU(t, ""))
		halves[op.Float16](t, dev)
		halves[op.BFloat16](t, dev)
		for _, n := range []int{1<<19 + 1, 1<<20 + 258} {
			manyHalves[op.Float16](t, dev, deviationsOf(t.Context(), dev), n)
			manyHalves[op.BFloat16](t, dev, deviationsOf(t.Context(), dev), n)
		}
		return
	}
	for _, c := range []struct {
		name string
		has  wgsl.Feature
		d    op.DType
	}{
		{"native", wgsl.Half | wgsl.Subgroups, op.F16},
		{"widened", wgsl.Subgroups, op.F16},
		{"brain", wgsl.Half | wgsl.Subgroups, op.BF16},
	} {
		t.Run(c.name, func(t *testing.T) {
			var converted atomic.Int32
			wear(t, &mask{
				change: func(a *gpu.Adapter) { a.Target.Features &= c.has; a.StorageAlign = 256 },
				text: func(s string) string {
					if strings.Contains(s, "fn widen") || strings.Contains(s, "fn narrow") {
						converted.Add(1)
					}
					return s
				},
			})
			dev := start(t, openMasked)
			before := converted.Load()
			if c.d == op.F16 {
				halves[op.Float16](t, dev)
			} else {
				halves[op.BFloat16](t, dev)
			}
			if n := converted.Load() - before; (n > 0) == (c.name == "native") {
				t.Errorf("%d kernels that convert", n)
			}
		})
	}
}

// TestWebGPUManyHalves converts and copies so many elements that the last of them need a separate launch.
func TestWebGPUManyHalves(t *testing.T) {
	rng := testutil.Rand(t)
	for _, c := range []struct {
		name string
		has  wgsl.Feature
	}{{"native", wgsl.Half}, {"widened", 0}} {
		t.Run(c.name, func(t *testing.T) {
			var vectors atomic.Int32
			wear(t, &mask{
				change: func(a *gpu.Adapter) { a.Target.Features &= c.has; a.StorageAlign = 256 },
				text: func(s string) string {
					if (strings.Contains(s, "fn widen") || strings.Contains(s, "fn narrow")) && strings.Contains(s, "array<vec2") {
						vectors.Add(1)
					}
					return s
				},
			})
			dev := start(t, openMasked)
			free := deviationsOf(t.Context(), dev)
			lengths := []int{1<<20 + 131, 1 << 19, 1<<19 + 1, 1<<19 + 127, 1<<20 + 258}
			if short() {
				lengths = []int{lengths[0], lengths[1+rng.IntN(len(lengths)-1)]}
			}
			for _, n := range lengths {
				manyHalves[op.Float16](t, dev, free, n)
				manyHalves[op.BFloat16](t, dev, free, n)
			}
			if vectors.Load() < 2 {
				t.Error("no vectors are converted")
			}
		})
	}
}

func manyHalves[T device.Element](t *testing.T, dev *device.Device, free deviations, n int) {
	g, d := newGenerator(testutil.Seed(t)), device.TypeOf[T]()
	for i, c := range []Case{
		{Op: op.Abs, In: []Tensor{g.tensor(d, op.Shape{n}, g.wild)}},
		{Op: op.Reshape, Extents: []int{n, 1}, In: []Tensor{g.tensor(d, op.Shape{n}, g.tame)}},
	} {
		if err := c.runBatch(t.Context(), dev, free); err != nil {
			t.Errorf("%v: %v", &c, err)
		}
		if err := storedAt[T](t, dev, free, &c, 2*((n+i)%2)); err != nil {
			t.Errorf("%v, stored at %d: %v", &c, 2*((n+i)%2), err)
		}
	}
}

// TestWebGPUHalvesOnHost tests operations without a kernel, which the host computes. Their results are not a whole
// number of words and are followed by other data in memory.
func TestWebGPUHalvesOnHost(t *testing.T) {
	var kernels atomic.Int32
	some := []*op.Operation{op.Transpose, op.MatVec, op.Gather, op.TopK}
	wear(t, &mask{
		change: func(a *gpu.Adapter) { a.Target.Limits.Invocations = 128 }, // the kernels of these have more
		text: func(s string) string {
			for _, o := range some {
				if strings.Contains(s, "fn "+o.Name()) {
					kernels.Add(1)
				}
			}
			return s
		},
	})
	dev := start(t, openMasked)
	free := deviationsOf(t.Context(), dev)
	g := newGenerator(testutil.Seed(t))
	for _, c := range g.halvesCases(op.F16, 129) {
		if !slices.Contains(some, c.Op) {
			continue
		}
		if err := c.runBatch(t.Context(), dev, free); err != nil {
			t.Errorf("%v: %v", &c, err)
		}
		for _, at := range []int{0, 2, 128} {
			if err := storedAt[op.Float16](t, dev, free, &c, at); err != nil {
				t.Errorf("%v, stored at %d: %v", &c, at, err)
			}
		}
	}
	if kernels.Load() > 0 {
		t.Error("kernels have computed it")
	}
}
