//go:build !js

package device

import "log/slog"

// WithLogger makes [Open] log which devices it opened and refused, and why. By default it logs
// nothing. It does not exist under GOOS=js, because log/slog would link encoding/json into every
// page.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) error {
		if l != nil {
			c.log = l.InfoContext
		}
		return nil
	}
}
