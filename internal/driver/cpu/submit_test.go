package cpu

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// axpyProgram returns a program that computes y = a·x + y over device or host memory, steps times.
func axpyProgram(n, steps int, a float32) *driver.Program {
	s := op.Shape{n}
	p := &driver.Program{Ext: 2, Slots: []driver.Slot{
		{Type: op.F32, Shape: s, Bytes: int64(4 * n), Ext: 0},
		{Type: op.F32, Shape: s, Bytes: int64(4 * n), Ext: 1, Written: true},
	}}
	x, y := driver.Operand{Slot: 0, Type: op.F32, N: n}, driver.Operand{Slot: 1, Type: op.F32, N: n}
	for range steps {
		p.Steps = append(p.Steps, driver.Step{Out: []driver.Operand{y}, Post: &driver.Fused{In: []driver.Operand{x, y}, Shape: s, Out: []int{2},
			Body: []driver.Instr{{Op: op.Axpy, Attrs: op.Floats(a), Args: []int{0, 1}, Type: op.F32}}}})
	}
	return p
}

func prepare(t testing.TB, d *processor, p *driver.Program) driver.Executable {
	t.Helper()
	e, err := d.Prepare(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func alloc(t testing.TB, d *processor, n int) (driver.Memory, []float32) {
	t.Helper()
	m, err := d.Alloc(int64(4 * n))
	if err != nil {
		t.Fatal(err)
	}
	v := unsafe.Slice((*float32)(m.(*array).base), n)
	clear(v)
	return m, v
}

// TestOrder checks that each submission reads the results of the previous one, for synchronous and
// asynchronous submissions, and for different executables.
func TestOrder(t *testing.T) {
	for _, threads := range threadCounts {
		d := open(t, threads)
		const n = 30000
		add, double := prepare(t, d, axpyProgram(n, 1, 1)), prepare(t, d, axpyProgram(n, 3, 1))
		one, ones := alloc(t, d, n)
		sum, sums := alloc(t, d, n)
		for i := range ones {
			ones[i] = 1
		}
		r := rand.New(rand.NewPCG(1, 2))
		want := float32(0)
		var last driver.Fence
		for range 300 {
			e, k := add, float32(1)
			if r.IntN(2) == 0 {
				e, k = double, 3
			}
			s := &driver.Submission{Ext: []driver.Binding{{Mem: one}, {Mem: sum}}, Wait: r.IntN(3) == 0}
			f, err := e.Submit(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			want += k
			if s.Wait {
				if f != nil {
					t.Fatal("a synchronous submission returned a fence")
				}
				if sums[0] != want || sums[n-1] != want {
					t.Fatalf("%v and %v after %v additions", sums[0], sums[n-1], want)
				}
			} else {
				last = f
			}
		}
		if err := last.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if sums[0] != want || sums[n-1] != want {
			t.Fatalf("%v and %v after %v additions", sums[0], sums[n-1], want)
		}
		one.Free()
		sum.Free()
	}
}

// TestManyGoroutines checks that submissions that write the same memory are serialised, that they
// do not affect other memory, and that no result is lost.
func TestManyGoroutines(t *testing.T) {
	d := open(t, 2)
	const n, goroutines, rounds = 500, 100, 20
	e := prepare(t, d, axpyProgram(n, 2, 0.5))
	one, ones := alloc(t, d, n)
	for i := range ones {
		ones[i] = 1
	}
	shared := make([]driver.Memory, 3)
	values := make([][]float32, len(shared))
	var count [3]atomic.Int64
	for i := range shared {
		shared[i], values[i] = alloc(t, d, n)
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(uint64(g), 3))
			host := make([]float32, n)
			for k := range rounds {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if r.IntN(10) == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(50))*time.Microsecond)
				}
				at := r.IntN(len(shared))
				out := driver.Binding{Mem: shared[at]}
				if r.IntN(3) == 0 {
					at = -1
					out = driver.Binding{Host: bytesOf(host)}
				}
				if at >= 0 && ctx != t.Context() {
					// A cancelled submission may be incomplete, so it writes to memory that is not compared.
					out, at = driver.Binding{Host: bytesOf(host)}, -1
				}
				s := &driver.Submission{Ext: []driver.Binding{{Mem: one}, out}, Wait: r.IntN(2) == 0}
				f, err := e.Submit(ctx, s)
				if err == nil && f != nil {
					err = f.Wait(context.Background())
				}
				if err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("round %d: %v", k, err)
				}
				if at >= 0 && err == nil {
					count[at].Add(1)
				}
				cancel()
			}
		}()
	}
	wg.Wait()
	for i, v := range values {
		if want := float32(count[i].Load()); v[0] != want || v[n-1] != want {
			t.Errorf("memory %d: %v and %v after %v submissions", i, v[0], v[n-1], want)
		}
		shared[i].Free()
	}
	one.Free()
	if a := shared[0].(*array); a.readers != 0 || a.writing || a.waitingReaders != 0 || a.waitingWriters != 0 || len(d.tracker.waiting) != 0 {
		t.Errorf("left locked: %+v", a.access)
	}
}

// TestCancelled checks that a long submission ends soon after its context, and does not access
// memory afterwards.
func TestCancelled(t *testing.T) {
	for _, threads := range threadCounts {
		d := open(t, threads)
		const n, steps = 1 << 20, 200
		e := prepare(t, d, axpyProgram(n, steps, 1))
		x, xs := alloc(t, d, n)
		y, ys := alloc(t, d, n)
		for i := range xs {
			xs[i] = 1
		}
		ext := []driver.Binding{{Mem: x}, {Mem: y}}
		// Each step checks the context at least once.
		ctx := &ending{Context: t.Context(), done: make(chan struct{})}
		ctx.left.Store(steps / 4)
		_, err := e.Submit(ctx, &driver.Submission{Ext: ext, Wait: true})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("%v after cancellation", err)
		}
		seen := slices.Clone(ys)
		if most := slices.Max(seen); most < 1 || most > steps/2 {
			t.Errorf("%v of %d steps after cancellation in the first quarter", most, steps)
		}
		time.Sleep(5 * time.Millisecond)
		if !slices.Equal(seen, ys) {
			t.Fatal("written after the return")
		}
		// A submission continues if nobody waits for its fence.
		over, cancel := context.WithCancel(t.Context())
		cancel()
		holder := newQueueEntry(ext, []bool{false, true}) // holds the memory until the waiting submission has given up
		d.tracker.enter(holder)
		f, err := e.Submit(t.Context(), &driver.Submission{Ext: ext})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Wait(over); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v from a fence", err)
		}
		d.tracker.leave(holder)
		if err := f.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, v := range ys {
			if v != seen[i]+steps {
				t.Fatalf("element %d is %v, was %v before %d steps", i, v, seen[i], steps)
			}
		}
		if _, err := e.Submit(over, &driver.Submission{Ext: ext, Wait: true}); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v with a context that had ended", err)
		}
		x.Free()
		y.Free()
	}
}

// ending is a context that ends after a number of calls of Err.
type ending struct {
	context.Context
	left atomic.Int64
	done chan struct{}
}

func (c *ending) Done() <-chan struct{} { return c.done }

func (c *ending) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// TestCancelledInside cancels one long step. It must end between its parts, and must not
// access memory after it returned.
func TestCancelledInside(t *testing.T) {
	was := longProduct
	longProduct = 1 << 20
	defer func() { longProduct = was }()
	for _, threads := range callerThreads {
		d := open(t, threads)
		for _, u := range []sample{
			{op: op.MatMul, attrs: op.MatMulOpts{Act: op.Relu}.Attrs(), shapes: []op.Shape{{1400, 64}, {64, 65}, {65}}},
			{op: op.MatMul, shapes: []op.Shape{{30, 70, 64}, {30, 64, 65}}},
			{op: op.Conv2D, attrs: op.Conv2DOpts{}.Attrs(), shapes: []op.Shape{{20, 8, 40, 40}, {16, 8, 3, 3}}},
			{op: op.Attention, shapes: []op.Shape{{12, 70, 32}, {12, 70, 32}, {12, 70, 32}}},
			{op: op.Transpose, shapes: []op.Shape{{120, 200, 200}}}, // larger than all parts on processors with large caches
		} {
			r := newRig(t, 1)
			r.use(d, u, op.F32, alone)
			e := prepare(t, d, &r.p)
			ext := r.bindings()
			out := ext[len(ext)-1].Host
			last := &r.p.Slots[len(r.p.Slots)-1]
			if !last.Written {
				t.Fatal("the result is not the last slot")
			}
			for asked := range int64(3) {
				for i := range out {
					out[i] = 0xff // NaN
				}
				ctx := &ending{Context: t.Context(), done: make(chan struct{})}
				ctx.left.Store(3 + asked)
				if _, err := e.Submit(ctx, &driver.Submission{Ext: ext, Wait: true}); !errors.Is(err, context.Canceled) {
					t.Fatalf("%v, %d threads: %v", u, threads, err)
				}
				seen := append([]byte(nil), out...)
				left := 0
				for i := 0; i < len(out); i += 4 {
					if out[i] == 0xff && out[i+1] == 0xff && out[i+2] == 0xff && out[i+3] == 0xff {
						left++
					}
				}
				if left < len(out)/4/10 {
					t.Errorf("%v, %d threads: after %d checks of the context, %d of %d elements were not computed", u, threads, 3+asked, left, len(out)/4)
				}
				time.Sleep(time.Millisecond)
				if string(seen) != string(out) {
					t.Fatalf("%v: written after the return", u)
				}
			}
			// With a live context, bands and parts must compute the whole result.
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := e.Submit(ctx, &driver.Submission{Ext: ext, Wait: true}); err != nil {
				t.Fatal(err)
			}
			cancel()
			r.verify(u.String())
		}
	}
}

// TestCancelledWhileWaiting checks that a submission that waits for memory can be cancelled, and
// that later submissions then get their turn.
func TestCancelledWhileWaiting(t *testing.T) {
	d := open(t, 1)
	const n = 1 << 20
	long, brief := prepare(t, d, axpyProgram(n, 100, 1)), prepare(t, d, axpyProgram(n, 1, 1))
	one, ones := alloc(t, d, n)
	sum, sums := alloc(t, d, n)
	for i := range ones {
		ones[i] = 1
	}
	ext := []driver.Binding{{Mem: one}, {Mem: sum}}
	// An entry holds the memory until the test releases it.
	holder := newQueueEntry(ext, []bool{false, true})
	d.tracker.enter(holder)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := brief.Submit(ctx, &driver.Submission{Ext: ext, Wait: true}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v while another writes", err)
	}
	f, err := long.Submit(t.Context(), &driver.Submission{Ext: ext})
	if err != nil {
		t.Fatal(err)
	}
	d.tracker.leave(holder)
	if _, err := brief.Submit(t.Context(), &driver.Submission{Ext: ext, Wait: true}); err != nil {
		t.Fatal(err)
	}
	// Only the order of effects is defined: the fence of the earlier submission may be signalled
	// after the later one, which ran in this goroutine, has returned.
	for i, v := range sums {
		if v != 101 {
			t.Fatalf("element %d is %v after 100 additions and one: a later submission overtook an earlier one", i, v)
		}
	}
	if err := f.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestComplete(t *testing.T) {
	d := open(t, 1)
	e := prepare(t, d, axpyProgram(10, 1, 1))
	x, y := make([]float32, 10), make([]float32, 10)
	ext := []driver.Binding{{Host: bytesOf(x)}, {Host: bytesOf(y)}}
	calls := 0
	s := &driver.Submission{Ext: ext, Complete: func(err error) {
		calls++
		if err != nil {
			t.Error(err)
		}
	}}
	f, err := e.Submit(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	<-f.Done()
	if calls != 1 {
		t.Errorf("Complete was called %d times", calls)
	}
	s.Wait = true
	if _, err := e.Submit(t.Context(), s); err != nil || calls != 1 {
		t.Errorf("%v, %d calls", err, calls)
	}
}

func TestTimes(t *testing.T) {
	d := open(t, 1)
	e := prepare(t, d, axpyProgram(100000, 3, 1))
	x, y := make([]float32, 100000), make([]float32, 100000)
	times := &driver.Times{Steps: make([]driver.Span, 3)}
	s := &driver.Submission{Ext: []driver.Binding{{Host: bytesOf(x)}, {Host: bytesOf(y)}}, Wait: true, Times: times}
	testutil.Soon(t, "the clock is fine enough for each step", func() bool {
		if _, err := e.Submit(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		at, told := time.Duration(0), true
		for _, s := range times.Steps {
			if s.Start < at || s.End < s.Start {
				t.Errorf("%v", times.Steps)
			}
			at = s.End
			told = told && s.End > s.Start
		}
		if times.Total.End < at {
			t.Errorf("%v", times)
		}
		return told
	})
}

// TestBadBindings checks that bindings of a wrong size, kind or device give errors.
func TestBadBindings(t *testing.T) {
	d, other := open(t, 1), open(t, 1)
	_ = other
	e := prepare(t, d, axpyProgram(10, 1, 1))
	x := make([]float32, 10)
	m, _ := alloc(t, d, 10)
	good := driver.Binding{Host: bytesOf(x)}
	for _, c := range []struct {
		ext  []driver.Binding
		want error
	}{
		{nil, driver.ErrShape},
		{[]driver.Binding{good}, driver.ErrShape},
		{[]driver.Binding{good, {}}, driver.ErrShape},
		{[]driver.Binding{good, {Host: bytesOf(x[:9])}}, driver.ErrShape},
		{[]driver.Binding{good, {Mem: m, Off: 4}}, driver.ErrShape},
		{[]driver.Binding{good, {Mem: m, Off: -4}}, driver.ErrShape},
		{[]driver.Binding{good, {Mem: foreign{}}}, driver.ErrForeign},
	} {
		for _, wait := range []bool{true, false} {
			if _, err := e.Submit(t.Context(), &driver.Submission{Ext: c.ext, Wait: wait}); !errors.Is(err, c.want) {
				t.Errorf("%v: %v", c.ext, err)
			}
		}
	}
	m.Free()
	if _, err := e.Submit(t.Context(), &driver.Submission{Ext: []driver.Binding{good, {Mem: m}}, Wait: true}); !errors.Is(err, driver.ErrShape) {
		t.Errorf("freed memory: %v", err)
	}
	if _, err := d.Alloc(-1); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("%v", err)
	}
	if _, err := d.Alloc(1 << 60); !errors.Is(err, driver.ErrOutOfMemory) {
		t.Errorf("%v", err)
	}
}

type foreign struct{}

func (foreign) Bytes() int64 { return 1 << 20 }
func (foreign) Free()        {}

func TestClosed(t *testing.T) {
	d := open(t, 2)
	e, err := d.Prepare(t.Context(), axpyProgram(10, 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]float32, 10), make([]float32, 10)
	ext := []driver.Binding{{Host: bytesOf(x)}, {Host: bytesOf(y)}}
	var fences []driver.Fence
	for range 10 {
		f, err := e.Submit(t.Context(), &driver.Submission{Ext: ext})
		if err != nil {
			t.Fatal(err)
		}
		fences = append(fences, f)
	}
	e.Close()
	e.Close()
	for _, f := range fences {
		select {
		case <-f.Done():
		default:
			t.Error("Close did not wait")
		}
	}
	for _, wait := range []bool{true, false} {
		if _, err := e.Submit(t.Context(), &driver.Submission{Ext: ext, Wait: wait}); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%v after Close", err)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Prepare(t.Context(), axpyProgram(10, 1, 1)); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("%v after Close of the device", err)
	}
	if _, err := d.Alloc(1); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("%v after Close of the device", err)
	}
}

// TestPanic checks that a panic in a kernel becomes an error, on any thread, and that the device
// continues to work.
func TestPanic(t *testing.T) {
	for _, threads := range threadCounts {
		d := open(t, threads)
		const n = 1 << 20
		ex := prepare(t, d, axpyProgram(n, 1, 1))
		e := ex.(*executable)
		p := e.steps[0].(mapStep).p
		p.cost.seed, p.passes = 10, false // long enough for several threads, with one kernel
		good := p.block[0].fn
		x, y := make([]float32, n), make([]float32, n)
		m, v := alloc(t, d, n)
		for _, out := range []driver.Binding{{Host: bytesOf(y)}, {Mem: m}} {
			ext := []driver.Binding{{Host: bytesOf(x)}, out}
			p.block[0].fn = func(_, _, _, _ *float32, _ int, _ *float32) { panic("defect") }
			for _, wait := range []bool{true, false} {
				f, err := ex.Submit(t.Context(), &driver.Submission{Ext: ext, Wait: wait})
				if err == nil {
					err = f.Wait(t.Context())
				}
				if err == nil || !strings.Contains(err.Error(), "defect") {
					t.Fatalf("%v", err)
				}
			}
			p.block[0].fn = good
			if _, err := ex.Submit(t.Context(), &driver.Submission{Ext: ext, Wait: true}); err != nil {
				t.Fatal(err)
			}
		}
		_ = v
	}
}

// TestFramesAreReused checks that submissions that follow each other share a frame, whose memory takes hundreds of kilobytes in large
// programs, and that submissions at the same time have frames of their own.
func TestFramesAreReused(t *testing.T) {
	d := open(t, 2)
	e := prepare(t, d, axpyProgram(10, 1, 1)).(*executable)
	x, y := make([]float32, 10), make([]float32, 10)
	s := &driver.Submission{Ext: []driver.Binding{{Host: bytesOf(x)}, {Host: bytesOf(y)}}, Wait: true}
	for range 2 * maxFrames {
		if _, err := e.Submit(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(e.idle); n != 1 {
		t.Errorf("%d frames after submissions in sequence, want 1", n)
	}
	f, err := e.frame()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Submit(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	e.idle <- f
	if n := len(e.idle); n != 2 {
		t.Errorf("%d frames after two submissions at a time, want 2", n)
	}
}
