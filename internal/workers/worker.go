package workers

import (
	"runtime"

	"github.com/rayo-go/rayo/internal/incomparable"
)

// A worker is one goroutine of a pool: it takes parts, spins, and parks.
type worker struct {
	_ incomparable.Type

	pool   *Pool
	number int // 1 and up; the caller is 0
	sleep  sleeper

	spun     bool  // it was spinning when the present job was published
	misses   int   // consecutive spins without a job
	thread   int32 // its thread at the last call of waited
	queued   int64 // ns that this thread had waited for a processor until then
	late     int64 // last value of Pool.late that the worker read
	yielding yieldTimer
	_        [64]byte
}

const (
	minSpin      = 20_000     // ns; the shortest full spin
	maxSpin      = 400_000    // ns
	maxSpins     = 4_000      // iterations of a spin, for clocks that tick in milliseconds
	minStall     = 100_000    // ns between two reads of the clock from which the thread did not run in between
	minSuspended = 12_000_000 // ns: longer than a scheduler lets a thread wait
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
			// A task ended the goroutine with runtime.Goexit, as a failing test does: start another
			// worker.
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

// began is called when the worker has claimed its first part of a job. free is the number of parts
// that are left.
func (w *worker) began(free int64) {
	p := w.pool
	p.joined.Store(true)
	if w.spun {
		p.hotNS.observe(clock() - p.began)
		w.spun = false
	}
	w.misses = 0
	if free > 0 && p.parked.Load() > 0 {
		// A tree of workers that wake others is faster than one caller.
		p.rouse(2)
	}
}

// spin waits for the next job. It returns false if none comes soon.
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
			// Let another thread use this processor while there is no job.
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

// lost reports whether the worker waited for a processor that another thread used. ns is the time for
// which it did not run. lost also updates the heuristics.
func (w *worker) lost(now, ns int64) bool {
	q, told := w.waited()
	if ns = blame(ns, q, told); ns < minStall {
		return false
	}
	w.pool.stalled(now, ns)
	return true
}

// blame returns the part of a gap of ns that other threads caused by using the processor. queued is
// the time for which the thread waited for a processor, if the kernel reports it. Other gaps have
// another reason: the process was stopped, or the virtual machine did not run.
func blame(ns, queued int64, told bool) int64 {
	switch {
	case !told && ns <= minSuspended:
		return ns
	case !told || queued < ns/2:
		// After a stop all threads of the process need a processor at once, and each waits a little.
		return 0
	}
	return min(ns, queued)
}

// waited returns a lower bound of the time for which the worker's thread waited for a processor since
// the last call. It is 0 if the worker has changed its thread. It returns false if the kernel does not
// report the time.
func (w *worker) waited() (ns int64, told bool) {
	thread, q, told := queued()
	if thread == w.thread {
		ns = q - w.queued
	}
	w.thread, w.queued = thread, q
	return ns, told
}

// park sleeps until the worker is needed.
func (w *worker) park() {
	p := w.pool
	p.hot.Add(-1)
	w.waited() // resets the time: earlier waits do not count
	p.parked.Add(1)
	roused := w.sleep.park(p, clock() < p.calm.Load())
	p.hot.Add(1)
	if roused > 0 {
		p.coldNS.observe(clock() - roused)
	}
}
