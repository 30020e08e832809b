package batch_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

func TestArange(t *testing.T) {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	f := make([]float32, 4)
	i, u, none := make([]int32, 4), make([]uint32, 4), []float32{}
	batch.ReadInto(b, b.Arange(b.Const(0.5), b.Const(-0.25), 4), f)
	batch.ReadInto(b, b.Arange(batch.Upload(b, []int32{5}), batch.Upload(b, []int32{-3}), 4), i)
	batch.ReadInto(b, b.Arange(batch.Upload(b, []uint32{1<<32 - 2}, 1), batch.Upload(b, []uint32{1}, 1), 4), u)
	batch.ReadInto(b, b.Arange(b.Const(0), b.Const(1), 0), none)
	if err := b.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(f, []float32{0.5, 0.25, 0, -0.25}) || !slices.Equal(i, []int32{5, 2, -1, -4}) || !slices.Equal(u, []uint32{1<<32 - 2, 1<<32 - 1, 0, 1}) {
		t.Error(f, i, u)
	}
}

// TestRandomMistakes checks that wrong calls do not panic.
func TestRandomMistakes(t *testing.T) {
	dev := open()
	defer dev.Close()
	for name, c := range map[string]struct {
		of   func(b *batch.Batch) batch.Value
		want error
	}{
		"key of 3":     {func(b *batch.Batch) batch.Value { return b.Uniform(batch.Upload(b, make([]uint32, 3)), 4) }, op.ErrShape},
		"key of f32":   {func(b *batch.Batch) batch.Value { return b.Normal(b.Upload(make([]float32, 2)), 4) }, op.ErrUnsupported},
		"no key":       {func(b *batch.Batch) batch.Value { return b.RandomBits(batch.Value{}, 4) }, nil},
		"extent of -1": {func(b *batch.Batch) batch.Value { return b.RandomBits(batch.Upload(b, make([]uint32, 2)), -1) }, op.ErrShape},
		"too many":     {func(b *batch.Batch) batch.Value { return b.Iota(batch.Upload(b, make([]uint32, 1)), -1) }, op.ErrShape},
		"start of 2":   {func(b *batch.Batch) batch.Value { return b.Iota(batch.Upload(b, make([]uint32, 2)), 5) }, op.ErrShape},
		"start of f32": {func(b *batch.Batch) batch.Value { return b.Iota(b.Const(0), 5) }, op.ErrUnsupported},
		"no start":     {func(b *batch.Batch) batch.Value { return b.Arange(batch.Value{}, b.Const(1), 5) }, nil},
	} {
		b := batch.New(dev)
		v := c.of(b)
		err := b.Execute(ctx, v)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := batch.New(dev)
	for _, s := range [][]int{{0}, {3, 0, 2}, {}} {
		key := batch.Upload(b, make([]uint32, 2))
		if err := b.Execute(ctx, b.Normal(key, s...)); err != nil {
			t.Errorf("%v: %v", s, err)
		}
		b.Reset()
	}
}
