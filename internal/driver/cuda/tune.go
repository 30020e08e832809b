package cuda

import (
	"maps"
	"strings"

	"github.com/rayo-go/rayo/internal/measured"
	"github.com/rayo-go/rayo/kernel/lib"
)

// variants is the file of the variants of kernels that were measured to be fast:
// key and name, separated by a tab.
const variants = "variants.txt"

// tuned returns what was measured on this device.
func (d *gpuDevice) tuned() lib.Tuning {
	if t := d.tuning.Load(); t != nil {
		return *t
	}
	t := lib.Tuning{}
	for _, line := range measured.Lines(variants, d.info.Identity) {
		if key, name, ok := strings.Cut(line, "\t"); ok {
			t[key] = name
		}
	}
	d.tuning.CompareAndSwap(nil, &t)
	return *d.tuning.Load()
}

// Tune implements [driver.Tunable].
func (d *gpuDevice) Tune(key, name string) {
	d.tuned()
	for {
		old := d.tuning.Load()
		t := maps.Clone(*old)
		t[key] = name
		if d.tuning.CompareAndSwap(old, &t) {
			return
		}
	}
}

// Keep implements [driver.Tunable].
func (d *gpuDevice) Keep(key string) error {
	name := d.tuned()[key]
	if name == "" {
		return nil
	}
	other := func(line string) bool { return !strings.HasPrefix(line, key+"\t") }
	return measured.Replace(variants, d.info.Identity, []string{key + "\t" + name}, other)
}

// Target implements [driver.Tunable].
func (d *gpuDevice) Target() lib.Target { return libraryTarget }

// Portable implements [driver.Tunable].
func (d *gpuDevice) Portable(r *lib.Request) bool { return lib.Has(r.Op) }
