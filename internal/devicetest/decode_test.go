package devicetest

import (
	"testing"

	"github.com/rayo-go/rayo/device"
)

// TestDecode decodes 300 tokens with one plan.
func TestDecode(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	decode(t, dev, 300, 1)
}

// TestTransformerCopies counts the copies of layers of transformers.
func TestTransformerCopies(t *testing.T) { layersOn(t, cpu(0)) }

// TestTransformerCopiesPortable is TestTransformerCopies of the portable kernels.
func TestTransformerCopiesPortable(t *testing.T) { layersOn(t, openPortable) }

// TestViewsInPlace compares operations over views with the same operations over contiguous copies.
func TestViewsInPlace(t *testing.T) { placesOn(t, cpu(0)) }

// TestViewsInPlacePortable is TestViewsInPlace of the portable kernels.
func TestViewsInPlacePortable(t *testing.T) { placesOn(t, openPortable) }
