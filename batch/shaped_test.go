package batch_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

func TestReshapeMovesNothing(t *testing.T) {
	ctx := context.Background()
	b := batch.New(openCPU(t))
	x := b.Upload([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	y := b.Sum(b.Reshape(x, 3, -1), op.Axes(-1))
	if err := b.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	out, err := batch.Read[float32](ctx, b, y)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, out, 3, 7, 11)

	for _, s := range [][]int{{4}, {-1, -1}, {4, -1}, {-2, 3}, {1, 1, 1, 1, 1, 1, 1, 1, 6}} {
		b.Reset()
		b.Reshape(b.Upload(make([]float32, 6)), s...)
		if err := b.Execute(ctx); !errors.Is(err, device.ErrShape) {
			t.Errorf("reshape to %v: %v", s, err)
		}
	}
}

func TestTopKGivesValuesAndColumns(t *testing.T) {
	ctx := context.Background()
	b := batch.New(openCPU(t))
	nan := float32(math.NaN())
	x := b.Upload([]float32{3, 9, 4, 9, 1, nan, 2, -1}, 2, 4)
	v, i := b.TopK(x, 2)
	if err := b.Execute(ctx, v, i); err != nil {
		t.Fatal(err)
	}
	values, err := batch.Read[float32](ctx, b, v)
	if err != nil {
		t.Fatal(err)
	}
	columns, err := batch.Read[int32](ctx, b, i)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, values[:2], 9, 9)
	if values[2] == values[2] || values[3] != 2 {
		t.Errorf("got %v, want NaN 2", values[2:])
	}
	for j, want := range []int32{1, 3, 1, 2} {
		if columns[j] != want {
			t.Fatalf("columns %v, want [1 3 1 2]", columns)
		}
	}
	for _, k := range []int{-1, 5} {
		b.Reset()
		b.TopK(b.Upload(make([]float32, 4)), k)
		if err := b.Execute(ctx); !errors.Is(err, device.ErrShape) {
			t.Errorf("top %d of 4: %v", k, err)
		}
	}
}
