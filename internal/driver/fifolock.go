package driver

import (
	"context"
	"sync"
)

// FIFOLock lets submissions put their work into a queue one after the other, in the
// order in which they asked. The zero value is ready to use.
type FIFOLock struct {
	mu   sync.Mutex
	last chan struct{} // closed when the last turn that was taken is over
}

// FIFOTicket is a place in the order.
type FIFOTicket struct{ before, over chan struct{} }

// Free reports whether no turn is under way.
func (t *FIFOLock) Free() bool {
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
func (t *FIFOLock) Take() FIFOTicket {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := FIFOTicket{t.last, make(chan struct{})}
	t.last = p.over
	return p
}

// Await returns when it is the turn of p, or gives the turn up and returns the
// error of ctx.
func (p FIFOTicket) Await(ctx context.Context) error {
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
func (p FIFOTicket) End() { close(p.over) }

// Wait returns when all turns are over.
func (t *FIFOLock) Wait() {
	p := t.Take()
	_ = p.Await(context.Background())
	p.End()
}
