package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/incomparable"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
)

// TestFunctions, if not nil, tests functions, which are the composite codes of expressions, on e. The error wraps
// [ErrWrong] if results are wrong. Pages set it before they open a device, because they link functions only if they use
// some: the engine calls it before the first plan of a graph with functions. In other programs the device is tested when
// it is opened.
var TestFunctions func(ctx context.Context, e *Engine) error

// functionTest is the state of the test of functions of one device. Callers wait for a channel instead of the mutex,
// so that the wait of each ends with its own context.
type functionTest struct {
	ok atomic.Bool

	mu  sync.Mutex
	run *functionRun // the last or current run; nil if there is none or it gave an error that says nothing about results
}

// functionRun is a run of the test.
type functionRun struct {
	_ incomparable.Type

	done chan struct{} // closed at the end
	err  error         // valid after done is closed
}

// inFunctionTest marks the contexts of the test itself.
type inFunctionTest struct{}

// testFunctions waits until functions are tested, if g has some.
func (e *Engine) testFunctions(ctx context.Context, g *graph.Graph) error {
	// The CPU computes functions by tables of kernels, which the library's own tests cover.
	if TestFunctions == nil || e.functions.ok.Load() || e.info.Kind == driver.CPU {
		return nil
	}
	u := functionUser{ctx: ctx, e: e, g: g}
	ir.IfFunctions(&u)
	return u.err
}

// functionUser has the arguments and the result of testFunctions. Pages that use no functions do not link its method, nor
// the functions that it calls.
type functionUser struct {
	_ incomparable.Type

	ctx context.Context
	e   *Engine
	g   *graph.Graph
	err error
}

// WithFunctions implements [ir.IfFunctions].
func (u *functionUser) WithFunctions() {
	if u.ctx.Value(inFunctionTest{}) == nil && hasFunctions(u.g) {
		u.err = u.e.awaitFunctionTest(u.ctx)
	}
}

// awaitFunctionTest waits for the test. The first call starts it. A test that has begun also continues if the contexts of
// all callers end: others need its result.
func (e *Engine) awaitFunctionTest(ctx context.Context) error {
	t := &e.functions
	t.mu.Lock()
	r := t.run
	if r == nil {
		r = &functionRun{done: make(chan struct{})}
		t.run = r
		go e.runFunctionTest(r)
	}
	t.mu.Unlock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Engine) runFunctionTest(r *functionRun) {
	t := &e.functions
	err := TestFunctions(context.WithValue(context.Background(), inFunctionTest{}, true), e)
	switch {
	case err == nil || errors.Is(err, driver.ErrLimit): // a test that does not fit on the device tests nothing
		t.ok.Store(true)
	case errors.Is(err, ErrWrong):
		r.err = fmt.Errorf("%s computes functions such as exp incorrectly: open another device, for example by device.Require(device.CPU): %w", e.name, err)
	default: // the next plan tries again
		r.err = err
		t.mu.Lock()
		t.run = nil
		t.mu.Unlock()
	}
	close(r.done)
}

// hasFunctions reports whether elementwise operations, activations or users' kernels of g have functions. The tests of
// other operations cover the functions in their kernels.
func hasFunctions(g *graph.Graph) bool {
	for i := range g.Nodes {
		has := false
		switch n := &g.Nodes[i]; {
		case n.Kind == graph.Launch:
			code := g.Launches[n.Ref].Program.Code
			has = slices.ContainsFunc(code, func(i ir.Instr) bool { return i.Code.Composite() })
		case n.Kind != graph.Compute:
		case n.Op.Class() == op.Elementwise:
			var types []op.DType
			for _, in := range n.Inputs() {
				types = append(types, g.Nodes[in].Type)
			}
			has = composite(n.Op, &n.Attrs, types)
		case n.Attrs.Act != nil:
			has = composite(n.Attrs.Act, &op.Attrs{}, []op.DType{op.F32})
		}
		if has {
			return true
		}
	}
	return false
}

// composite reports whether the expression of o has functions.
func composite(o *op.Operation, a *op.Attrs, types []op.DType) bool {
	x, err := irhook.Expression(o, a, types)
	if err != nil {
		return false // the operation has no kernel of an expression
	}
	list, _ := ir.Flatten(x)
	return slices.ContainsFunc(list, func(n *ir.Node) bool { return n.Code.Composite() })
}
