package workers

import (
	"math/bits"
	"sync/atomic"
)

// heuristics decides from earlier observations whether to split a call and how long
// workers spin. Its state is approximate: concurrent callers may overwrite each other's
// observations.
type heuristics struct {
	gain   float64 // share of the serial time that perfect splitting saves
	hotNS  average // from publishing a job to a part begun by a spinning worker
	coldNS average // from rousing a parked worker to its running
	wakeNS average // what rousing costs the one who does it

	last    atomic.Int64  // when the last demand ended or was to end
	dense   atomic.Uint32 // one bit for each demand, newest lowest: it came soon after the last
	refused atomic.Uint32 // work that the time to wake made not worth it
	forgone atomic.Int64  // ns that hot workers would have saved since the last pause

	active  atomic.Int64 // ns of jobs, fading
	lost    atomic.Int64 // ns of stalls, fading
	stallNS average      // how long one lasts
	calm    atomic.Int64 // until then the machine counts as busy with something else
	pause   atomic.Int64 // how long that last was
}

func (j *heuristics) init(threads int) {
	j.gain = 1 - 1/float64(threads)
	// Guesses that the first observation replaces.
	j.hotNS.guess(500)
	j.coldNS.guess(100_000)
	j.wakeNS.guess(10_000)
	j.stallNS.guess(1_000_000)
	j.dense.Store(1)
	j.active.Store(8_000_000) // one stall at the start says nothing
	j.last.Store(-maxSpin)
}

// Worth reports whether splitting work that takes serialNS nanoseconds on
// one thread is likely to end sooner than not splitting it now.
//
// It counts as a demand: work that is worth it only for workers that are
// awake wakes them after a few calls in close succession.
func (p *Pool) Worth(serialNS float64) bool {
	if p != nil && p.root != nil {
		p = p.root
	}
	if p.Threads() == 1 || p.closed.Load() || p.busy.Load() {
		return false
	}
	serialNS = min(serialNS, 1e15) // which also is a valid int64
	// A hand-off is two messages, and the last part ends late by half a part.
	saved := serialNS*p.gain - 2*float64(p.hotNS.get())
	if !(saved > serialNS/8) {
		return false
	}
	now := clock()
	if now < p.calm.Load() && serialNS < 4*float64(p.stallNS.get()) {
		return false
	}
	if p.hot.Load() > 0 {
		return true
	}
	wake := float64(p.wakeNS.get())
	pays := func(cold float64) bool { return (serialNS-cold)*p.gain-wake > serialNS/8 }
	cold := float64(p.coldNS.get())
	if pays(cold) {
		return true
	}
	if pays(cold/2) && p.refused.Add(1)%64 == 0 {
		// Without a try now and then, a bad time would be remembered forever.
		return true
	}
	// Rent or buy: what sleeping workers did not save in a run of calls may
	// reach the price of waking them before it is paid.
	if !p.demand(now, now+int64(serialNS)) {
		p.forgone.Store(0)
		return false
	}
	if p.forgone.Add(int64(saved)) < int64(2*wake) {
		return false
	}
	p.forgone.Store(0)
	return true
}

// demand notes that work arrived at now and ends at end. It reports whether
// workers that spun since the last would have been there for it.
func (j *heuristics) demand(now, end int64) bool {
	soon := now-j.last.Load() < j.longest()
	j.last.Store(end)
	bit := uint32(0)
	if soon {
		bit = 1
	}
	j.dense.Store(j.dense.Load()<<1 | bit)
	return soon
}

// longest is the longest spin that can pay: a few times what it saves.
func (j *heuristics) longest() int64 {
	return min(max(4*(j.coldNS.get()+j.wakeNS.get()), minSpin), maxSpin)
}

// budget returns how long a worker spins for the next job.
func (j *heuristics) budget(now int64) int64 {
	switch {
	case now < j.calm.Load():
		return 0
	case bits.OnesCount32(j.dense.Load()&0xff) < 2:
		return j.longest() / 8
	}
	return j.longest()
}

// worked notes that a job took ns.
func (j *heuristics) worked(ns int64) {
	if j.active.Add(ns) > memoryOfStalls {
		j.active.Store(j.active.Load() / 2)
		j.lost.Store(j.lost.Load() / 2)
	}
}

// stalled notes that a worker stood still for ns. That happens everywhere now
// and then. Where it takes a good part of the time, something else wants the
// processor: the pool withdraws, and twice as long each time it finds the same
// again.
func (j *heuristics) stalled(now, ns int64) {
	j.stallNS.observe(ns)
	calm := j.calm.Load()
	if now < calm {
		return // workers that park late see the same trouble
	}
	if lost := j.lost.Add(ns); lost < minLost || lost < j.active.Load()/4 {
		return
	}
	j.active.Store(0)
	j.lost.Store(0)
	pause := 2 * ns
	if before := j.pause.Load(); now-calm < 4*before {
		pause = max(pause, 2*before)
	}
	pause = min(pause, maxPause)
	j.pause.Store(pause)
	j.calm.Store(now + pause)
}

const (
	memoryOfStalls = 40_000_000    // ns of work after which half is forgotten
	minLost        = 1_000_000     // ns; less is never a reason to withdraw
	maxPause       = 1_000_000_000 // ns
)

// An average follows a duration: an eighth of the way to each new one, and
// little for outliers, which are waits for something else.
type average struct{ ns atomic.Int64 }

// guess sets what holds until the first observation; kept below zero to tell.
func (a *average) guess(ns int64) { a.ns.Store(-ns) }

func (a *average) get() int64 {
	v := a.ns.Load()
	return max(v, -v)
}

func (a *average) observe(ns int64) {
	old := a.ns.Load()
	switch {
	case ns <= 0: // the clock is too coarse
	case old < 0:
		a.ns.Store(min(ns, -2*old))
	default:
		a.ns.Store(max(old+(min(ns, 2*old)-old)/8, 1))
	}
}
