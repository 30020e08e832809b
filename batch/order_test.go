package batch_test

import (
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// TestALaterStoreWins stores a value that is computed before another store to the same
// place. The array must hold the value of the later store.
func TestALaterStoreWins(t *testing.T) {
	ctx := t.Context()
	dev := openCPU(t)
	buf, err := dev.NewBuffer(ctx, op.F32, 2)
	if err != nil {
		t.Fatal(err)
	}
	b := batch.New(dev)
	late := b.Neg(b.Upload([]float32{1, 2}))
	b.Store(buf, 0, b.Upload([]float32{30, 40}))
	b.Store(buf, 0, late)
	if err := b.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 2)
	if err := device.Read(ctx, got, buf); err != nil {
		t.Fatal(err)
	}
	equal(t, got, -1, -2)
}

// TestUpdateInPlaceWaitsForReaders checks that a kernel's result that is stored to the buffer of
// its operand does not replace the operand before all other readers have read it.
func TestUpdateInPlaceWaitsForReaders(t *testing.T) {
	ctx := t.Context()
	dev := openCPU(t)
	double, err := dev.Kernel(ctx, kernel.New("double", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(2, 1, 1)
		y := kernel.InOut[kernel.F32](b, "y")
		y.Set(b.Lane(), y.At(b.Lane()).Mul(kernel.F(2)))
	}))
	if err != nil {
		t.Fatal(err)
	}
	buf, err := device.Upload(ctx, dev, []float32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	b := batch.New(dev)
	before := b.Use(buf)
	doubled := b.Launch(double, kernel.Grid(1), nil, batch.InOut(before))[0]
	negative := b.Neg(before)
	b.Store(buf, 0, doubled)
	equal(t, result(t, b, negative), -1, -2)
	got := make([]float32, 2)
	if err := device.Read(ctx, got, buf); err != nil {
		t.Fatal(err)
	}
	equal(t, got, 2, 4)
}

// TestTopKOfTemporaries checks that the batch can consume both results of one operation.
func TestTopKOfTemporaries(t *testing.T) {
	b := batch.New(openCPU(t))
	values, places := b.TopK(b.Upload([]float32{3, 9, 5, 7}, 1, 4), 2)
	equal(t, result(t, b, b.Add(b.Scale(values, 10), b.Cast(places, op.F32))), 91, 73)
}
