//go:build wazero && !js && !noasm

package device

import (
	"context"
	"fmt"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cpu"
)

func init() { openers[Wasm] = openWasm }

func openWasm(_ context.Context, c *config) (driver.Device, error) {
	return c.named(func(i int) (driver.Device, error) {
		if i > 0 {
			return nil, fmt.Errorf("wasm:%d does not exist: the only device of WebAssembly is wasm:0: %w", i, ErrNoDevice)
		}
		return cpu.OpenWasm(c.threads)
	})
}
