package cuda

import "sync/atomic"

// A guard counts the running calls that use a driver handle. Close may be called at any time from
// any goroutine; the guard makes sure that it destroys the handle only after the last of these
// calls, and that no later call uses it. Its zero value is open.
type guard struct{ state atomic.Int64 }

const (
	guardClosed = 1 << 62 // nobody enters any more
	guardDone   = 1 << 61 // somebody destroys the handle, or has
	guardCount  = guardDone - 1
)

// enter reports whether the handle may be used. After true the caller must call leave.
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
