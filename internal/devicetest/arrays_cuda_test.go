//go:build (linux || windows) && !nocuda

package devicetest

import (
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestArraysCUDAEmulated is TestArrays of a GPU in the emulator.
func TestArraysCUDAEmulated(t *testing.T) {
	emulate(t, 9, false)
	arrays(t, openCUDA)
}

// TestGoldenBlocksCUDAEmulated is TestGoldenBlocks of a GPU in the emulator.
func TestGoldenBlocksCUDAEmulated(t *testing.T) {
	emulate(t, 9, false)
	goldenBlocks(t, openCUDA)
}

// TestCUDAScatter adds many elements to many rows on a GPU, where most ids name few rows, and compares with the CPU.
// All sums are exact.
func TestCUDAScatter(t *testing.T) {
	testutil.Need(t, "cuda")
	dev, rnd := start(t, openCUDA), testutil.Rand(t)
	cpu, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cpu.Close() })
	for _, rows := range []int{1<<14 + 1, 70_001, 1_000_003, 3_000_000} {
		for _, some := range []int{1, 40, rows} {
			x, v, ids := make([]float32, rows), make([]float32, 500_000+rnd.IntN(100)), make([]int32, 0)
			for i := range x {
				x[i] = float32(rnd.IntN(9))
			}
			for i := range v {
				v[i] = float32(rnd.IntN(7) - 3)
				ids = append(ids, int32(rnd.IntN(rows)-rows/9))
				if rnd.IntN(3) == 0 {
					ids[i] = int32(rnd.IntN(some))
				}
			}
			var got [2][]float32
			for i, d := range []*device.Device{dev, cpu} {
				b := batch.New(d)
				y := b.Scatter(b.Upload(x), batch.Upload(b, ids), b.Upload(v), op.ScatterOpts{Reduce: op.ScatterAdd})
				if err := b.Execute(t.Context(), y); err != nil {
					t.Fatal(err)
				}
				if got[i], err = batch.Read[float32](t.Context(), b, y); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(got[0], got[1]) {
				t.Errorf("%d elements into %d rows, a third of them into %d: the sums differ from those of the CPU", len(v), rows, some)
			}
		}
	}
}
