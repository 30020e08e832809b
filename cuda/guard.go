package cuda

import "sync/atomic"

// A guard counts those who use a handle of the driver, so that Close, which may
// come at any time from any goroutine, destroys the handle only after the last
// of them, and nobody uses it after that. Its zero value is open.
type guard struct{ state atomic.Int64 }

const (
	guardClosed = 1 << 62 // nobody enters any more
	guardDone   = 1 << 61 // somebody destroys the handle, or has
	guardCount  = guardDone - 1
)

// enter reports whether the handle may be used. Who gets true calls leave
// afterwards.
func (g *guard) enter() bool {
	for {
		s := g.state.Load()
		if s&guardClosed != 0 {
			return false
		}
		if g.state.CompareAndSwap(s, s+1) {
			return true
		}
	}
}

// leave ends what enter began and reports whether the caller has to destroy
// the handle: it was the last, and the guard is closed.
func (g *guard) leave() bool { return g.last(g.state.Add(-1)) }

// close closes the guard and reports whether the caller has to destroy the
// handle, which is so once, and only if nobody uses it.
func (g *guard) close() bool { return g.last(g.state.Or(guardClosed) | guardClosed) }

func (g *guard) last(s int64) bool {
	return s&guardClosed != 0 && s&(guardCount|guardDone) == 0 && g.state.CompareAndSwap(s, s|guardDone)
}

// open reports whether the guard is not closed.
func (g *guard) open() bool { return g.state.Load()&guardClosed == 0 }
