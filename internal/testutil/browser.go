//go:build !js

package testutil

import "errors"

// browser is the probe of what make test-browser runs programs in.
func browser() error {
	return errors.Join(command("node")(), command("chromium")())
}
