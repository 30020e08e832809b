package device_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// oneShot has calls of each kind of operation over so few elements that nearly all of their time is overhead.
var oneShot = []struct {
	name string
	run  func(ctx context.Context, d *device.Device, f *[6][]float32, ids []int32) error
}{
	{"relu", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return d.Relu(ctx, f[0][:16], f[1][:16])
	}},
	{"sum", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		_, err := d.Sum(ctx, f[1][:16])
		return err
	}},
	{"dot", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		_, err := d.Dot(ctx, f[1][:16], f[2][:16])
		return err
	}},
	{"argmax", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		_, err := d.ArgMax(ctx, f[1][:16])
		return err
	}},
	{"sum of rows", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return device.Reduce(ctx, d, f[0][:4], op.Sum, op.Attrs{}, 4, 4, f[1][:16])
	}},
	{"softmax", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return d.Softmax(ctx, f[0][:16], f[1][:16], 4, 4)
	}},
	{"layernorm", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return d.LayerNorm(ctx, f[0][:16], f[1][:16], f[2][:4], f[3][:4], 4, 4)
	}},
	{"matmul", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return d.MatMul(ctx, f[0][:16], f[1][:16], f[2][:16], nil, 4, 4, 4)
	}},
	{"matmul of 16", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return d.MatMul(ctx, f[0][:256], f[1][:256], f[2][:256], nil, 16, 16, 16)
	}},
	{"matmul transposed", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return d.MatMul(ctx, f[0][:16], f[1][:16], f[2][:16], nil, 4, 4, 4, op.MatMulOpts{TransB: true})
	}},
	{"matmul, relu", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return d.MatMul(ctx, f[0][:16], f[1][:16], f[2][:16], nil, 4, 4, 4, op.MatMulOpts{Act: op.Relu})
	}},
	{"matmul with bias", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return d.MatMul(ctx, f[0][:16], f[1][:16], f[2][:16], f[3][:4], 4, 4, 4)
	}},
	{"matvec", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return d.MatVec(ctx, f[0][:4], f[1][:16], f[2][:4], 4, 4)
	}},
	{"transpose", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return d.Transpose(ctx, f[0][:16], f[1][:16], 4, 4)
	}},
	{"conv2d", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return d.Conv2D(ctx, f[0][:4], f[1][:16], f[2][:9], nil, [4]int{1, 1, 4, 4}, [4]int{1, 1, 3, 3})
	}},
	{"gather", func(ctx context.Context, d *device.Device, f *[6][]float32, ids []int32) error {
		return d.Gather(ctx, f[0][:8], f[1][:16], ids[:2], 4, 4)
	}},
	{"topk", func(ctx context.Context, d *device.Device, f *[6][]float32, ids []int32) error {
		return d.TopK(ctx, f[0][:8], ids[:8], f[1][:16], 4, 4, 2)
	}},
	{"attention", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return d.Attention(ctx, f[0][:16], f[1][:16], f[2][:16], f[3][:16], device.AttentionSize{Heads: 1, Tq: 4, Tk: 4, Dim: 4})
	}},
	{"rope", func(ctx context.Context, d *device.Device, f *[6][]float32, _ []int32) error {
		return d.Rope(ctx, f[0][:16], f[1][:16], 2, 2, 4)
	}},
}

func oneShotArrays() (f [6][]float32, ids []int32) {
	for i := range f {
		f[i] = device.Alloc(256)
	}
	return f, make([]int32, 16)
}

// BenchmarkOneShot measures the overhead of a call.
func BenchmarkOneShot(b *testing.B) {
	ctx := context.Background()
	dev, err := device.Open(ctx, device.Require(device.CPU), device.WithThreads(1))
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	f, ids := oneShotArrays()
	for _, c := range oneShot {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.run(ctx, dev, &f, ids); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestOneShotShapesChange checks that the cached result of the shape rules for an earlier call does not accept a later
// call with other lengths or parameters.
func TestOneShotShapesChange(t *testing.T) {
	dev := pinned(t)
	a, b := []float32{1, 2, 3, 4, 5, 6}, []float32{1, 0, 2, 0, 1, 3}
	try := func(m, k, n int, trans bool, want ...float32) {
		t.Helper()
		c := make([]float32, m*n)
		if err := dev.MatMul(ctx, c, a[:m*k], b[:k*n], nil, m, k, n, op.MatMulOpts{TransB: trans}); err != nil || !slices.Equal(c, want) {
			t.Errorf("%d×%d×%d, %v: %v, %v, not %v", m, k, n, trans, c, err, want)
		}
	}
	fails := func(c, a, b []float32, m, k, n int, opts ...op.MatMulOpts) {
		t.Helper()
		if err := dev.MatMul(ctx, c, a, b, nil, m, k, n, opts...); !errors.Is(err, device.ErrShape) {
			t.Errorf("%d, %d and %d elements as %d×%d×%d: %v", len(c), len(a), len(b), m, k, n, err)
		}
	}
	for range 3 {
		// Use more shapes than the cache holds, and the same lengths in other shapes.
		try(2, 3, 2, false, 1*1+2*2+3*1, 2*0+3*3, 4*1+5*2+6*1, 5*0+6*3)
		try(2, 3, 2, true, 1*1+2*0+3*2, 2*1+3*3, 4*1+6*2, 5*1+6*3)
		try(1, 6, 1, false, 1+6+5+18)
		try(1, 2, 3, false, 1, 2, 8)
		try(3, 2, 1, false, 1, 3, 5)
		try(1, 1, 1, true, 1)
		fails(make([]float32, 3), a, b, 2, 3, 2)
		fails(make([]float32, 4), a[:5], b, 2, 3, 2)
		fails(make([]float32, 4), a, b[:5], 2, 3, 2)
		fails(make([]float32, 4), a, b, 2, 3, -2)
		fails(make([]float32, 4), a, b, 2, 3, 2, op.MatMulOpts{}, op.MatMulOpts{})
		c := make([]float32, 4)
		if err := dev.MatMul(ctx, c, a, b, nil, 2, 3, 2, op.MatMulOpts{Act: op.Add}); !errors.Is(err, device.ErrUnsupported) {
			t.Errorf("an activation of two operands: %v", err)
		}
		if err := dev.MatMul(ctx, c, a, b, a[:1], 2, 3, 2); !errors.Is(err, device.ErrShape) {
			t.Errorf("a bias that is too short: %v", err)
		}
		if err := dev.MatMul(ctx, a[:4], a, b, nil, 2, 3, 2); !errors.Is(err, device.ErrOverlap) {
			t.Errorf("the result over an operand: %v", err)
		}
	}
}

// TestCloseOfNone checks that a program may close the device that Open returns with an error.
func TestCloseOfNone(t *testing.T) {
	for _, d := range []*device.Device{nil, {}} {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
