package driver

import (
	"sync"

	"github.com/rayo-go/rayo/internal/incomparable"
)

// RefBarrier counts the running submissions of an [Executable], so that Close waits for
// them. The zero RefBarrier is open. It is safe for concurrent use.
type RefBarrier struct {
	_ incomparable.Type

	mu     sync.Mutex // orders inside.Add and Shut
	shut   bool
	inside sync.WaitGroup
	once   sync.Once
}

// Enter registers a submission, which has to call Leave at its end. It returns false after
// Shut.
func (g *RefBarrier) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.inside.Add(1)
	return true
}

// Leave ends a submission.
func (g *RefBarrier) Leave() { g.inside.Done() }

// Shut rejects new submissions, waits for the running ones, and calls release. Only the
// first call runs release; later calls wait for it.
func (g *RefBarrier) Shut(release func()) {
	g.once.Do(func() {
		g.mu.Lock()
		g.shut = true
		g.mu.Unlock()
		g.inside.Wait()
		release()
	})
}
