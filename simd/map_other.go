//go:build noasm || !(amd64 || arm64)

package simd

// mapLevel: every kernel is plain Go.
func mapLevel(Level, string) MapFunc { return nil }
