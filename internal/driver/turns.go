package driver

import (
	"context"
	"sync"
)

// Turns lets submissions put their work into a queue one after the other, in the
// order in which they asked. The zero value is ready to use.
type Turns struct {
	mu   sync.Mutex
	last chan struct{} // closed when the last turn that was taken is over
}

// Turn is a place in the order.
type Turn struct{ before, over chan struct{} }

// Free reports whether no turn is under way.
func (t *Turns) Free() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return ended(t.last)
}

func ended(c chan struct{}) bool {
	if c == nil {
		return true
	}
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Take returns the next place, which is to be ended.
func (t *Turns) Take() Turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := Turn{t.last, make(chan struct{})}
	t.last = p.over
	return p
}

// Await returns when it is the turn of p, or gives the turn up and returns the
// error of ctx.
func (p Turn) Await(ctx context.Context) error {
	if ended(p.before) {
		return nil
	}
	select {
	case <-p.before:
		return nil
	case <-ctx.Done():
		go func() {
			<-p.before
			p.End()
		}()
		return ctx.Err()
	}
}

// End ends the turn.
func (p Turn) End() { close(p.over) }

// Wait returns when all turns are over.
func (t *Turns) Wait() {
	p := t.Take()
	_ = p.Await(context.Background())
	p.End()
}
