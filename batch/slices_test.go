package batch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

func ExampleBatch_UploadSlices() {
	ctx := context.Background()
	dev, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	b := batch.New(dev)
	y := b.Scale(b.UploadSlices([][]float32{{1, 2, 3}, {4, 5, 6}}), 10)
	if err := b.Execute(ctx); err != nil {
		fmt.Println(err)
		return
	}
	rows, err := b.ReadSlices(ctx, y)
	fmt.Println(rows, err)
	// Output: [[10 20 30] [40 50 60]] <nil>
}

func ExampleBatch_Einsum() {
	ctx := context.Background()
	dev, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{1, 2, 3, 4}, 2, 2)
	y := b.Einsum("ij,kj->ik", x, x) // x times its transposed
	if err := b.Execute(ctx); err != nil {
		fmt.Println(err)
		return
	}
	out, err := batch.Read[float32](ctx, b, y)
	fmt.Println(out, err)
	// Output: [5 11 11 25] <nil>
}

// TestArrayMistakes checks that wrong calls return an ErrShape with the position, and never panic.
func TestArrayMistakes(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const most = 1<<31 - 1
	for name, f := range map[string]func(b *batch.Batch, x batch.Value){
		"no label":                  func(b *batch.Batch, x batch.Value) { b.Einsum("i1->i", x) },
		"unknown result":            func(b *batch.Batch, x batch.Value) { b.Einsum("ij->ik", x) },
		"result twice":              func(b *batch.Batch, x batch.Value) { b.Einsum("ij->ii", x) },
		"too few operands":          func(b *batch.Batch, x batch.Value) { b.Einsum("ij,jk", x) },
		"too many operands":         func(b *batch.Batch, x batch.Value) { b.Einsum("ij", x, x) },
		"no operands":               func(b *batch.Batch, x batch.Value) { b.Einsum("") },
		"too few labels":            func(b *batch.Batch, x batch.Value) { b.Einsum("i->i", x) },
		"too many labels":           func(b *batch.Batch, x batch.Value) { b.Einsum("ijk->i", x) },
		"other extents":             func(b *batch.Batch, x batch.Value) { b.Einsum("ij,jk->ik", x, x) },
		"two ellipses":              func(b *batch.Batch, x batch.Value) { b.Einsum("...i...->i", x) },
		"ellipsis lost":             func(b *batch.Batch, x batch.Value) { b.Einsum("...i->i", x) },
		"diagonal of a rectangle":   func(b *batch.Batch, x batch.Value) { b.Einsum("ii", x) },
		"two arrows":                func(b *batch.Batch, x batch.Value) { b.Einsum("ij->j->i", x) },
		"tensordot extents":         func(b *batch.Batch, x batch.Value) { b.Tensordot(x, x, []int{0}, []int{1}) },
		"tensordot twice":           func(b *batch.Batch, x batch.Value) { b.Tensordot(x, x, []int{0, 0}, []int{0, 0}) },
		"tensordot pairs":           func(b *batch.Batch, x batch.Value) { b.Tensordot(x, x, []int{0}, nil) },
		"cross":                     func(b *batch.Batch, x batch.Value) { b.Cross(x, x, 0) },
		"eye":                       func(b *batch.Batch, x batch.Value) { b.Eye(-1, 2, 0) },
		"tril of a vector":          func(b *batch.Batch, x batch.Value) { b.Tril(b.Reshape(x, -1), 0) },
		"diag_embed":                func(b *batch.Batch, x batch.Value) { b.DiagEmbed(x, -most-1) },
		"linspace":                  func(b *batch.Batch, x batch.Value) { b.Linspace(b.Const(0), b.Const(1), -1) },
		"one_hot":                   func(b *batch.Batch, x batch.Value) { b.OneHot(batch.Upload(b, []int32{1}), 3, 5) },
		"meshgrid":                  func(b *batch.Batch, x batch.Value) { b.Meshgrid(x, x) },
		"move_axis":                 func(b *batch.Batch, x batch.Value) { b.MoveAxis(x, 0, 2) },
		"chunk":                     func(b *batch.Batch, x batch.Value) { b.Chunk(x, 0, 0) },
		"repeat":                    func(b *batch.Batch, x batch.Value) { b.Repeat(x, 0, -1) },
		"repeat beyond all memory":  func(b *batch.Batch, x batch.Value) { b.Repeat(x, 0, most); b.Repeat(b.Repeat(x, 0, most), 1, most) },
		"tile":                      func(b *batch.Batch, x batch.Value) { b.Tile(x, 1, -1) },
		"roll":                      func(b *batch.Batch, x batch.Value) { b.Roll(x, 5, 1) },
		"rot90":                     func(b *batch.Batch, x batch.Value) { b.Rot90(x, 1, 0, -2) },
		"diff":                      func(b *batch.Batch, x batch.Value) { b.Diff(x, 0, -1) },
		"reflect":                   func(b *batch.Batch, x batch.Value) { b.PadMode(x, 0, 2, 0, batch.PadReflect) },
		"wrap":                      func(b *batch.Batch, x batch.Value) { b.PadMode(x, 0, 0, 3, batch.PadWrap) },
		"diagonal":                  func(b *batch.Batch, x batch.Value) { b.Diagonal(x, 0, 1, -1) },
		"window":                    func(b *batch.Batch, x batch.Value) { b.SlidingWindow(x, 0, 3, 1, 1) },
		"window with a great gap":   func(b *batch.Batch, x batch.Value) { b.SlidingWindow(x, 0, 2, 1, most) },
		"window of nothing":         func(b *batch.Batch, x batch.Value) { b.SlidingWindow(x, 0, 0, 1, 1) },
		"pixel_shuffle":             func(b *batch.Batch, x batch.Value) { b.PixelShuffle(b.Reshape(x, 3, 2, 1), 2) },
		"space_to_depth":            func(b *batch.Batch, x batch.Value) { b.SpaceToDepth(b.Reshape(x, 3, 2, 1), 2) },
		"unfold":                    func(b *batch.Batch, x batch.Value) { b.Unfold(b.Reshape(x, 1, 2, 3), []int{3, 3}) },
		"fold":                      func(b *batch.Batch, x batch.Value) { b.Fold(x, []int{4, 4}, []int{3, 3}) },
		"unfold without channels":   func(b *batch.Batch, x batch.Value) { b.Unfold(x, []int{1, 1}) },
		"unfold along no axis":      func(b *batch.Batch, x batch.Value) { b.Unfold(x, nil) },
		"fold of a vast window":     func(b *batch.Batch, x batch.Value) { b.Fold(x, []int{most / 8, most / 8}, []int{most / 8}) },
		"fold with other strides":   func(b *batch.Batch, x batch.Value) { b.Fold(x, []int{4}, []int{2}, op.UnfoldOpts{Stride: []int{1, 1}}) },
		"slices of other lengths":   func(b *batch.Batch, x batch.Value) { b.UploadSlices([][]float32{{1}, {1, 2}}) },
		"kron of too many extents":  func(b *batch.Batch, x batch.Value) { b.Kron(b.Reshape(x, 1, 1, 1, 2, 3), x) },
		"a value that is not there": func(b *batch.Batch, x batch.Value) { b.Tile(batch.Value{}, 2) },
	} {
		b := batch.New(dev)
		f(b, b.Upload(make([]float32, 6), 2, 3))
		if err := b.Err(); !errors.Is(err, device.ErrShape) {
			t.Errorf("%s: %v, which is no ErrShape", name, err)
		}
	}
}
