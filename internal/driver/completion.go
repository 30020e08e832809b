package driver

import "context"

// Completion is the end of work that is under way: a [Fence]. It is safe for
// concurrent use.
type Completion struct {
	done chan struct{}
	err  error // once done is closed

	// MayWait, if not nil, is called by Wait if the work is not complete; Wait returns its error.
	MayWait func() error
}

// NewCompletion returns one of work that is to be completed, once.
func NewCompletion() *Completion { return &Completion{done: make(chan struct{})} }

var over = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// Completed returns one of work that is over already.
func Completed(err error) *Completion { return &Completion{done: over, err: err} }

// Complete ends the work, with its error.
func (c *Completion) Complete(err error) {
	c.err = err
	close(c.done)
}

// Done implements [Fence].
func (c *Completion) Done() <-chan struct{} { return c.done }

// Wait implements [Fence]. A nil ctx is ErrContext, unless the work is over.
func (c *Completion) Wait(ctx context.Context) error {
	select {
	case <-c.done:
		return c.err
	default:
	}
	if ctx == nil {
		return ErrContext
	}
	if c.MayWait != nil {
		if err := c.MayWait(); err != nil {
			return err
		}
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
