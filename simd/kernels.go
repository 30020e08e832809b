//go:build !js

package simd

// The kernels of the active level.
var (
	rowsNow   = *rowKernelsOf(active)
	reduceNow = *reduceKernelsOf(active)
	gemmNow   = gemmKernelsOf(active)
	int8Now   = int8KernelsOf(active)
	quantNow  = quantKernelsOf(active)
	logNow    = logarithm(active)
)

func rowKernel() *rowKernels      { return &rowsNow }
func reducers() *reduceKernels    { return &reduceNow }
func gemmActive() *gemmKernels    { return gemmNow }
func activeInt8() *int8Kernels    { return &int8Now }
func activeQuant() []quantKernels { return quantNow }

// logKernel computes the logarithms of sums.
func logKernel() MapFunc { return logNow }
