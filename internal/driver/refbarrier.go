package driver

import "sync"

// RefBarrier is what the submissions of an [Executable] are inside of while they use it.
// The zero RefBarrier is open, and it is safe for concurrent use.
type RefBarrier struct {
	mu     sync.Mutex // orders inside.Add and Shut
	shut   bool
	inside sync.WaitGroup
	once   sync.Once
}

// Enter lets a submission in, unless the gate is shut. It is to Leave.
func (g *RefBarrier) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.inside.Add(1)
	return true
}

// Leave lets a submission out.
func (g *RefBarrier) Leave() { g.inside.Done() }

// Shut lets nobody in any more, and calls release when all have left: for the
// first of its callers, and whoever else calls waits for that.
func (g *RefBarrier) Shut(release func()) {
	g.once.Do(func() {
		g.mu.Lock()
		g.shut = true
		g.mu.Unlock()
		g.inside.Wait()
		release()
	})
}
