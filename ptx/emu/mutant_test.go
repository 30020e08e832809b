package emu

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// A mutant is a kernel with a planted defect, and the expected findings. The kernel without the defect must have no
// findings: see TestTwins. In the table, wrong means errWrong.
const wrong Kind = 255

type mutant struct {
	kernel string
	defect string
	want   Kind
	or     Kind // in some orders
}

// workload runs a kernel of the mutants.
type workload struct {
	build func(defect string) func(k *ptx.Kernel)
	run   func(d device, k *Kernel) error
}

// errWrong means wrong results, by which the tests detect some defects.
var errWrong = errors.New("wrong result")

var background = context.Background()

var workloads = map[string]workload{
	"relu": {reluKernel, func(d device, k *Kernel) error {
		n := 130
		x, y := d.floats("x", randoms(n, 1)), d.empty("y", 4*n)
		return d.Launch(background, k, Dim{X: 2}, Dim{X: 32}, 0, x, y, uint32(n))
	}},
	"gemm": {gemmKernel, func(d device, k *Kernel) error {
		m, n, kk := 20, 18, 35
		a, b, c := d.floats("a", randoms(m*kk, 1)), d.floats("b", randoms(kk*n, 2)), d.empty("c", 4*m*n)
		return d.Launch(background, k, Dim{X: 2, Y: 2}, Dim{X: tile, Y: tile}, 0, a, b, c, uint32(m), uint32(n), uint32(kk))
	}},
	"sum": {sumKernel, func(d device, k *Kernel) error {
		x, y := d.floats("x", randoms(1000, 1)), d.empty("y", 8)
		return d.Launch(background, k, Dim{X: 2}, Dim{X: 128}, 0, x, y, uint32(1000))
	}},
	"tree": {treeKernel, func(d device, k *Kernel) error {
		x, y := d.floats("x", randoms(256, 1)), d.empty("y", 8)
		return d.Launch(background, k, Dim{X: 2}, Dim{X: 128}, 0, x, y)
	}},
	"softmax": {softmaxKernel, func(d device, k *Kernel) error {
		rows, cols := 5, 40
		x, y := d.floats("x", randoms(rows*cols, 1)), d.empty("y", 4*rows*cols)
		return d.Launch(background, k, Dim{X: 2}, Dim{X: 128}, 0, x, y, uint32(rows), uint32(cols))
	}},
	"transpose": {transposeKernel, func(d device, k *Kernel) error {
		rows, cols := 64, 32
		x, y := d.floats("x", randoms(rows*cols, 1)), d.empty("y", 4*rows*cols)
		return d.Launch(background, k, Dim{X: 2, Y: 2}, Dim{X: 32, Y: 8}, 0, x, y, uint32(rows), uint32(cols))
	}},
	"histogram": {histogramKernel, func(d device, k *Kernel) error {
		x, y := d.words("x", make([]uint32, 250)), d.words("y", make([]uint32, 256))
		return d.Launch(background, k, Dim{X: 2}, Dim{X: 64}, 0, x, y, uint32(1000))
	}},
	"last": {lastKernel, func(d device, k *Kernel) error {
		x := d.words("x", make([]uint32, 96))
		return d.Launch(background, k, Dim{X: 3}, Dim{X: 32}, 0, x, d.empty("part", 12), d.words("count", []uint32{0}), d.empty("y", 4))
	}},
	"copy": {copyKernel, func(d device, k *Kernel) error {
		x, y := d.floats("x", randoms(1024, 1)), d.empty("y", 4096)
		return d.Launch(background, k, Dim{X: 1}, Dim{X: 64}, 2048, x, y, uint32(4))
	}},
	"mma": {mmaKernel, func(d device, k *Kernel) error {
		_, _, err := runMma(d, k)
		return err
	}},
	"wgmma": {wgmmaKernel, func(d device, k *Kernel) error {
		got, want, err := runWgmma(d, k)
		if err != nil {
			return err
		}
		for i := range want { // a wrong result counts as a finding too
			if !(math.Abs(float64(got[i])-want[i]) < 1e-3) {
				return errWrong
			}
		}
		return nil
	}},
	"ordered": {orderedKernel, func(d device, k *Kernel) error {
		return d.Launch(background, k, Dim{X: 2}, Dim{X: 32}, 0, d.words("flag", []uint32{0}), d.empty("y", 8))
	}},
	"spin": {spinKernel, func(d device, k *Kernel) error {
		return d.Launch(background, k, Dim{X: 2}, Dim{X: 32}, 0, d.words("flag", []uint32{0}), d.empty("y", 8))
	}},
}

var mutants = []mutant{
	{"relu", "bound", OutOfBounds, 0},
	{"gemm", "first barrier", Race, 0},
	{"gemm", "second barrier", Race, 0},
	{"gemm", "bound", OutOfBounds, 0},
	{"gemm", "small", OutOfBounds, 0},
	{"gemm", "uninitialised", Uninitialised, 0},
	{"sum", "init", Uninitialised, 0},
	{"sum", "barrier", Race, 0},
	{"sum", "divergent", DivergentBarrier, 0},
	{"sum", "half", DivergentBarrier, 0},
	{"sum", "partial shuffle", DivergentWarp, 0},
	{"sum", "one place", Race, 0},
	{"tree", "lockstep", Race, 0},
	{"softmax", "row", OutOfBounds, 0},
	{"transpose", "barrier", Race, 0},
	{"transpose", "bound", OutOfBounds, 0},
	{"transpose", "stride", 0, 0}, // the results are right, but the kernel is slow: see TestConflicts
	{"histogram", "init", Uninitialised, 0},
	{"histogram", "first barrier", Race, 0},
	{"histogram", "plain", Race, 0},
	{"histogram", "last barrier", Race, 0},
	{"histogram", "flush", Race, 0},
	{"last", "release", Race, 0},
	{"last", "acquire", Race, 0},
	{"copy", "wait", MissingWait, 0},
	{"copy", "one group", MissingWait, 0},
	{"copy", "commit", MissingWait, 0},
	{"copy", "first barrier", Race, 0},
	{"copy", "second barrier", Race, 0},
	{"mma", "barrier", Race, 0},
	{"mma", "misaligned", Misaligned, 0},
	{"mma", "half", DivergentWarp, 0},
	{"wgmma", "init barrier", Race, Uninitialised},
	{"wgmma", "empty", BadOperand, 0},
	{"wgmma", "bytes", Deadlock, 0},
	{"wgmma", "full", MissingWait, 0},
	{"wgmma", "parity", MissingWait, 0},
	{"wgmma", "swizzle", wrong, 0},
	{"wgmma", "stride", wrong, 0},
	{"wgmma", "fence", MissingWait, 0},
	{"wgmma", "wait", MissingWait, 0},
	{"wgmma", "proxy", MissingWait, 0},
	{"wgmma", "group barrier", Race, 0},
	{"wgmma", "bulk wait", MissingWait, 0},
	{"ordered", "load", Race, 0},
	{"ordered", "store", Race, 0},
	{"ordered", "plain", Race, 0},
	{"spin", "release", Race, 0},
	{"spin", "acquire", Race, 0},
	{"spin", "endless", Budget, 0},
}

// TestMutants checks that the emulator finds each planted defect in every order of blocks and warps, with the author's
// line.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.kernel+"/"+m.defect, func(t *testing.T) {
			load := workloads[m.kernel]
			k := buildFor(t, ptx.SM90a, load.build(m.defect))
			for _, c := range schedules {
				c.Steps = 3 << 18
				err := load.run(newDevice(t, c), k)
				if m.want == wrong {
					if !errors.Is(err, errWrong) {
						t.Errorf("%v: no wrong result: %v", c, err)
					}
					continue
				}
				if m.want == 0 {
					if err != nil {
						t.Errorf("%v: %v", c, err)
					}
					continue
				}
				if !errors.Is(err, m.want) && (m.or == 0 || !errors.Is(err, m.or)) {
					t.Errorf("%v: found no %v but: %v", c, m.want, err)
					continue
				}
				var f *Finding
				if !errors.As(err, &f) || !strings.HasSuffix(f.Pos.File, "_test.go") || f.Line == 0 || f.Text == "" {
					t.Errorf("%v: no author's line: %v", c, err)
				}
			}
		})
	}
}

// TestTwins checks that the same kernels without defects have no findings.
func TestTwins(t *testing.T) {
	for name, load := range workloads {
		k := buildFor(t, ptx.SM90a, load.build(""))
		for _, c := range schedules {
			if err := load.run(newDevice(t, c), k); err != nil {
				t.Errorf("%s, %v: %v", name, c, err)
			}
		}
	}
}

// TestConflicts counts the bank conflicts of a stride of 32 words.
func TestConflicts(t *testing.T) {
	d := newDevice(t, Config{})
	if err := workloads["transpose"].run(d, build(t, transposeKernel("stride"))); err != nil {
		t.Fatal(err)
	}
	// 2 tiles of 32 columns, each with 31 passes too many.
	if got := d.Stats().Conflicts; got != 2*32*31 {
		t.Errorf("%d conflicts", got)
	}
}
