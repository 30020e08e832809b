package simd

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// mapGuard stands around the slices that a kernel gets: a kernel that writes
// beyond them changes it.
var mapGuard = math.Float32frombits(0x7fc0dead)

// mapGuarded returns a slice of n elements that starts off elements into a
// larger one, and a function that reports whether what surrounds it is whole.
func mapGuarded(n, off int) ([]float32, func() bool) {
	const around = 40
	all := make([]float32, around+off+n+around)
	for i := range all {
		all[i] = mapGuard
	}
	s := all[around+off:][:n:n]
	return s, func() bool {
		for i, v := range all {
			if (i < around+off || i >= around+off+n) && math.Float32bits(v) != math.Float32bits(mapGuard) {
				return false
			}
		}
		return true
	}
}

// mapLengths are every remainder of every loop, and some primes.
func mapLengths(short bool) []int {
	var ns []int
	for n := range 130 {
		if !short || n < 70 {
			ns = append(ns, n)
		}
	}
	return append(ns, 211, 509, 521, 1031)
}

// TestMapLengths compares every kernel, on every length and alignment, out of
// place and in place, with itself on one long array: an element does not
// depend on its place. (The values are those that TestMapAccuracy checks.)
func TestMapLengths(t *testing.T) {
	for _, level := range Supported() {
		for _, name := range wordNames() {
			checkLengths(t, level, name, MapAt(level, name))
		}
	}
}

// TestStreamLengths is the same for the kernels that write around the caches.
func TestStreamLengths(t *testing.T) {
	for _, level := range Supported() {
		for _, name := range wordNames() {
			if f := StreamAt(level, name); f != nil {
				checkLengths(t, level, name, f)
			}
		}
	}
}

func checkLengths(t *testing.T, level Level, name string, f MapFunc) {
	t.Helper()
	const longest = 1031
	ref := referenceOf(t, name)
	r := rand.New(rand.NewPCG(2, 3))
	in := ref.operands(longest+100, r)
	want := make([]float32, longest+100)
	MapAt(level, name)(&want[0], pointer(in[0]), pointer(in[1]), pointer(in[2]), len(want), pointer(ref.ps))
	same := func(what string, n, off int, got []float32) {
		t.Helper()
		for i, v := range got {
			if math.Float32bits(v) != math.Float32bits(want[off+i]) && !(v != v && want[off+i] != want[off+i]) {
				t.Errorf("%v %s %s: element %d of %d at %d is %v, want %v", level, name, what, i, n, off, v, want[off+i])
				return
			}
		}
	}
	for _, n := range mapLengths(testing.Short()) {
		off := n % 17
		var args [3][]float32
		var whole [4]func() bool
		for i := range args {
			args[i], whole[i] = nil, func() bool { return true }
			if in[i] != nil {
				args[i], whole[i] = mapGuarded(n, (off*3+i)%16)
				copy(args[i], in[i][off:])
			}
		}
		dst, untouched := mapGuarded(n, n%16)
		f(pointer(dst), pointer(args[0]), pointer(args[1]), pointer(args[2]), n, pointer(ref.ps))
		same("out of place", n, off, dst)
		if !untouched() {
			t.Fatalf("%v %s wrote outside %d elements", level, name, n)
		}
		for i := range args {
			if args[i] == nil {
				continue
			}
			f(pointer(args[i]), pointer(args[0]), pointer(args[1]), pointer(args[2]), n, pointer(ref.ps))
			same("in place", n, off, args[i])
			if !whole[i]() {
				t.Fatalf("%v %s in place wrote outside %d elements", level, name, n)
			}
			copy(args[i], in[i][off:])
		}
	}
}

func TestMapOfNothing(t *testing.T) {
	for _, level := range Supported() {
		for _, name := range wordNames() {
			p := []float32{1, 2}
			MapAt(level, name)(nil, nil, nil, nil, 0, &p[0])
		}
	}
	if Map("no such kernel") != nil {
		t.Error("a kernel for an unknown name")
	}
}

// TestTrigNear checks the vector code of sin and cos where no block leaves it.
func TestTrigNear(t *testing.T) {
	n := 1 << 20
	if testing.Short() {
		n = 1 << 14
	}
	x := make([]float32, n)
	r := rand.New(rand.NewPCG(5, 6))
	for i := range x {
		switch v := r.Float64(); i % 4 {
		case 0: // all exponents up to the limit
			x[i] = float32(math.Ldexp(1+v, r.IntN(100)-84))
		case 1: // near multiples of pi/2
			x[i] = float32(math.Pi/2*float64(r.IntN(ir.TrigLimit/2))) + float32(v-0.5)*0x1p-12
		case 2:
			x[i] = float32((v - 0.5) * 20)
		default:
			x[i] = float32((v - 0.5) * 2 * ir.TrigLimit)
		}
		if x[i] > ir.TrigLimit {
			x[i] = ir.TrigLimit
		}
	}
	for _, level := range Supported() {
		for name, f := range map[string]func(float64) float64{"sin": math.Sin, "cos": math.Cos} {
			y := make([]float32, n)
			MapAt(level, name)(&y[0], &x[0], nil, nil, n, nil)
			worst, at := 0.0, 0
			for i := range y {
				want := f(float64(x[i]))
				if d := math.Abs(float64(y[i])-want) / ulpOf(want); !(d <= worst) {
					worst, at = d, i
				}
			}
			t.Logf("%v %s: worst %.3f ulp at %v", level, name, worst, x[at])
			if !(worst <= codeTolerance[map[string]ir.Code{"sin": ir.Sin, "cos": ir.Cos}[name]]) {
				t.Errorf("%v %s: %.3f ulp at %v", level, name, worst, x[at])
			}
		}
	}
}

// TestMapSweep asks the functions for a dense set of arguments over all
// exponents, both signs.
func TestMapSweep(t *testing.T) {
	step := uint32(1 << 11) // 2^21 arguments
	if testing.Short() {
		step = 1 << 17
	}
	var x []float32
	for b := uint64(0); b < 1<<32; b += uint64(step) {
		x = append(x, math.Float32frombits(uint32(b)+uint32(b>>11)%step))
	}
	// In runs of ascending numbers: a large one sends its block of sin and cos
	// to float64.
	y := make([]float32, len(x))
	for _, name := range []string{"exp", "exp2", "code.expm1", "log", "log2", "log1p", "tanh", "sigmoid", "erf", "code.erfc", "code.normcdf", "sin", "cos", "gelu", "silu", "softplus"} {
		ref := referenceOf(t, name)
		want, _ := ref.eval(t, [3][]float32{x}, len(x))
		for _, level := range Supported() {
			MapAt(level, name)(&y[0], &x[0], nil, nil, len(x), nil)
			worst, at := 0.0, 0
			for i, w := range want {
				if err := ref.tol.Check(float64(y[i]), w, 0, op.F32); err != nil {
					t.Errorf("%v %s of %v: %v", level, name, x[i], err)
					break
				}
				if d := math.Abs(float64(y[i])-w) / ulpOf(w); d > worst && math.Abs(w) > ref.tol.Abs*1e3 && math.Abs(w) <= math.MaxFloat32 {
					worst, at = d, i
				}
			}
			t.Logf("%v %s: worst %.3f ulp at %v", level, name, worst, x[at])
		}
	}
}
