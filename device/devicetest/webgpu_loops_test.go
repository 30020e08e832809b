//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package devicetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// TestWebGPULoops: lavapipe ends loops that are long. No operation has a part of its terms for
// that, just below what kernels compute there and just above.
func TestWebGPULoops(t *testing.T) {
	dev := start(t, webGPU(t, "lavapipe"))
	ctx := t.Context()
	ones := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = 1
		}
		return x
	}
	type call struct {
		name string
		most int // terms
		run  func(n int) (got, want float32, err error)
	}
	var calls []call
	for _, s := range [][2]int{{1, 1}, {1, 33}, {8, 8}, {17, 3}} {
		calls = append(calls, call{fmt.Sprintf("matmul %v", s), 1 << 18, func(k int) (float32, float32, error) {
			y := make([]float32, s[0]*s[1])
			err := dev.MatMul(ctx, y, ones(s[0]*k), ones(k*s[1]), s[0], k, s[1])
			return y[len(y)-1], float32(k), err
		}})
	}
	calls = append(calls, call{"matvec", 1 << 18, func(k int) (float32, float32, error) {
		y := make([]float32, 5)
		err := dev.MatVec(ctx, y, ones(5*k), ones(k), 5, k)
		return y[4], float32(k), err
	}})
	for _, rows := range []int{1, 9} {
		calls = append(calls, call{fmt.Sprintf("matmul_q of %d rows", rows), 1 << 16, func(k int) (float32, float32, error) {
			k = (k + 31) / 32 * 32
			blocks := make([]byte, 3*k/32*34) // of Q8_0: a half float 1, 32 integers
			for i := range blocks {
				switch i % 34 {
				case 0:
				case 1:
					blocks[i] = 0x3c
				default:
					blocks[i] = 1
				}
			}
			w, err := device.UploadBlocks(ctx, dev, blocks, op.Q8_0, 3, k)
			if err != nil {
				return 0, 0, err
			}
			defer w.Close()
			b := batch.New(dev)
			y := b.MatMulQ(b.Upload(ones(rows*k), rows, k), b.Use(w))
			if err := b.Execute(ctx); err != nil {
				return 0, 0, err
			}
			got, err := b.Read(ctx, y)
			if err != nil {
				return 0, 0, err
			}
			return slices.Min(got), float32(k), nil
		}})
	}
	for _, o := range []int{1, 9} {
		calls = append(calls, call{fmt.Sprintf("conv2d of %d windows", o), 1 << 16, func(c int) (float32, float32, error) {
			y := make([]float32, o)
			err := dev.Conv2D(ctx, y, ones(c), ones(o*c), nil, [4]int{1, c, 1, 1}, [4]int{o, c, 1, 1})
			return y[o-1], float32(c), err
		}})
	}
	for _, s := range [][2]int{{8, 1}, {32, 3}, {64, 1}, {64, 50}, {128, 1}, {256, 1}, {256, 64}} {
		d, queries := s[0], s[1]
		calls = append(calls, call{fmt.Sprintf("attention of %d queries in heads of %d", queries, d), min(1<<15, 1<<20/d), func(keys int) (float32, float32, error) {
			y, v := make([]float32, queries*d), make([]float32, keys*d)
			for i := range v {
				v[i] = float32(i / d % 4)
			}
			err := dev.Attention(ctx, y, make([]float32, queries*d), make([]float32, keys*d), v, device.AttentionSize{Heads: 1, Tq: queries, Tk: keys, Dim: d})
			return (slices.Min(y) + slices.Max(y)) / 2, 1.5, err
		}})
	}
	for _, c := range calls {
		for _, n := range []int{c.most - c.most/64, c.most, c.most + 4} {
			if got, want, err := c.run(n); err != nil || !(math.Abs(float64(got/want)-1) < 1e-5) {
				t.Errorf("%s, %d terms: %v, not %v; %v", c.name, n, got, want, err)
			}
		}
	}
	for _, n := range []int{1 << 22, 1<<22 + 4} {
		x, y, at := ones(n), make([]float32, 1), make([]int32, 1)
		x[n-1] = 2
		if err := dev.TopK(ctx, y, at, x, 1, n, 1); err != nil || int(at[0]) != n-1 {
			t.Errorf("topk of %d: element %d, %v", n, at[0], err)
		}
	}
}
