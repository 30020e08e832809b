package device_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wgsl"
)

type saxpyParams struct {
	N     uint32
	Scale float32
}

var saxpy = kernel.New("saxpy", func(b *kernel.Builder, p *saxpyParams) {
	b.LocalSize(64, 1, 1)
	x := kernel.Input[kernel.F32](b, "x")
	y := kernel.InOut[kernel.F32](b, "y")
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		y.Set(i, x.At(i).Fma(b.F32(&p.Scale), y.At(i)))
	})
})

// count counts the values of x in bins. It ignores values beyond the last bin.
var count = kernel.New("count", func(b *kernel.Builder, _ *struct{}) {
	b.LocalSize(128, 1, 1)
	x := kernel.Input[kernel.U32](b, "x")
	bins := kernel.Atomic[kernel.U32](b, "bins")
	i := b.Index()
	b.If(i.Lt(x.Len()), func() {
		v := x.At(i)
		b.If(v.Lt(bins.Len()), func() { bins.Add(v, kernel.U(1)) })
	})
})

// pinned opens the CPU device.
func pinned(t *testing.T) *device.Device {
	t.Helper()
	dev, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

func ready(t *testing.T, dev *device.Device, k *kernel.Kernel) *device.Kernel {
	t.Helper()
	r, err := dev.Kernel(ctx, k)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestKernel(t *testing.T) {
	dev := pinned(t)
	k := ready(t, dev, saxpy)
	for _, n := range []int{1, 63, 64, 65, 1000, 100003} {
		x, y, want := make([]float32, n), make([]float32, n), make([]float32, n)
		for i := range x {
			x[i], y[i] = rand.Float32(), float32(i%100)
			want[i] = x[i]*2 + y[i] // exact products
		}
		p := saxpyParams{uint32(n), 2}
		if err := k.Run(ctx, kernel.GridFor(n, 128), p, device.In(x), device.InOut(y)); !errors.Is(err, kernel.ErrGrid) || !errors.Is(err, device.ErrShape) {
			t.Errorf("a grid for larger workgroups: %v", err)
		}
		if err := k.Run(ctx, k.GridFor(n), p, device.In(x), device.InOut(y)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(y, want) {
			t.Fatalf("%d elements are wrong", n)
		}
		// Run the kernel asynchronously, with a pointer to the parameters.
		if err := k.RunAsync(ctx, k.GridFor(n), &p, device.In(x), device.InOut(y)).Wait(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			want[i] = x[i]*2 + want[i]
		}
		if !slices.Equal(y, want) {
			t.Fatalf("%d elements are wrong the second time", n)
		}
	}
}

// TestHalfConstants checks constants of half floats: exact ones, one that is rounded, and one that overflows.
func TestHalfConstants(t *testing.T) {
	dev := pinned(t)
	values := []float32{1.5, 0.1, -70000, 0}
	k := ready(t, dev, kernel.New("halves", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(1, 1, 1)
		x, y := kernel.Input[kernel.F32](b, "x"), kernel.Output[kernel.F32](b, "y")
		for i, v := range values {
			y.Set(kernel.N(i), x.At(kernel.N(0)).F16().Add(kernel.H(v)).F32())
		}
	}))
	got, want := make([]float32, len(values)), []float32{2.5, 1.0996094, float32(math.Inf(-1)), 1}
	if err := k.Run(ctx, kernel.Grid(1), nil, device.In([]float32{1}), device.Out(got)); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, want %v: %v", got, want, err)
	}
}

func TestKernelOutBeginsAsZeros(t *testing.T) {
	dev := pinned(t)
	k := ready(t, dev, count)
	x := []uint32{3, 1, 3, 900, 0, 3}
	bins := []uint32{7, 7, 7, 7}
	if err := k.Run(ctx, kernel.Grid(1), nil, device.In(x), device.Out(bins)); err != nil {
		t.Fatal(err)
	}
	if want := []uint32{1, 1, 0, 3}; !slices.Equal(bins, want) {
		t.Errorf("got %v, want %v", bins, want)
	}
	if err := k.Run(ctx, kernel.Grid(1), nil, device.In(x), device.InOut(bins)); err != nil {
		t.Fatal(err)
	}
	if want := []uint32{2, 2, 0, 6}; !slices.Equal(bins, want) {
		t.Errorf("updated: got %v, want %v", bins, want)
	}
}

func TestKernelUpdatesBuffersInPlace(t *testing.T) {
	dev := pinned(t)
	k := ready(t, dev, saxpy)
	const n = 1000
	ones := slices.Repeat([]float32{1}, n)
	y, err := device.Upload(ctx, dev, ones)
	if err != nil {
		t.Fatal(err)
	}
	x, err := device.Upload(ctx, dev, ones)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := k.Run(ctx, k.GridFor(n), saxpyParams{n, 2}, device.Bind(x), device.Bind(y)); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]float32, n)
	if err := device.Read(ctx, got, y); err != nil {
		t.Fatal(err)
	}
	if want := slices.Repeat([]float32{7}, n); !slices.Equal(got, want) {
		t.Errorf("got %v ..., want 7", got[:4])
	}
	// An update in place is one step, without a copy before or after.
	b := batch.New(dev)
	out := b.Launch(k, k.GridFor(n), saxpyParams{n, 2}, batch.In(b.Upload(ones)), batch.InOut(b.Use(y)))
	b.Store(y, 0, out[0])
	p, err := b.Compile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if s := p.String(); !strings.Contains(s, "1 steps") {
		t.Errorf("an update in place takes more than one step:\n%s", s)
	}
}

func TestKernelInBatch(t *testing.T) {
	dev := pinned(t)
	k := ready(t, dev, saxpy)
	c := ready(t, dev, count)
	const n = 300
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i - 150)
	}
	b := batch.New(dev)
	v := b.Relu(b.Upload(x))
	// y has the initial contents of x, and x does not change.
	y := b.Launch(k, k.GridFor(n), saxpyParams{n, 3}, batch.In(v), batch.InOut(v))[0]
	s := b.Scale(y, 0.5)
	b.Keep(v)
	ids := batch.Upload(b, []uint32{0, 1, 1, 9})
	bins := b.Launch(c, kernel.Grid(1), nil, batch.In(ids), batch.Out(op.U32, 2))[0]
	if err := b.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := batch.Read[float32](ctx, b, s)
	if err != nil {
		t.Fatal(err)
	}
	before, err := batch.Read[float32](ctx, b, v)
	if err != nil {
		t.Fatal(err)
	}
	for i := range x {
		r := max(x[i], 0)
		if before[i] != r || got[i] != 2*r {
			t.Fatalf("element %d: %v and %v, want %v and %v", i, before[i], got[i], r, 2*r)
		}
	}
	if bs, err := batch.Read[uint32](ctx, b, bins); err != nil || !slices.Equal(bs, []uint32{1, 2}) {
		t.Errorf("bins %v, %v", bs, err)
	}
}

func TestKernelMistakes(t *testing.T) {
	dev := pinned(t)
	other := pinned(t)
	k := ready(t, dev, saxpy)
	x, y := make([]float32, 64), make([]float32, 64)
	p := saxpyParams{64, 1}
	buf, err := device.Upload(ctx, other, x)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := device.Upload(ctx, dev, x)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	in, out := device.In(x), device.InOut(y)
	for _, c := range []struct {
		name string
		ctx  context.Context
		grid kernel.Size
		p    any
		args []device.Arg
		want error
	}{
		{"no grid", ctx, kernel.Size{}, p, []device.Arg{in, out}, device.ErrShape},
		{"zero grid", ctx, kernel.Grid(0), p, []device.Arg{in, out}, kernel.ErrGrid},
		{"huge grid", ctx, kernel.Grid(1, 70000), p, []device.Arg{in, out}, kernel.ErrGrid},
		{"too few arrays", ctx, kernel.Grid(1), p, []device.Arg{in}, device.ErrShape},
		{"no arrays", ctx, kernel.Grid(1), p, nil, device.ErrShape},
		{"zero Arg", ctx, kernel.Grid(1), p, []device.Arg{in, {}}, device.ErrShape},
		{"read an output", ctx, kernel.Grid(1), p, []device.Arg{in, device.In(y)}, device.ErrUnsupported},
		{"write an input", ctx, kernel.Grid(1), p, []device.Arg{device.Out(x), out}, device.ErrUnsupported},
		{"other element", ctx, kernel.Grid(1), p, []device.Arg{device.In([]int32{1}), out}, device.ErrUnsupported},
		{"no parameters", ctx, kernel.Grid(1), nil, []device.Arg{in, out}, kernel.ErrParams},
		{"other parameters", ctx, kernel.Grid(1), struct{ N uint32 }{64}, []device.Arg{in, out}, kernel.ErrParams},
		{"same slice twice", ctx, kernel.Grid(1), p, []device.Arg{device.In(y), out}, device.ErrOverlap},
		{"foreign buffer", ctx, kernel.Grid(1), p, []device.Arg{device.Bind(buf), out}, device.ErrForeign},
		{"nil buffer", ctx, kernel.Grid(1), p, []device.Arg{device.Bind(nil), out}, device.ErrForeign},
		{"zero buffer", ctx, kernel.Grid(1), p, []device.Arg{device.Bind(new(device.Buffer)), out}, device.ErrForeign},
		{"closed buffer", ctx, kernel.Grid(1), p, []device.Arg{device.Bind(closed), out}, device.ErrClosed},
		{"cancelled", cancelled, kernel.Grid(1), p, []device.Arg{in, out}, context.Canceled},
		{"too short", ctx, kernel.Grid(1), p, []device.Arg{device.In(x[:3]), out}, device.ErrFault},
		{"empty", ctx, kernel.Grid(1), p, []device.Arg{device.In([]float32{}), out}, device.ErrFault},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := k.Run(c.ctx, c.grid, c.p, c.args...)
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			var f *device.Finding
			if c.want == device.ErrFault && (!errors.As(err, &f) || !errors.Is(err, device.OutOfBounds) || f.Kind != device.OutOfBounds || f.File == "") {
				t.Errorf("%v has the finding %v", err, f)
			}
			if err := k.RunAsync(c.ctx, c.grid, c.p, c.args...).Wait(ctx); !errors.Is(err, c.want) {
				t.Errorf("async: %v, want %v", err, c.want)
			}
		})
	}
	err = k.Run(ctx, kernel.Grid(1), p, device.In(x[:3]), out)
	if line := lineWith(t, "x.At(i).Fma("); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("kernel_test.go:%d:", line)) {
		t.Errorf("%v: not line %d", err, line)
	}
}

// lineWith returns the number of the first line of this file that contains text.
func lineWith(t *testing.T, text string) int {
	t.Helper()
	src, err := os.ReadFile("kernel_test.go")
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(src), text)
	return strings.Count(before, "\n") + 1
}

func TestKernelRefused(t *testing.T) {
	dev := pinned(t)
	for _, c := range []struct {
		name  string
		build func(b *kernel.Builder, _ *struct{})
		want  error
	}{
		{"writes nothing", func(b *kernel.Builder, _ *struct{}) {
			b.LocalSize(1, 1, 1)
			kernel.Input[kernel.F32](b, "x")
		}, device.ErrUnsupported},
		{"panics", func(*kernel.Builder, *struct{}) { panic("no") }, nil},
		{"huge workgroup array", func(b *kernel.Builder, _ *struct{}) {
			b.LocalSize(1, 1, 1)
			y := kernel.Output[kernel.F32](b, "y")
			s := kernel.Shared[kernel.F32](b, "s", 1<<28)
			y.Set(b.Index(), s.At(b.Index()))
		}, device.ErrLimit},
		{"too many buffers", func(b *kernel.Builder, _ *struct{}) {
			b.LocalSize(1, 1, 1)
			for i := range 9 {
				kernel.Output[kernel.F32](b, fmt.Sprint("y", i)).Set(b.Index(), kernel.F(1))
			}
		}, device.ErrLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := dev.Kernel(ctx, kernel.New("k", c.build))
			var e *kernel.Error
			if c.want == nil && !errors.As(err, &e) || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	if _, err := dev.Kernel(ctx, nil); err == nil {
		t.Error("a nil kernel is ready")
	}
	text := wgsl.Source{Text: `@group(0) @binding(0) var<storage, read_write> x: array<f32>;
		@compute @workgroup_size(1) fn main() { var a: array<f32, 100000>; x[0] = a[1]; }`}
	if _, err := dev.Kernel(ctx, text); !errors.Is(err, device.ErrLimit) {
		t.Errorf("a text whose lanes need too much memory gave the error %v", err)
	}
	for _, k := range []*device.Kernel{nil, {}} {
		if err := k.Run(ctx, kernel.Grid(1), nil); !errors.Is(err, device.ErrForeign) {
			t.Errorf("no kernel: %v", err)
		}
		if err := k.RunAsync(ctx, kernel.Grid(1), nil).Wait(ctx); !errors.Is(err, device.ErrForeign) {
			t.Errorf("RunAsync of a nil kernel gave the error %v", err)
		}
		if _, err := k.Check(ctx, kernel.Grid(1), nil); !errors.Is(err, device.ErrForeign) {
			t.Errorf("Check of a nil kernel gave the error %v", err)
		}
		b := batch.New(dev)
		b.Launch(k, kernel.Grid(1), nil)
		if err := b.Execute(ctx); !errors.Is(err, device.ErrForeign) {
			t.Errorf("a nil kernel in a batch gave the error %v", err)
		}
	}
	dev.Close()
	if _, err := dev.Kernel(ctx, saxpy); !errors.Is(err, device.ErrClosed) {
		t.Errorf("closed device: %v", err)
	}
}

// endless is a kernel that never ends by itself.
var endless = kernel.New("endless", func(b *kernel.Builder, _ *struct{}) {
	b.LocalSize(1, 1, 1)
	y := kernel.InOut[kernel.U32](b, "y")
	b.Loop(func() { y.Set(kernel.U(0), y.At(kernel.U(0)).Add(kernel.U(1))) })
})

func TestEndlessKernel(t *testing.T) {
	dev := pinned(t)
	k := ready(t, dev, endless)
	y := make([]uint32, 1)
	soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := k.Run(soon, kernel.Grid(1), nil, device.InOut(y)); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, device.ErrFault) {
		t.Errorf("an endless kernel with a deadline gave the error %v", err)
	}
	if err := k.Run(ctx, kernel.Grid(1), nil, device.InOut(y)); !errors.Is(err, device.ErrFault) {
		t.Errorf("%v, want ErrFault", err)
	}
}
