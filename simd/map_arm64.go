//go:build arm64 && !noasm

package simd

// mapLevel returns the kernel in assembly, or nil if there is none.
func mapLevel(level Level, name string) MapFunc {
	if level == NEON {
		return mapNEON(name)
	}
	return nil
}

// streamLevel: there are no stores around the caches.
func streamLevel(Level, string) MapFunc { return nil }

func streamFence() {}
