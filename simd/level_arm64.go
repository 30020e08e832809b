//go:build arm64 && !noasm && !wazero

package simd

// machineLevels returns NEON: every arm64 system that Go runs on has it.
func machineLevels() []Level { return []Level{NEON} }
