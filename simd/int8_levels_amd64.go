//go:build amd64 && !noasm && !wazero

package simd

// int8LevelsQ4_0AVX512 is an int8LevelsFunc. It needs AVX-512 VBMI.
//
//go:noescape
func int8LevelsQ4_0AVX512(levels *int8, scales, biases *float32, src *byte, blocks int)

// int8LevelsQ8_0AVX512 is an int8LevelsFunc. It needs AVX-512 VBMI.
//
//go:noescape
func int8LevelsQ8_0AVX512(levels *int8, scales, biases *float32, src *byte, blocks int)

// int8HalfScales is halves of int8Swapped. It needs AVX-512.
//
//go:noescape
func int8HalfScales(dst *float32, src *byte, row, step, blocks int)
