//go:build amd64 && !noasm && !wazero

package simd

import "github.com/klauspost/cpuid/v2"

// machineLevels returns the levels that the processor supports. The operating system must also save
// the wide registers.
func machineLevels() []Level {
	var ls []Level
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C, cpuid.BMI2) {
		ls = append(ls, AVX2)
		// Skylake-X and Cascade Lake have AVX-512, but lower their clock for it.
		// VBMI2 excludes them: Ice Lake and Zen 4, which introduced it, keep their clock.
		if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512DQ, cpuid.AVX512BW, cpuid.AVX512VL, cpuid.AVX512VBMI2) {
			ls = append(ls, AVX512)
		}
	}
	return ls
}
