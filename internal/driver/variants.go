package driver

import (
	"errors"
	"maps"
	"strings"
	"sync/atomic"

	"github.com/rayo-go/rayo/internal/measured"
	"github.com/rayo-go/rayo/internal/portable"
)

// variants is the file of the variants that were measured to be fast: key and name, separated by a tab.
const variants = "variants.txt"

// Variants are the kernels that a device was measured to be fast with: the part of [Tunable] that is the
// same for each device. The zero Variants is ready to use, by several goroutines.
type Variants struct {
	tuning atomic.Pointer[portable.Tuning] // nil until asked for
}

// Of returns the measurements of the device with an identity.
func (v *Variants) Of(identity string) portable.Tuning {
	if t := v.tuning.Load(); t != nil {
		return *t
	}
	t := portable.Tuning{}
	for _, line := range measured.Lines(variants, identity) {
		if key, name, ok := strings.Cut(line, "\t"); ok {
			t[key] = name
		}
	}
	v.tuning.CompareAndSwap(nil, &t)
	return *v.tuning.Load()
}

// Set is Tune of the [Tunable] of an identity.
func (v *Variants) Set(identity, key, name string) {
	v.Of(identity)
	for {
		old := v.tuning.Load()
		t := maps.Clone(*old)
		t[key] = name
		if v.tuning.CompareAndSwap(old, &t) {
			return
		}
	}
}

// Store is Keep of the [Tunable] of an identity.
func (v *Variants) Store(identity, key string) error {
	name := v.Of(identity)[key]
	if name == "" {
		return nil
	}
	other := func(line string) bool { return !strings.HasPrefix(line, key+"\t") }
	return measured.Replace(variants, identity, []string{key + "\t" + name}, other)
}

// PortableVariants returns the names of the portable kernels that can compute r.
func PortableVariants(r *portable.Request) (names []string, err error) {
	trial := *r
	for _, trial.Variant = range portable.Variants(r.Op) {
		if _, err := portable.For(&trial); err == nil {
			names = append(names, trial.Variant)
		} else if !errors.Is(err, ErrUnsupported) {
			return nil, err
		}
	}
	return names, nil
}

// VariantsFile returns where the variants of all devices are kept, "" if nowhere.
func VariantsFile() string { return measured.Path(variants) }

// ForgetVariants removes the measurements of the device with an identity, and returns their number.
func ForgetVariants(identity string) (int, error) {
	n := len(measured.Lines(variants, identity))
	if n == 0 {
		return 0, nil
	}
	return n, measured.Replace(variants, identity, nil, nil)
}
