package batch_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

func TestInt64(t *testing.T) {
	dev := openCPU(t)
	b := batch.New(dev)
	x := batch.Upload(b, []int64{math.MinInt32, -1, 0, math.MaxInt32}, 2, 2)
	if x.Type() != op.I32 || !x.Shape().Equal(op.Shape{2, 2}) {
		t.Fatalf("%v, not i32 [2 2]", x)
	}
	y := b.Add(x, batch.Upload(b, []int64{1}))
	u := b.Cast(x, op.U32)
	plan, err := b.Compile(t.Context(), y)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]int32, 4)
	if err := plan.Run(t.Context(), batch.BindInput(x, []int64{5, 6, 7, -8}), batch.BindOutput(y, got)); err != nil || !slices.Equal(got, []int32{6, 7, 8, -7}) {
		t.Errorf("%v, %v", got, err)
	}
	var e *batch.RangeError
	if err := plan.Run(t.Context(), batch.BindInput(x, []int64{5, 1 << 31, 7, 8})); !errors.As(err, &e) || e.Index != 1 || e.Value != 1<<31 {
		t.Errorf("set: %v", err)
	}
	if err := b.Execute(t.Context(), y, u); err != nil {
		t.Fatal(err)
	}
	if v, err := batch.Read[int64](t.Context(), b, y); err != nil || !slices.Equal(v, []int64{math.MinInt32 + 1, 0, 1, math.MinInt32}) {
		t.Errorf("i32 as int64: %v, %v", v, err)
	}
	if v, err := batch.Read[int64](t.Context(), b, u); err != nil || !slices.Equal(v, []int64{1 << 31, 1<<32 - 1, 0, math.MaxInt32}) {
		t.Errorf("u32 as int64: %v, %v", v, err)
	}
	if _, err := batch.Read[float32](t.Context(), b, y); !errors.Is(err, device.ErrUnsupported) {
		t.Errorf("i32 as float32: %v", err)
	}
	for _, v := range []int64{math.MinInt32 - 1, math.MaxInt32 + 1, math.MaxInt64, math.MinInt64} {
		b := batch.New(dev)
		batch.Upload(b, []int64{0, 1, v})
		if err := b.Err(); !errors.As(err, &e) || e.Index != 2 || e.Value != v || !errors.Is(err, device.ErrUnsupported) {
			t.Errorf("%d: %v", v, err)
		}
	}
}
