package engine

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cpu"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/measured"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

func open(t testing.TB) *Engine {
	t.Helper()
	d, err := cpu.Open(2)
	if err != nil {
		t.Fatal(err)
	}
	e := New(d)
	t.Cleanup(func() { e.Close() })
	return e
}

// graphOnly hides the driver.Immediate interface of the CPU, so that it looks like a GPU to the
// engine.
type graphOnly struct{ driver.Device }

func (g graphOnly) Info() driver.Info {
	i := g.Device.Info()
	i.Kind, i.Identity = driver.WebGPU, "pretended"
	return i
}

func TestOneShotCallsAgreeWithGraphs(t *testing.T) {
	d, err := cpu.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	far := New(graphOnly{d})
	defer far.Close()
	ctx := context.Background()
	for _, e := range []*Engine{open(t), far} {
		x, y, got := []float32{1, -2, 3}, []float32{4, 5, 6}, make([]float32, 3)
		if err := e.Elementwise(ctx, op.Add, &op.Attrs{}, got, x, y, nil); err != nil {
			t.Fatal(err)
		}
		if got[0] != 5 || got[1] != 3 || got[2] != 9 {
			t.Errorf("add on %s: %v", e.Name(), got)
		}
		bits, err := e.Reduce(ctx, op.ArgMin, &op.Attrs{}, x, nil)
		if err != nil || bits != 1 {
			t.Errorf("argmin on %s: %v, %v", e.Name(), bits, err)
		}
		values, indices := make([]float32, 2), make([]int32, 2)
		a := op.TopKOpts{K: 2}.Attrs()
		err = e.Call(ctx, op.TopK, &a, []Host{HostOf(Bytes(x), op.F32, op.Shape{1, 3})},
			[]Host{HostOf(Bytes(values), op.F32, op.Shape{1, 2}), HostOf(Bytes(indices), op.I32, op.Shape{1, 2})})
		if err != nil || values[0] != 3 || indices[0] != 2 || indices[1] != 0 {
			t.Errorf("topk on %s: %v %v, %v", e.Name(), values, indices, err)
		}
	}
}

func TestCloseWaitsAndThenRefuses(t *testing.T) {
	e := open(t)
	ctx := context.Background()
	b, err := e.NewBuffer(op.F32, op.Shape{10})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 50 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			x := make([]float32, 1000)
			for {
				runtime.Gosched() // js does not preempt goroutines
				if err := e.Elementwise(ctx, op.Relu, &op.Attrs{}, x, x, nil, nil); err != nil {
					if !errors.Is(err, driver.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		}()
	}
	time.Sleep(5 * time.Millisecond)
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			e.Close()
		}()
	}
	wg.Wait()
	if _, err := e.NewBuffer(op.F32, op.Shape{1}); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("NewBuffer after Close: %v", err)
	}
	if _, err := e.Compile(ctx, &graph.Graph{}); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("Compile after Close: %v", err)
	}
	if s := e.Stats(); s.Buffers != 0 || s.BufferBytes != 0 {
		t.Errorf("left after Close: %+v", s)
	}
	b.Close() // late, and harmless
}

func TestPlansAreFoundAgainAndForgotten(t *testing.T) {
	e := open(t)
	ctx := context.Background()
	plan := func(s float32) {
		g := &graph.Graph{}
		x := g.Add(graph.Node{Kind: graph.Input, Type: op.F32, Shape: op.Shape{4}})
		n := graph.Node{Kind: graph.Compute, Op: op.Scale, Attrs: op.Floats(s), Type: op.F32, Shape: op.Shape{4}, NIn: 1}
		n.In[0] = x
		g.Outputs = []graph.ID{g.Add(n)}
		if _, err := e.Compile(ctx, g); err != nil {
			t.Fatal(err)
		}
	}
	plan(2)
	plan(2)
	if s := e.Stats(); s.Compiled != 1 || s.CacheHits != 1 {
		t.Errorf("two equal graphs: %+v", s)
	}
	for i := range 3 * maxPlans {
		plan(float32(10 + i))
	}
	if n := e.plans.last.Len(); n != maxPlans {
		t.Errorf("%d plans in the cache, expected at most %d", n, maxPlans)
	}
}

// flatWork is the work of an elementwise operation.
func flatWork(n int) Work { return Work{Bytes: 8 * int64(n), Flops: float64(n)} }

// TestRouterTellsWorkApart checks that the router distinguishes products that read the same number
// of bytes but differ in arithmetic.
func TestRouterTellsWorkApart(t *testing.T) {
	product := func(m, n, k int) Work {
		host := func(rows, cols int) Host { return HostOf(make([]byte, 4*rows*cols), op.F32, op.Shape{rows, cols}) }
		return WorkOf(op.MatMul, &op.Attrs{}, []Host{host(m, k), host(k, n)}, []Host{host(m, n)})
	}
	near, far := open(t), open(t)
	r := NewRouter(far, near)
	row, square := product(1, 512, 512), product(512, 512, 512)
	for range routeTries {
		for i, e := range []*Engine{near, far} {
			r.Observe(e, op.MatMul, row, time.Duration(1+i))
			r.Observe(e, op.MatMul, square, time.Duration(2-i))
		}
	}
	if r.Pick(op.MatMul, row) != near || r.Pick(op.MatMul, square) != far {
		t.Errorf("the router does not distinguish products of one row and of many: %+v, %+v", row, square)
	}
}

func TestRouterLearnsAndRemembers(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	pair := func() (*Engine, *Router) {
		d, err := cpu.Open(1)
		if err != nil {
			t.Fatal(err)
		}
		far := New(graphOnly{d})
		return far, NewRouter(far, open(t))
	}
	far, r := pair()
	for !r.Settled(op.Exp, flatWork(1000)) || !r.Settled(op.Exp, flatWork(1<<20)) {
		for _, n := range []int{1000, 1 << 20} {
			e := r.Pick(op.Exp, flatWork(n))
			took := time.Microsecond * time.Duration(n) / 1000 // the CPU: proportional to the size
			if e == far {
				took = 100 * time.Microsecond // the device: a constant round trip
			}
			r.Observe(e, op.Exp, flatWork(n), took)
		}
	}
	check := func(when string, far *Engine, r *Router) {
		t.Helper()
		if r.Pick(op.Exp, flatWork(1000)) == far || r.Pick(op.Exp, flatWork(1<<20)) != far {
			t.Errorf("%s: small calls must run on the CPU, large ones on the device", when)
		}
	}
	check("measured", far, r)
	r.Close()
	far.Close()
	if measured.Path("x") == "" {
		return // web pages store nothing
	}
	far, r = pair()
	check("remembered", far, r)
	r.Close()
	far.Close()
}

// sum returns a graph with a large temporary.
func sum(n int) *graph.Graph {
	g := &graph.Graph{}
	x := g.Add(graph.Node{Kind: graph.Input, Type: op.F32, Shape: op.Shape{n, 2}})
	y := graph.Node{Kind: graph.Compute, Op: op.Transpose, Type: op.F32, Shape: op.Shape{2, n}, NIn: 1}
	y.In[0] = x
	z := graph.Node{Kind: graph.Compute, Op: op.Softmax, Type: op.F32, Shape: op.Shape{2, n}, NIn: 1}
	z.In[0] = g.Add(y)
	g.Outputs = append(g.Outputs, g.Add(z))
	return g
}

func (e *Engine) executables() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.execs)
}

// TestPlansEnd checks that the device resources of a plan are freed by Close, or when the plan is
// unreachable.
func TestPlansEnd(t *testing.T) {
	e := open(t)
	ctx := context.Background()
	const n = 1000
	in, out := make([]byte, 8*n), make([]byte, 8*n)
	run := func(p *Plan) error { return p.Run(ctx, []Ref{{Host: in}}, [][]byte{out}, nil) }
	p, err := e.CompileOwn(ctx, sum(n))
	if err != nil {
		t.Fatal(err)
	}
	if err := run(p); err != nil || e.executables() != 1 {
		t.Fatalf("%v, %d executables", err, e.executables())
	}
	p.Close()
	p.Close()
	if err := run(p); !errors.Is(err, driver.ErrClosed) || e.executables() != 0 {
		t.Errorf("%v, %d executables after Close", err, e.executables())
	}
	if err := p.Start(ctx, []Ref{{Host: in}}, [][]byte{out}).Wait(ctx); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("%v after Close", err)
	}
	for range 10 {
		q, err := e.CompileOwn(ctx, sum(n))
		if err != nil {
			t.Fatal(err)
		}
		if err := run(q); err != nil {
			t.Fatal(err)
		}
	}
	testutil.Soon(t, "no executables of plans that nobody has", func() bool {
		runtime.GC()
		return e.executables() == 0
	})
	// A plan in the cache is shared and stays.
	if _, err := e.Compile(ctx, sum(n)); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if e.executables() != 1 {
		t.Errorf("%d executables of a plan in the cache", e.executables())
	}
}
