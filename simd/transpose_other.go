//go:build noasm || !(amd64 || arm64)

package simd

func transposeKernelOf(Level) func(dst, x *float32, ds, xs, rows, cols int) { return transposeSquareGeneric }
