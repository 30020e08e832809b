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
	plan := decode(t, dev, 300, 1)
	t.Logf("%d copies in 4 layers", copiesOf(plan))
}

// TestDecodeCUDA decodes some tokens with one plan in the emulator, which records
// one graph.
func TestDecodeCUDA(t *testing.T) {
	emulate(t, 9, false)
	dev := openCUDA(t)
	defer dev.Close()
	tokens := 12
	if short() {
		tokens = 5
	}
	decode(t, dev, tokens, 1)
}
