//go:build amd64 && !noasm && !wazero

package simd

import "github.com/klauspost/cpuid/v2"

// machineLevels asks the processor, and the operating system, which must save the wide registers,
// which levels can run.
func machineLevels() []Level {
	var ls []Level
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C, cpuid.BMI2) {
		ls = append(ls, AVX2)
		// Skylake-X and Cascade Lake have AVX-512 but lower their clock for
		// it; VBMI2 came with Ice Lake and Zen 4, which do not.
		if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512DQ, cpuid.AVX512BW, cpuid.AVX512VL, cpuid.AVX512VBMI2) {
			ls = append(ls, AVX512)
		}
	}
	return ls
}
