//go:build noasm || !amd64

package simd

// sortLevels runs f once: sorts are the same at each level.
func sortLevels(f func(l Level)) { f(Active()) }
