//go:build amd64 && !noasm && !wazero

package simd

import (
	"slices"

	"github.com/klauspost/cpuid/v2"
)

// moreInt8 returns kernels that this machine can run and would not choose.
func moreInt8() map[string]int8Kernels {
	if slices.Contains(Supported(), AVX512) {
		all := map[string]int8Kernels{"avx2 without vnni": int8AVX2}
		if cpuid.CPU.Supports(cpuid.AVX512VNNI) {
			all["vnni without vbmi"] = int8VNNI
		}
		return all
	}
	return nil
}
