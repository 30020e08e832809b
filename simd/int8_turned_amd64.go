//go:build linux && amd64 && !noasm && !wazero

package simd

// int8TurnedAMX is the kernel of AMX for turned products.
//
//go:noescape
func int8TurnedAMX(t *int8TurnedCall)

// int8HalfScales is an int8HalfScalesFunc. It needs AVX-512.
//
//go:noescape
func int8HalfScales(dst *float32, src *byte, row, step, groups int)

var turnedRows = 2
