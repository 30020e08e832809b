// Package workers splits one piece of work over the cores of the machine.
//
// Waking a thread that sleeps takes longer than most calls of a kernel. Therefore workers spin for a
// moment after a job, and start the next job within a microsecond. The pool measures while it runs how
// long workers should spin, and for how much work splitting pays: see [Pool.Worth]. No caller waits
// for a worker that has not started. If other programs use the processors, the pool uses fewer
// threads.
//
// The function that makes a Pool also closes it. The package has no global state.
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

// A Pool is a fixed set of workers that take parts of one Task at a time. All methods but Close may be
// called from any number of goroutines at once, and by tasks. A nil Pool runs all parts in the caller.
type Pool struct {
	threads int
	workers []worker
	running sync.WaitGroup
	heuristics
	under // set if the pool is a view of another

	// The pool runs one job at a time. The goroutine that sets busy owns the fields below it until
	// end. Workers read them only while they own a part, and the job stays in place until all parts
	// have ended.
	busy      atomic.Bool
	task      Task
	began     int64 // time at which the job was published
	mine      int64 // parts that the caller has done
	yielding  yieldTimer
	hoped     bool // a worker was spinning when the job was published
	dispersed bool // disperse has been tried since a worker last joined
	panicMu   sync.Mutex
	panicked  any // the first panic of a part
	finished  chan struct{}

	shares []share // of the caller and the workers

	// Each has its own cache line, because all threads write them.
	_      [64]byte
	free   atomic.Int64 // parts that no thread has claimed
	_      [56]byte
	left   atomic.Int64 // parts that have not ended; plus asleep while the caller sleeps
	_      [56]byte
	joined atomic.Bool  // a worker has begun a part
	hot    atomic.Int32 // workers that spin, or will spin after their parts
	parked atomic.Int32 // workers that sleep
	home   atomic.Int32 // processor of the last caller that woke a worker
	turns  atomic.Uint32
	late   atomic.Int64 // time at which a caller last waited long for a worker
	lateNS atomic.Int64 // duration of this wait
	closed atomic.Bool
	_      [16]byte
}

// alone says that the program has one thread on this architecture. The linker then leaves the workers out.
const alone = runtime.GOARCH == "wasm"

// asleep is added to Pool.left by a caller that has stopped spinning.
const asleep = 1 << 62

// New returns a pool with the given number of threads, including the calling thread: it starts
// threads-1 workers. With threads <= 0 the number is the largest that the program may use at once, and
// no pool has more: the smaller of GOMAXPROCS, which respects the limits of a container, and the
// number of processors that the process may run on.
func New(threads int) *Pool {
	most := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	if threads <= 0 || threads > most {
		threads = most
	}
	return start(threads)
}

// start makes a pool with any number of threads, or with one where there are no others.
func start(threads int) *Pool {
	if alone {
		return &Pool{threads: 1}
	}
	p := &Pool{threads: threads, workers: make([]worker, threads-1), shares: make([]share, threads), finished: make(chan struct{}, 1)}
	p.heuristics.init(threads)
	for i := range p.workers {
		w := &p.workers[i]
		w.pool, w.number = p, i+1
		w.sleep.init()
		p.running.Add(1)
		go w.run()
	}
	return p
}

// Threads returns the number of threads that Do may use, including the calling thread.
func (p *Pool) Threads() int {
	switch {
	case p == nil:
		return 1
	case p.root != nil:
		return p.root.threads
	}
	return p.threads
}

// Do runs t.Part(i) once for every i in [0, n) and returns when all have ended. The threads take parts
// in rising order. The caller also takes parts, and waits only for parts that a worker has begun. If
// the pool is nil, closed or busy with another job, for example with the task that calls Do, the
// caller runs all parts.
//
// If parts panic, Do panics with the value of one of them, after all begun parts have ended; other
// parts may not run. Do allocates nothing.
func (p *Pool) Do(n int, t Task) {
	if p != nil && p.root != nil {
		p.run(t, func(root *Pool, t Task) { root.Do(n, t) })
		return
	}
	if alone || !p.publish(n, t) {
		for i := range n {
			t.Part(i)
		}
		return
	}
	p.shares[0].set(0, n, inOrder)
	p.lead()
}

// Spread is Do for parts that are neighbours in memory. Each thread begins with the same share of the
// parts in each call, so its caches may hold their data. With back each thread takes the parts of its
// share from the end: if calls alternate, a call begins with the data that the previous call used
// last. A thread whose share is empty takes parts from the other end of another share.
func (p *Pool) Spread(n int, back bool, t Task) {
	if p != nil && p.root != nil {
		p.run(t, func(root *Pool, t Task) { root.Spread(n, back, t) })
		return
	}
	if alone || !p.publish(n, t) {
		for i := range n {
			if back {
				i = n - 1 - i
			}
			t.Part(i)
		}
		return
	}
	from := fromFront
	if back {
		from = fromBack
	}
	at := func(k int) int { return int(int64(k) * int64(n) / int64(len(p.shares))) }
	for k := range p.shares {
		p.shares[k].set(at(k), at(k+1), from)
	}
	p.lead()
}

// Turn alternates between the two directions, for repeated passes over large arrays: see Spread. For a
// nil Pool the direction is always the same.
func (p *Pool) Turn() (back bool) {
	if p != nil && p.root != nil {
		p = p.root
	}
	return p != nil && p.turns.Add(1)&1 == 0
}

// publish acquires the pool for the caller and sets all fields of a job but its shares. It returns
// false if the caller must run all parts.
func (p *Pool) publish(n int, t Task) bool {
	if p == nil || p.threads == 1 || n <= 1 || n > maxShares || p.closed.Load() || !p.busy.CompareAndSwap(false, true) {
		return false
	}
	now := clock()
	p.demand(now, now)
	p.task, p.began, p.mine = t, now, 0
	p.joined.Store(false)
	p.left.Store(int64(n))
	p.hoped = p.hot.Load() > 0
	p.free.Store(int64(n))
	return true
}

// lead works on the published job until it is done.
func (p *Pool) lead() {
	if p.hot.Load() == 0 && p.parked.Load() > 0 {
		// Wake one worker: it wakes others while the caller works.
		p.home.Store(processor())
		p.rouse(1)
		p.wakeNS.observe(clock() - p.began)
	}
	defer p.end()
	for p.take(nil) {
	}
}

// end waits for the workers and frees the pool for the next job. It is deferred, because a part may
// end the caller's goroutine.
func (p *Pool) end() {
	for p.take(nil) {
	}
	p.wait()
	r := p.panicked
	p.task, p.panicked = nil, nil
	now := clock()
	p.last.Store(now)
	p.worked(now - p.began)
	if p.joined.Load() {
		p.dispersed = false
	} else if p.hoped && now-p.began > minSpin {
		// A spinning worker has claimed no part in this time: its thread does not run.
		p.disperse()
	}
	breathe := p.yielding.due(now)
	p.busy.Store(false)
	if r != nil {
		panic(r)
	}
	if breathe {
		runtime.Gosched()
		p.yielding.took(clock(), clock()-now)
	}
}

// take runs parts until none is free. It returns true if it must be called again, because a panic
// ended its loop but not the job. w is nil for the caller of Do.
func (p *Pool) take(w *worker) (again bool) {
	var did int64
	number := 0
	if w != nil {
		number = w.number
	}
	defer func() {
		if did == 0 {
			return
		}
		if w == nil {
			p.mine += did
		}
		if r := recover(); r != nil {
			p.panicMu.Lock()
			if p.panicked == nil {
				p.panicked = r
			}
			p.panicMu.Unlock()
			again = true
		}
		if p.left.Add(-did) == asleep {
			p.finished <- struct{}{}
		}
	}()
	for p.free.Load() > 0 {
		i, ok := p.claim(number)
		if !ok {
			break
		}
		free := p.free.Add(-1)
		did++
		if w != nil && did == 1 {
			w.began(free)
		}
		p.task.Part(i)
	}
	return false
}

// wait returns when all parts have ended.
func (p *Pool) wait() {
	if p.left.Load() == 0 {
		return
	}
	from := clock()
	worked := from - p.began
	// If parts have one size, the parts of workers end within the time of one part.
	due := max(minSpin, worked/max(p.mine, 1))
	patience := max(due+p.longest(), worked/4)
	now := from
	for turns := 1; now-from < patience && turns < maxSpins; turns++ {
		for range 16 {
			if p.left.Load() == 0 {
				return
			}
			pause()
		}
		now = clock()
		if now-from > due {
			// The worker has lost its processor, perhaps to this very thread,
			p.disperse()
			yield()
			if turns%256 == 0 {
				// or waits for one of the scheduler's.
				runtime.Gosched()
			}
		}
	}
	if p.left.Add(asleep) != asleep {
		<-p.finished
	}
	if now = clock(); now-from > max(worked, minStall) {
		p.lateNS.Store(now - from)
		p.late.Store(now)
	}
}

// wanted reports whether a worker must not park.
func (p *Pool) wanted() bool { return p.free.Load() > 0 || p.closed.Load() }

// disperse moves the workers to other processors than the caller's, until a worker has joined. Some
// kernels put them on the caller's processor to save power.
func (p *Pool) disperse() {
	if p.dispersed {
		return
	}
	p.dispersed = true
	cpu := processor()
	for i := range p.workers {
		p.workers[i].sleep.leaveTo(cpu)
	}
}

// rouse wakes up to n parked workers.
func (p *Pool) rouse(n int) {
	for i := range p.workers {
		if n == 0 || p.parked.Load() == 0 {
			return
		}
		if w := &p.workers[i]; w.sleep.rouse(p) {
			n--
		}
	}
}

// Close stops the workers and waits for the parts that they run. A running Do continues without
// workers, and later calls run all parts in the caller. Close may be called more than once, but not by
// a task of this pool.
func (p *Pool) Close() {
	if alone || p == nil {
		return
	}
	p.closed.Store(true)
	p.rouse(len(p.workers))
	p.running.Wait()
}

var epoch = time.Now()

// clock returns nanoseconds of the monotonic clock.
func clock() int64 { return int64(time.Since(epoch)) }
