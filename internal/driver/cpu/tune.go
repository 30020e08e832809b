package cpu

import "github.com/rayo-go/rayo/internal/portable"

// tuned returns the measurements of this device.
func (d *processor) tuned() portable.Tuning { return d.variants.Of(d.info.Identity) }

// Tune implements [driver.Tunable].
func (d *processor) Tune(key, name string) { d.variants.Set(d.info.Identity, key, name) }

// Keep implements [driver.Tunable].
func (d *processor) Keep(key string) error { return d.variants.Store(d.info.Identity, key) }

// Target implements [driver.Tunable].
func (d *processor) Target() portable.Target { return portableTarget }

// Portable implements [driver.Tunable]: the operations that have no step of
// their own.
func (d *processor) Portable(r *portable.Request) bool {
	return d.newCore(r.Op) == nil && portable.Has(r.Op)
}
