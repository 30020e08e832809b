package workers

import "runtime"

// A worker is one goroutine of a pool: it takes parts, spins, and parks.
type worker struct {
	pool  *Pool
	sleep sleeper

	spun   bool // it came to the present job by spinning
	misses int  // spins in a row that no job ended
	breath breath
	_      [64]byte
}

const (
	spinAtLeast      = 20_000     // ns; the shortest full spin
	spinAtMost       = 400_000    // ns
	turnsAtMost      = 4_000      // of a spin, where the clock ticks in milliseconds
	stallAtLeast     = 100_000    // ns between two looks at the clock that mean a lost processor
	suspendedAtLeast = 12_000_000 // ns between two looks that mean a process that was stopped
)

func (w *worker) run() {
	p, closed := w.pool, false
	w.sleep.enter()
	defer func() {
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
		p.hotNS.learn(clock() - p.began)
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
	if w.breath.due(from) {
		w.sleep.unlocked(runtime.Gosched)
		now := clock()
		w.breath.took(now, now-from)
		from = now
	}
	p.hot.Add(1)
	defer p.hot.Add(-1)
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
		if now-last > stallAtLeast {
			// Longer than a scheduler keeps a thread waiting for its turn
			// means that the whole process stood still, which says nothing.
			if now-last < suspendedAtLeast {
				p.stalled(now, now-last)
			}
			return false
		}
		if now-from >= budget || turns > turnsAtMost || p.closed.Load() {
			w.misses++
			return false
		}
		last = now
	}
}

// park sleeps until the worker is wanted.
func (w *worker) park() {
	p := w.pool
	p.parked.Add(1)
	if roused := w.sleep.park(p, clock() < p.calm.Load()); roused > 0 {
		p.coldNS.learn(clock() - roused)
	}
}
