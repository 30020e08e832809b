package simd

import (
	"math/bits"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/workers"
)

//go:generate go -C _asm run ./gemm ..

// A Gemm describes a product of matrices of float32, or a batch of them:
//
//	C = epilogue(A·B + bias)        or, with Accumulate,
//	C = epilogue(C + A·B + bias)
//
// A is M×K, B is K×N and C is M×N. Element (i, k) of A is A[i*ARow+k*ACol], and
// element (k, j) of B is B[k*BRow+j*BCol]. To transpose a matrix, exchange its
// strides. Strides count elements and are not negative. If both strides of A or B
// are 0, the matrix is row-major and contiguous. C is row-major with rows CRow
// elements apart, or N if CRow is 0. C must not overlap A, B or Bias.
//
// Sums are float32, and no product is left out: 0 times a NaN or an infinity makes
// an element of C NaN. With K = 0 the product is zero.
type Gemm struct {
	M, N, K int

	A          []float32
	ARow, ACol int
	B          []float32
	BRow, BCol int
	C          []float32
	CRow       int

	Accumulate bool      // add to C rather than overwrite it
	Bias       []float32 // N elements that are added to every row, or nil

	// Epilogue, unless nil, is called once for every finished piece of a row
	// of C, while the piece is still in the cache. row is the piece of row i of C
	// from column j on. Several goroutines call Epilogue at once, in any order.
	// In a batch, matrix b has the rows b*M to (b+1)*M-1.
	Epilogue func(row []float32, i, j int)

	// Batch is the number of products; 0 means 1. The strides are the distances
	// from one matrix to the next. AStride and BStride may be 0: then all products
	// use the same matrix.
	Batch                     int
	AStride, BStride, CStride int

	// AFrom and BFrom, unless nil, have the index of the first element of each of the
	// Batch matrices. They replace AStride and BStride.
	AFrom, BFrom []int
}

// AAt returns the index of the first element of matrix i of A.
func (g *Gemm) AAt(i int) int {
	if g.AFrom != nil {
		return g.AFrom[i]
	}
	return i * g.AStride
}

// BAt returns the index of the first element of matrix i of B.
func (g *Gemm) BAt(i int) int {
	if g.BFrom != nil {
		return g.BFrom[i]
	}
	return i * g.BStride
}

// Product returns product i of the batch as a Gemm of one product.
func (g *Gemm) Product(i int) Gemm {
	part := *g
	part.Batch, part.AFrom, part.BFrom = 1, nil, nil
	part.A, part.B, part.C = g.A[g.AAt(i):], g.B[g.BAt(i):], g.C[i*g.CStride:]
	return part
}

// Run computes the product with the threads of p; a nil Pool uses only the calling thread. It
// allocates nothing after its buffers have grown. It panics if a size is negative or a slice too
// short.
func (g *Gemm) Run(p *workers.Pool) {
	d := *g
	d.check()
	if d.M == 0 || d.N == 0 || d.Batch == 0 {
		return
	}
	d.run(p)
}

// check sets the defaults and panics if sizes or lengths are invalid.
func (g *Gemm) check() {
	if g.M < 0 || g.N < 0 || g.K < 0 || g.Batch < 0 {
		panic(fmt.Sprintf("simd: Gemm of %dx%dx%d, batch of %d: sizes must not be negative", g.M, g.K, g.N, g.Batch))
	}
	if g.Batch == 0 {
		g.Batch = 1
	}
	if g.ARow == 0 && g.ACol == 0 {
		g.ARow, g.ACol = g.K, 1
	}
	if g.BRow == 0 && g.BCol == 0 {
		g.BRow, g.BCol = g.N, 1
	}
	if g.CRow == 0 {
		g.CRow = g.N
	}
	if g.CRow < g.N && g.M > 1 {
		panic(fmt.Sprintf("simd: Gemm: CRow is %d, but rows of C have %d elements and must not overlap", g.CRow, g.N))
	}
	if g.M == 0 || g.N == 0 {
		return
	}
	fits("A", len(g.A)-last("A", g.AFrom, g.Batch), g.alone(g.AFrom), g.AStride, g.M, g.ARow, g.K, g.ACol)
	fits("B", len(g.B)-last("B", g.BFrom, g.Batch), g.alone(g.BFrom), g.BStride, g.K, g.BRow, g.N, g.BCol)
	fits("C", len(g.C), g.Batch, g.CStride, g.M, g.CRow, g.N, 1)
	if g.Batch > 1 && g.CStride < (g.M-1)*g.CRow+g.N {
		panic(fmt.Sprintf("simd: Gemm: CStride is %d, but the matrices of C must not overlap", g.CStride))
	}
	if g.Bias != nil && len(g.Bias) < g.N {
		panic(fmt.Sprintf("simd: Gemm: Bias has %d elements for %d columns", len(g.Bias), g.N))
	}
}

// alone returns the number of matrices at equal distances: Batch, or 1 if from has the start of
// each matrix.
func (g *Gemm) alone(from []int) int {
	if from != nil {
		return min(g.Batch, 1)
	}
	return g.Batch
}

// last returns the greatest index in from, or 0 if from is nil.
func last(name string, from []int, batch int) int {
	if from == nil {
		return 0
	}
	if len(from) < batch {
		panic(fmt.Sprintf("simd: %sFrom has %d indices for a batch of %d", name, len(from), batch))
	}
	end := 0
	for _, at := range from[:batch] {
		if at < 0 {
			panic(fmt.Sprintf("simd: %sFrom has the index %d: it must not be negative", name, at))
		}
		end = max(end, at)
	}
	return end
}

// fits panics if matrices of the given sizes and strides need more than have elements. Empty matrices
// need none.
func fits(name string, have, batch, batchStride, rows, rowStride, cols, colStride int) {
	if batchStride < 0 || rowStride < 0 || colStride < 0 {
		panic(fmt.Sprintf("simd: %s has negative strides", name))
	}
	if batch == 0 || rows == 0 || cols == 0 {
		return
	}
	last := uint64(0)
	for _, d := range [3][2]int{{batch, batchStride}, {rows, rowStride}, {cols, colStride}} {
		hi, lo := bits.Mul64(uint64(d[0]-1), uint64(d[1]))
		var carry uint64
		last, carry = bits.Add64(last, lo, 0)
		if hi|carry != 0 {
			last = ^uint64(0)
			break
		}
	}
	if have < 0 || last >= uint64(have) {
		panic(fmt.Sprintf("simd: %s of %d elements is too short for %d of %dx%d with strides %d, %d, %d",
			name, have, batch, rows, cols, batchStride, rowStride, colStride))
	}
}
