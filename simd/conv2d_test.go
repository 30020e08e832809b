package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/internal/workers"
)

// checkConv runs the convolution on random images and compares it with sums in
// float64, within the error of a sum in float32 in any order.
func checkConv(t *testing.T, c Conv2D, p *workers.Pool, bias, epilogue bool) {
	t.Helper()
	h, w := c.OutSize()
	d := c
	d.defaults()
	channels, windows := c.C/d.Groups, c.O/d.Groups
	var checks [4]func()
	c.X, checks[0] = fenced(t, c.N*c.C*c.H*c.W, normal)
	c.Weights, checks[1] = fenced(t, c.O*channels*c.KH*c.KW, normal)
	c.Y, checks[2] = fenced(t, c.N*c.O*h*w, nan)
	checks[3] = func() {}
	if bias {
		c.Bias, checks[3] = fenced(t, c.O, normal)
	}
	var mu sync.Mutex
	seen := make([]int, len(c.Y))
	if epilogue {
		c.Epilogue = func(row []float32, i, j int) {
			mu.Lock()
			defer mu.Unlock()
			for q := range row {
				seen[i*h*w+j+q]++
				row[q] = -2*row[q] + float32(i)
			}
		}
	}
	c.Run(p)
	for _, check := range checks {
		check()
	}
	for at, got := range c.Y {
		x, y, o, n := at%w, at/w%h, at/(w*h)%c.O, at/(w*h*c.O)
		var sum, size float64
		if bias {
			sum = float64(c.Bias[o])
			size = math.Abs(sum)
		}
		for ch := range channels {
			for i := range c.KH {
				for j := range c.KW {
					iy, ix := y*d.StrideH+i*d.DilationH-c.PadH, x*d.StrideW+j*d.DilationW-c.PadW
					if iy < 0 || iy >= c.H || ix < 0 || ix >= c.W {
						continue
					}
					v := float64(c.X[((n*c.C+o/windows*channels+ch)*c.H+iy)*c.W+ix]) * float64(c.Weights[((o*channels+ch)*c.KH+i)*c.KW+j])
					sum += v
					size += math.Abs(v)
				}
			}
		}
		bound := size * (4 + math.Sqrt(float64(channels*c.KH*c.KW))) * 0x1p-24
		if epilogue {
			if seen[at] != 1 {
				t.Fatalf("%+v: the epilogue saw element %d %d times", d, at, seen[at])
			}
			sum = -2*sum + float64(n*c.O+o)
			bound = 2*bound + math.Abs(sum)*0x1p-23
		}
		if !(math.Abs(float64(got)-sum) <= bound) {
			c.X, c.Weights, c.Y, c.Bias, c.Epilogue = nil, nil, nil, nil, nil
			t.Fatalf("%+v: image %d, plane %d, row %d, column %d: got %v, want %v within %.3g", c, n, o, y, x, got, sum, bound)
		}
	}
}

func TestConv2D(t *testing.T) {
	p := workers.New(4)
	defer p.Close()
	eachGemmLevel(t, func(t *testing.T) {
		for _, c := range []Conv2D{
			{N: 1, C: 1, H: 5, W: 7, O: 1, KH: 3, KW: 3},
			{N: 2, C: 1, H: 40, W: 150, O: 1, KH: 3, KW: 3, PadH: 1, PadW: 1},
			{N: 1, C: 1, H: 30, W: 129, O: 2, KH: 5, KW: 5, PadH: 2, PadW: 2},
			{N: 1, C: 3, H: 33, W: 47, O: 3, KH: 3, KW: 3, PadH: 1, PadW: 1, Groups: 3},
			{N: 2, C: 3, H: 20, W: 31, O: 4, KH: 7, KW: 3, PadH: 3, PadW: 0, DilationH: 2},
			{N: 1, C: 2, H: 20, W: 31, O: 2, KH: 3, KW: 3, PadH: 5, PadW: 6, StrideH: 4},
			{N: 1, C: 2, H: 20, W: 31, O: 2, KH: 3, KW: 3, PadH: 1, PadW: 1, StrideW: 2},
			{N: 1, C: 1, H: 3, W: 3, O: 1, KH: 9, KW: 9, PadH: 4, PadW: 4},
			{N: 2, C: 16, H: 14, W: 14, O: 20, KH: 3, KW: 3, PadH: 1, PadW: 1},
			{N: 1, C: 60, H: 9, W: 9, O: 33, KH: 3, KW: 3, PadH: 1, PadW: 1, StrideH: 2, StrideW: 2},
			{N: 2, C: 12, H: 17, W: 40, O: 18, KH: 1, KW: 1},
			{N: 1, C: 12, H: 17, W: 40, O: 18, KH: 1, KW: 1, StrideW: 3, StrideH: 2},
			{N: 1, C: 8, H: 10, W: 80, O: 12, KH: 2, KW: 3, PadW: 40, DilationW: 17, Groups: 2},
			{N: 1, C: 6, H: 1, W: 50, O: 6, KH: 1, KW: 4, PadW: 3},
			{N: 1, C: 2, H: 3, W: 5, O: 6, KH: 2, KW: 3, PadW: 1 << 22, StrideW: 1<<21 - 1, PadH: 2},
			{N: 1, C: 2, H: 3, W: 5, O: 3, KH: 2, KW: 2, PadW: 3, PadH: 1 << 20, StrideH: 1 << 20, DilationH: 1 << 20},
			{N: 1, C: 0, H: 4, W: 5, O: 6, KH: 1, KW: 1},
			{N: 1, C: 0, H: 4, W: 5, O: 2, KH: 1, KW: 1},
			{N: 1, C: 2, H: 4, W: 0, O: 2, KH: 1, KW: 1, PadW: 2},
			{N: 1, C: 2, H: 2, W: 2, O: 2, KH: 3, KW: 3}, // the window does not fit
			{N: 0, C: 2, H: 2, W: 2, O: 2, KH: 1, KW: 1},
		} {
			for i, pool := range []*workers.Pool{nil, p} {
				checkConv(t, c, pool, i == 0, i == 1)
			}
		}
		for range 30 {
			g := 1 + rand.IntN(3)
			checkConv(t, Conv2D{
				N: 1 + rand.IntN(2), C: g * (1 + rand.IntN(4)), H: 1 + rand.IntN(20), W: 1 + rand.IntN(60), O: g * (1 + rand.IntN(7)),
				KH: 1 + rand.IntN(4), KW: 1 + rand.IntN(4), StrideH: rand.IntN(3), StrideW: rand.IntN(3),
				PadH: rand.IntN(4), PadW: rand.IntN(4), DilationH: rand.IntN(3), DilationW: rand.IntN(3), Groups: g,
			}, p, true, true)
		}
	})
}

// TestConv2DPadding: an infinite weight over the padding is a NaN.
func TestConv2DPadding(t *testing.T) {
	eachGemmLevel(t, func(t *testing.T) {
		for _, o := range []int{1, 20} {
			c := Conv2D{N: 1, C: 1, H: 4, W: 4, O: o, KH: 3, KW: 3, PadH: 1, PadW: 1,
				X: make([]float32, 16), Weights: make([]float32, 9*o), Y: make([]float32, 16*o)}
			for i := range c.X {
				c.X[i] = 1
			}
			c.Weights[0] = float32(math.Inf(1))
			c.Run(nil)
			for i, v := range c.Y {
				switch {
				case i < 16 && (i < 4 || i%4 == 0) && v == v:
					t.Errorf("%d windows: element %d at the edge is %v, want NaN", o, i, v)
				case i < 16 && i >= 4 && i%4 > 0 && !math.IsInf(float64(v), 1), i >= 16 && v != 0:
					t.Errorf("%d windows: element %d is %v", o, i, v)
				}
			}
		}
	})
}

func TestConv2DRefuses(t *testing.T) {
	good := Conv2D{N: 1, C: 2, H: 4, W: 4, O: 2, KH: 3, KW: 3, X: make([]float32, 32), Weights: make([]float32, 36), Y: make([]float32, 8)}
	good.Run(nil)
	for name, spoil := range map[string]func(c *Conv2D){
		"short X":       func(c *Conv2D) { c.X = c.X[:31] },
		"short weights": func(c *Conv2D) { c.Weights = c.Weights[:35] },
		"short Y":       func(c *Conv2D) { c.Y = c.Y[:7] },
		"short bias":    func(c *Conv2D) { c.Bias = make([]float32, 1) },
		"groups":        func(c *Conv2D) { c.Groups = 3 },
		"negative":      func(c *Conv2D) { c.PadW = -1 },
		"padding":       func(c *Conv2D) { c.PadW = math.MaxInt32 },
		"overflow":      func(c *Conv2D) { c.N, c.C, c.H, c.W = 1<<28, 1<<28, 1<<28, 1<<28 },
	} {
		t.Run(name, func(t *testing.T) {
			c := good
			spoil(&c)
			defer func() {
				if recover() == nil {
					t.Error("accepted")
				}
			}()
			c.Run(nil)
		})
	}
}

func BenchmarkConv2D(b *testing.B) {
	p := workers.New(0)
	defer p.Close()
	for _, c := range []Conv2D{
		{N: 1, C: 1, H: 1080, W: 1920, O: 1, KH: 3, KW: 3, PadH: 1, PadW: 1},
		{N: 1, C: 1, H: 1080, W: 1920, O: 1, KH: 5, KW: 5, PadH: 2, PadW: 2},
		{N: 1, C: 3, H: 224, W: 224, O: 64, KH: 7, KW: 7, PadH: 3, PadW: 3, StrideH: 2, StrideW: 2},
		{N: 1, C: 64, H: 56, W: 56, O: 64, KH: 3, KW: 3, PadH: 1, PadW: 1},
		{N: 1, C: 256, H: 14, W: 14, O: 256, KH: 3, KW: 3, PadH: 1, PadW: 1},
		{N: 1, C: 256, H: 56, W: 56, O: 64, KH: 1, KW: 1},
	} {
		for _, pool := range []*workers.Pool{nil, p} {
			b.Run(fmt.Sprintf("c=%d/h=%d/o=%d/k=%d/threads=%d", c.C, c.H, c.O, c.KH, pool.Threads()), func(b *testing.B) {
				c := c
				h, w := c.OutSize()
				for _, m := range []struct {
					to *[]float32
					n  int
				}{{&c.X, c.N * c.C * c.H * c.W}, {&c.Weights, c.O * c.C * c.KH * c.KW}, {&c.Y, c.N * c.O * h * w}} {
					*m.to, _ = memory.Floats(m.n)
					for i := range *m.to {
						(*m.to)[i] = normal(i)
					}
				}
				for b.Loop() {
					c.Run(pool)
				}
				ns := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
				b.ReportMetric(2*float64(len(c.Y)*c.C*c.KH*c.KW)/ns, "GFLOP/s")
				b.ReportMetric(4*float64(len(c.X)+len(c.Y))/ns, "GB/s")
			})
		}
	}
}
