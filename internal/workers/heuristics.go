package workers

import (
	"math/bits"
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/incomparable"
)

// heuristics decides from earlier observations whether to split a call and how long
// workers spin. Its state is approximate: concurrent callers may overwrite each other's
// observations.
type heuristics struct {
	_ incomparable.Type

	gain   float64 // share of the serial time that perfect splitting saves
	hotNS  average // time from the publication of a job until a spinning worker begins a part
	coldNS average // time until a parked worker runs
	wakeNS average // time that the waking thread needs to wake a worker

	last    atomic.Int64  // expected end of the last demand
	dense   atomic.Uint32 // one bit for each demand, the newest lowest: 1 if it came soon after the previous demand
	refused atomic.Uint32 // number of calls that were not split only because of the time to wake workers
	forgone atomic.Int64  // ns that hot workers would have saved since the last pause

	active  atomic.Int64 // ns of jobs; old ones count less
	lost    atomic.Int64 // ns of stalls; old ones count less
	stallNS average      // duration of a stall
	calm    atomic.Int64 // time until which other programs are assumed to use the processors
	pause   atomic.Int64 // duration of the last such period
}

func (j *heuristics) init(threads int) {
	j.gain = 1 - 1/float64(threads)
	// The first observation replaces these estimates.
	j.hotNS.guess(500)
	j.coldNS.guess(100_000)
	j.wakeNS.guess(10_000)
	j.stallNS.guess(1_000_000)
	j.dense.Store(1)
	j.active.Store(8_000_000) // a single stall at the start has little weight
	j.last.Store(-maxSpin)
}

// Worth reports whether splitting work that takes serialNS nanoseconds on one thread is likely to end
// sooner than one thread.
//
// A call counts as a demand: if only awake workers make splitting worthwhile, a few such calls in
// close succession wake the workers.
func (p *Pool) Worth(serialNS float64) bool {
	if alone {
		return false
	}
	if p != nil && p.root != nil {
		p = p.root
	}
	if p.Threads() == 1 || p.closed.Load() || p.busy.Load() {
		return false
	}
	serialNS = min(serialNS, 1e15) // a valid int64
	// Starting and ending a job are two messages, and on average the last part ends half a part late.
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
		// An occasional split measures the time again; otherwise one bad measurement would remain.
		return true
	}
	// This is the ski rental problem: pay for waking the workers when the time that they could have
	// saved in recent calls equals the price.
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

// demand records work that arrives at now and ends at end. It reports whether workers that spun since
// the last demand would still be spinning.
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

// longest is the duration of the longest spin that can pay: a few times the time that it saves.
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

// worked records a job that took ns.
func (j *heuristics) worked(ns int64) {
	if j.active.Add(ns) > memoryOfStalls {
		j.active.Store(j.active.Load() / 2)
		j.lost.Store(j.lost.Load() / 2)
	}
}

// stalled records that a worker's thread did not run for ns. Short stalls occur on every machine. If
// stalls take much of the time, another program uses the processor: the pool then runs serially for a
// while, twice as long as the last time if the stalls continue.
func (j *heuristics) stalled(now, ns int64) {
	j.stallNS.observe(ns)
	calm := j.calm.Load()
	if now < calm {
		return // workers that park late observe the same stall
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
	memoryOfStalls = 40_000_000    // ns of work after which a stall has half its weight
	minLost        = 1_000_000     // ns; shorter stalls do not change the number of threads
	maxPause       = 1_000_000_000 // ns
)

// An average follows a duration: it moves by an eighth of the distance to each observation, and less
// for outliers, which come from other programs.
type average struct{ ns atomic.Int64 }

// guess sets the estimate until the first observation. It is stored as a negative number.
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
