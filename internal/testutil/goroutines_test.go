package testutil

import (
	"strings"
	"testing"
	"time"
)

// TestGoroutines: those that end late are waited for, those that stay are
// noticed and shown.
func TestGoroutines(t *testing.T) {
	late, never := make(chan struct{}), make(chan struct{})
	gone := Goroutines(t)
	go func() { <-late }()
	time.AfterFunc(20*time.Millisecond, func() { close(late) })
	gone()

	defer func(was time.Duration) { patience = was }(patience)
	patience = time.Millisecond
	r := &recorder{}
	gone = Goroutines(r)
	go func() { <-never }()
	r.run(gone)
	close(never)
	if !strings.Contains(r.failed, "TestGoroutines") {
		t.Errorf("%q of a goroutine that stays", r.failed)
	}
}

func TestSoon(t *testing.T) {
	n := 0
	Soon(t, "three", func() bool { n++; return n == 3 })

	defer func(was time.Duration) { patience = was }(patience)
	patience = time.Millisecond
	r := &recorder{}
	r.run(func() { Soon(r, "a miracle", func() bool { return false }) })
	if r.failed != "never happened: a miracle" {
		t.Errorf("%q of what never happens", r.failed)
	}
}
