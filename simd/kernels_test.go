//go:build !js

package simd

// useKernels changes the kernels of reductions, row operations and products.
func useKernels(l Level) {
	rowsNow, reduceNow, gemmNow = *rowKernelsOf(l), *reduceKernelsOf(l), gemmKernelsOf(l)
}
