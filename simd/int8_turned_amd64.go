//go:build linux && amd64 && !noasm && !wazero

package simd

// int8TurnedAMX is an int8TurnedFunc.
//
//go:noescape
func int8TurnedAMX(c *float32, cRow, rows int, levels *byte, row, step int, scales, biases *float32, scalesRow, scalesStep int, x *int8, xs, xsums *float32, group, groups int)

// int8HalfScales is an int8HalfScalesFunc. It needs AVX-512.
//
//go:noescape
func int8HalfScales(dst *float32, src *byte, row, step, groups int)

var turnedRows = 2
