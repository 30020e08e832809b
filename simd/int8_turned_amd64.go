//go:build linux && amd64 && !noasm && !wazero

package simd

// int8TurnedAMX is the kernel of AMX for turned products of more than turnedFew rows, and int8TurnedFewAMX for fewer.
//
//go:noescape
func int8TurnedAMX(t *int8TurnedCall)

//go:noescape
func int8TurnedFewAMX(t *int8TurnedCall)
