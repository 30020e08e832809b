//go:build js && !nowebgpu

package devicetest

import (
	"context"
	"errors"
	"strings"
	"syscall/js"
	"testing"
	"time"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/jscall"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// inBrowser opens the software implementation of navigator.gpu.
func inBrowser(t testing.TB) *device.Device {
	t.Helper()
	testutil.Need(t, "browser")
	d, err := device.Open(t.Context(), device.Require(device.WebGPU), device.WithName("software"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestBrowser tests devices of navigator.gpu: a sample of the tests for every device, and tests that only
// concern JavaScript.
func TestBrowser(t *testing.T) {
	testutil.Need(t, "browser")
	t.Run("sample", sampleInBrowser)
	t.Run("concurrency", func(t *testing.T) { concurrency(t, inBrowser) })
	t.Run("software", skipsSoftware)
	dev := start(t, inBrowser)
	t.Run("callbacks", func(t *testing.T) { callbacks(t, dev) })
	t.Run("flat", func(t *testing.T) { flat(t, dev) })
	t.Run("deadline", func(t *testing.T) { deadline(t, dev) })
}

// inSample is the average number of operations of the catalogue in sampleInBrowser. Software takes seconds to
// compile the kernels of some operations.
const inSample = 5

// sampleInBrowser runs a case of some operations, which it chooses at random.
func sampleInBrowser(t *testing.T) {
	seed := testutil.Seed(t)
	g := newGenerator(seed)
	some := map[*op.Operation]bool{}
	for _, o := range []*op.Operation{op.Relu, op.Sum, op.MatMul, op.Softmax} {
		some[o] = true
	}
	all := op.Catalogue()
	for _, o := range all {
		if g.IntN(len(all)) < inSample {
			some[o] = true
		}
	}
	one := oneOfSome()
	operationsOn(t, inBrowser, 1, seed, []op.DType{op.F32, op.I32, op.F16}, func(c *Case) bool { return some[c.Op] && one(c) })
}

// oneOfSome returns a filter that keeps one case of each operation and operand type, neither tiny nor long.
func oneOfSome() func(c *Case) bool {
	type kind struct {
		o *op.Operation
		t op.DType
	}
	seen := map[kind]int{}
	return func(c *Case) bool {
		k, most := kind{c.Op, c.In[0].Type}, 1
		if c.Op == op.Gather {
			most = 12 // the first have no one-shot method
		}
		if n := c.elements(); seen[k] == most || n < 15 || n > 2000 || c.work() > 1e6 {
			return false
		}
		seen[k]++
		return true
	}
}

// callbacks checks calls from a function that JavaScript calls. Calls that wait return an error there, but
// work in a goroutine that the function starts. Other calls work.
func callbacks(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	x, y := []float32{-1, 2, -3}, make([]float32, 3)
	b := batch.New(dev)
	batch.ReadInto(b, b.Relu(b.Upload(x, 3)), y)
	// Check this before and after kernels are compiled.
	for range 2 {
		errs := map[string]error{}
		var pending *device.Pending
		inGoroutine := make(chan error, 1)
		f := js.FuncOf(func(js.Value, []js.Value) any {
			errs["Relu"] = dev.Relu(ctx, y, x)
			errs["Execute"] = b.Execute(ctx)
			errs["Close"] = dev.Close()
			_, errs["Open"] = device.Open(ctx, device.Require(device.WebGPU))
			pending = dev.ReluAsync(ctx, y, x)
			errs["Wait"] = pending.Wait(ctx)
			go func() { inGoroutine <- dev.Relu(ctx, make([]float32, 3), x) }()
			return nil
		})
		done := make(chan struct{})
		wrapped := js.FuncOf(func(js.Value, []js.Value) any {
			f.Invoke()
			close(done)
			return nil
		})
		js.Global().Call("setTimeout", wrapped, 0)
		<-done
		for name, err := range errs {
			if !errors.Is(err, jscall.ErrWait) {
				t.Errorf("%s in a function that JavaScript has called: %v", name, err)
			}
		}
		if err := <-inGoroutine; err != nil {
			t.Errorf("in a goroutine: %v", err)
		}
		if err := pending.Wait(ctx); err != nil && !errors.Is(err, jscall.ErrWait) {
			t.Errorf("asynchronously: %v", err)
		}
		f.Release()
		wrapped.Release()
		if err := dev.Relu(ctx, y, x); err != nil || y[0] != 0 || y[1] != 2 || y[2] != 0 {
			t.Fatalf("%v %v", y, err)
		}
	}
}

// skipsSoftware checks that a software device is opened only if the program names it.
func skipsSoftware(t *testing.T) {
	t.Setenv("RAYO_DEVICE", "")
	d, err := device.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Info().Kind != device.CPU {
		t.Fatalf("opened %v, %s", d, d.Info().Detail)
	}
	found := false
	for _, r := range d.Refused() {
		found = found || r.Kind == device.WebGPU && strings.Contains(r.Err.Error(), "webgpu:software")
	}
	if !found {
		t.Errorf("refused: %v", d.Refused())
	}
}

// flat runs a batch many times and checks that the number and the size of buffers do not grow.
func flat(t *testing.T, dev *device.Device) {
	x, y := make([]float32, 1000), make([]float32, 1000)
	b := batch.New(dev)
	batch.ReadInto(b, b.Relu(b.Upload(x, 1000)), y)
	plan, err := b.Compile(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	began, before := time.Now(), dev.Stats()
	runs := 1000
	if testing.Short() {
		runs = 200
	}
	for i := range runs {
		x[i%1000] = float32(i)
		if err := plan.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if y[i%1000] != float32(i) {
			t.Fatalf("run %d: %v", i, y[i%1000])
		}
	}
	t.Logf("%d runs took %v each", runs, time.Since(began)/time.Duration(runs))
	after := dev.Stats()
	if n := after.Submits - before.Submits; n != int64(runs) || after.BufferBytes != before.BufferBytes {
		t.Errorf("%d runs were %d submissions: %+v, before %+v", runs, n, after, before)
	}
}

// deadline checks that a call ends when its context does, although the device still computes.
func deadline(t *testing.T, dev *device.Device) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	const n = 64
	a, c := make([]float32, n*n), make([]float32, n*n)
	err := dev.MatMul(ctx, c, a, a, nil, n, n, n)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := dev.MatMul(t.Context(), c, a, a, nil, n, n, n); err != nil {
		t.Error(err)
	}
}
