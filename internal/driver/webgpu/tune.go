package webgpu

import (
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/portable"
)

// tuned returns the measurements of this device.
func (d *device) tuned() portable.Tuning { return d.variants.Of(d.info.Identity) }

// Tune implements [driver.Tunable].
func (d *device) Tune(key, name string) { d.variants.Set(d.info.Identity, key, name) }

// Keep implements [driver.Tunable].
func (d *device) Keep(key string) error { return d.variants.Store(d.info.Identity, key) }

// Target implements [driver.Tunable].
func (d *device) Target() portable.Target { return d.library }

// Variants implements [driver.Tunable].
func (d *device) Variants(r *portable.Request) ([]string, error) { return driver.PortableVariants(r) }
