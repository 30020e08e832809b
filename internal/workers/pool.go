// Package workers splits one piece of work over the cores of the machine.
//
// Handing work to a thread that sleeps costs more than most calls of a kernel
// take, so workers that have just been useful spin for a moment and pick up
// the next job within a microsecond. How long, and from how much work on
// splitting pays, is measured while the pool runs: see [Pool.Worth]. Nothing
// ever waits for a worker that is late, and on a machine that is busy with
// something else the pool withdraws.
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
// All methods but Close may be called from any number of goroutines at once,
// and by tasks themselves. A nil Pool is serial.
type Pool struct {
	threads int
	workers []worker
	running sync.WaitGroup
	heuristics
	under // of a view

	// One job at a time: whoever sets busy owns the fields below it until
	// end. Workers read them only while they own a part, which keeps the job
	// in place.
	busy      atomic.Bool
	task      Task
	began     int64 // when the job was published
	mine      int64 // parts that the caller has done
	yielding  yieldTimer
	hoped     bool // a worker was spinning when the job was published
	dispersed bool // disperse has been tried since a worker last joined
	panicMu   sync.Mutex
	panicked  any // the first panic of a part
	finished  chan struct{}

	shares []share // of the caller and the workers

	// Each on its own cache line, as all threads write them.
	_      [64]byte
	free   atomic.Int64 // parts that nobody has claimed
	_      [56]byte
	left   atomic.Int64 // parts that have not ended; plus asleep while the caller sleeps
	_      [56]byte
	joined atomic.Bool  // a worker has begun a part
	hot    atomic.Int32 // workers that spin, or will when their parts have ended
	parked atomic.Int32 // workers that must be roused
	home   atomic.Int32 // the processor of the last caller that roused one
	turns  atomic.Uint32
	late   atomic.Int64 // when a caller last waited long for a worker
	lateNS atomic.Int64 // how long
	closed atomic.Bool
	_      [16]byte
}

// asleep is added to Pool.left by a caller that has stopped spinning.
const asleep = 1 << 62

// New returns a pool of the given number of threads, the calling one
// included: it starts threads-1 workers. With threads <= 0 there are as many
// as the program may use at once, and there are never more than that: the
// smaller of GOMAXPROCS, which knows the limits of a container, and the number
// of processors that the process is allowed on.
func New(threads int) *Pool {
	most := min(runtime.GOMAXPROCS(0), runtime.NumCPU())
	if threads <= 0 || threads > most {
		threads = most
	}
	return start(threads)
}

// start makes a pool with any number of threads.
func start(threads int) *Pool {
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

// Threads returns how many threads Do may use, the calling one included.
func (p *Pool) Threads() int {
	switch {
	case p == nil:
		return 1
	case p.root != nil:
		return p.root.threads
	}
	return p.threads
}

// Do runs t.Part(i) once for every i in [0, n) and returns when all have
// ended. The threads take parts in rising order. The caller takes parts itself
// and waits only for parts that a worker has begun. If the pool is nil, closed,
// or at work for somebody else (perhaps for the task that calls), the caller
// does all parts.
//
// If parts panic, Do panics with the value of one of them, after all parts
// that had begun have ended; those that had not may be left out. Do allocates
// nothing.
func (p *Pool) Do(n int, t Task) {
	if p != nil && p.root != nil {
		p.run(t, func(root *Pool, t Task) { root.Do(n, t) })
		return
	}
	if !p.publish(n, t) {
		for i := range n {
			t.Part(i)
		}
		return
	}
	p.shares[0].set(0, n, inOrder)
	p.lead()
}

// Spread is Do for parts that lie side by side in memory: every thread begins
// with the same share of them, in this call and the next, and so finds in its
// caches what it left there. With back each goes through its share backwards:
// alternate calls find what the last one touched last. A thread without parts
// helps another from the other end.
func (p *Pool) Spread(n int, back bool, t Task) {
	if p != nil && p.root != nil {
		p.run(t, func(root *Pool, t Task) { root.Spread(n, back, t) })
		return
	}
	if !p.publish(n, t) {
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

// Turn returns another direction each time, for work that goes through large
// arrays to and fro: see Spread. For a nil Pool it is always the same.
func (p *Pool) Turn() (back bool) {
	if p != nil && p.root != nil {
		p = p.root
	}
	return p != nil && p.turns.Add(1)&1 == 0
}

// publish makes the pool the caller's and everything known of a job but its
// shares. It reports false if the caller is to do all parts.
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
		// One is enough: it rouses others while the caller works.
		p.home.Store(processor())
		p.rouse(1)
		p.wakeNS.observe(clock() - p.began)
	}
	defer p.end()
	for p.take(nil) {
	}
}

// end waits for the workers and frees the pool for the next job. It is
// deferred, as a part may end the caller's goroutine.
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
		// A worker that spins took no part in all this time: it does not run.
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

// take does parts until none is free. It reports whether it must be called
// again: a panic ends the loop but not the job. w is nil for the caller of Do.
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
	// What a worker began last ends, with parts of one size, within a part.
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

// disperse moves the workers off the caller's processor, where some kernels
// put them together to save another, once until that has helped.
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

// Close stops the workers and waits for the parts they are doing. A Do that
// is running goes on without them, and a later one is serial. Close may be
// called more than once, but not by a task of this pool.
func (p *Pool) Close() {
	if p == nil {
		return
	}
	p.closed.Store(true)
	p.rouse(len(p.workers))
	p.running.Wait()
}

var epoch = time.Now()

// clock returns nanoseconds of the monotonic clock.
func clock() int64 { return int64(time.Since(epoch)) }
