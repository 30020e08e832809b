package simd

import "sync"

// The kernels of the active level. Pages choose them at their first use, so that the linker leaves out
// those of functions that a page does not call.
var (
	rowsNow   choice[*rowKernels]
	reduceNow choice[*reduceKernels]
	gemmNow   choice[*gemmKernels]
	int8Now   choice[int8Kernels]
	quantNow  choice[[]quantKernels]
	logNow    choice[MapFunc]
)

func rowKernel() *rowKernels      { return *rowsNow.get(rowKernelsOf) }
func reducers() *reduceKernels    { return *reduceNow.get(reduceKernelsOf) }
func gemmActive() *gemmKernels    { return *gemmNow.get(gemmKernelsOf) }
func activeInt8() *int8Kernels    { return int8Now.get(int8KernelsOf) }
func activeQuant() []quantKernels { return *quantNow.get(quantKernelsOf) }

// logKernel computes the logarithms of sums.
func logKernel() MapFunc { return *logNow.get(logarithm) }

// choice has the kernels that a function returns for the active level.
type choice[T any] struct {
	once sync.Once
	v    T
}

func (c *choice[T]) get(of func(Level) T) *T {
	c.once.Do(func() { c.v = of(active) })
	return &c.v
}
