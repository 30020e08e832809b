package emu

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// A mutant is a kernel with a planted defect, and what must be found in it.
// Without the defect nothing may be found: see twins.
type mutant struct {
	kernel string
	defect string
	want   Kind
}

// workload is how a kernel of the mutants is run.
type workload struct {
	build func(defect string) func(k *ptx.Kernel)
	run   func(d device, k *Kernel) error
}

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
	"spin": {spinKernel, func(d device, k *Kernel) error {
		return d.Launch(background, k, Dim{X: 2}, Dim{X: 32}, 0, d.words("flag", []uint32{0}), d.empty("y", 8))
	}},
}

var mutants = []mutant{
	{"relu", "bound", OutOfBounds},
	{"gemm", "first barrier", Race},
	{"gemm", "second barrier", Race},
	{"gemm", "bound", OutOfBounds},
	{"gemm", "small", OutOfBounds},
	{"gemm", "uninitialised", Uninitialised},
	{"sum", "init", Uninitialised},
	{"sum", "barrier", Race},
	{"sum", "divergent", DivergentBarrier},
	{"sum", "half", DivergentBarrier},
	{"sum", "partial shuffle", DivergentWarp},
	{"sum", "one place", Race},
	{"tree", "lockstep", Race},
	{"softmax", "row", OutOfBounds},
	{"transpose", "barrier", Race},
	{"transpose", "bound", OutOfBounds},
	{"transpose", "stride", 0}, // right, but slow: see TestConflicts
	{"histogram", "init", Uninitialised},
	{"histogram", "first barrier", Race},
	{"histogram", "plain", Race},
	{"histogram", "last barrier", Race},
	{"histogram", "flush", Race},
	{"last", "release", Race},
	{"last", "acquire", Race},
	{"copy", "wait", MissingWait},
	{"copy", "one group", MissingWait},
	{"copy", "commit", MissingWait},
	{"copy", "first barrier", Race},
	{"copy", "second barrier", Race},
	{"spin", "release", Race},
	{"spin", "acquire", Race},
	{"spin", "endless", Budget},
}

// TestMutants finds each planted defect, whatever the order of blocks and warps,
// at a line of the author's.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.kernel+"/"+m.defect, func(t *testing.T) {
			load := workloads[m.kernel]
			k := build(t, load.build(m.defect))
			for _, c := range schedules {
				c.Steps = 1 << 20
				err := load.run(newDevice(t, c), k)
				if m.want == 0 {
					if err != nil {
						t.Errorf("%v: %v", c, err)
					}
					continue
				}
				if !errors.Is(err, m.want) {
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

// TestTwins finds nothing in the same kernels without the defect.
func TestTwins(t *testing.T) {
	for name, load := range workloads {
		k := build(t, load.build(""))
		for _, c := range schedules {
			if err := load.run(newDevice(t, c), k); err != nil {
				t.Errorf("%s, %v: %v", name, c, err)
			}
		}
	}
}

// TestConflicts counts what a stride of 32 words costs.
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
