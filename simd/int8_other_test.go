//go:build noasm || wazero || !(amd64 || arm64)

package simd

// moreInt8 returns kernels that this machine can run and would not choose.
func moreInt8() map[string]int8Kernels { return nil }
