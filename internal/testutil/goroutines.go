package testutil

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for the effects of other goroutines and threads.
// It is far longer than any busy machine needs, so a test reaches it only if
// the effect never happens.
var patience = time.Minute

// Soon waits until ok, which other goroutines bring about, and fails the test if
// that never happens.
func Soon(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

// Goroutines notes how many there are. The function that it returns waits until
// there are no more than that again, and fails the test with their stacks if
// some stay.
func Goroutines(t testing.TB) (gone func()) {
	before := goroutines()
	return func() {
		t.Helper()
		for end := time.Now().Add(patience); goroutines() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d goroutines, %d before\n%s", goroutines(), before, stacks())
			}
		}
	}
}

// goroutines returns how many there are, but for the one that the runtime starts in
// browsers, at some sleep, to wait for events.
func goroutines() int {
	n := runtime.NumGoroutine()
	if runtime.GOOS == "js" {
		n -= strings.Count(stacks(), "\nruntime.handleEvent(")
	}
	return n
}

func stacks() string {
	text := make([]byte, 1<<16)
	return string(text[:runtime.Stack(text, true)])
}
