//go:build linux && amd64 && !noasm && !wazero

package simd

// int8SwappedAMX is the kernel of AMX for swapped products of more than swappedFew rows, and int8SwappedFewAMX for fewer.
//
//go:noescape
func int8SwappedAMX(t *int8SwappedCall)

//go:noescape
func int8SwappedFewAMX(t *int8SwappedCall)

// int8Interleave is interleave of int8Swapped. It reads 16 words of each lane at a time, also if fewer are left.
//
//go:noescape
func int8Interleave(dst, src *int32, lanes *int8Lanes, words int)
