//go:build arm64 && !noasm && !wazero

package simd

import "github.com/klauspost/cpuid/v2"

// moreInt8 returns kernels that this machine can run and would not choose.
func moreInt8() map[string]int8Kernels {
	if cpuid.CPU.Supports(cpuid.ASIMDDP) {
		return map[string]int8Kernels{"neon without dot products": int8NEON}
	}
	return nil
}
