//go:build wazero && !js && !noasm

package cpu

import (
	"fmt"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/simd"
)

// OpenWasm is [Open] for a device that runs the kernels of the WebAssembly module in wazero. With
// the build tag wazero, package simd has only these kernels, so the CPU device uses them too.
func OpenWasm(threads int) (driver.Device, error) {
	if l := simd.Active(); l != simd.SIMD128 {
		return nil, fmt.Errorf("RAYO_SIMD has chosen the kernels %v: expected %v: %w", l, simd.SIMD128, driver.ErrUnsupported)
	}
	d, err := newDevice(threads, false)
	if err != nil {
		return nil, err
	}
	info := &d.(*processor).info
	info.Kind = driver.Wasm
	info.Detail += ", wazero"
	info.Identity = "wasm/" + info.Identity
	return d, nil
}
