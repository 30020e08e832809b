package emu

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// nvrtcText returns PTX that NVRTC compiled from testdata/nvrtc/kernels.cu.
func nvrtcText(t testing.TB, file string) string {
	t.Helper()
	return string(testutil.Unzip(t, file))
}

func nvrtcFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/nvrtc/*.ptx.gz")
	if err != nil || len(files) != 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

// rig is a machine that runs kernels compiled by NVRTC.
type rig struct {
	*testing.T
	m    *Machine
	mod  *Module
	rand *rand.Rand
	fast bool // compiled with -use_fast_math
	file string
}

// array allocates an array that holds v.
func (r *rig) array(v any) Ptr {
	r.Helper()
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
		r.Fatal(err)
	}
	p, err := r.m.Alloc("array", b.Len())
	if err == nil {
		err = r.m.Write(p, b.Bytes())
	}
	if err != nil {
		r.Fatal(err)
	}
	return p
}

// empty allocates n uninitialised bytes.
func (r *rig) empty(n int) Ptr {
	r.Helper()
	p, err := r.m.Alloc("result", n)
	if err != nil {
		r.Fatal(err)
	}
	return p
}

// launch runs a kernel, which must have no findings.
func (r *rig) launch(name string, grid, block Dim, shared int, params ...any) {
	r.Helper()
	k, err := r.mod.Kernel(name)
	if err != nil {
		r.Fatal(err)
	}
	if err := r.m.Launch(r.Context(), k, grid, block, shared, params...); err != nil {
		r.Fatalf("%s: %v", name, err)
	}
}

// results reads n values.
func results[T any](r *rig, p Ptr, n int) []T {
	r.Helper()
	v := make([]T, n)
	b := make([]byte, binary.Size(v))
	err := r.m.Read(p, b)
	if err == nil {
		err = binary.Read(bytes.NewReader(b), binary.LittleEndian, v)
	}
	if err != nil {
		r.Fatal(err)
	}
	return v
}

// random returns n values.
func random[T any](n int, f func(i int) T) []T {
	v := make([]T, n)
	for i := range v {
		v[i] = f(i)
	}
	return v
}

// same requires that each element equals the result of the function want.
func same[T comparable](r *rig, got []T, want func(i int) T) {
	r.Helper()
	for i, v := range got {
		if w := want(i); v != w {
			r.Fatalf("element %d is %v, not %v", i, v, w)
		}
	}
}

// closeTo compares each element with the result of the function want. The error may be the sum of the relative error
// tolerance and the absolute error least.
func closeTo[T float32 | float64](r *rig, got []T, tolerance, least float64, want func(i int) float64) {
	r.Helper()
	for i, v := range got {
		g, w := float64(v), want(i)
		if !(g == w || g != g && w != w || math.Abs(g-w) <= tolerance*math.Abs(w)+least) {
			r.Fatalf("element %d is %v, not %v", i, g, w)
		}
	}
}

// TestNVRTC runs kernels that NVIDIA's compiler compiled from CUDA C, for three targets, with debug information and with
// optimisation, and compares the results with Go functions.
func TestNVRTC(t *testing.T) {
	seed := testutil.Seed(t)
	for _, file := range nvrtcFiles(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".ptx.gz")
		t.Run(name, func(t *testing.T) {
			mod, err := Parse(nvrtcText(t, file))
			if err != nil {
				t.Fatal(err)
			}
			tested := map[string]bool{"prints": true}
			for _, c := range nvrtcCases {
				for _, k := range c.kernels {
					tested[k] = true
				}
				if _, err := mod.Kernel(c.kernels[0]); err != nil && c.since > name {
					continue
				}
				for _, order := range []Schedule{Ascending, Shuffled} {
					t.Run(c.kernels[0], func(t *testing.T) {
						c.run(&rig{t, NewMachine(Config{Schedule: order, Seed: seed}), mod, rand.New(rand.NewPCG(seed, 1)), strings.HasSuffix(name, "lines"), name})
					})
				}
			}
			for _, k := range mod.Kernels() {
				if !tested[k.Name()] {
					t.Errorf("nothing tests %s", k.Name())
				}
			}
		})
	}
}

// TestUnreadable checks that other kernels of a module run if one kernel cannot, and that the launch of the latter
// returns the reason.
func TestUnreadable(t *testing.T) {
	for _, file := range nvrtcFiles(t) {
		mod, err := Parse(nvrtcText(t, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range mod.Kernels() {
			if (k.Err() != nil) != (k.Name() == "prints") {
				t.Errorf("%s: %v", k.Name(), k.Err())
			}
		}
		k, err := mod.Kernel("prints")
		if err != nil {
			t.Fatal(err)
		}
		err = NewMachine(Config{}).Launch(t.Context(), k, Dim{}, Dim{}, 0, int32(1))
		if err == nil || !strings.Contains(err.Error(), "kernel prints: ") || !strings.Contains(err.Error(), "vprintf") {
			t.Errorf("%v", err)
		}
	}
}

// TestNVRTCAssembles checks that NVIDIA's assembler accepts the texts.
func TestNVRTCAssembles(t *testing.T) {
	testutil.Need(t, "ptxas")
	for _, file := range nvrtcFiles(t) {
		name := filepath.Join(t.TempDir(), "module.ptx")
		if err := os.WriteFile(name, []byte(nvrtcText(t, file)), 0o600); err != nil {
			t.Fatal(err)
		}
		arch := "-arch=sm_" + strings.TrimPrefix(filepath.Base(file), "kernels_")[:2]
		if out, err := exec.Command("ptxas", "--compile-only", arch, "-o", os.DevNull, name).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}

const items = 300 // elements of an array, not a multiple of a block

var blocks, threads = Dim{X: 5}, Dim{X: 64}

type nvrtcCase struct {
	kernels []string
	since   string
	run     func(r *rig)
}

var nvrtcCases = []nvrtcCase{
	{[]string{"exp_f32"}, "", func(r *rig) {
		x := random(items, func(i int) float32 { return r.rand.Float32()*180 - 90 })
		copy(x, []float32{0, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 88.7, -104})
		r.unary("exp_f32", x, 3e-7, 2e-5, 1e-44, math.Exp)
	}},
	{[]string{"sin_f32"}, "", func(r *rig) {
		x := random(items, func(i int) float32 {
			return float32(math.Pow(10, r.rand.Float64()*40-3)) * (r.rand.Float32() - 0.5)
		})
		r.unary("sin_f32", x, 3e-7, 3e-7, 1e-37, math.Sin)
	}},
	{[]string{"pow_f32"}, "", func(r *rig) {
		x := random(items, func(i int) float32 { return r.rand.Float32() * 20 })
		p := random(items, func(i int) float32 { return r.rand.Float32()*10 - 5 })
		if !r.fast { // the fast power function gives NaN for negative numbers
			copy(x, []float32{-2, -2, -3, 0, 1, float32(math.Inf(1)), -0.5})
			copy(p, []float32{3, -4, 0.5, 2, 1e9, -1, 3})
		}
		y := r.empty(4 * items)
		r.launch("pow_f32", blocks, threads, 0, y, r.array(x), r.array(p), int32(items))
		closeTo(r, results[float32](r, y, items), r.tolerance(5e-7, 1e-5), 1e-37, func(i int) float64 { return math.Pow(float64(x[i]), float64(p[i])) })
	}},
	{[]string{"more_f32"}, "", (*rig).moreFloats},
	{[]string{"math_f64"}, "", (*rig).doubles},
	{[]string{"divide32"}, "", func(r *rig) {
		a, b := divisors[int32](r)
		y := r.empty(16 * items)
		r.launch("divide32", blocks, threads, 0, y, r.array(a), r.array(b), int32(items))
		same(r, results[int32](r, y, 4*items), func(i int) int32 {
			a, b := a[i/4], b[i/4]
			return []int32{a / b, a % b, int32(uint32(a) / uint32(b)), int32(uint32(a) % 1000003)}[i%4]
		})
	}},
	{[]string{"divide64"}, "", func(r *rig) {
		a, b := divisors[int64](r)
		y := r.empty(32 * items)
		r.launch("divide64", blocks, threads, 0, y, r.array(a), r.array(b), int32(items))
		same(r, results[int64](r, y, 4*items), func(i int) int64 {
			a, b := a[i/4], b[i/4]
			return []int64{a / b, a % b, int64(uint64(a) / uint64(b)), int64(uint64(a) % 1000000007)}[i%4]
		})
	}},
	{[]string{"multiply128"}, "", (*rig).multiply128},
	{[]string{"bits"}, "", (*rig).bits},
	{[]string{"small_types"}, "", (*rig).smallTypes},
	{[]string{"_Z4sumsIfLi128EEvPT_PKS0_i", "_Z4sumsIdLi64EEvPT_PKS0_i", "_Z4sumsIiLi256EEvPT_PKS0_i"}, "", func(r *rig) {
		sums(r, "_Z4sumsIfLi128EEvPT_PKS0_i", 128, func(i int) float32 { return r.rand.Float32() })
		sums(r, "_Z4sumsIdLi64EEvPT_PKS0_i", 64, func(i int) float64 { return r.rand.Float64() })
		sums(r, "_Z4sumsIiLi256EEvPT_PKS0_i", 256, func(i int) int32 { return int32(r.rand.Uint32()) })
	}},
	{[]string{"scan"}, "", func(r *rig) {
		x := random(items, func(i int) int32 { return r.rand.Int32N(1000) - 500 })
		y := r.empty(4 * items)
		r.launch("scan", blocks, threads, 0, y, r.array(x), int32(items))
		sum := int32(0)
		same(r, results[int32](r, y, items), func(i int) int32 {
			if i%threads.X == 0 {
				sum = 0
			}
			sum += x[i]
			return sum
		})
	}},
	{[]string{"votes"}, "", (*rig).votes},
	{[]string{"histogram"}, "", (*rig).histogram},
	{[]string{"block_votes"}, "", func(r *rig) {
		x := random(items, func(i int) int32 { return r.rand.Int32N(101) })
		y := r.empty(4 * items)
		r.launch("block_votes", blocks, threads, 0, y, r.array(x), int32(items))
		same(r, results[int32](r, y, items), func(i int) int32 {
			v, any, all := int32(0), int32(0), int32(1)
			for _, x := range x[i/64*64 : min(i/64*64+64, items)] {
				if x > 50 {
					v += 4
				}
				if x == 99 {
					any = 2
				}
				if x >= 99 {
					all = 0
				}
			}
			return v + any + all
		})
	}},
	{[]string{"transpose"}, "", func(r *rig) {
		const rows, cols = 37, 50
		x := random(rows*cols, func(i int) float32 { return r.rand.Float32() })
		y := r.empty(4 * rows * cols)
		r.launch("transpose", Dim{X: 4, Y: 3}, Dim{X: 16, Y: 16}, 16*17*4, y, r.array(x), int32(rows), int32(cols))
		same(r, results[float32](r, y, rows*cols), func(i int) float32 { return x[i%rows*cols+i/rows] })
	}},
	{[]string{"last_block"}, "", (*rig).lastBlock},
	{[]string{"structures"}, "", (*rig).structures},
	{[]string{"recursion"}, "", func(r *rig) {
		y := r.empty(4 * items)
		r.launch("recursion", blocks, threads, 0, y, int32(items))
		same(r, results[uint32](r, y, items), func(i int) uint32 {
			v := uint32(ackermann(i%3, i%5))
			if i%7 != 2 {
				v += hanoi(uint32(i%6), 0, 2, uint32(i))
			}
			return v*2 + uint32((i%23+1)%2)
		})
	}},
	{[]string{"sort_local"}, "", func(r *rig) {
		x := random(20*items, func(i int) int32 { return r.rand.Int32N(100) - 50 })
		y := r.empty(80 * items)
		r.launch("sort_local", blocks, threads, 0, y, r.array(x), int32(items))
		for part := range slices.Chunk(x, 20) {
			slices.Sort(part)
		}
		same(r, results[int32](r, y, 20*items), func(i int) int32 { return x[i] })
	}},
	{[]string{"pointers"}, "", (*rig).pointers},
	{[]string{"tables"}, "", (*rig).tables},
	{[]string{"count_calls"}, "", func(r *rig) {
		for want := range int32(3) {
			y := r.empty(4)
			r.launch("count_calls", Dim{}, threads, 0, y)
			same(r, results[int32](r, y, 1), func(int) int32 { return want + 1 })
		}
	}},
	{[]string{"indirect"}, "", func(r *rig) {
		x := random(items, func(i int) float32 { return r.rand.Float32() * 3 })
		which := random(items, func(i int) int32 { return r.rand.Int32N(3) })
		y := r.empty(4 * items)
		r.launch("indirect", blocks, threads, 0, y, r.array(x), r.array(which), int32(items))
		same(r, results[float32](r, y, items), func(i int) float32 {
			return []float32{x[i] + 1.5, x[i] * 1.5, pick(x[i], 1.5)}[which[i]]
		})
	}},
	{[]string{"virtuals"}, "", func(r *rig) {
		x := random(items, func(i int) float32 { return r.rand.Float32() * 2 })
		r.unary("virtuals", x, 1e-6, 1e-6, 0, func(x float64) float64 {
			if x > 1 {
				return math.Pi * x * x
			}
			return x * x
		})
	}},
	{[]string{"jumps"}, "", (*rig).jumps},
	{[]string{"halves"}, "", (*rig).halves},
	{[]string{"brains"}, "kernels_8", func(r *rig) {
		x := random(items, func(i int) uint16 { return toBrain(r.rand.NormFloat64() * 10) })
		y := r.empty(2 * items)
		r.launch("brains", blocks, threads, 0, y, r.array(x), int32(items))
		same(r, results[uint16](r, y, items), func(i int) uint16 {
			x := fromBrain(x[i])
			v := fromBrain(toBrain(x*1.5 - 0.25))
			return toBrain(fromBrain(toBrain(v*x)) + fromBrain(toBrain(float64(float32(x)*3))))
		})
	}},
	{[]string{"reduce_warp"}, "kernels_8", func(r *rig) {
		x := random(32, func(i int) int32 { return int32(r.rand.Uint32()) })
		y := r.empty(128)
		r.launch("reduce_warp", Dim{}, Dim{X: 32}, 0, y, r.array(x))
		sum := int32(0)
		for _, v := range x {
			sum += v
		}
		same(r, results[int32](r, y, 32), func(int) int32 { return sum ^ slices.Min(x) })
	}},
	{[]string{"vectors"}, "", func(r *rig) {
		x := random(4*items, func(i int) float32 { return r.rand.Float32() })
		k := random(2*items, func(i int) int32 { return r.rand.Int32N(100) })
		y := r.empty(16 * items)
		r.launch("vectors", blocks, threads, 0, y, r.array(x), r.array(k), int32(items))
		closeTo(r, results[float32](r, y, 4*items), 1e-6, 0, func(i int) float64 {
			v, a, b := float64(x[i]), float64(k[i/4*2]), float64(k[i/4*2+1])
			return []float64{v + a, v * b, v - a, v/3 + (float64(x[i/4*4])+a)/7}[i%4]
		})
	}},
}
