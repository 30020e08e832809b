package batch_test

import (
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// TestSumOfEmptyRowsOfABroadcast reduces an empty array that is computed from broadcast
// operands.
func TestSumOfEmptyRowsOfABroadcast(t *testing.T) {
	dev := openCPU(t)
	for _, shape := range []op.Shape{{0}, {1, 0}, {3, 1}, {1}, {3, 0}} {
		for _, rows := range []bool{false, true} {
			n, _ := shape.Size()
			b := batch.New(dev)
			x := b.Add(b.Upload(nil, 3, 0), b.Upload(make([]float32, n), shape...))
			sum, want := b.Sum(x), []float32{0}
			if rows {
				sum, want = b.Sum(x, op.Axes(-1)), []float32{0, 0, 0}
			}
			t.Run(fmt.Sprintf("%v, rows %v", shape, rows), func(t *testing.T) { equal(t, result(t, b, sum), want...) })
		}
	}
}

// TestLaunchFillsAScalar checks that an array of Out without extents is a scalar that operations
// accept.
func TestLaunchFillsAScalar(t *testing.T) {
	dev := openCPU(t)
	k, err := dev.Kernel(t.Context(), kernel.New("seven", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(1, 1, 1)
		kernel.Output[kernel.F32](b, "y").Set(b.Lane(), kernel.F(7))
	}))
	if err != nil {
		t.Fatal(err)
	}
	b := batch.New(dev)
	y := b.Launch(k, kernel.Grid(1), nil, batch.Out(op.F32))[0]
	if s := y.Shape(); s == nil || len(s) != 0 {
		t.Errorf("the shape of a scalar is %#v", s)
	}
	equal(t, result(t, b, b.Add(y, b.Upload([]float32{1, 2}))), 8, 9)

	buf, err := dev.NewBuffer(t.Context(), op.F32)
	if err != nil {
		t.Fatal(err)
	}
	b = batch.New(dev)
	b.Store(buf, 0, b.Launch(k, kernel.Grid(1), nil, batch.Out(op.F32))[0])
	equal(t, result(t, b, b.Add(b.Use(buf), b.Upload([]float32{1, 2}))), 8, 9)
	got := []float32{0}
	if err := device.Read(t.Context(), got, buf); err != nil || got[0] != 7 {
		t.Errorf("%v, %v", got, err)
	}
}
