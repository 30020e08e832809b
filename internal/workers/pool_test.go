package workers

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/testutil"
)

// taskFunc lets a test write its part in place.
type taskFunc func(i int)

func (f taskFunc) Part(i int) { f(i) }

// tally counts how often each part ran.
type tally struct{ ran []atomic.Int32 }

func newTally(n int) *tally { return &tally{make([]atomic.Int32, n)} }

func (t *tally) Part(i int) { t.ran[i].Add(1) }

func (t *tally) check(tb testing.TB) {
	tb.Helper()
	for i := range t.ran {
		if c := t.ran[i].Load(); c != 1 {
			tb.Errorf("part %d of %d ran %d times", i, len(t.ran), c)
			return
		}
	}
}

// idle reports whether all workers sleep.
func (p *Pool) idle() bool { return int(p.parked.Load()) == len(p.workers) && p.hot.Load() == 0 }

// needThreads skips a test of workers where a pool has one thread.
func needThreads(t *testing.T) {
	if alone {
		testutil.Missing(t, "cores", errors.New("pools have one thread on this architecture"))
	}
}

func TestNew(t *testing.T) {
	most := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	for _, c := range []struct{ ask, want int }{{-1, most}, {0, most}, {1, 1}, {most, most}, {most + 5, most}} {
		p := New(c.ask)
		if p.Threads() != c.want {
			t.Errorf("New(%d) has %d threads, want %d", c.ask, p.Threads(), c.want)
		}
		p.Close()
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := New(0)
	defer p.Close()
	if p.Threads() != 1 {
		t.Errorf("with GOMAXPROCS=1 there are %d threads", p.Threads())
	}
}

func TestEveryPartRunsOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 8, 70} {
		p := start(threads)
		for _, n := range []int{-1, 0, 1, 2, 3, 7, 64, 1000} {
			for range 50 {
				c := newTally(max(n, 0))
				p.Do(n, c)
				c.check(t)
				for _, back := range []bool{false, true} {
					c = newTally(max(n, 0))
					p.Spread(n, back, c)
					c.check(t)
				}
			}
		}
		p.Close()
	}
}

// Every thread must begin with its own share, at the requested end, and a single thread must run all
// parts.
func TestShares(t *testing.T) {
	needThreads(t)
	p := &Pool{threads: 4, shares: make([]share, 4), finished: make(chan struct{}, 1)}
	p.heuristics.init(4)
	order := func(back bool) (parts []int) {
		p.Spread(8, back, taskFunc(func(i int) { parts = append(parts, i) }))
		return parts
	}
	if got := order(false); !slices.Equal(got, []int{0, 1, 3, 2, 5, 4, 7, 6}) {
		t.Errorf("forwards: %d", got)
	}
	if got := order(true); !slices.Equal(got, []int{1, 0, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("backwards: %d", got)
	}
	for k := range p.shares {
		p.shares[k].set(2*k, 2*k+2, fromFront)
	}
	for number, want := range []int{0, 2, 4, 6} {
		if got, ok := p.claim(number); !ok || got != want {
			t.Errorf("thread %d begins with part %d, want %d", number, got, want)
		}
	}
}

func TestNilPool(t *testing.T) {
	var p *Pool
	if p.Threads() != 1 || p.Worth(1e12) {
		t.Error("a nil pool is not serial")
	}
	c := newTally(9)
	p.Do(9, c)
	c.check(t)
	p.Close()
}

// Both parts must run at the same time for the task to end.
func TestPartsOverlap(t *testing.T) {
	needThreads(t)
	p := start(2)
	defer p.Close()
	for range 100 {
		var meet sync.WaitGroup
		meet.Add(2)
		p.Do(2, taskFunc(func(int) {
			meet.Done()
			meet.Wait()
		}))
	}
}

// A pool whose workers never start must not make the caller wait.
func TestNobodyWaitsForLateWorkers(t *testing.T) {
	p := &Pool{threads: 4, shares: make([]share, 4), finished: make(chan struct{}, 1)}
	p.heuristics.init(4)
	for range 10 {
		c := newTally(100)
		p.Do(100, c)
		c.check(t)
	}
}

// The caller ends first and goes to sleep until the worker is done.
func TestCallerSleeps(t *testing.T) {
	needThreads(t)
	p := start(2)
	defer p.Close()
	for range 10 {
		var meet sync.WaitGroup
		meet.Add(2)
		var order, done atomic.Int32
		p.Do(2, taskFunc(func(int) {
			meet.Done()
			meet.Wait()
			if order.Add(1) == 1 {
				time.Sleep(10 * time.Millisecond)
			}
			done.Add(1)
		}))
		if done.Load() != 2 {
			t.Fatal("Do returned before its parts had ended")
		}
	}
}

func TestNestedDo(t *testing.T) {
	p := start(3)
	defer p.Close()
	var ran atomic.Int32
	p.Do(20, taskFunc(func(int) {
		p.Do(20, taskFunc(func(int) {
			p.Do(2, taskFunc(func(int) { ran.Add(1) }))
		}))
		p.Worth(1e6)
	}))
	if ran.Load() != 800 {
		t.Errorf("%d parts ran, want 800", ran.Load())
	}
}

func TestManyCallers(t *testing.T) {
	p := start(4)
	defer p.Close()
	var wg sync.WaitGroup
	for g := range 1000 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(uint64(g), 7))
			for range 20 {
				c := newTally(r.IntN(40))
				p.Do(len(c.ran), c)
				c.check(t)
				p.Worth(float64(r.IntN(100_000)))
				if r.IntN(30) == 0 {
					time.Sleep(time.Duration(r.IntN(500)) * time.Microsecond)
				}
			}
		}()
	}
	wg.Wait()
}

func TestParkAndRouse(t *testing.T) {
	p := start(3)
	defer p.Close()
	for range 20 {
		c := newTally(30)
		p.Do(30, c)
		c.check(t)
		testutil.Soon(t, "workers without work sleep", p.idle)
	}
}

func TestPanicReachesTheCaller(t *testing.T) {
	boom := errors.New("boom")
	for _, threads := range []int{1, 2, 4} {
		p := start(threads)
		for round := range 50 {
			var running atomic.Int32
			func() {
				defer func() {
					if r := recover(); r != boom {
						t.Fatalf("recovered %v", r)
					}
					if running.Load() != 0 {
						t.Fatal("a part was still running")
					}
				}()
				p.Do(16, taskFunc(func(i int) {
					running.Add(1)
					defer running.Add(-1)
					if i%(1+round%5) == 0 {
						panic(boom)
					}
				}))
				t.Fatal("Do returned")
			}()
			c := newTally(16)
			p.Do(16, c)
			c.check(t)
		}
		p.Close()
	}
}

// runtime.Goexit, which t.FailNow calls, ends the goroutine of a part. In the caller this has the same
// effect as without a pool; a worker is replaced.
func TestGoexit(t *testing.T) {
	needThreads(t)
	p := start(2)
	defer p.Close()
	for range 20 {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			var meet sync.WaitGroup
			meet.Add(2)
			p.Do(2, taskFunc(func(int) {
				meet.Done()
				meet.Wait()
				runtime.Goexit()
			}))
			t.Error("Do returned")
		}()
		<-ended
		var meet sync.WaitGroup
		meet.Add(2)
		p.Do(2, taskFunc(func(int) {
			meet.Done()
			meet.Wait()
		}))
	}
}

func TestClose(t *testing.T) {
	gone := testutil.Goroutines(t)
	for range 20 {
		p := start(5)
		p.Do(10, newTally(10))
		p.Close()
		p.Close()
		c := newTally(10)
		p.Do(10, c)
		c.check(t)
		if p.Worth(1e9) {
			t.Error("a closed pool is worth splitting for")
		}
	}
	gone()
}

func TestCloseWhileBusy(t *testing.T) {
	for range 50 {
		p := start(3)
		var callers sync.WaitGroup
		for range 3 {
			callers.Add(1)
			go func() {
				defer callers.Done()
				for range 30 {
					c := newTally(12)
					p.Do(12, c)
					c.check(t)
				}
			}()
		}
		p.Close()
		callers.Wait()
	}
}

func TestDoAllocatesNothing(t *testing.T) {
	p := start(2)
	defer p.Close()
	c := &crunch{turns: 1000}
	if n := testutil.Allocations(200, func() {
		if p.Worth(1e6) {
			p.Do(8, c)
		}
	}); n != 0 {
		t.Errorf("%d allocations", n)
	}
	if n := testutil.Allocations(10, func() {
		// No sleep here: in a browser that allocates.
		for end := time.Now().Add(time.Minute); !p.idle(); runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatal("workers do not sleep")
			}
		}
		p.Do(8, c)
	}); n != 0 {
		t.Errorf("%d allocations with sleeping workers", n)
	}
}

// The scheduler must be able to give processors to workers and take them away as for other goroutines.
func TestGarbageCollectionGoesOn(t *testing.T) {
	p := start(4)
	defer p.Close()
	stop := make(chan struct{})
	var collector sync.WaitGroup
	collector.Add(1)
	go func() {
		defer collector.Done()
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	for range 300 {
		c := newTally(20)
		p.Do(20, c)
		c.check(t)
	}
	close(stop)
	collector.Wait()
}

func TestFewerProcessorsThanThreads(t *testing.T) {
	p := start(4)
	defer p.Close()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range 200 {
		c := newTally(20)
		p.Do(20, c)
		c.check(t)
	}
}
