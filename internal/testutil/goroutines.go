package testutil

import (
	"runtime"
	"testing"
	"time"
)

// patience is how long a test waits for what other goroutines and threads bring
// about. It is reached only where they never do, and far from what any machine
// needs, however busy.
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
	time.Sleep(time.Millisecond) // in a browser the first sleep starts a goroutine that stays
	before := runtime.NumGoroutine()
	return func() {
		t.Helper()
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				stacks := make([]byte, 1<<16)
				t.Fatalf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
			}
		}
	}
}
