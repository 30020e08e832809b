//go:build !js

package testutil

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestAgain: the second process has the environment, runs only this test, and
// the parent gets its output.
func TestAgain(t *testing.T) {
	t.Run("a (strange) name.", func(t *testing.T) {
		stderr, child := Again(t, "RAYO_TEST_WORD=xyzzy")
		if child {
			os.Stderr.WriteString(os.Getenv("RAYO_TEST_WORD"))
			return
		}
		if stderr != "xyzzy" {
			t.Errorf("standard error was %q", stderr)
		}
	})
}

// TestAgainSkipped: a second process that tested nothing is a failure.
func TestAgainSkipped(t *testing.T) {
	r := &recorder{TB: t}
	child := false
	returned := r.run(func() { _, child = AgainUnder(r, nil) })
	if child {
		Missing(t, "a reason to run", errors.New("this is the process that is to be skipped"))
	}
	if returned || !strings.HasPrefix(r.failed, "alone it was skipped") {
		t.Errorf("returned: %v, failed: %q, skipped: %q", returned, r.failed, r.skipped)
	}
}
