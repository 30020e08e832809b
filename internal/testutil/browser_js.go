package testutil

import (
	"errors"
	"syscall/js"
)

// browser is the probe of WebGPU in JavaScript.
func browser() error {
	if n := js.Global().Get("navigator"); n.Type() != js.TypeObject || n.Get("gpu").Type() != js.TypeObject {
		return errors.New("this JavaScript has no navigator.gpu (make test-browser)")
	}
	return nil
}
