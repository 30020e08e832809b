package simd

// useKernels changes the kernels of reductions, row operations and products.
func useKernels(l Level) {
	*rowsNow.get(rowKernelsOf) = rowKernelsOf(l)
	*reduceNow.get(reduceKernelsOf) = reduceKernelsOf(l)
	*gemmNow.get(gemmKernelsOf) = gemmKernelsOf(l)
}
