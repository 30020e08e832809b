package workers

import "sync/atomic"

// A breath is when a thread of a pool lets other goroutines run. A caller with
// one job after the other and a worker that spins for the next would keep
// them waiting until the scheduler steps in after ten milliseconds, and those
// whose timers ended twice as long.
type breath struct{ last, every atomic.Int64 }

const (
	breathAtLeast = 1_000_000     // ns between two
	breathAtMost  = 1_000_000_000 // ns
)

// due reports whether it is time, and counts from now on if so.
func (b *breath) due(now int64) bool {
	if now-b.last.Load() < max(b.every.Load(), breathAtLeast) {
		return false
	}
	b.last.Store(now)
	return true
}

// took notes how long other goroutines ran. Those that take whole turns of
// the scheduler get them anyway: the next breath is far.
func (b *breath) took(now, ns int64) {
	b.last.Store(now)
	every := b.every.Load()
	if ns > 2*breathAtLeast {
		every = max(every, breathAtLeast) * 16
	} else {
		every /= 2
	}
	b.every.Store(min(every, breathAtMost))
}
