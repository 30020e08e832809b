//go:build !js

package testutil

import "errors"

// browser is the probe of WebGPU in JavaScript.
func browser() error { return errors.New("this program runs in no JavaScript (make test-browser)") }
