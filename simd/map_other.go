//go:build noasm || !(amd64 || arm64 || js)

package simd

// mapLevel: every kernel is plain Go.
func mapLevel(Level, string) MapFunc { return nil }

// streamLevel: there are no stores around the caches.
func streamLevel(Level, string) MapFunc { return nil }

func streamFence() {}
