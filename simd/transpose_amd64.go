//go:build amd64 && !noasm

package simd

func transposeKernelOf(Level) func(dst, x *float32, ds, xs, rows, cols int) { return transposeSquareGeneric }
