//go:build noasm || !(amd64 || arm64 || js || wazero)

package simd

// mapLevel: every kernel is plain Go.
func mapLevel(Level, string) MapFunc { return nil }

// streamLevel returns nil: this level has no non-temporal stores.
func streamLevel(Level, string) MapFunc { return nil }

func streamFence() {}
