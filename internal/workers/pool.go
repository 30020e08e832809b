// Package workers splits one piece of work over the cores of the machine.
//
// A Pool belongs to whoever made it and is closed by its owner; nothing in
// this package is global.
package workers

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// A Task is work in numbered parts that may run at the same time on several
// threads, each part once and in any order.
type Task interface {
	// Part does part i.
	Part(i int)
}

// A Pool is a fixed set of workers that take parts of one Task at a time.
// All methods may be called from any number of goroutines at once, and by
// tasks themselves. A nil Pool is serial.
type Pool struct {
	threads int
	closed  atomic.Bool
	stop    chan struct{}
	wake    chan struct{}
	stopped sync.WaitGroup

	// One job at a time: whoever sets busy owns task and n until left is 0.
	busy     atomic.Bool
	task     Task
	n        int
	panicked any // first panic of a part, under panicMu
	panicMu  sync.Mutex
	finished chan struct{} // a token when the last part ends after the caller slept

	_    [64]byte
	free atomic.Int64 // parts that nobody has claimed; may fall below zero
	_    [56]byte
	left atomic.Int64 // parts that have not ended, plus sleeping while the caller sleeps
}

// sleeping is added to left by a caller that has stopped spinning.
const sleeping = 1 << 62

// New returns a pool of the given number of threads, the calling one
// included: threads-1 workers are started. With threads <= 0 there are as
// many as the program may use at once (GOMAXPROCS), and never more than that.
func New(threads int) *Pool {
	most := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	if threads <= 0 || threads > most {
		threads = most
	}
	return start(threads)
}

func start(threads int) *Pool {
	p := &Pool{threads: threads, stop: make(chan struct{}), wake: make(chan struct{}, threads), finished: make(chan struct{}, 1)}
	for range threads - 1 {
		p.stopped.Add(1)
		go p.work()
	}
	return p
}

// Threads returns how many threads Do may use, the calling one included.
func (p *Pool) Threads() int {
	if p == nil {
		return 1
	}
	return p.threads
}

// Worth reports whether splitting work that takes serialNS nanoseconds on
// one thread is likely to end sooner than not splitting it.
func (p *Pool) Worth(serialNS float64) bool {
	return p.Threads() > 1 && serialNS > 20_000
}

// Do runs t.Part(i) once for every i in [0, n) and returns when all have
// ended. The caller takes parts itself and never waits for a worker that has
// not begun one. If a part panics, the rest still run and Do panics with the
// first value. Do allocates nothing.
func (p *Pool) Do(n int, t Task) {
	if p == nil || p.threads == 1 || n <= 1 || p.closed.Load() || !p.busy.CompareAndSwap(false, true) {
		for i := range n {
			t.Part(i)
		}
		return
	}
	p.task, p.n = t, n
	p.left.Store(int64(n))
	p.free.Store(int64(n))
	for range min(n, p.threads) - 1 {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	p.take()
	p.await()
	r := p.panicked
	p.task, p.panicked = nil, nil
	p.busy.Store(false)
	if r != nil {
		panic(r)
	}
}

// take does parts until none is free.
func (p *Pool) take() {
	for p.free.Load() > 0 {
		f := p.free.Add(-1)
		if f < 0 {
			return
		}
		// Owning a part keeps the job in place: task and n cannot change now.
		p.part(p.n - 1 - int(f))
	}
}

func (p *Pool) part(i int) {
	defer p.ended()
	p.task.Part(i)
}

// ended is deferred by part: it records a panic and counts the part.
func (p *Pool) ended() {
	if r := recover(); r != nil {
		p.panicMu.Lock()
		if p.panicked == nil {
			p.panicked = r
		}
		p.panicMu.Unlock()
	}
	if p.left.Add(-1) == sleeping {
		p.finished <- struct{}{}
	}
}

// await returns when no part is running.
func (p *Pool) await() {
	if p.left.Load() == 0 {
		return
	}
	for t := time.Now(); time.Since(t) < 50*time.Microsecond; {
		for range 32 {
			if p.left.Load() == 0 {
				return
			}
		}
	}
	if p.left.Add(sleeping) != sleeping {
		<-p.finished
	}
}

func (p *Pool) work() {
	defer p.stopped.Done()
	for {
		p.take()
		t := time.Now()
		for p.free.Load() <= 0 && time.Since(t) < 50*time.Microsecond {
		}
		if p.free.Load() > 0 {
			continue
		}
		select {
		case <-p.wake:
		case <-p.stop:
			return
		}
	}
}

// Close stops the workers and waits for them. A Do that is running ends
// first; a later one is serial. Close may be called more than once.
func (p *Pool) Close() {
	if p == nil || !p.closed.CompareAndSwap(false, true) {
		return
	}
	close(p.stop)
	p.stopped.Wait()
}
