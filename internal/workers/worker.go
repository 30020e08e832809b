package workers

import "runtime"

// A worker is one goroutine of a pool: it takes parts, spins, and parks.
type worker struct {
	pool   *Pool
	number int // 1 and up; the caller is 0
	sleep  sleeper

	spun     bool  // it came to the present job by spinning
	misses   int   // spins in a row that no job ended
	thread   int32 // that it had when it last asked
	queued   int64 // ns that this had waited for a processor by then
	late     int64 // Pool.late when the worker last looked
	yielding yieldTimer
	_        [64]byte
}

const (
	minSpin      = 20_000     // ns; the shortest full spin
	maxSpin      = 400_000    // ns
	maxSpins     = 4_000      // of a spin, where the clock ticks in milliseconds
	minStall     = 100_000    // ns between two looks at the clock that mean a lost processor
	minSuspended = 12_000_000 // ns: longer than a scheduler keeps a thread waiting for its turn
)

func (w *worker) run() {
	p, closed := w.pool, false
	w.sleep.enter()
	p.hot.Add(1)
	defer func() {
		p.hot.Add(-1)
		w.sleep.leave()
		if closed {
			p.running.Done()
		} else {
			// A task ended the goroutine with runtime.Goexit, as a failing
			// test does; another takes its place.
			go w.run()
		}
	}()
	for !p.closed.Load() {
		for p.take(w) {
		}
		w.sleep.widen()
		if !w.spin() {
			w.park()
		}
	}
	closed = true
}

// began is called when the worker has claimed its first part of a job, of
// which free others are left.
func (w *worker) began(free int64) {
	p := w.pool
	p.joined.Store(true)
	if w.spun {
		p.hotNS.observe(clock() - p.began)
		w.spun = false
	}
	w.misses = 0
	if free > 0 && p.parked.Load() > 0 {
		// A tree of wakers reaches many workers sooner than one caller does.
		p.rouse(2)
	}
}

// spin waits for a job that comes soon; false: none did.
func (w *worker) spin() bool {
	p := w.pool
	from := clock()
	if w.yielding.due(from) {
		p.hot.Add(-1)
		w.sleep.unlocked(runtime.Gosched)
		p.hot.Add(1)
		now := clock()
		w.yielding.took(now, now-from)
		from = now
	}
	if late := p.late.Load(); late != w.late {
		w.late = late
		w.lost(from, p.lateNS.Load())
	}
	budget := p.budget(from) >> min(w.misses, 4)
	for last, turns := from, 0; ; turns++ {
		for range 16 {
			if p.free.Load() > 0 {
				w.spun = true
				return true
			}
			pause()
		}
		if turns%16 == 15 {
			// Whoever else wants this processor gets it while nothing is lost.
			yield()
		}
		now := clock()
		if gap := now - last; gap > minStall {
			if w.lost(now, gap) {
				return false
			}
			from += gap
		}
		if now-from >= budget || turns > maxSpins || p.closed.Load() {
			w.misses++
			return false
		}
		last = now
	}
}

// lost reports whether the worker, of which nothing was seen for ns, waited for
// a processor that something else had, and tells the heuristics.
func (w *worker) lost(now, ns int64) bool {
	q, told := w.waited()
	if ns = blame(ns, q, told); ns < minStall {
		return false
	}
	w.pool.stalled(now, ns)
	return true
}

// blame returns how much of a gap of ns, in which a thread waited for a
// processor for queued if the kernel told, is due to something else that ran.
// Otherwise nobody is to blame: the process was stopped, or the machine is a
// virtual one that had to wait itself.
func blame(ns, queued int64, told bool) int64 {
	switch {
	case !told && ns <= minSuspended:
		return ns
	case !told || queued < ns/2:
		// All threads of a process that goes on after a stop want a processor
		// at once, and wait a little for each other.
		return 0
	}
	return min(ns, queued)
}

// waited returns how long the worker's thread waited for a processor since the
// last call, at least: a worker that has got another thread since then knows
// nothing. False: the kernel does not tell.
func (w *worker) waited() (ns int64, told bool) {
	thread, q, told := queued()
	if thread == w.thread {
		ns = q - w.queued
	}
	w.thread, w.queued = thread, q
	return ns, told
}

// park sleeps until the worker is wanted.
func (w *worker) park() {
	p := w.pool
	p.hot.Add(-1)
	w.waited() // what was before does not count
	p.parked.Add(1)
	roused := w.sleep.park(p, clock() < p.calm.Load())
	p.hot.Add(1)
	if roused > 0 {
		p.coldNS.observe(clock() - roused)
	}
}
