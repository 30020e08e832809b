package workers

import "sync/atomic"

// A breath records when a thread of a pool last let other goroutines run. A caller that runs one job
// after the other, and a worker that spins for the next, would block other goroutines until the
// scheduler preempts them after ten milliseconds, and goroutines whose timers have expired for twice
// as long.
type yieldTimer struct{ last, every atomic.Int64 }

const (
	minYield = 1_000_000     // ns between two breaths
	maxYield = 1_000_000_000 // ns
)

// due reports whether a breath is due, and then restarts the interval.
func (b *yieldTimer) due(now int64) bool {
	if now-b.last.Load() < max(b.every.Load(), minYield) {
		return false
	}
	b.last.Store(now)
	return true
}

// took records how long other goroutines ran. If they use whole time slices of the scheduler, they run
// anyway, and the next breath is later.
func (b *yieldTimer) took(now, ns int64) {
	b.last.Store(now)
	every := b.every.Load()
	if ns > 2*minYield {
		every = max(every, minYield) * 16
	} else {
		every /= 2
	}
	b.every.Store(min(every, maxYield))
}
