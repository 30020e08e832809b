// Package jscall tells whether the caller may wait for something that the event loop
// of JavaScript brings: a promise, a timer.
package jscall

import (
	"errors"
	"runtime"
)

// ErrWait: the caller is a function of Go that JavaScript has called. The event loop
// stands still until it returns, so that what it waited for would never come.
var ErrWait = errors.New("this call waits for the event loop of JavaScript, which waits for this js.FuncOf function to return: call it in a new goroutine, go func() { ... }()")

// handler is the function of syscall/js that calls functions of js.FuncOf.
const handler = "syscall/js.handleEvent"

// MayWait returns ErrWait where the calling goroutine runs a function that JavaScript has
// called, by js.FuncOf. The stack of the goroutine says so: the handler of package
// syscall/js is the first of its frames, or stands on the call of JavaScript that has
// called back. Goroutines that the function starts have stacks of their own.
func MayWait() error {
	var room [64]uintptr
	pcs := room[:]
	n := runtime.Callers(2, pcs)
	for n == len(pcs) {
		pcs = make([]uintptr, 2*len(pcs))
		n = runtime.Callers(2, pcs)
	}
	for _, pc := range pcs[:n] {
		if f := runtime.FuncForPC(pc - 1); f != nil && f.Name() == handler {
			return ErrWait
		}
	}
	return nil
}
