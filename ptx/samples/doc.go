// Package samples holds eight short kernels written with package ptx: products of matrices in four
// ways, softmax, layer normalisation, attention, and a product with a matrix of Q4_K blocks. They
// are examples to read and to show (rayo ptx show), and BenchmarkGeneration of package ptx measures
// how fast they are built. Each kernel is correct for all sizes that its comment allows, and tests
// compare its results in the emulator with sums in float64.
//
// They are short rather than fast. Package device uses other kernels.
package samples

import "github.com/rayo-go/rayo/ptx"

// Sample is a kernel.
type Sample struct {
	Name  string
	Doc   string     // its result, in a few words
	Block [3]int     // threads
	Least ptx.Target // the first target that can run the kernel
	Build func(k *ptx.Kernel)
}

// All returns the samples.
func All() []Sample {
	return []Sample{
		{"gemm_naive", "c = a b, an element a thread", [3]int{16, 16, 1}, ptx.SM70, GemmNaive},
		{"gemm_tiled", "c = a b, by tiles of 16 x 16 in shared memory", [3]int{Tile, Tile, 1}, ptx.SM70, GemmTiled},
		{"gemm_tensor", "c = a b of half floats, a block 32 x 64 by tensor cores, copies that do not wait", [3]int{128, 1, 1}, ptx.SM80, GemmTensor},
		{"gemm_warp", "c = a bᵀ of half floats, a warp 16 x 16 by tensor cores", [3]int{32, 1, 1}, ptx.SM80, GemmWarp},
		{"softmax", "the softmax of rows, a warp each", [3]int{32, 1, 1}, ptx.SM70, Softmax},
		{"layer_norm", "rows normalised, scaled and shifted, a warp each", [3]int{32, 1, 1}, ptx.SM70, LayerNorm},
		{"attention", "causal attention of heads of 64, a warp a query", [3]int{32, 1, 1}, ptx.SM70, Attention},
		{"q4k", "y = a wᵀ where rows of w are Q4_K blocks, a warp an element", [3]int{32, 1, 1}, ptx.SM70, Q4K},
	}
}
