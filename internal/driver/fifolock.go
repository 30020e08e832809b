package driver

import (
	"context"
	"sync"
)

// FIFOLock is a lock that submissions get in the order in which they call Take. The zero
// value is unlocked.
type FIFOLock struct {
	mu   sync.Mutex
	last chan struct{} // closed when the last ticket that was taken is released
}

// FIFOTicket is a place in the queue of a FIFOLock.
type FIFOTicket struct{ before, over chan struct{} }

// Free reports whether no ticket is outstanding.
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

// Take returns the next ticket. Call Await, and End if Await succeeds.
func (t *FIFOLock) Take() FIFOTicket {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := FIFOTicket{t.last, make(chan struct{})}
	t.last = p.over
	return p
}

// Await waits until p has the lock. If ctx ends first, it gives the ticket up and returns
// the error of ctx; do not call End then.
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

// End releases the lock for the next ticket.
func (p FIFOTicket) End() { close(p.over) }

// Wait waits until all tickets are released.
func (t *FIFOLock) Wait() {
	p := t.Take()
	_ = p.Await(context.Background())
	p.End()
}
