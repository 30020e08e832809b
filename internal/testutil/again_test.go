//go:build !js

package testutil

import (
	"os"
	"testing"
)

// TestAgain: the second process has the environment, runs this test alone, and
// what it says comes back.
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
