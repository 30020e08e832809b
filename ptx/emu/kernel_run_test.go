package emu

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// schedules has the schedules with which the tests run all correct kernels.
var schedules = []Config{{}, {Schedule: Descending}, {Schedule: Shuffled, Seed: 1}, {Schedule: Shuffled, Seed: 2}}

func (c Config) String() string { return fmt.Sprintf("schedule %d seed %d", c.Schedule, c.Seed) }

func ceil(n, d int) int { return (n + d - 1) / d }

func TestRelu(t *testing.T) {
	k := build(t, reluKernel(""))
	for _, n := range []int{1, 3, 4, 5, 127, 128, 129, 1021} {
		for _, c := range schedules {
			d := newDevice(t, c)
			x := randoms(n, 1)
			px, py := d.floats("x", x), d.empty("y", 4*n)
			d.launch(k, Dim{X: ceil(n, 128)}, Dim{X: 32}, 0, px, py, uint32(n))
			got, _ := d.ReadFloats(py, n)
			for i, v := range x {
				if got[i] != max(v, 0) {
					t.Fatalf("%v n %d: relu(%v) = %v", c, n, v, got[i])
				}
			}
		}
	}
}

func TestGemm(t *testing.T) {
	k := build(t, gemmKernel(""))
	for _, s := range [][3]int{{1, 1, 1}, {16, 16, 16}, {17, 33, 5}, {31, 15, 40}, {64, 48, 33}} {
		m, n, kk := s[0], s[1], s[2]
		for _, c := range schedules {
			d := newDevice(t, c)
			a, b := randoms(m*kk, 2), randoms(kk*n, 3)
			want := make([]float64, m*n)
			for i := range m {
				for j := range n {
					for l := range kk {
						want[i*n+j] += float64(a[i*kk+l]) * float64(b[l*n+j])
					}
				}
			}
			pa, pb, pc := d.floats("a", a), d.floats("b", b), d.empty("c", 4*m*n)
			d.launch(k, Dim{X: ceil(n, tile), Y: ceil(m, tile)}, Dim{X: tile, Y: tile}, 0, pa, pb, pc, uint32(m), uint32(n), uint32(kk))
			got, _ := d.ReadFloats(pc, m*n)
			near(t, got, want, 1e-6*math.Sqrt(float64(kk)), 1)
		}
	}
}

func TestSum(t *testing.T) {
	k := build(t, sumKernel(""))
	for _, n := range []int{1, 31, 500, 4099} {
		for _, threads := range []int{32, 128, 256} {
			for _, c := range schedules {
				d := newDevice(t, c)
				x := randoms(n, 4)
				const blocks = 3
				px, py := d.floats("x", x), d.empty("y", 4*blocks)
				d.launch(k, Dim{X: blocks}, Dim{X: threads}, 0, px, py, uint32(n))
				got, _ := d.ReadFloats(py, blocks)
				want := make([]float64, blocks)
				for i, v := range x {
					want[i/threads%blocks] += float64(v)
				}
				near(t, got, want, 1e-6, math.Sqrt(float64(n)))
			}
		}
	}
}

func TestTree(t *testing.T) {
	k := build(t, treeKernel(""))
	for _, c := range schedules {
		d := newDevice(t, c)
		x := randoms(5*128, 5)
		px, py := d.floats("x", x), d.empty("y", 20)
		d.launch(k, Dim{X: 5}, Dim{X: 128}, 0, px, py)
		got, _ := d.ReadFloats(py, 5)
		want := make([]float64, 5)
		for i, v := range x {
			want[i/128] += float64(v)
		}
		near(t, got, want, 1e-6, 10)
	}
}

func TestSoftmax(t *testing.T) {
	k := build(t, softmaxKernel(""))
	for _, s := range [][2]int{{1, 1}, {3, 31}, {5, 33}, {9, 257}} {
		rows, cols := s[0], s[1]
		for _, c := range schedules {
			d := newDevice(t, c)
			x := randoms(rows*cols, 6)
			px, py := d.floats("x", x), d.empty("y", 4*rows*cols)
			d.launch(k, Dim{X: ceil(rows, 4)}, Dim{X: 128}, 0, px, py, uint32(rows), uint32(cols))
			got, _ := d.ReadFloats(py, rows*cols)
			want := make([]float64, rows*cols)
			for r := range rows {
				sum := 0.0
				for i := range cols {
					want[r*cols+i] = math.Exp(float64(x[r*cols+i]))
					sum += want[r*cols+i]
				}
				for i := range cols {
					want[r*cols+i] /= sum
				}
			}
			near(t, got, want, 2e-6, 0)
		}
	}
}

func TestTranspose(t *testing.T) {
	k := build(t, transposeKernel(""))
	for _, s := range [][2]int{{1, 1}, {32, 32}, {33, 65}, {70, 7}} {
		rows, cols := s[0], s[1]
		for _, c := range schedules {
			d := newDevice(t, c)
			x := randoms(rows*cols, 7)
			px, py := d.floats("x", x), d.empty("y", 4*rows*cols)
			d.launch(k, Dim{X: ceil(cols, 32), Y: ceil(rows, 32)}, Dim{X: 32, Y: 8}, 0, px, py, uint32(rows), uint32(cols))
			got, _ := d.ReadFloats(py, rows*cols)
			for i := range rows {
				for j := range cols {
					if got[j*rows+i] != x[i*cols+j] {
						t.Fatalf("%v %v: element %d,%d", c, s, i, j)
					}
				}
			}
			if n := d.Stats().Conflicts; n != 0 {
				t.Errorf("%v %v: %d bank conflicts", c, s, n)
			}
		}
	}
}

func TestHistogram(t *testing.T) {
	k := build(t, histogramKernel(""))
	for _, n := range []int{1, 300, 5003} {
		for _, c := range schedules {
			d := newDevice(t, c)
			px, py := d.empty("x", n), d.words("y", make([]uint32, 256))
			x, want := make([]byte, n), make([]uint32, 256)
			for i := range x {
				x[i] = byte(i * i >> 3)
				want[x[i]]++
			}
			d.must(d.Write(px, x))
			d.launch(k, Dim{X: 3}, Dim{X: 96}, 0, px, py, uint32(n))
			got, _ := d.ReadWords(py, 256)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("%v n %d: %d of value %d, not %d", c, n, got[i], i, want[i])
				}
			}
		}
	}
}

func TestLastBlock(t *testing.T) {
	k := build(t, lastKernel(""))
	for _, blocks := range []int{1, 2, 33, 70} {
		for _, c := range schedules {
			d := newDevice(t, c)
			x, want := make([]uint32, 32*blocks), uint32(0)
			for i := range x {
				x[i] = uint32(i * i)
				want += x[i]
			}
			px, part, count, py := d.words("x", x), d.empty("part", 4*blocks), d.words("count", []uint32{0}), d.empty("y", 4)
			d.launch(k, Dim{X: blocks}, Dim{X: 32}, 0, px, part, count, py)
			if got, _ := d.ReadWords(py, 1); got[0] != want {
				t.Fatalf("%v: %d blocks give %d, not %d", c, blocks, got[0], want)
			}
		}
	}
}

func TestCopyAsync(t *testing.T) {
	k := build(t, copyKernel(""))
	for _, tiles := range []int{1, 2, 5} {
		for _, c := range schedules {
			d := newDevice(t, c)
			x := randoms(256*tiles, 8)
			px, py := d.floats("x", x), d.empty("y", 4*len(x))
			d.launch(k, Dim{X: 1}, Dim{X: 64}, 2*256*4, px, py, uint32(tiles))
			got, _ := d.ReadFloats(py, len(x))
			for i := range x {
				if got[i] != 2*x[i] {
					t.Fatalf("%v: element %d is %v, not %v", c, i, got[i], 2*x[i])
				}
			}
		}
	}
}

func TestBlocksWait(t *testing.T) {
	k := build(t, spinKernel(""))
	for _, c := range schedules {
		d := newDevice(t, c)
		flag, y := d.words("flag", []uint32{0}), d.empty("y", 8)
		d.launch(k, Dim{X: 2}, Dim{X: 32}, 0, flag, y)
		if got, _ := d.ReadWords(y, 2); got[1] != 7 {
			t.Fatalf("%v: %v", c, got)
		}
	}
}

// TestShuffles runs each shuffle with distances that the text has as constants and in registers.
func TestShuffles(t *testing.T) {
	shuffles := []struct {
		do   func(x ptx.F32, n ptx.U32) ptx.F32
		from func(lane, n int) int
	}{
		{ptx.ShuffleXor[ptx.F32], func(lane, n int) int { return lane ^ n }},
		{ptx.ShuffleUp[ptx.F32], func(lane, n int) int {
			if lane < n {
				return lane
			}
			return lane - n
		}},
		{ptx.ShuffleDown[ptx.F32], func(lane, n int) int {
			if lane+n > 31 {
				return lane
			}
			return lane + n
		}},
		{ptx.ShuffleIndex[ptx.F32], func(_, n int) int { return n }},
	}
	for i, s := range shuffles {
		for _, n := range []int{0, 1, 5, 16, 31} {
			k := build(t, func(k *ptx.Kernel) {
				x, y := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y")
				lane := k.Special(ptx.LaneID)
				v := x.At(lane).Load()
				y.At(lane).Store(s.do(v, ptx.N(n)))
				y.At(lane).Offset(32).Store(s.do(v, ptx.Param[ptx.U32](k, "n")))
			})
			d := newDevice(t, Config{})
			x := randoms(32, 1)
			px, py := d.floats("x", x), d.empty("y", 4*64)
			d.launch(k, Dim{X: 1}, Dim{X: 32}, 0, px, py, uint32(n))
			got, _ := d.ReadFloats(py, 64)
			for lane := range 64 {
				if want := x[s.from(lane%32, n)]; got[lane] != want {
					t.Errorf("shuffle %d by %d: value %d is %v, not %v", i, n, lane, got[lane], want)
				}
			}
		}
	}
}

// TestInvalidate reuses the memory of a barrier after its end. An arrival at the ended barrier is a finding.
func TestInvalidate(t *testing.T) {
	for _, late := range []bool{false, true} {
		k := build(t, func(k *ptx.Kernel) {
			y := ptx.GlobalParam[ptx.U64](k, "y")
			word := ptx.SharedArray[ptx.U64](k, "word", 1)
			bar := ptx.MBarrierAt(word)
			bar.Init(ptx.U(1))
			bar.Arrive()
			bar.Wait(ptx.U(0))
			bar.Invalidate()
			if late {
				bar.Arrive()
			}
			word.Store(ptx.UL(42))
			y.Store(word.Load())
		})
		d := newDevice(t, Config{})
		y := d.empty("y", 8)
		err := d.Launch(t.Context(), k, Dim{X: 1}, Dim{X: 1}, 0, y)
		var found Findings
		if errors.As(err, &found) != late || !late && err != nil {
			t.Errorf("arrival after the end %t: %v", late, err)
		}
		if got, _ := d.ReadWords(y, 2); !late && got[0] != 42 {
			t.Errorf("the memory holds %d, not 42", got[0])
		}
	}
}

// TestConstants runs operations that the builder folds and others that it does not, so
// that the text has every kind of operand.
func TestConstants(t *testing.T) {
	k := build(t, func(k *ptx.Kernel) {
		y := ptx.GlobalParam[ptx.U64](k, "y")
		y.Store(ptx.UL(1 << 63).Add(ptx.UL(3)))
		y.Offset(1).Store(ptx.Reg(k, ptx.SL(-5)).U64())
		y.Offset(2).Store(ptx.Reg(k, ptx.D(0.1)).Bits())
		y.Offset(3).Store(ptx.Reg(k, ptx.S(-7)).S64().U64())
	})
	d := newDevice(t, Config{})
	y := d.empty("y", 32)
	d.launch(k, Dim{}, Dim{}, 0, y)
	got, _ := d.ReadWords(y, 8)
	for i, want := range []uint64{1<<63 + 3, 1<<64 - 5, math.Float64bits(0.1), 1<<64 - 7} {
		if v := uint64(got[2*i]) | uint64(got[2*i+1])<<32; v != want {
			t.Errorf("number %d is %#x, not %#x", i, v, want)
		}
	}
}
