package cpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// BenchmarkPermute measures permuted copies beside plain copies of the same shape, in turns. Their result "share" is the speed as a
// share of the speed of the plain copy.
func BenchmarkPermute(b *testing.B) { benchmarkPermutes(b, op.F32, permutes, 12) }

// BenchmarkPermuteSizes is BenchmarkPermute for elements of one and two bytes, and of eight: two of four bytes along a last axis.
func BenchmarkPermuteSizes(b *testing.B) {
	for _, typ := range []op.DType{op.U8, op.F16} {
		b.Run(typ.String(), func(b *testing.B) { benchmarkPermutes(b, typ, permuteSizes, 12) })
	}
	pairs := slices.Clone(permuteSizes)
	for i, c := range pairs {
		pairs[i] = permute{append(slices.Clip(c.shape), 2), append(slices.Clip(c.order), len(c.order))}
	}
	b.Run("pairs", func(b *testing.B) { benchmarkPermutes(b, op.F32, pairs, 12) })
}

// BenchmarkPermuteDrawn is BenchmarkPermute for arrays of each class whose shapes and orders are drawn at random, always the same ones.
func BenchmarkPermuteDrawn(b *testing.B) {
	for _, c := range []struct {
		name        string
		typ         op.DType
		least, most int // elements
		planes      bool
		pairs       bool
	}{
		{"f32·small", op.F32, 1 << 11, 1 << 15, false, false}, {"f32", op.F32, 1 << 15, 1 << 21, false, false}, {"pairs", op.F32, 1 << 12, 1 << 20, false, true},
		{"f16", op.F16, 1 << 12, 1 << 21, false, false}, {"u8", op.U8, 1 << 12, 1 << 22, false, false},
		{"planes·u8", op.U8, 1 << 12, 1 << 21, true, false}, {"planes·f16", op.F16, 1 << 12, 1 << 21, true, false}, {"planes·f32", op.F32, 1 << 12, 1 << 21, true, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			var drawn []permute
			for len(drawn) < 16 {
				p := drawPermute(r, c.least, c.most)
				if c.planes {
					p = drawPlanes(r, c.least, c.most)
				}
				if c.pairs {
					p = permute{append(p.shape, 2), append(p.order, len(p.order))}
				}
				drawn = append(drawn, p)
			}
			benchmarkPermutes(b, c.typ, drawn, 5)
		})
	}
}

// drawSize returns a number from least to most, whose logarithm is distributed evenly.
func drawSize(r *rand.Rand, least, most int) int {
	return int(float64(least) * math.Pow(float64(most)/float64(least), r.Float64()))
}

// drawPermute returns a copy of an array of about least to most elements and 2 to 5 axes, whose last axis is another one in the result.
func drawPermute(r *rand.Rand, least, most int) permute {
	rank := 2 + r.IntN(4)
	mean := math.Pow(float64(drawSize(r, least, most)), 1/float64(rank))
	p := permute{order: r.Perm(rank)}
	for range rank {
		p.shape = append(p.shape, max(2, int(mean*math.Pow(2, 2*r.Float64()-1))))
	}
	if p.order[rank-1] == rank-1 {
		p.order[0], p.order[rank-1] = p.order[rank-1], p.order[0]
	}
	return p
}

// drawPlanes returns a copy of some pictures with colours first or last to the other order.
func drawPlanes(r *rand.Rand, least, most int) permute {
	n := drawSize(r, least, most)
	pictures := 1 + r.IntN(4)
	side := max(8, int(math.Sqrt(float64(n/pictures/3))))
	if r.IntN(2) == 0 {
		return permute{op.Shape{pictures, side, side + r.IntN(9), 3}, []int{0, 3, 1, 2}}
	}
	return permute{op.Shape{pictures, 3, side, side + r.IntN(9)}, []int{0, 2, 3, 1}}
}

// benchmarkPermutes measures copies in the given number of turns.
func benchmarkPermutes(b *testing.B, typ op.DType, permutes []permute, turns int) {
	turn := 4 * time.Millisecond
	for _, c := range permutes {
		for _, threads := range []int{1, 2} {
			b.Run(strings.ReplaceAll(fmt.Sprintf("%v/%v/threads=%d", c.shape, c.order, threads), " ", "·"), func(b *testing.B) {
				d := open(b, threads)
				n := size(c.shape)
				bytes := n * typ.Size()
				src, x := alloc(b, d, (bytes+3)/4)
				dst, _ := alloc(b, d, (bytes+3)/4)
				defer src.Free()
				defer dst.Free()
				for i := range x {
					x[i] = float32(i)
				}
				attrs, err := op.PermuteTo(c.order...)
				l, ok := op.Permute.Layout(&attrs, op.RowMajor(n), c.shape, reordered(c.shape, c.order), typ)
				if err != nil || !ok {
					b.Fatal("no layout")
				}
				full := driver.Operand{Slot: 0, Type: typ, N: n}
				var calls [2]func()
				for i, from := range []driver.Operand{full, {Slot: 0, Type: typ, Broadcast: op.Strided, Layout: &l}} {
					s := op.Shape{n}
					p := &driver.Program{Ext: 2, Slots: []driver.Slot{{Type: typ, Shape: s, Bytes: int64(bytes)}, {Type: typ, Shape: s, Bytes: int64(bytes), Ext: 1, Written: true}}}
					f := &driver.Fused{In: []driver.Operand{from}, Shape: s, Out: []int{0}}
					p.Steps = []driver.Step{{Post: f, Out: []driver.Operand{{Slot: 1, Type: typ, N: n}}}}
					e, ctx := prepare(b, d, p), context.Background()
					sub := &driver.Submission{Ext: []driver.Binding{{Mem: src}, {Mem: dst}}, Wait: true}
					calls[i] = func() {
						if _, err := e.Submit(ctx, sub); err != nil {
							b.Fatal(err)
						}
					}
				}
				best := [2]time.Duration{time.Hour, time.Hour}
				for range turns {
					for i, call := range calls {
						call()
						for from := time.Now(); time.Since(from) < turn; {
							at := time.Now()
							call()
							best[i] = min(best[i], time.Since(at))
						}
					}
				}
				for b.Loop() {
				}
				b.ReportMetric(0, "ns/op")
				b.ReportMetric(best[0].Seconds()*1e6, "copy-µs")
				b.ReportMetric(best[1].Seconds()*1e6, "permute-µs")
				b.ReportMetric(best[0].Seconds()/best[1].Seconds(), "share")
			})
		}
	}
}

// reordered returns the shape of an array of shape s whose axes are in the given order.
func reordered(s op.Shape, order []int) (out op.Shape) {
	for _, axis := range order {
		out = append(out, s[axis])
	}
	return out
}

// A permute is a copy of an array of a shape whose axes are in another order.
type permute struct {
	shape op.Shape
	order []int
}

// permuteSizes are copies for BenchmarkPermuteSizes.
var permuteSizes = []permute{
	{op.Shape{1000, 1000}, []int{1, 0}}, {op.Shape{4096, 4096}, []int{1, 0}}, {op.Shape{100, 101, 103}, []int{2, 1, 0}}, {op.Shape{300, 301}, []int{1, 0}},
	{op.Shape{8, 128, 12, 64}, []int{0, 2, 1, 3}}, {op.Shape{16, 3, 224, 224}, []int{0, 2, 3, 1}}, {op.Shape{32, 33, 31, 30}, []int{3, 2, 1, 0}}, {op.Shape{65, 67}, []int{1, 0}},
	{op.Shape{640, 480, 3}, []int{2, 0, 1}},
}

// permutes are copies for BenchmarkPermute.
var permutes = []permute{
	{op.Shape{3001, 5003}, []int{1, 0}}, {op.Shape{100, 101, 103}, []int{2, 1, 0}}, {op.Shape{1000, 1000}, []int{1, 0}},
	{op.Shape{16, 16, 16, 16, 16}, []int{4, 3, 2, 1, 0}}, {op.Shape{256, 256, 256}, []int{2, 1, 0}}, {op.Shape{4096, 4096}, []int{1, 0}},
	{op.Shape{8, 128, 12, 64}, []int{0, 2, 1, 3}}, {op.Shape{64, 3, 224, 224}, []int{0, 2, 3, 1}}, {op.Shape{64, 128, 256}, []int{1, 0, 2}},
	{op.Shape{32, 33, 31, 30}, []int{3, 2, 1, 0}}, {op.Shape{64, 224, 224, 3}, []int{0, 3, 1, 2}}, {op.Shape{8, 1024, 12, 64}, []int{0, 2, 1, 3}},
	{op.Shape{64, 56, 56, 3}, []int{0, 3, 1, 2}}, {op.Shape{8, 12, 128, 64}, []int{0, 1, 3, 2}}, {op.Shape{40, 50, 50, 20}, []int{0, 3, 2, 1}},
	{op.Shape{64, 128, 256}, []int{2, 1, 0}}, {op.Shape{1024, 1024}, []int{1, 0}},
	{op.Shape{65, 67}, []int{1, 0}}, {op.Shape{100, 90}, []int{1, 0}}, {op.Shape{12, 20, 64}, []int{0, 2, 1}}, {op.Shape{160, 160}, []int{1, 0}},
	// not used for choices
	{op.Shape{300, 301}, []int{1, 0}}, {op.Shape{129, 257}, []int{1, 0}}, {op.Shape{2001, 777}, []int{1, 0}}, {op.Shape{5000, 17}, []int{1, 0}},
	{op.Shape{33, 40000}, []int{1, 0}}, {op.Shape{7001, 4099}, []int{1, 0}}, {op.Shape{61, 67, 71}, []int{1, 2, 0}}, {op.Shape{37, 41, 43, 11}, []int{2, 3, 0, 1}},
	{op.Shape{9, 31, 77, 53}, []int{0, 3, 1, 2}}, {op.Shape{13, 17, 19, 23, 11}, []int{3, 1, 4, 0, 2}}, {op.Shape{24, 25, 26, 27}, []int{1, 3, 0, 2}},
	{op.Shape{500, 200, 48}, []int{1, 0, 2}}, {op.Shape{300, 301, 20}, []int{1, 0, 2}}, {op.Shape{51, 52, 53, 37}, []int{2, 0, 1, 3}}, {op.Shape{640, 480, 3}, []int{2, 0, 1}},
	{op.Shape{3, 1080, 1920}, []int{1, 2, 0}}, {op.Shape{12, 512, 512}, []int{0, 2, 1}}, {op.Shape{8192, 2048}, []int{1, 0}}, {op.Shape{2, 50, 60, 70, 8}, []int{4, 2, 0, 3, 1}},
}
