package wgpunative

import (
	"errors"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestLinked: a machine that has a C compiler has the library, and with it the other
// tests, which builds without it do not have.
func TestLinked(t *testing.T) {
	if !Linked {
		testutil.Missing(t, "cgo", errors.New("this is a build without it"))
	}
}
