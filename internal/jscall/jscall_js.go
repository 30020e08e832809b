// Package jscall reports whether a goroutine may wait for an event of the event loop of JavaScript,
// such as a promise or a timer.
package jscall

import (
	"errors"
	"runtime"
)

// ErrWait is the error of a call that would wait in a Go function that JavaScript has called. The
// event loop stands still until that function returns, so the event would never come.
var ErrWait = errors.New("this call waits for the event loop of JavaScript, which waits for this js.FuncOf function to return: call it in a new goroutine, go func() { ... }()")

// handler is the function of syscall/js that calls functions of js.FuncOf.
const handler = "syscall/js.handleEvent"

// MayWait returns ErrWait if the calling goroutine runs a function of js.FuncOf that
// JavaScript has called. It searches the stack of the goroutine: the handler of package
// syscall/js is the first frame, or is directly above the call to JavaScript that has
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
		is, found := handles[pc]
		if !found {
			f := runtime.FuncForPC(pc - 1)
			is = f != nil && f.Name() == handler
			handles[pc] = is
		}
		if is {
			return ErrWait
		}
	}
	return nil
}

// handles says which positions of stacks are in handler, because a name takes longer to find than a frame. Goroutines
// switch only where they wait, so the map needs no lock.
var handles = map[uintptr]bool{}
