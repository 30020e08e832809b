//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

func TestHostile(t *testing.T) {
	hosttest.Survive(t, hosttest.Guarded(t, New, "lavapipe"), hosttest.Hostile(20_000))
}

// TestDeep: no text is nested so deep, or so long, that the compiler ends the process,
// without what the guard refuses before.
func TestDeep(t *testing.T) {
	refused := []string{
		"parentheses", "open", "minus apart", "not", "blocks", "loops", "sum", "calls", "indices", "complements", "address", "array sizes", "minima",
	}
	for _, n := range []int{10_000, maxText / 8} {
		for name, s := range hosttest.Hostile(n) {
			t.Run(fmt.Sprint(name, n), func(t *testing.T) {
				_, err := compile(s)
				var mistake *webgpu.CompileError
				if err != nil && !errors.As(err, &mistake) {
					t.Errorf("%v", err)
				}
				if err == nil && slices.Contains(refused, name) {
					t.Error("it compiles")
				}
				t.Logf("%.100v", err)
			})
		}
	}
	for _, name := range refused {
		if hosttest.Hostile(1)[name] == nil {
			t.Errorf("no text is called %s", name)
		}
	}
}
