package device

import (
	"context"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
)

// Pending is an asynchronous call, or a running batch or plan. It owns the slices of the call until
// it is done. It is safe for concurrent use. The zero Pending is done, with an error.
type Pending struct {
	p       *driver.Completion
	explain func(error) error
}

func failed(err error) *Pending { return &Pending{p: driver.Completed(err)} }

// Done returns a channel that is closed when the call is done.
func (p *Pending) Done() <-chan struct{} { return p.completion().Done() }

// completion returns the completion for which p waits.
func (p *Pending) completion() *driver.Completion {
	if p == nil || p.p == nil {
		return noCall
	}
	return p.p
}

// noCall is the call of the zero Pending: it is complete.
var noCall = driver.Completed(fmt.Errorf("the zero Pending belongs to no call: %w", ErrForeign))

// Wait waits until the call is done and returns its error. If ctx ends first, Wait returns the
// error of ctx; the call then continues and still owns its slices.
func (p *Pending) Wait(ctx context.Context) error {
	err := p.completion().Wait(ctx)
	if err != nil && p != nil && p.explain != nil {
		err = p.explain(err)
	}
	return err
}

// Future is a Pending with a result.
type Future[T any] struct {
	*Pending
	value func() T
}

// Value waits like Wait and returns the result.
func (f *Future[T]) Value(ctx context.Context) (T, error) {
	if err := f.Wait(ctx); err != nil {
		var zero T
		return zero, err
	}
	return f.value(), nil
}
