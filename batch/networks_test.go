package batch_test

import (
	"errors"
	"math"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// TestNetworkMistakes checks that wrong calls do not panic, and give errors of the right kind.
func TestNetworkMistakes(t *testing.T) {
	dev := openCPU(t)
	type recording = func(b *batch.Batch, x batch.Value) // x is [2 4 6 6]
	const most = math.MaxInt
	for name, do := range map[string]recording{
		"window of nothing":      func(b *batch.Batch, x batch.Value) { b.MaxPool(x, nil) },
		"window of 0":            func(b *batch.Batch, x batch.Value) { b.MaxPool(x, []int{0}) },
		"window beyond":          func(b *batch.Batch, x batch.Value) { b.AvgPool(x, []int{7}) },
		"three windows":          func(b *batch.Batch, x batch.Value) { b.LpPool(x, []int{1, 2, 3}) },
		"negative stride":        func(b *batch.Batch, x batch.Value) { b.MaxPool(x, []int{2}, op.PoolOpts{Stride: []int{-1}}) },
		"negative pad":           func(b *batch.Batch, x batch.Value) { b.MaxPoolIndices(x, []int{2}, op.PoolOpts{Pad: []int{-1}}) },
		"vast pad":               func(b *batch.Batch, x batch.Value) { b.MaxPool(x, []int{2}, op.PoolOpts{Pad: []int{most}}) },
		"vast dilation":          func(b *batch.Batch, x batch.Value) { b.MaxPool(x, []int{most}, op.PoolOpts{Dilation: []int{most}}) },
		"power below 0":          func(b *batch.Batch, x batch.Value) { b.LpPool(x, []int{2}, op.PoolOpts{P: -1}) },
		"power NaN":              func(b *batch.Batch, x batch.Value) { b.LpPool(x, []int{2}, op.PoolOpts{P: float32(math.NaN())}) },
		"pool of a matrix":       func(b *batch.Batch, x batch.Value) { b.MaxPool(b.Reshape(x, 8, 36), []int{2}) },
		"adaptive to 0":          func(b *batch.Batch, x batch.Value) { b.AdaptiveAvgPool(x, []int{0}) },
		"adaptive to vast":       func(b *batch.Batch, x batch.Value) { b.AdaptiveMaxPool(x, []int{most}) },
		"other channels":         func(b *batch.Batch, x batch.Value) { b.Conv(x, b.Const(1, 3, 3, 2, 2), batch.None) },
		"other ranks":            func(b *batch.Batch, x batch.Value) { b.Conv(x, b.Const(1, 3, 4, 2), batch.None) },
		"negative groups":        func(b *batch.Batch, x batch.Value) { b.Conv(x, x, x, op.ConvOpts{Groups: -4}) },
		"bias of other channels": func(b *batch.Batch, x batch.Value) { b.ConvTranspose(x, b.Const(1, 4, 3, 2, 2), b.Const(1, 2)) },
		"transposed, all padding": func(b *batch.Batch, x batch.Value) {
			b.ConvTranspose(x, b.Const(1, 4, 3, 2, 2), batch.None, op.ConvOpts{Pad: []int{9}})
		},
		"transposed, vast stride": func(b *batch.Batch, x batch.Value) {
			b.ConvTranspose(x, b.Const(1, 4, 3, 2, 2), batch.None, op.ConvOpts{Stride: []int{1 << 30}})
		},
		"transposed, vast padding": func(b *batch.Batch, x batch.Value) {
			b.ConvTranspose(x, b.Const(1, 4, 3, 2, 2), batch.None, op.ConvOpts{OutPad: []int{most}})
		},
		"columns of other places": func(b *batch.Batch, x batch.Value) { b.Fold(b.Reshape(x, 2, 4, 36), []int{5, 5}, []int{2}) },
		"resized to nothing":      func(b *batch.Batch, x batch.Value) { b.Resize(x, []int{0, 2}) },
		"resized to vast":         func(b *batch.Batch, x batch.Value) { b.Resize(x, []int{most / 2, most / 2}) },
		"resized by NaN":          func(b *batch.Batch, x batch.Value) { b.Resize(x, nil, op.ResizeOpts{Scale: []float64{math.NaN()}}) },
		"resized by tiny": func(b *batch.Batch, x batch.Value) {
			b.Resize(x, []int{4}, op.ResizeOpts{Scale: []float64{1e-300}, Antialias: true})
		},
		"no region": func(b *batch.Batch, x batch.Value) {
			b.Resize(x, []int{4}, op.ResizeOpts{Coordinates: op.CropAndResize})
		},
		"more sizes than axes": func(b *batch.Batch, x batch.Value) { b.Resize(x, []int{1, 2, 3, 4, 5}) },
		"no such mode":         func(b *batch.Batch, x batch.Value) { b.Resize(x, []int{4}, op.ResizeOpts{Mode: 99}) },
		"grid of three":        func(b *batch.Batch, x batch.Value) { b.GridSample(x, b.Const(0, 2, 3, 3, 3)) },
		"statistics of others": func(b *batch.Batch, x batch.Value) {
			b.BatchNorm(x, b.Const(0, 3), b.Const(1, 4), batch.None, batch.None)
		},
		"groups of 3":            func(b *batch.Batch, x batch.Value) { b.GroupNorm(x, 3, batch.None, batch.None) },
		"neighbours of 0":        func(b *batch.Batch, x batch.Value) { b.LocalResponseNorm(x, 0) },
		"norm below 0":           func(b *batch.Batch, x batch.Value) { b.Normalize(x, op.NormalizeOpts{P: -2}) },
		"norm along axis 9":      func(b *batch.Batch, x batch.Value) { b.Normalize(x, op.NormalizeOpts{Along: op.Axes(9)}) },
		"hardmax along 9":        func(b *batch.Batch, x batch.Value) { b.Hardmax(x, op.Axes(9)) },
		"halves along 9":         func(b *batch.Batch, x batch.Value) { b.GLU(x, 9) },
		"halves of 3":            func(b *batch.Batch, x batch.Value) { b.GLU(b.Slice(x, 1, 0, 3, 1), 1) },
		"losses of other shapes": func(b *batch.Batch, x batch.Value) { b.MSE(x, b.Const(1)) },
		"delta below 0":          func(b *batch.Batch, x batch.Value) { b.Huber(x, x, op.LossOpts{Delta: -1}) },
		"labels of other shapes": func(b *batch.Batch, x batch.Value) { b.CrossEntropy(x, batch.Upload(b, []int32{1, 2}), batch.None) },
		"weights of others": func(b *batch.Batch, x batch.Value) {
			b.NLLLoss(b.Reshape(x, 2, 144), batch.Upload(b, []int32{1, 2}), b.Const(1, 3))
		},
		"recurrent of four axes": func(b *batch.Batch, x batch.Value) { b.RNN(x, x, x, batch.None, batch.None) },
		"other gates": func(b *batch.Batch, x batch.Value) {
			b.LSTM(b.Const(0, 3, 2, 5), b.Const(0, 1, 9, 5), b.Const(0, 1, 9, 3), batch.None, batch.None, batch.None, batch.None)
		},
		"two directions in reverse": func(b *batch.Batch, x batch.Value) {
			b.GRU(b.Const(0, 3, 2, 5), b.Const(0, 2, 9, 5), b.Const(0, 2, 9, 3), batch.None, batch.None, op.RecurrentOpts{Reverse: true})
		},
		"scales of others": func(b *batch.Batch, x batch.Value) { b.Quantize(x, b.Const(1, 5), batch.None) },
		"scales along axis 9": func(b *batch.Batch, x batch.Value) {
			b.Dequantize(x, b.Const(1, 4), batch.None, op.QuantizeOpts{Axis: 9})
		},
		"two option structs": func(b *batch.Batch, x batch.Value) { b.MaxPool(x, []int{2}, op.PoolOpts{}, op.PoolOpts{}) },
	} {
		b := batch.New(dev)
		do(b, b.Upload(make([]float32, 2*4*6*6), 2, 4, 6, 6))
		if err := b.Err(); !errors.Is(err, device.ErrShape) && !(name == "no such mode" && errors.Is(err, device.ErrUnsupported)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestResizeFarOutside checks that positions far beyond an axis are clamped to its ends and need no memory.
func TestResizeFarOutside(t *testing.T) {
	b := batch.New(openCPU(t))
	x := b.Upload([]float32{1, 2, 3, 4}, 4)
	y := b.Resize(x, []int{4}, op.ResizeOpts{Coordinates: op.CropAndResize, Region: [][2]float64{{1e6, 2e6}}, Outside: 7})
	equal(t, result(t, b, y), 7, 7, 7, 7)
}
