package engine

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cpu"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// functionTested returns an engine, of a device that looks like a GPU, whose functions are tested by test at their first
// use, as in pages. calls counts the tests.
func functionTested(t *testing.T, test func(ctx context.Context, e *Engine) error) (e *Engine, calls *atomic.Int64) {
	t.Helper()
	c, err := cpu.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	e, calls = New(graphOnly{c}), new(atomic.Int64)
	TestFunctions = func(ctx context.Context, e *Engine) error {
		calls.Add(1)
		return test(ctx, e)
	}
	t.Cleanup(func() { TestFunctions = nil; e.Close() })
	return e, calls
}

// computes runs o over three numbers.
func computes(ctx context.Context, e *Engine, o *op.Operation) error {
	x := []float32{1, -2, 3}
	return e.Elementwise(ctx, o, &op.Attrs{}, make([]float32, 3), x, x, nil)
}

// multiply computes a product of matrices with an activation.
func multiply(e *Engine, act *op.Operation) error {
	x := Bytes([]float32{1, 2, 3, 4})
	m := HostOf(x, op.F32, op.Shape{2, 2})
	a := op.MatMulOpts{Act: act}.Attrs()
	return e.Call(context.Background(), op.MatMul, &a, []Host{m, m, {}}, []Host{HostOf(make([]byte, 16), op.F32, op.Shape{2, 2})})
}

// TestWrongFunctions checks that a device with wrong functions fails, by a typed error, what uses them and nothing else, and
// that it is tested once.
func TestWrongFunctions(t *testing.T) {
	ctx := context.Background()
	e, calls := functionTested(t, func(context.Context, *Engine) error { return fmt.Errorf("exp gave 3: %w", ErrWrong) })
	for range 2 {
		for _, o := range []*op.Operation{op.Add, op.Relu} {
			if err := computes(ctx, e, o); err != nil {
				t.Errorf("%v: %v", o, err)
			}
		}
		if err := multiply(e, op.Relu); err != nil {
			t.Errorf("a product: %v", err)
		}
		for _, o := range []*op.Operation{op.Exp, op.Gelu} {
			if err := computes(ctx, e, o); !errors.Is(err, ErrWrong) || !errors.Is(err, driver.ErrUnsupported) || !strings.Contains(err.Error(), "device.CPU") {
				t.Errorf("%v: %v", o, err)
			}
		}
		if err := multiply(e, op.Gelu); !errors.Is(err, ErrWrong) {
			t.Errorf("a product with gelu: %v", err)
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%d tests, expected 1", n)
		}
	}
	launch := &graph.Graph{Nodes: []graph.Node{{Kind: graph.Launch}}, Launches: []*graph.Kernel{{Program: &ir.Program{Code: []ir.Instr{{}, {Code: ir.Exp}}}}}}
	if err := e.testFunctions(ctx, launch); !errors.Is(err, ErrWrong) {
		t.Errorf("a kernel with exp: %v", err)
	}
	launch.Launches[0].Program.Code[1].Code = ir.Sqrt
	if err := e.testFunctions(ctx, launch); err != nil {
		t.Errorf("a kernel without functions: %v", err)
	}
}

// TestFunctionTestRunsOnce checks that concurrent calls share a test, which uses the device itself, and that an error that
// says nothing about results is not kept.
func TestFunctionTestRunsOnce(t *testing.T) {
	var lost atomic.Bool
	lost.Store(true)
	e, calls := functionTested(t, func(ctx context.Context, e *Engine) error {
		if lost.Swap(false) {
			return driver.ErrOutOfMemory
		}
		return computes(ctx, e, op.Exp)
	})
	ctx := context.Background()
	if err := computes(ctx, e, op.Exp); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("out of memory: %v", err)
	}
	var work sync.WaitGroup
	for _, o := range []*op.Operation{op.Exp, op.Log, op.Tanh, op.Gelu} {
		work.Add(1)
		go func() {
			defer work.Done()
			if err := computes(ctx, e, o); err != nil {
				t.Errorf("%v: %v", o, err)
			}
		}()
	}
	work.Wait()
	if n := calls.Load(); n != 2 {
		t.Errorf("%d tests, expected one that failed and one that passed", n)
	}
}

// TestFunctionTestOutlivesContexts checks that each call stops waiting for the test when its own context ends.
func TestFunctionTestOutlivesContexts(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	e, calls := functionTested(t, func(ctx context.Context, e *Engine) error {
		close(began)
		<-finish
		return ctx.Err()
	})
	first, cancelFirst := context.WithCancel(context.Background())
	second, cancelSecond := context.WithCancel(context.Background())
	errs := make(chan error)
	go func() { errs <- computes(first, e, op.Exp) }()
	<-began
	go func() { errs <- computes(second, e, op.Log) }()
	for _, cancel := range []func(){cancelSecond, cancelFirst} {
		cancel() // the test still runs
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled call: %v", err)
		}
	}
	if err := computes(context.Background(), e, op.Add); err != nil {
		t.Errorf("add during the test: %v", err)
	}
	go func() { errs <- computes(context.Background(), e, op.Exp) }()
	close(finish)
	if err := <-errs; err != nil || calls.Load() != 1 {
		t.Errorf("after the test: %v, %d tests", err, calls.Load())
	}
}
