//go:build !race

// Under the race detector a sync.Pool drops items at random, so allocations are not counted.

package simd

import (
	"runtime"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/workers"
)

func TestGemmAllocates(t *testing.T) {
	p := workers.New(runtime.NumCPU())
	defer p.Close()
	eachGemmLevel(t, func(t *testing.T) {
		for _, s := range [][3]int{{1, 64, 64}, {200, 200, 200}, {1, 300, 4000}, {8, 1000, 1000}, {1000, 300, 2}} {
			a, b, c := make([]float32, s[0]*s[1]), make([]float32, s[1]*s[2]), make([]float32, s[0]*s[2])
			g := Gemm{M: s[0], K: s[1], N: s[2], A: a, B: b, C: c}
			if n := testutil.Allocations(10, func() { g.Run(p) }); n > 0 {
				t.Errorf("%v: %v allocations", s, n)
			}
		}
	})
}

func TestConv2DAllocates(t *testing.T) {
	p := workers.New(runtime.NumCPU())
	defer p.Close()
	for _, o := range []int{1, 16} {
		c := Conv2D{N: 1, C: 3, H: 100, W: 100, O: o, KH: 3, KW: 3, PadH: 1, PadW: 1,
			X: make([]float32, 30000), Weights: make([]float32, 27*o), Y: make([]float32, 10000*o)}
		if n := testutil.Allocations(10, func() { c.Run(p) }); n > 0 {
			t.Errorf("%d windows: %v allocations", o, n)
		}
	}
}

func TestReduceAllocatesNothing(t *testing.T) {
	p := workers.New(0)
	defer p.Close()
	x, dst := make([]float32, 1<<20), make([]float32, 1<<10)
	index := make([]int32, 1<<10)
	o := RowOp{Kind: RowSoftmax}
	for name, f := range map[string]func(){
		"short":       func() { Reduce(p, ReduceSum, x[:100], nil) },
		"long":        func() { Reduce(p, ReduceVar, x, nil) },
		"rows":        func() { ReduceRows(p, ReduceSum, 0, dst, x, nil, 1<<10, 1<<10) },
		"means":       func() { ReduceRows(p, ReduceMean, 0, dst, x, nil, 1<<10, 1<<6) },
		"index":       func() { ReduceRowsIndex(p, ReduceArgMax, index, x, 1<<10, 1<<10) },
		"softmax":     func() { o.Rows(p, x, x, 1<<10, 1<<10) },
		"long row":    func() { o.Rows(p, x, x, 1, 1<<20) },
		"one row":     func() { o.Row(x[:100], x[:100]) },
		"top-k":       func() { TopK(p, dst, nil, x, 1<<5, 1<<15, 10) },
		"gather":      func() { Gather(p, x, x, index[:1], 1, 1, 16, 0) },
		"rope":        func() { Rope{Positions: 4, Dim: 64}.Run(p, x, x) },
		"transposing": func() { Transpose(p, x[:1<<19], x[1<<19:], 1<<9, 1<<10) },
	} {
		if n := testutil.Allocations(10, f); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
