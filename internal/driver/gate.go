package driver

import "sync"

// Gate is what the submissions of an [Executable] are inside of while they use it.
// The zero Gate is open, and it is safe for concurrent use.
type Gate struct {
	mu     sync.Mutex // orders inside.Add and Shut
	shut   bool
	inside sync.WaitGroup
	once   sync.Once
}

// Enter lets a submission in, unless the gate is shut. It is to Leave.
func (g *Gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.inside.Add(1)
	return true
}

// Leave lets a submission out.
func (g *Gate) Leave() { g.inside.Done() }

// Shut lets nobody in any more, and calls release when all have left: for the
// first of its callers, and whoever else calls waits for that.
func (g *Gate) Shut(release func()) {
	g.once.Do(func() {
		g.mu.Lock()
		g.shut = true
		g.mu.Unlock()
		g.inside.Wait()
		release()
	})
}
