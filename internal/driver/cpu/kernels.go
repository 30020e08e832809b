package cpu

import (
	"strings"

	"github.com/rayo-go/rayo/simd"
)

// mapNamed returns the kernel of package simd of a name, or nil. It is [simd.LevelMap], [simd.VectorMap]
// after [UsePrograms], and [simd.Map] after [UseAll], so that pages load few of the loops for browsers
// without SIMD128. Operations without a kernel are computed there in
// float64 before [UsePrograms], and by the codes of their expressions after it.
var mapNamed = simd.LevelMap

// kernelNamed returns the kernel of package simd of that name, or nil.
func kernelNamed(name string) kernel {
	if f := mapNamed(name); f != nil {
		return kernel(f)
	}
	return nil
}

// kernelNS estimates the time of an element in the kernel of that name, in nanoseconds on the
// widest vectors. It is the initial cost, before measurements.
func kernelNS(name string) float32 {
	if single {
		return 0
	}
	ns := float32(0.05)
	switch name[strings.LastIndexByte(strings.TrimSuffix(strings.TrimSuffix(name, ".vs"), ".sv"), '.')+1:] {
	case "exp", "exp2", "expm1", "sigmoid", "silu", "elu", "selu", "log", "log2", "recip", "div", "sqrt", "rsqrt", "hard_swish":
		ns = 0.2
	case "tanh", "log1p", "erf", "erfc", "gelu", "gelu_tanh", "mish", "softplus", "sin", "cos":
		ns = 0.4
	case "pow":
		ns = 1
	}
	switch simd.Active() {
	case simd.AVX512:
	case simd.AVX2, simd.NEON:
		ns *= 2
	default:
		ns *= 20
	}
	return ns
}
