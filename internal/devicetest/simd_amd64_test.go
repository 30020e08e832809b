package devicetest

import (
	"errors"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
)

// TestSIMDRefused checks that an unknown RAYO_SIMD gives an error that lists the valid names. It starts itself again,
// which programs of other architectures cannot do in an emulator.
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
