//go:build cgo && !nowebgpu && !js

package devicetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

var countKernel = kernel.New("count", func(b *kernel.Builder, _ *struct{}) {
	b.LocalSize(64, 1, 1)
	y := kernel.Output[kernel.F32](b, "y")
	i := b.Index()
	b.If(i.Lt(y.Len()), func() { y.Set(i, kernel.F(1)) })
})

// TestWebGPUEmptyArrays checks that an empty array has a memory range of its own, and that
// the memory beside its position does not change.
func TestWebGPUEmptyArrays(t *testing.T) {
	dev := start(t, webGPU(t, "lavapipe"))
	ctx := t.Context()
	k, err := dev.Kernel(ctx, countKernel)
	if err != nil {
		t.Fatal(err)
	}
	want := []float32{1, 2, 3, 4, 5, 6, 7, 8}
	buf, err := device.Upload(ctx, dev, want)
	if err != nil {
		t.Fatal(err)
	}
	defer buf.Close()
	b := batch.New(dev)
	b.Store(buf, 2, b.Launch(k, kernel.Grid(1), nil, batch.Out(op.F32, 0))[0])
	if err := b.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 8)
	if err := device.Read(ctx, got, buf); err != nil || !slices.Equal(got, want) {
		t.Errorf("nothing was stored, the buffer has become %v (%v)", got, err)
	}

	empty, err := dev.NewBuffer(ctx, op.F32, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()
	if err := k.Run(ctx, kernel.Grid(1), nil, device.Bind(empty)); err != nil {
		t.Error(err)
	}

	b = batch.New(dev)
	x, y := b.Upload([]float32{}, 3, 0), b.Upload([]float32{}, 3, 0)
	z := b.Exp(b.Softmax(b.MatMul(b.Scale(x, 2), y, batch.None, op.MatMulOpts{TransB: true})))
	if err := b.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	if out, err := batch.Read[float32](ctx, b, z); err != nil || len(out) != 9 || !slices.ContainsFunc(out, func(v float32) bool { return v > 1.39 && v < 1.4 }) {
		t.Errorf("e**(1/3) nine times: %v, %v", out, err)
	}
}

// TestWebGPUHalfRows checks that rows of half floats that are larger than a binding and begin within a word are
// converted to float32 only once.
func TestWebGPUHalfRows(t *testing.T) {
	smallBindings(t)
	dev := start(t, openMasked)
	free, g := deviationsOf(t.Context(), dev), newGenerator(testutil.Seed(t))
	half := func(s ...int) Tensor { return g.tensor(op.F16, s, g.tame) }
	for _, c := range []Case{
		{Op: op.TopK, Options: op.TopKOpts{K: 2}, In: []Tensor{half(3, 257)}},
		{Op: op.ArgMax, Rows: true, In: []Tensor{half(3, 301)}},
		{Op: op.Sum, Rows: true, In: []Tensor{half(5, 771)}},
	} {
		if _, err := c.run(t.Context(), dev, free); err != nil {
			t.Errorf("%v: %v", &c, err)
		}
	}
}

// TestWebGPUHalfBounds checks that a kernel without bounds checks over an odd number of half floats does not write
// after the last one. (Kernels from WGSL texts get only whole words.)
func TestWebGPUHalfBounds(t *testing.T) {
	dev := start(t, webGPU(t, "lavapipe"))
	ctx := t.Context()
	portable := kernel.New("more", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(64, 1, 1)
		y := kernel.InOut[kernel.F16](b, "y")
		i := b.Index()
		y.Set(i, y.At(i).F32().Add(kernel.F(100)).F16())
	})
	k, err := dev.Kernel(ctx, portable)
	if err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= 6; n++ {
		for _, at := range []int{0, 1, 2, 3, 4, 128, 130} {
			was := slices.Repeat([]op.Float16{0x3c00}, 140)
			buf, err := device.Upload(ctx, dev, was)
			if err != nil {
				t.Fatal(err)
			}
			b := batch.New(dev)
			b.Store(buf, at, b.Launch(k, kernel.Grid(1), nil, batch.InOut(batch.Upload(b, make([]op.Float16, n))))[0])
			if err := b.Execute(ctx); at%2 != 0 {
				if !errors.Is(err, device.ErrUnsupported) {
					t.Errorf("%d elements at %d: %v", n, at, err)
				}
				buf.Close()
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			want, got := slices.Clone(was), make([]op.Float16, len(was))
			for i := range n {
				want[at+i] = 0x5640 // 100
			}
			if err := device.Read(ctx, got, buf); err != nil || !slices.Equal(got, want) {
				t.Errorf("%d elements at %d: %x, %v", n, at, got[max(at-2, 0):][:n+4], err)
			}
			buf.Close()
		}
	}
}

// TestWebGPUKeepsNaN checks that a NaN that results from an intermediate infinity, for moderate operands, is in the
// result, for any number of elements.
func TestWebGPUKeepsNaN(t *testing.T) {
	dev := start(t, webGPU(t, "lavapipe"))
	for _, n := range []int{64, 1 << 22} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			in := make([]float32, n)
			for i := range in {
				in[i] = 100
			}
			b := batch.New(dev)
			x := b.Upload(in)
			infinite := b.Less(b.Exp(x), b.Exp(b.AddScalar(b.Abs(x), 1000))) // which +Inf < +Inf is not
			v := b.Where(infinite, x, b.Log(b.AddScalar(b.Neg(b.Abs(x)), -1)))
			for range 14 {
				v = b.Maximum(b.Scale(v, 0.5), x)
			}
			v = b.Tanh(v)
			if err := b.Execute(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			got, err := batch.Read[float32](t.Context(), b, v)
			if err != nil {
				t.Fatal(err)
			}
			if i := slices.IndexFunc(got, func(v float32) bool { return v == v }); i >= 0 {
				t.Errorf("element %d is %v, not NaN", i, got[i])
			}
		})
	}
}
