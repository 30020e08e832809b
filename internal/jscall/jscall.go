//go:build !js

// Package jscall tells whether the caller may wait for something that the event loop
// of JavaScript brings.
package jscall

// MayWait returns nil: there is no event loop.
func MayWait() error { return nil }
