//go:build arm64 && !noasm && !wazero

package simd

// machineLevels: Advanced SIMD is part of every arm64 system that Go runs on.
func machineLevels() []Level { return []Level{NEON} }
