//go:build !js

package device

import "log/slog"

// WithLogger makes [Open] say which devices it opened and refused, and why.
// The default is silence. It is not there under GOOS=js: log/slog would bring
// encoding/json into every page.
func WithLogger(l *slog.Logger) Option {
	return func(c *config) error {
		if l != nil {
			c.log = l.InfoContext
		}
		return nil
	}
}
