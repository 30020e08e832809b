package cuda

import (
	"errors"

	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx/kernels"
)

// tuned returns what was measured on this device.
func (d *gpuDevice) tuned() lib.Tuning { return d.variants.Of(d.info.Identity) }

// Tune implements [driver.Tunable].
func (d *gpuDevice) Tune(key, name string) { d.variants.Set(d.info.Identity, key, name) }

// Keep implements [driver.Tunable].
func (d *gpuDevice) Keep(key string) error { return d.variants.Store(d.info.Identity, key) }

// Target implements [driver.Tunable].
func (d *gpuDevice) Target() lib.Target { return libraryTarget }

// Portable implements [driver.Tunable].
func (d *gpuDevice) Portable(r *lib.Request) bool {
	if !lib.Has(r.Op) {
		return false
	}
	_, err := kernels.For(r, d.kernels)
	return errors.Is(err, op.ErrUnsupported)
}
