package batch_test

import (
	"math"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// TestOptionalOperandsTellOperationsApart checks that an operation with an optional operand and the
// same operation without it are different values, even if the operand is the first node of the
// batch.
func TestOptionalOperandsTellOperationsApart(t *testing.T) {
	dev := openCPU(t)
	twos := func(n int) []float32 { return slices.Repeat([]float32{2}, n) }
	resident, err := device.Upload(t.Context(), dev, []float32{10, 20})
	if err != nil {
		t.Fatal(err)
	}
	weights := make([]byte, op.Q8_0.Block().Bytes()*2)
	if err := op.Q8_0.Block().Quantize(weights, twos(64)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		first func(b *batch.Batch) batch.Value
		both  func(b *batch.Batch, first batch.Value) (with, without batch.Value)
	}{
		"matmul": {func(b *batch.Batch) batch.Value { return b.Upload([]float32{10, 20}) },
			func(b *batch.Batch, bias batch.Value) (batch.Value, batch.Value) {
				x, w := b.Upload(twos(3), 1, 3), b.Upload(twos(6), 3, 2)
				return b.MatMul(x, w, bias), b.MatMul(x, w, batch.None)
			}},
		"matmul, resident": {func(b *batch.Batch) batch.Value { return b.Use(resident) },
			func(b *batch.Batch, bias batch.Value) (batch.Value, batch.Value) {
				x, w := b.Upload(twos(3), 1, 3), b.Upload(twos(6), 3, 2)
				return b.MatMul(x, w, bias), b.MatMul(x, w, batch.None)
			}},
		"matmul_q": {func(b *batch.Batch) batch.Value { return b.Upload([]float32{10, 20}) },
			func(b *batch.Batch, bias batch.Value) (batch.Value, batch.Value) {
				x, w := b.Upload(twos(32), 1, 32), b.UploadBlocks(weights, op.Q8_0, 2, 32)
				return b.MatMulQ(x, w, bias), b.MatMulQ(x, w, batch.None)
			}},
		"conv2d": {func(b *batch.Batch) batch.Value { return b.Upload([]float32{10, 20}) },
			func(b *batch.Batch, bias batch.Value) (batch.Value, batch.Value) {
				x, w := b.Upload(twos(9), 1, 1, 3, 3), b.Upload(twos(8), 2, 1, 2, 2)
				return b.Conv2D(x, w, bias), b.Conv2D(x, w, batch.None)
			}},
		"rope": {func(b *batch.Batch) batch.Value { return batch.Upload(b, []int32{7, 3}) },
			func(b *batch.Batch, at batch.Value) (batch.Value, batch.Value) {
				x := b.Upload(twos(8), 2, 1, 4)
				return b.Rope(x, batch.RopeInputs{Positions: at}), b.Rope(x, batch.RopeInputs{})
			}},
		"layer_norm": {func(b *batch.Batch) batch.Value { return b.Upload([]float32{10, 20}) },
			func(b *batch.Batch, gamma batch.Value) (batch.Value, batch.Value) {
				x := b.Upload([]float32{1, 2}, 1, 2)
				return b.LayerNorm(x, gamma, batch.None), b.LayerNorm(x, batch.None, batch.None)
			}},
	} {
		// Each in a separate batch, and both together in either order.
		alone := func(k int) []float32 {
			b := batch.New(dev)
			with, without := c.both(b, c.first(b))
			return result(t, b, []batch.Value{with, without}[k])
		}
		want := [2][]float32{alone(0), alone(1)}
		if slices.Equal(want[0], want[1]) {
			t.Fatalf("%s: the optional operand has no effect", name)
		}
		b := batch.New(dev)
		first := c.first(b)
		v, w := c.both(b, first)
		if err := b.Execute(t.Context(), v, w); err != nil {
			t.Fatal(err)
		}
		for k, v := range []batch.Value{v, w} {
			if got, err := batch.Read[float32](t.Context(), b, v); err != nil || !slices.EqualFunc(got, want[k], near) {
				t.Errorf("%s: result %d is %v, %v, want %v", name, k, got, err, want[k])
			}
		}
	}
}

func near(a, b float32) bool { return math.Abs(float64(a-b)) < 1e-4 }

// result executes b for one value and returns it.
func result(t *testing.T, b *batch.Batch, v batch.Value) []float32 {
	t.Helper()
	if err := b.Execute(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	x, err := batch.Read[float32](t.Context(), b, v)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
