//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package devicetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// TestWebGPULoops checks that all operations add all of their terms although lavapipe ends long loops without an
// error. The lengths are below and above the largest length for which kernels are used there.
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
		most int // numbers of terms around the largest number for which kernels are used
		run  func(n int) (got, want float32, err error)
	}
	var calls []call
	for _, s := range [][2]int{{1, 1}, {1, 33}, {8, 8}, {17, 3}} {
		calls = append(calls, call{fmt.Sprintf("matmul %v", s), 208_000, func(k int) (float32, float32, error) {
			y := make([]float32, s[0]*s[1])
			err := dev.MatMul(ctx, y, ones(s[0]*k), ones(k*s[1]), nil, s[0], k, s[1])
			return y[len(y)-1], float32(k), err
		}})
	}
	for _, s := range [][2]int{{1, 1}, {8, 8}, {17, 3}} {
		calls = append(calls, call{fmt.Sprintf("matmul of half floats %v", s), 173_500, func(k int) (float32, float32, error) {
			b := batch.New(dev)
			small := ones(s[0] * k)
			for i := range small {
				small[i] = 0x1p-10
			}
			a := b.Cast(b.Upload(small, s[0], k), op.F16)
			y := b.Cast(b.MatMul(a, b.Cast(b.Upload(ones(k*s[1]), k, s[1]), op.F16), batch.None), op.F32)
			if err := b.Execute(ctx); err != nil {
				return 0, 0, err
			}
			got, err := batch.Read[float32](ctx, b, y)
			if err != nil {
				return 0, 0, err
			}
			half := func(v float32) float32 { return op.F16ToFloat32(op.F16FromFloat32(v)) }
			return half(got[len(got)-1]), half(float32(k) * 0x1p-10), nil
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
			blocks := make([]byte, 3*k/32*34) // a block of Q8_0: the half float 1, and 32 integers
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
			y := b.MatMulQ(b.Upload(ones(rows*k), rows, k), b.Use(w), batch.None)
			if err := b.Execute(ctx); err != nil {
				return 0, 0, err
			}
			got, err := batch.Read[float32](ctx, b, y)
			if err != nil {
				return 0, 0, err
			}
			return slices.Min(got), float32(k), nil
		}})
	}
	for _, o := range []int{1, 9} {
		calls = append(calls, call{fmt.Sprintf("conv2d of %d windows", o), 173_000, func(c int) (float32, float32, error) {
			y := make([]float32, o)
			err := dev.Conv2D(ctx, y, ones(c), ones(o*c), nil, [4]int{1, c, 1, 1}, [4]int{o, c, 1, 1})
			return y[o-1], float32(c), err
		}})
	}
	for _, s := range [][2]int{{8, 1}, {32, 3}, {33, 1}, {34, 2}, {64, 1}, {64, 50}, {128, 1}} {
		d, queries := s[0], s[1]
		calls = append(calls, call{fmt.Sprintf("attention of %d queries in heads of %d", queries, d), map[bool]int{true: 15_500, false: 10_300}[d <= 32], func(keys int) (float32, float32, error) {
			keys = keys / 4 * 4
			y, v := make([]float32, queries*d), make([]float32, keys*d)
			for i := range v {
				v[i] = float32(i / d % 4)
			}
			err := dev.Attention(ctx, y, make([]float32, queries*d), make([]float32, keys*d), v, device.AttentionSize{Heads: 1, Tq: queries, Tk: keys, Dim: d})
			return (slices.Min(y) + slices.Max(y)) / 2, 1.5, err
		}})
	}
	quarter := rand.IntN(4)
	for i, c := range calls {
		lengths := []int{c.most / 2, c.most * 9 / 10, c.most, c.most * 11 / 10, 2 * c.most}
		if testing.Short() { // one length of every fourth call
			if i%4 != quarter {
				continue
			}
			lengths = []int{lengths[rand.IntN(len(lengths))]}
		}
		for _, n := range lengths {
			if got, want, err := c.run(n); err != nil || !(math.Abs(float64(got/want)-1) < 1e-5) {
				t.Errorf("%s, %d terms: %v, not %v; %v", c.name, n, got, want, err)
			}
		}
	}
	testLongTopK(t, dev)
}

// testLongTopK finds the greatest elements of rows around the lengths at which kernels compute too
// many iterations.
func testLongTopK(t *testing.T, dev *device.Device) {
	// The kernels either search all elements for each result, or compare all elements that a lane holds.
	for _, c := range [][2]int{{1100, 900}, {1100, 1007}, {1100, 1008}, {1100, 1009}, {1100, 1100}, {2048, 1009}, {4096, 700}, {4096, 800}, {4096, 900},
		{1 << 20, 12}, {1 << 20, 20}, {1 << 20, 50}, {1 << 22, 1}, {1 << 22, 3}} {
		if testing.Short() && rand.IntN(10) > 0 {
			continue
		}
		n, k := c[0], c[1]
		x, y, at := make([]float32, n), make([]float32, k), make([]int32, k)
		order := rand.Perm(n)
		for i, place := range order {
			x[place] = float32(-i)
		}
		if err := dev.TopK(t.Context(), y, at, x, 1, n, k); err != nil {
			t.Errorf("topk, %d of %d: %v", k, n, err)
		}
		for i := range k {
			if int(at[i]) != order[i] {
				t.Errorf("topk, %d of %d: number %d is element %d, not %d", k, n, i, at[i], order[i])
				break
			}
		}
	}
}
