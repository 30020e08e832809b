package engine

import (
	"context"

	"github.com/rayo-go/rayo/internal/driver"
)

// Pending is work under way. It is safe for concurrent use.
type Pending struct {
	done chan struct{}
	err  error // set before done is closed
}

var closedChan = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Failed returns a Pending that is over already.
func Failed(err error) *Pending { return &Pending{closedChan, err} }

func (p *Pending) finish(err error) {
	p.err = err
	close(p.done)
}

// Done returns a channel that is closed when the work is over.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the work, and returns its error, or for ctx, and
// returns the error of that; the work goes on then.
func (p *Pending) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	default:
	}
	if ctx == nil {
		return driver.ErrContext
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
