//go:build wazero && !js && !noasm

package devicetest

import (
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
)

// wasm opens the device that runs its kernels by wazero.
func wasm(t testing.TB) *device.Device {
	t.Setenv("RAYO_DEVICE", "wasm")
	d, err := device.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Info().Kind != device.Wasm || d.String() != "wasm:0" {
		t.Fatalf("opened %v, of kind %v", d, d.Info().Kind)
	}
	return d
}

// TestWasm runs the suite on the WebAssembly kernels in wazero. With -short it runs a sample of the cases.
func TestWasm(t *testing.T) {
	if !testing.Short() {
		Run(t, wasm)
		return
	}
	seed := testutil.Seed(t)
	runAll(t, wasm, 1, seed, firstAndSome(seed, 2, 8))
}
