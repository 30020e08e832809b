package main

import (
	"errors"
	"runtime"
	"sync/atomic"
)

// A limit is a loop that does one thing as fast as the machine can, such as copying memory.
type limit struct {
	form string
	run  func()
}

// prepareLimit returns the forms of a roofline benchmark and a function that ends its threads.
// In each form every thread runs the loop over its own part of the arrays.
func prepareLimit(c cell, dst, src []float32) ([]form, func(), error) {
	parts := make([][]limit, c.Threads)
	for i := range parts {
		lo, hi := part(len(src), i, c.Threads), part(len(src), i+1, c.Threads)
		parts[i] = limits(c.Op, dst[lo:hi], src[lo:hi])
	}
	if len(parts[0]) == 0 {
		return nil, nil, errors.New("not measured on this architecture")
	}
	run, stop := together(parts)
	var fs []form
	for i, l := range parts[0] {
		fs = append(fs, form{l.form, func() error { run(i); return nil }})
	}
	return fs, stop, nil
}

func part(n, i, of int) int { return n * i / of &^ 127 }

// together starts a goroutine for every part but the first. The goroutines wait for
// their turn in a loop, so that waking them takes hardly any time.
func together(parts [][]limit) (run func(form int), stop func()) {
	var form, turn, done atomic.Int64
	for _, p := range parts[1:] {
		go func() {
			runtime.LockOSThread()
			for last := int64(0); ; last++ {
				for turn.Load() == last {
				}
				if form.Load() < 0 {
					return
				}
				p[form.Load()].run()
				done.Add(1)
			}
		}()
	}
	run = func(i int) {
		want := done.Load() + int64(len(parts)-1)
		form.Store(int64(i))
		turn.Add(1)
		parts[0][i].run()
		for done.Load() != want {
		}
	}
	stop = func() {
		form.Store(-1)
		turn.Add(1)
	}
	return run, stop
}
