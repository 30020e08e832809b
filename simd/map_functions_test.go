package simd

import (
	"math"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

func TestFunctions(t *testing.T) {
	n := 3*mapChunk + 17
	x, y, z, dst := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range x {
		x[i], y[i], z[i] = float32(i%1000)-500, float32(i%77), float32(i%13)
	}
	Relu(dst, x)
	for i, v := range dst {
		if v != max(x[i], 0) {
			t.Fatalf("relu of element %d, %v, is %v", i, x[i], v)
		}
	}
	Fma(dst, x, y, z)
	for i, v := range dst {
		if v != x[i]*y[i]+z[i] {
			t.Fatalf("fma of element %d is %v", i, v)
		}
	}
	Clip(x, x, -3, 4)
	for i, v := range x {
		if want := float32(min(max(i%1000-500, -3), 4)); v != want {
			t.Fatalf("clip of element %d is %v, want %v", i, v, want)
		}
	}
	LeakyRelu(dst[:4], []float32{-2, 2, float32(math.Inf(1)), 0}, 0.5)
	if dst[0] != -1 || dst[1] != 2 || !math.IsInf(float64(dst[2]), 1) || dst[3] != 0 {
		t.Errorf("leaky relu: %v", dst[:4])
	}
	Relu(nil, nil)
}

func TestFunctionsDoNotAllocate(t *testing.T) {
	want := 0
	if Active() == SIMD128 {
		want = 2 // the arrays: its kernels work on the heap alone
	}
	if n := testutil.Allocations(100, func() {
		var a, b [64]float32
		Clip(a[:], b[:], -1, 1)
		Add(a[:], a[:], b[:])
	}); n != want {
		t.Errorf("%v allocations", n)
	}
}

func TestFunctionsPanicOnLengths(t *testing.T) {
	three, four := make([]float32, 3), make([]float32, 4)
	for i, f := range []func(){
		func() { Relu(three, four) },
		func() { Relu(four, three) },
		func() { Add(three, three, four) },
		func() { Fma(three, three, three, four[:2]) },
		func() { Relu(three, nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("case %d did not panic", i)
				}
			}()
			f()
		}()
	}
}
