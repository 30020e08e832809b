package workers

import "sync/atomic"

// A breath is when a thread of a pool lets other goroutines run. A caller with
// one job after the other and a worker that spins for the next would keep
// them waiting until the scheduler steps in after ten milliseconds, and those
// whose timers ended twice as long.
type yieldTimer struct{ last, every atomic.Int64 }

const (
	minYield = 1_000_000     // ns between two
	maxYield = 1_000_000_000 // ns
)

// due reports whether it is time, and counts from now on if so.
func (b *yieldTimer) due(now int64) bool {
	if now-b.last.Load() < max(b.every.Load(), minYield) {
		return false
	}
	b.last.Store(now)
	return true
}

// took notes how long other goroutines ran. Those that take whole turns of
// the scheduler get them anyway: the next breath is far.
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
