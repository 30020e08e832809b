package samples

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

// sample returns a sample, ready to run, and a machine.
func sample(t *testing.T, name string) (*emu.Kernel, *emu.Machine, emu.Dim) {
	t.Helper()
	for _, s := range All() {
		if s.Name == name {
			k, err := emu.Build(s.Least, name, s.Build)
			if err != nil {
				t.Fatal(err)
			}
			return k, emu.NewMachine(emu.Config{}), emu.Dim{X: s.Block[0], Y: s.Block[1]}
		}
	}
	t.Fatalf("no sample %s", name)
	panic("")
}

func randoms(rnd *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rnd.NormFloat64())
	}
	return x
}

// halves rounds numbers to half floats and packs two of them into each word.
func halves(x []float32) []uint32 {
	words := make([]uint32, (len(x)+1)/2)
	for i, v := range x {
		h := op.F16FromFloat32(v)
		x[i] = op.F16ToFloat32(h)
		words[i/2] |= uint32(h) << (16 * (i % 2))
	}
	return words
}

// run launches a kernel; the last array of n elements is its result.
func run(t *testing.T, m *emu.Machine, k *emu.Kernel, grid, block emu.Dim, n int, out emu.Ptr, params ...any) []float32 {
	t.Helper()
	if err := m.Launch(context.Background(), k, grid, block, 0, params...); err != nil {
		t.Fatal(err)
	}
	got, err := m.ReadFloats(out, n)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// near compares a result with its reference and the magnitude of its terms.
func near(t *testing.T, got []float32, want, mag []float64, tolerance float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= tolerance*mag[i]) {
			t.Fatalf("element %d: %v, not %v: off by %.3g of %.3g", i, got[i], want[i], d, mag[i])
		}
	}
}

func ceil(n, d int) int { return (n + d - 1) / d }

// product returns a b, or a bᵀ, and the sums of the magnitudes.
func product(a, b []float32, m, n, k int, transposed bool) (c, mag []float64) {
	c, mag = make([]float64, m*n), make([]float64, m*n)
	for i := range m {
		for j := range n {
			for l := range k {
				y := b[(l*n+j)%len(b)]
				if transposed {
					y = b[j*k+l]
				}
				p := float64(a[i*k+l]) * float64(y)
				c[i*n+j] += p
				mag[i*n+j] += math.Abs(p)
			}
			mag[i*n+j] += 1e-30
		}
	}
	return c, mag
}

func alloc(t *testing.T, m *emu.Machine, name string, n int) emu.Ptr {
	t.Helper()
	p, err := m.Alloc(name, 4*n)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestGemm(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name     string
		sizes    [][3]int // m, n, k
		tile     int
		half, bT bool
	}{
		{"gemm_naive", [][3]int{{1, 1, 1}, {16, 16, 16}, {17, 33, 5}, {31, 15, 40}, {3, 5, 0}}, 16, false, false},
		{"gemm_tiled", [][3]int{{1, 1, 1}, {16, 16, 16}, {17, 33, 5}, {31, 15, 40}, {64, 47, 33}}, Tile, false, false},
		{"gemm_tensor", [][3]int{{1, 8, 8}, {64, 64, 64}, {65, 72, 40}, {63, 136, 24}, {7, 56, 104}, {5, 8, 0}}, blockCols, true, false},
		{"gemm_warp", [][3]int{{1, 1, 16}, {16, 16, 16}, {17, 15, 48}, {33, 31, 64}}, 16, true, true},
	} {
		for _, s := range c.sizes {
			t.Run(fmt.Sprint(c.name, s), func(t *testing.T) {
				m, n, depth := s[0], s[1], s[2]
				k, machine, block := sample(t, c.name)
				a, b := randoms(rnd, max(1, m*depth)), randoms(rnd, max(1, n*depth))
				var pa, pb emu.Ptr
				if c.half {
					pa, _ = machine.Words("a", halves(a))
					pb, _ = machine.Words("b", halves(b))
				} else {
					pa, _ = machine.Floats("a", a)
					pb, _ = machine.Floats("b", b)
				}
				pc := alloc(t, machine, "c", m*n)
				grid := emu.Dim{X: ceil(n, c.tile), Y: ceil(m, c.tile)}
				if c.name == "gemm_tensor" {
					grid.Y = ceil(m, blockRows)
				}
				got := run(t, machine, k, grid, block, m*n, pc, pa, pb, pc, uint32(m), uint32(n), uint32(depth))
				want, mag := product(a, b, m, n, depth, c.bT)
				near(t, got, want, mag, 1e-6*math.Sqrt(float64(depth+1)))
				if c.name == "gemm_tensor" && machine.Stats().Conflicts != 0 {
					t.Errorf("%d bank conflicts", machine.Stats().Conflicts)
				}
			})
		}
	}
}

func TestRows(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 7, 31, 32, 33, 64, 1000, 1024} {
		const rows = 3
		x := randoms(rnd, rows*n)
		for i := range n {
			x[n+i] = x[n+i]*20 + 100 // far from 0
		}
		t.Run(fmt.Sprint("softmax ", n), func(t *testing.T) {
			k, m, block := sample(t, "softmax")
			px, _ := m.Floats("x", x)
			py := alloc(t, m, "y", rows*n)
			got := run(t, m, k, emu.Dim{X: rows}, block, rows*n, py, px, py, uint32(n))
			want := make([]float64, rows*n)
			for r := range rows {
				row, y := x[r*n:(r+1)*n], want[r*n:(r+1)*n]
				top, sum := math.Inf(-1), 0.0
				for _, v := range row {
					top = max(top, float64(v))
				}
				for i, v := range row {
					y[i] = math.Exp(float64(v) - top)
					sum += y[i]
				}
				for i := range y {
					y[i] /= sum
				}
			}
			mag := make([]float64, len(want))
			for i := range mag {
				mag[i] = want[i] + 1e-30
			}
			near(t, got, want, mag, 1e-4) // of exponents of up to 200, rounded
		})
		t.Run(fmt.Sprint("layer_norm ", n), func(t *testing.T) {
			k, m, block := sample(t, "layer_norm")
			gamma, beta := randoms(rnd, n), randoms(rnd, n)
			px, _ := m.Floats("x", x)
			pg, _ := m.Floats("gamma", gamma)
			pb, _ := m.Floats("beta", beta)
			py := alloc(t, m, "y", rows*n)
			const epsilon = 1e-5
			got := run(t, m, k, emu.Dim{X: rows}, block, rows*n, py, px, pg, pb, py, uint32(n), float32(epsilon))
			want, mag := make([]float64, rows*n), make([]float64, rows*n)
			for r := range rows {
				row := x[r*n : (r+1)*n]
				mean, spread := 0.0, 0.0
				for _, v := range row {
					mean += float64(v) / float64(n)
				}
				for _, v := range row {
					spread += (float64(v) - mean) * (float64(v) - mean) / float64(n)
				}
				scale := 1 / math.Sqrt(spread+epsilon)
				for i, v := range row {
					want[r*n+i] = (float64(v)-mean)*scale*float64(gamma[i]) + float64(beta[i])
					mag[r*n+i] = (math.Abs(float64(v))+math.Abs(mean))*scale*math.Abs(float64(gamma[i])) + math.Abs(float64(beta[i]))
				}
			}
			near(t, got, want, mag, 1e-5)
		})
	}
}

func TestAttention(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	const heads = 2
	for _, length := range []int{1, 2, 7, 40} {
		size := heads * length * HeadSize
		q, k, v := randoms(rnd, size), randoms(rnd, size), randoms(rnd, size)
		kernel, m, block := sample(t, "attention")
		pq, _ := m.Floats("q", q)
		pk, _ := m.Floats("k", k)
		pv, _ := m.Floats("v", v)
		po := alloc(t, m, "o", size)
		got := run(t, m, kernel, emu.Dim{X: length, Y: heads}, block, size, po, pq, pk, pv, po, uint32(length))
		shape := op.Shape{heads, length, HeadSize}
		in := make([]*op.Array, 3)
		for i, x := range [][]float32{q, k, v} {
			in[i] = op.NewArray(shape)
			for j, e := range x {
				in[i].Data[j] = float64(e)
			}
		}
		a := op.AttentionOpts{Causal: true}.Attrs()
		want, err := op.Attention.Reference(&a, in, []op.DType{op.F32, op.F32, op.F32})
		if err != nil {
			t.Fatal(err)
		}
		mag := make([]float64, size)
		for i := range mag {
			mag[i] = 1
		}
		near(t, got, want[0].Data, mag, 1e-5)
	}
}

func TestQ4K(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	f := block.ByName("Q4_K")
	for _, s := range [][3]int{{1, 1, 256}, {2, 3, 512}, {3, 5, 768}} {
		m, n, depth := s[0], s[1], s[2]
		bytes, err := f.Size(n * depth)
		if err != nil {
			t.Fatal(err)
		}
		blocks, w := make([]byte, bytes), make([]float32, n*depth)
		if err := f.Quantize(blocks, randoms(rnd, n*depth)); err != nil {
			t.Fatal(err)
		}
		if err := f.Dequantize(w, blocks); err != nil {
			t.Fatal(err)
		}
		words := make([]uint32, bytes/4)
		for i := range words {
			words[i] = binary.LittleEndian.Uint32(blocks[4*i:])
		}
		k, machine, block := sample(t, "q4k")
		a := randoms(rnd, m*depth)
		pa, _ := machine.Floats("a", a)
		pw, _ := machine.Words("w", words)
		pc := alloc(t, machine, "c", m*n)
		got := run(t, machine, k, emu.Dim{X: n, Y: m}, block, m*n, pc, pa, pw, pc, uint32(n), uint32(depth))
		want, mag := product(a, w, m, n, depth, true)
		near(t, got, want, mag, 2e-6*math.Sqrt(float64(depth)))
	}
}

// TestVerify has the checks of package ptx look at each sample.
func TestVerify(t *testing.T) {
	for _, target := range []ptx.Target{ptx.SM70, ptx.SM80, ptx.SM90a} {
		m := ptx.NewModule(target)
		m.RecordPositions()
		for _, s := range All() {
			if s.Least <= target {
				m.Kernel(s.Name, s.Build)
			}
		}
		if err := m.Verify(); err != nil {
			t.Errorf("%v: %v", target, err)
		}
	}
}

// TestAssemble compiles the samples with ptxas, and checks that no registers are spilled.
func TestAssemble(t *testing.T) {
	testutil.Need(t, "ptxas")
	for _, target := range []ptx.Target{ptx.SM80, ptx.SM90a} {
		m := ptx.NewModule(target)
		for _, s := range All() {
			m.Kernel(s.Name, s.Build)
		}
		text, err := m.PTX()
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "samples.ptx")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("ptxas", "-v", "-arch="+target.String(), "-o", os.DevNull, file).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if n := strings.Count(string(out), " 0 bytes spill stores"); n != len(All()) {
			t.Errorf("%v: %d kernels without spills\n%s", target, n, out)
		}
	}
}
