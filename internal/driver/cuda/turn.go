package cuda

import (
	"context"
	"sync"
)

// turns lets submissions put their work into the stream one after the other, in
// the order in which they asked. The zero value is ready to use.
type turns struct {
	mu   sync.Mutex
	last chan struct{} // closed when the turn of the last one is over
}

// turn is a place in the order.
type turn struct{ before, over chan struct{} }

// take returns the next place.
func (t *turns) take() turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := turn{t.last, make(chan struct{})}
	t.last = p.over
	return p
}

// await returns when it is the turn of p, or gives the turn up and returns the
// error of ctx.
func (p turn) await(ctx context.Context) error {
	if p.before == nil {
		return nil
	}
	select {
	case <-p.before:
		return nil
	default:
	}
	select {
	case <-p.before:
		return nil
	case <-ctx.Done():
		go func() {
			<-p.before
			p.end()
		}()
		return ctx.Err()
	}
}

// end ends the turn.
func (p turn) end() { close(p.over) }

// wait returns when all turns are over.
func (t *turns) wait() {
	p := t.take()
	_ = p.await(context.Background())
	p.end()
}
