package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/workers"
	"github.com/rayo-go/rayo/op"
)

// TestCumsumKernels compares the kernel of each level with sums in float64.
func TestCumsumKernels(t *testing.T) {
	for _, l := range Supported() {
		t.Run(l.String(), func(t *testing.T) {
			k := rowKernelsOf(l).cumsum
			for n := 1; n <= 140; n++ {
				for _, inPlace := range []bool{false, true} {
					x, checkX := fenced(t, n, normal)
					dst, checkDst := fenced(t, n, nan)
					before := float32(rand.NormFloat64())
					want, mag := make([]float64, n), math.Abs(float64(before))
					for i, s := 0, float64(before); i < n; i++ {
						s += float64(x[i])
						want[i] = s
					}
					to := dst
					if inPlace {
						to = x
					}
					was := slices.Clone(x)
					k(&to[0], &x[0], n, before)
					checkX()
					checkDst()
					for i := range want {
						mag += math.Abs(float64(was[i]))
						if off := math.Abs(float64(to[i]) - want[i]); !(off <= mag*float64(min(i, 16)+6)*0x1p-24) {
							t.Fatalf("n %d, in place %v: element %d is %v, want %v", n, inPlace, i, to[i], want[i])
						}
					}
				}
			}
			// From a NaN on NaN, from an infinity on that, from both on NaN.
			x := make([]float32, 70)
			x[20], x[40] = float32(math.Inf(1)), float32(math.Inf(-1))
			k(&x[0], &x[0], len(x), 0)
			for i, v := range x {
				if want := i >= 20 && i < 40; math.IsInf(float64(v), 1) != want || (v != v) != (i >= 40) {
					t.Errorf("infinities: element %d is %v", i, v)
				}
			}
		})
	}
}

// TestCumsum compares rows with the reference, and the results of any number of
// threads with each other.
func TestCumsum(t *testing.T) {
	const b = ReduceBlock
	for _, s := range [][2]int{{0, 5}, {5, 0}, {1, 1}, {3, 17}, {100, 3}, {2000, 33}, {1, b}, {1, b + 1}, {3, 2*b + 5}, {1, 70_001}, {2, 200_003}, {1, 1_000_003}, {40, 3*b + 1}} {
		rows, cols := s[0], s[1]
		if testing.Short() && rows*cols > 100_000 && rand.IntN(3) > 0 {
			continue
		}
		t.Run(fmt.Sprint(rows, "x", cols), func(t *testing.T) {
			x, checkX := fenced(t, rows*cols, normal)
			in := op.NewArray(op.Shape{rows, cols})
			for i, v := range x {
				in.Data[i] = float64(v)
			}
			a := op.Cumsum.Defaults()
			want, err := op.Cumsum.Reference(&a, []*op.Array{in}, []op.DType{op.F32})
			if err != nil {
				t.Fatal(err)
			}
			var first []float32
			for _, threads := range []int{1, 2, 5} {
				p := workers.New(threads)
				dst, checkDst := fenced(t, rows*cols, nan)
				Cumsum(p, dst, x, rows, cols)
				over := slices.Clone(x)
				Cumsum(p, over, over, rows, cols)
				p.Close()
				checkDst()
				checkX()
				for i, w := range want[0].Data {
					if err := op.Cumsum.Check(float64(dst[i]), w, want[0].Mag[i], op.F32); err != nil {
						t.Fatalf("%d threads: element %d: %v", threads, i, err)
					}
				}
				if first == nil {
					first = dst
				}
				if !slices.Equal(dst, first) || !slices.Equal(over, first) {
					t.Fatalf("%d threads give other sums than one, or in place others", threads)
				}
			}
		})
	}
}

func BenchmarkCumsum(b *testing.B) {
	for _, n := range []int{1000, 100_000, 10_000_000} {
		x, dst := make([]float32, n), make([]float32, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(8 * n))
			for b.Loop() {
				Cumsum(nil, dst, x, 1, n)
			}
		})
	}
}
