//go:build !js

// Package jscall reports whether a goroutine may wait for an event of the event loop of JavaScript.
package jscall

// MayWait returns nil: there is no event loop.
func MayWait() error { return nil }
