package driver

import "context"

// Alive returns why ctx does not let work begin: its error, or ErrContext if it
// is nil. Every way from the public packages into an engine asks it first, so
// that drivers are never given a nil context.
func Alive(ctx context.Context) error {
	if ctx == nil {
		return ErrContext
	}
	return ctx.Err()
}
