//go:build amd64 && !noasm && !wazero

package simd

import "slices"

// moreInt8 returns kernels that this machine can run and would not choose.
func moreInt8() map[string]int8Kernels {
	if slices.Contains(Supported(), AVX512) {
		return map[string]int8Kernels{"avx2 without vnni": int8AVX2}
	}
	return nil
}
