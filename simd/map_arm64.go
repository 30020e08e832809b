//go:build arm64 && !noasm && !wazero

package simd

// mapLevel returns the kernel in assembly, or nil if there is none.
func mapLevel(level Level, name string) MapFunc {
	if level == NEON {
		return mapNEON(name)
	}
	return nil
}

// streamLevel returns nil: this level has no non-temporal stores.
func streamLevel(Level, string) MapFunc { return nil }

func streamFence() {}
