package testutil

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// recorder stands in for a test and keeps what was done to it. Who calls Skipf
// or Fatalf must not go on, so both end the goroutine as testing.T does.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Errorf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }

// run calls f, which may end its goroutine, and reports whether it returned.
func (r *recorder) run(f func()) (returned bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
		returned = true
	}()
	<-done
	return returned
}

func TestNeed(t *testing.T) {
	things["present"] = func() error { return nil }
	things["absent"] = func() error { return errors.New("there is none") }
	defer delete(things, "present")
	defer delete(things, "absent")

	for _, c := range []struct {
		require, thing  string
		skipped, failed string
	}{
		{"", "present", "", ""},
		{"present", "present", "", ""},
		{"", "absent", "needs absent: there is none", ""},
		{"present,other", "absent", "needs absent: there is none", ""},
		{"present, absent", "absent", "", "RAYO_REQUIRE lists absent, but there is none"},
		{"", "abacus", "", `testutil: no thing is called "abacus"`},
	} {
		t.Setenv("RAYO_REQUIRE", c.require)
		r := &recorder{}
		returned := r.run(func() { Need(r, c.thing) })
		if r.skipped != c.skipped || !strings.HasPrefix(r.failed, c.failed) || (c.failed == "") != (r.failed == "") {
			t.Errorf("RAYO_REQUIRE=%q Need(%q): skipped %q, failed %q", c.require, c.thing, r.skipped, r.failed)
		}
		if want := c.skipped == "" && c.failed == ""; returned != want {
			t.Errorf("RAYO_REQUIRE=%q Need(%q): returned %v, want %v", c.require, c.thing, returned, want)
		}
	}
}

// TestRequired holds even if no test asks for what RAYO_REQUIRE lists, and
// catches a misspelt name, which would require nothing.
func TestRequired(t *testing.T) {
	for _, name := range required() {
		Need(t, name)
	}
}
