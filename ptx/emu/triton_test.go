package emu

import (
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// tritonKernel is a kernel that Triton compiled from testdata/triton/kernels.py.
type tritonKernel struct {
	file   string // without .ptx.gz
	name   string
	shared int // bytes of shared memory
	run    func(r *rig, k *tritonKernel)
}

var tritonKernels = []tritonKernel{
	{"softmax.sm_80", "softmax", 16, tritonSoftmax},
	{"softmax.sm_90", "softmax", 16, tritonSoftmax},
	{"matmul_fp16.sm_80", "matmul", 16384, tritonMatMulF16},
	{"matmul_fp16.sm_90", "matmul", 16384, tritonMatMulF16},
	{"matmul_fp32.sm_80", "matmul", 32768, tritonMatMulTF32},
	{"matmul_fp32.sm_90", "matmul", 49152, tritonMatMulTF32},
}

// TestTriton runs PTX of Triton's compiler, and compares with float64.
func TestTriton(t *testing.T) {
	files, err := filepath.Glob("testdata/triton/*.ptx.gz")
	if err != nil || len(files) != len(tritonKernels) {
		t.Fatalf("%d files, %v, want %d", len(files), err, len(tritonKernels))
	}
	seed := testutil.Seed(t)
	for _, k := range tritonKernels {
		for _, order := range []Schedule{Ascending, Shuffled} {
			t.Run(k.file, func(t *testing.T) {
				mod, err := Parse(nvrtcText(t, "testdata/triton/"+k.file+".ptx.gz"))
				if err != nil {
					t.Fatal(err)
				}
				m := NewMachine(Config{Schedule: order, Seed: seed})
				k.run(&rig{T: t, m: m, mod: mod, rand: rand.New(rand.NewPCG(seed, 1))}, &k)
			})
		}
	}
}

// tritonSoftmax computes rows of any length up to 1024, the size of a block.
func tritonSoftmax(r *rig, k *tritonKernel) {
	rows, cols := 3, 1+r.rand.IntN(1024)
	x := random(rows*cols, func(int) float32 { return r.rand.Float32()*20 - 10 })
	y := r.empty(4 * len(x))
	r.launch(k.name, Dim{X: rows}, Dim{X: 128}, k.shared, y, r.array(x), int32(cols), Ptr(0), Ptr(0))
	sums := make([]float64, rows)
	for i, v := range x {
		sums[i/cols] += math.Exp(float64(v))
	}
	closeTo(r, results[float32](r, y, len(x)), 1e-5, 0, func(i int) float64 { return math.Exp(float64(x[i])) / sums[i/cols] })
}

func tritonMatMulF16(r *rig, k *tritonKernel) {
	tritonMatMul(r, k, 1e-5, func(v float32) (uint16, float64) {
		bits := op.F16FromFloat32(v)
		return bits, float64(op.F16ToFloat32(bits))
	})
}

// tritonMatMulTF32 multiplies float32 matrices, which the tensor cores read as TF32 with 10 fraction bits.
func tritonMatMulTF32(r *rig, k *tritonKernel) {
	tritonMatMul(r, k, 4e-3, func(v float32) (float32, float64) { return v, float64(v) })
}

// tritonMatMul multiplies matrices of any size by tiles of 64×64×32.
func tritonMatMul[T uint16 | float32](r *rig, k *tritonKernel, tolerance float64, element func(float32) (T, float64)) {
	m, n, inner := 1+r.rand.IntN(100), 1+r.rand.IntN(100), 1+r.rand.IntN(150)
	matrix := func(size int) (x []T, exact []float64) {
		x, exact = make([]T, size), make([]float64, size)
		for i := range x {
			x[i], exact[i] = element(r.rand.Float32()*2 - 1)
		}
		return x, exact
	}
	a, exactA := matrix(m * inner)
	b, exactB := matrix(inner * n)
	c := r.empty(4 * m * n)
	grid := Dim{X: (m + 63) / 64, Y: (n + 63) / 64}
	r.launch(k.name, grid, Dim{X: 128}, k.shared, c, r.array(a), r.array(b), int32(m), int32(n), int32(inner), Ptr(0), Ptr(0))
	got := results[float32](r, c, m*n)
	for i := range got {
		var want, size float64
		for j := range inner {
			p := exactA[i/n*inner+j] * exactB[j*n+i%n]
			want, size = want+p, size+math.Abs(p)
		}
		if e := math.Abs(float64(got[i]) - want); !(e <= tolerance*size) {
			r.Fatalf("%d×%d×%d: element %d is %v, not %v", m, inner, n, i, got[i], want)
		}
	}
}

// TestTritonAssembles checks that NVIDIA's assembler accepts the texts.
func TestTritonAssembles(t *testing.T) {
	testutil.Need(t, "ptxas")
	for _, k := range tritonKernels {
		name := filepath.Join(t.TempDir(), "module.ptx")
		if err := os.WriteFile(name, []byte(nvrtcText(t, "testdata/triton/"+k.file+".ptx.gz")), 0o600); err != nil {
			t.Fatal(err)
		}
		_, arch, _ := strings.Cut(k.file, ".")
		if arch == "sm_90" {
			arch = "sm_90a" // for wgmma
		}
		if out, err := exec.Command("ptxas", "--compile-only", "-arch="+arch, "-o", os.DevNull, name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", k.file, err, out)
		}
	}
}
