package cpu

import (
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/portable"
)

// tuned returns the measurements of this device.
func (d *processor) tuned() portable.Tuning { return d.variants.Of(d.info.Identity) }

// Tune implements [driver.Tunable].
func (d *processor) Tune(key, name string) { d.variants.Set(d.info.Identity, key, name) }

// Keep implements [driver.Tunable].
func (d *processor) Keep(key string) error { return d.variants.Store(d.info.Identity, key) }

// Target implements [driver.Tunable].
func (d *processor) Target() portable.Target { return portableTarget }

// Variants implements [driver.Tunable]. An operation with a core of this driver has no variants.
func (d *processor) Variants(r *portable.Request) ([]string, error) {
	if d.newCore(r.Op) != nil {
		return nil, nil
	}
	return driver.PortableVariants(r)
}
