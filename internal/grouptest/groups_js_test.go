//go:build !nowebgpu

package grouptest

import (
	"context"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// TestMethodsLinkKernels calls a method of each operation that is not elementwise. Before the call of
// the first method of its group the operation has no kernels, and afterwards it has. A method that
// does not link its group would be computed by the reference, with the right result and slowly.
func TestMethodsLinkKernels(t *testing.T) {
	ctx := context.Background()
	dev, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	x, y, z, indices := make([]float32, 16), make([]float32, 16), make([]float32, 16), make([]int32, 16)
	first := map[*op.Operation]bool{op.Sum: true, op.Softmax: true, op.MatMul: true, op.Conv2D: true, op.Attention: true, op.Sort: true, op.Gather: true}
	for _, c := range []struct {
		o    *op.Operation
		call func() error
	}{
		{op.Sum, func() error { _, err := dev.Sum(ctx, x); return err }},
		{op.ArgMax, func() error { _, err := dev.ArgMax(ctx, x); return err }},
		{op.Var, func() error { return device.Reduce(ctx, dev, y[:4], op.Var, op.VarOpts{}.Attrs(), 4, 4, x) }},
		{op.Softmax, func() error { return dev.Softmax(ctx, y, x, 4, 4) }},
		{op.Cumsum, func() error { return dev.Cumsum(ctx, y, x, 4, 4) }},
		{op.MatMul, func() error { return dev.MatMul(ctx, z, x, y, nil, 4, 4, 4) }},
		{op.MatVec, func() error { return dev.MatVec(ctx, z[:4], x, y[:4], 4, 4) }},
		{op.Conv2D, func() error {
			return dev.Conv2D(ctx, z[:4], x, y[:9], nil, [4]int{1, 1, 4, 4}, [4]int{1, 1, 3, 3})
		}},
		{op.Attention, func() error {
			return dev.Attention(ctx, z, x, y, y, device.AttentionSize{Heads: 2, KVHeads: 2, Tq: 2, Tk: 2, Dim: 4})
		}},
		{op.Rope, func() error { return dev.Rope(ctx, z, x, 2, 2, 4) }},
		{op.Sort, func() error { return dev.Sort(ctx, z, indices, x, 4, 4) }},
		{op.TopK, func() error { return dev.TopK(ctx, z[:4], indices[:4], x, 4, 4, 1) }},
		{op.Gather, func() error { return dev.Gather(ctx, z[:4], x, indices[:1], 4, 4) }},
		{op.Transpose, func() error { return dev.Transpose(ctx, z, x, 4, 4) }},
	} {
		if first[c.o] && portable.Has(c.o) {
			t.Errorf("%v has kernels before a method of its group is called", c.o)
		}
		if err := c.call(); err != nil {
			t.Errorf("%v: %v", c.o, err)
		}
		if !portable.Has(c.o) {
			t.Errorf("%v has no kernels after its method is called", c.o)
		}
	}
	if portable.Has(op.Cholesky) {
		t.Error("an operation without a method has kernels")
	}
	if _, err := dev.Tune(ctx, op.Cholesky, op.Attrs{}, []op.DType{op.F32}, []op.Shape{{4, 4}}); err == nil {
		t.Error("the CPU has several kernels of cholesky")
	}
	if !portable.Has(op.Cholesky) {
		t.Error("Tune does not link all kernels")
	}
}
