//go:build !js

package testutil

import "errors"

// browser checks that the programs for make test-browser are installed.
func browser() error {
	return errors.Join(command("node")(), command("chromium")())
}
