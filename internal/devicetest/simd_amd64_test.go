package devicetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
)

// TestSIMDRefused starts itself again, which a program of another architecture
// cannot do in an emulator: a RAYO_SIMD that names nothing is an error that says what there is.
func TestSIMDRefused(t *testing.T) {
	_, child := testutil.Again(t, "RAYO_SIMD=foo")
	if !child {
		return
	}
	_, err := device.Open(t.Context(), device.Require(device.CPU))
	if !errors.Is(err, device.ErrUnsupported) || !strings.Contains(err.Error(), "RAYO_SIMD=foo is none of generic") {
		t.Errorf("%v, want ErrUnsupported that names RAYO_SIMD", err)
	}
}
