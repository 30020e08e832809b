//go:build js && !noasm

package simd

import (
	"math"
	"runtime"
	"syscall/js"
	"testing"

	"github.com/rayo-go/rayo/internal/wasm/jshost"
)

// TestSIMD128 is there: all engines that these tests run in have the instructions.
func TestSIMD128(t *testing.T) {
	for _, m := range [][]byte{elementModule, arrayModule} {
		if _, err := jshost.Start(m); err != nil {
			t.Fatal(err)
		}
	}
	if elements == nil || !hasArrays(SIMD128) {
		t.Fatal("the modules were not started")
	}
	if s := Supported(); len(s) != 2 || s[1] != SIMD128 {
		t.Errorf("the levels are %v", s)
	}
	if _, err := jshost.Start([]byte("no module")); err == nil {
		t.Error("a module that is none has started")
	}
}

// TestSIMD128Grows computes while the memory grows, which takes all views of it away
// from JavaScript, and in memory that was not there when the module started.
func TestSIMD128Grows(t *testing.T) {
	relu := MapAt(SIMD128, "relu")
	var held [][]float32
	for i := range 24 {
		x := make([]float32, 1<<20+i)
		for j := range x {
			x[j] = float32(j%7 - 3)
		}
		relu(&x[0], &x[0], nil, nil, len(x), nil)
		for j, v := range x {
			if want := float32(max(j%7-3, 0)); v != want {
				t.Fatalf("array %d, element %d: %v, want %v", i, j, v, want)
			}
		}
		held = append(held, x)
	}
	runtime.KeepAlive(held)
}

// TestSIMD128Stacks calls a kernel on variables of goroutines whose stacks grow before the
// call: the kernel must write to the variables' new addresses.
func TestSIMD128Stacks(t *testing.T) {
	done := make(chan bool)
	for i := range 64 {
		go func() {
			var x, y [16]float32
			for j := range x {
				x[j] = float32(i - j)
			}
			deep(i+1, func() { Relu(y[:], x[:]) })
			good := true
			for j, v := range y {
				good = good && v == float32(max(i-j, 0))
			}
			done <- good
		}()
	}
	for range 64 {
		if !<-done {
			t.Error("a result was written to where its stack had been")
		}
	}
}

// deep calls f below the given number of stack frames of a kilobyte.
func deep(frames int, f func()) float32 {
	var b [256]float32
	if frames == 0 {
		f()
		return 0
	}
	b[frames] = deep(frames-1, f)
	return b[frames]
}

// TestSIMD128Hidden hides the global Go, as a bundled page does, and the global WebAssembly,
// as an old engine does. Start must work without Go, and must return an error and no host
// without WebAssembly.
func TestSIMD128Hidden(t *testing.T) {
	for name, without := range map[string]string{"bundled": "Go", "no WebAssembly": "WebAssembly"} {
		kept := js.Global().Get(without)
		js.Global().Set(without, js.Undefined())
		h, err := jshost.Start(elementModule)
		js.Global().Set(without, kept)
		if (err == nil) != (without == "Go") || (h == nil) == (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSIMD128Extremes has maxima with a constant, which are not the instruction that
// propagates NaN, do so all the same.
func TestSIMD128Extremes(t *testing.T) {
	nan := float32(math.NaN())
	x := []float32{nan, -1, 2, float32(math.Inf(1)), float32(math.Inf(-1)), nan, 0}
	y := make([]float32, len(x))
	Relu(y, x)
	for i, v := range y {
		if want := float32(math.Max(float64(x[i]), 0)); v != want && v == v || (x[i] != x[i]) != (v != v) {
			t.Errorf("relu of %v is %v", x[i], v)
		}
	}
}
