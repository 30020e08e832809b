//go:build !nowebgpu && !js

package devicetest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
)

// TestWebGPUExtremes compares chains of maxima and minima over numbers of all kinds with the CPU. Kernels check for NaN
// only at the end of a chain if the later operations propagate it.
func TestWebGPUExtremes(t *testing.T) {
	ctx := t.Context()
	dev := webGPU(t, "lavapipe")(t)
	defer dev.Close()
	cpu, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer cpu.Close()
	type value = batch.Value
	type rec = batch.Batch
	// step appends an operation to a chain. Its operands are earlier values.
	steps := []func(r *rec, v value, x []value) value{
		func(r *rec, v value, x []value) value { return r.Maximum(r.Sub(v, x[1]), r.Neg(x[0])) },
		func(r *rec, v value, x []value) value { return r.Minimum(v, x[1]) },
		func(r *rec, v value, x []value) value { return r.Maximum(v, x[0]) },
		func(r *rec, v value, x []value) value { return r.Clip(r.Scale(v, 0.75), -4, 4) },
		func(r *rec, v value, x []value) value { return r.Relu(v) },
		func(r *rec, v value, x []value) value { return r.Sigmoid(v) },
		func(r *rec, v value, x []value) value { return r.Mul(v, x[1]) },
		func(r *rec, v value, x []value) value { return r.Abs(v) },
		func(r *rec, v value, x []value) value { return r.Where(r.Less(v, r.AddScalar(x[1], 0.377)), v, x[0]) },
		func(r *rec, v value, x []value) value { return r.Minimum(r.Maximum(v, x[0]), r.Maximum(x[1], v)) },
	}
	rng := testutil.Rand(t)
	numbers := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 3.5, -5, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
		math.Float32frombits(0xffc00001), 0x1p13, -0x1p13, 0.25, -0.125}
	const n = 14 * 14 * 4
	in := [2][]float32{make([]float32, n), make([]float32, n)}
	for i := range n {
		in[0][i], in[1][i] = numbers[i%14], numbers[i/14%14]
	}
	// compute runs a chain on both devices. With middle, a value within the chain is a second result. off returns
	// the error bound of a result w for x and y.
	compute := func(t *testing.T, chain []int, in [2][]float32, middle bool, off func(x, y float32, w float64) float64) {
		n := len(in[0])
		var got [2][2][]float32
		for k, d := range []*device.Device{dev, cpu} {
			r := batch.New(d)
			x := []value{r.Upload(in[0], n), r.Upload(in[1], n)}
			v := x[0]
			half := v
			for i, s := range chain {
				v = steps[s](r, v, x)
				if i == len(chain)/2 {
					half = v
				}
			}
			results := []value{v, half}
			if !middle {
				results = results[:1]
			}
			for i, v := range results {
				got[k][i] = make([]float32, n)
				batch.ReadInto(r, v, got[k][i])
			}
			if err := r.Execute(ctx); err != nil {
				t.Fatal(err)
			}
		}
		for k, want := range got[1] {
			for i, want := range want {
				g, w := float64(got[0][k][i]), float64(want)
				if g != w && !(g != g && w != w) && !(math.Abs(g-w) <= off(in[0][i], in[1][i], w)) {
					t.Fatalf("result %d of %v and %v: %v, not %v", k, in[0][i], in[1][i], g, w)
				}
			}
		}
	}
	for turn := range 30 / sparing() {
		var chain []int
		for range 2 + rng.IntN(7) {
			chain = append(chain, rng.IntN(len(steps)))
		}
		t.Run(fmt.Sprint(turn, chain), func(t *testing.T) {
			compute(t, chain, in, turn%2 == 1, func(_, _ float32, w float64) float64 { return 1e-4 * math.Abs(w) })
		})
	}
	// In arrays of this size the kernels skip the check for NaN in vectors without a large
	// element: most vectors have none, and the others have one.
	const many = 1<<22 + 4*128*3
	sizes := []int{many, many - 1, 1<<24 + 3} // whole vectors, single elements, and vectors with a remainder
	var large [2][]float32
	for k := range large {
		large[k] = make([]float32, slices.Max(sizes))
		for i := range large[k] {
			if large[k][i] = 4*rng.Float32() - 2; rng.IntN(100) == 0 {
				large[k][i] = append(numbers, 0x1p31, -0x1p100, math.MaxFloat32)[rng.IntN(len(numbers)+3)]
			}
		}
	}
	for turn, n := range sizes {
		chain := []int{0, 1, 3, 5, 0, 2, 3, 5, 0, 1, 3, 5, 0, 2, 3, 5, 0, 1} // each lane computes several elements
		for range 3 * turn {
			if s := rng.IntN(len(steps)); s != 8 { // the operation is discontinuous where operands are nearly equal
				chain = append(chain, s)
			}
		}
		chain = append(chain, 5, 0, 3)
		t.Run(fmt.Sprint("many", turn, chain), func(t *testing.T) {
			in := [2][]float32{large[0][:n], large[1][:n]}
			compute(t, chain, in, turn == 1, func(x, y float32, w float64) float64 {
				if w == w && max(math.Abs(float64(x)), math.Abs(float64(y))) > 5 {
					return math.Inf(1) // the differences of large numbers may cancel completely
				}
				return 1e-3 * (1 + math.Abs(w))
			})
		})
	}
}
