package cuda

import (
	"errors"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/ptxkernels"
	"github.com/rayo-go/rayo/op"
)

// tuned returns the measurements of this device.
func (d *gpuDevice) tuned() portable.Tuning { return d.variants.Of(d.info.Identity) }

// Tune implements [driver.Tunable].
func (d *gpuDevice) Tune(key, name string) { d.variants.Set(d.info.Identity, key, name) }

// Keep implements [driver.Tunable].
func (d *gpuDevice) Keep(key string) error { return d.variants.Store(d.info.Identity, key) }

// Target implements [driver.Tunable].
func (d *gpuDevice) Target() portable.Target { return libraryTarget }

// Variants implements [driver.Tunable]. It returns the schedules of the native kernel if there is
// one, and otherwise the variants of the portable kernels.
func (d *gpuDevice) Variants(r *portable.Request) ([]string, error) {
	names, err := ptxkernels.Variants(r, d.kernels)
	if errors.Is(err, op.ErrUnsupported) {
		return driver.PortableVariants(r)
	}
	return names, err
}
