//go:build amd64 && !noasm

package linalg

import (
	"fmt"
	"iter"
	"math"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/simd"
)

//go:generate go -C ../_asm run ./lanes ../linalg

// Lanes is the number of matrices that the functions with Lanes in their names factor in lock-step, with one
// matrix in each lane of the vectors. It is 0 if there are no kernels for this.
//
// These functions take at most Lanes matrices, which are contiguous in memory. They return a mask of the
// matrices that they leave out, for example because a matrix is singular or not finite. They write no results
// for these: the caller must factor each of them alone.
const Lanes = 8

// laneBytes is the largest size in bytes of a group of matrices for which lock-step is faster than factoring one
// matrix after the other.
const laneBytes = 256 << 10

// Together reports whether lock-step is faster for groups of matrices of rows×cols elements.
func Together(rows, cols int) bool {
	return simd.Active() >= simd.AVX2 && rows > 0 && cols > 0 && rows*cols*Lanes*4 <= laneBytes
}

// A vec has one element of each matrix.
type vec = [Lanes]float32

// A grid is a matrix of vectors; element (i, j) is data[i*row+j*col].
type grid struct {
	data     []vec
	row, col int
}

func (g grid) at(i, j int) *vec { return &g.data[i*g.row+j*g.col] }

// from returns the grid whose first element is (i, j).
func (g grid) from(i, j int) grid { return grid{g.data[i*g.row+j*g.col:], g.row, g.col} }

func (g grid) t() grid { return grid{g.data, g.col, g.row} }

// holds panics if an m×n grid is longer than its data.
func (g grid) holds(m, n int) {
	if last := (m-1)*g.row + (n-1)*g.col; m < 1 || n < 1 || last >= len(g.data) {
		panic(fmt.Sprintf("linalg: %d vectors for %d×%d, %d and %d apart", len(g.data), m, n, g.row, g.col))
	}
}

// less subtracts the product of an m×k and a k×n grid.
func (g grid) less(a, b grid, m, n, k int) { g.product(a, b, m, n, k, false) }

// set sets g to the product of an m×k and a k×n grid.
func (g grid) set(a, b grid, m, n, k int) { g.product(a, b, m, n, k, true) }

func (g grid) product(a, b grid, m, n, k int, set bool) {
	if m == 0 || n == 0 || k == 0 {
		return
	}
	g.holds(m, n)
	a.holds(m, k)
	b.holds(k, n)
	const size = 4 * Lanes
	lanesProductAVX2(&g.data[0][0], &a.data[0][0], &b.data[0][0], m, n, k,
		size*g.row, size*g.col, size*a.row, size*a.col, size*b.row, size*b.col, set)
}

// scale multiplies the first n elements of column 0 by f.
func (g grid) scale(f *vec, n int) {
	if n > 0 {
		g.holds(n, 1)
		lanesScaleAVX2(&g.data[0][0], &f[0], 4*Lanes*g.row, n)
	}
}

// divide divides the first n elements of column 0 by f.
func (g grid) divide(f *vec, n int) {
	if n > 0 {
		g.holds(n, 1)
		lanesDivideAVX2(&g.data[0][0], &f[0], 4*Lanes*g.row, n)
	}
}

// vectors is memory for grids, aligned to vectors.
type vectors struct{ data []vec }

var vectorPool = sync.Pool{New: func() any { return new(vectors) }}

// takeVectors returns n vectors with unspecified content.
func takeVectors(n int) *vectors {
	s := vectorPool.Get().(*vectors)
	if cap(s.data) < n {
		x := make([]vec, n+1)
		// The memory of x is aligned to elements of 4 bytes at least.
		p := unsafe.Pointer(&x[0])
		s.data = unsafe.Slice((*vec)(unsafe.Add(p, -uintptr(p)%(4*Lanes))), n)
	}
	s.data = s.data[:n]
	return s
}

func (s *vectors) give() { vectorPool.Put(s) }

// pack copies count matrices of len(dst) elements to lanes; lanes without a matrix become 0.
func pack(dst []vec, x []float32, count int) {
	packTransposed(dst, x, 1, len(dst), count)
}

// packTransposed writes the transposes of count matrices of rows×cols elements to the lanes of dst.
func packTransposed(dst []vec, x []float32, rows, cols, count int) {
	n := rows * cols
	if x = x[:count*n]; count < Lanes {
		s := take(Lanes * n)
		defer s.give()
		clear(s.data[copy(s.data, x):])
		x = s.data
	}
	const size = 4 * Lanes
	for i := range rows {
		for j, squares := range squaresOf(cols) {
			lanesTransposeAVX2(&dst[j*rows+i][0], &x[i*cols+j], size*rows, 4*n, size*Lanes*rows, size, squares)
		}
		for j := 0; j < cols && cols < Lanes; j++ {
			for l := range Lanes {
				dst[j*rows+i][l] = x[l*n+i*cols+j]
			}
		}
	}
}

// squaresOf yields the first column of each square of Lanes columns, and how many squares follow one another from there,
// so that the squares cover cols columns. The last square may overlap another one. There are no squares if cols is less
// than Lanes.
func squaresOf(cols int) iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		if cols >= Lanes && yield(0, cols/Lanes) && cols%Lanes > 0 {
			yield(cols-Lanes, 1)
		}
	}
}

// unpack copies the matrices of the lanes to count matrices of len(src) elements. It leaves out the
// matrices in the mask bad.
func unpack(x []float32, src []vec, count int, bad uint8) {
	unpackTransposed(x, grid{src, 1, 1}, 1, len(src), count, bad)
}

// unpackTransposed is unpack for matrices of rows×cols elements, whose transposes are in src.
func unpackTransposed(x []float32, src grid, rows, cols, count int, bad uint8) {
	n := rows * cols
	x = x[:count*n]
	to := x
	if bad != 0 || count < Lanes {
		s := take(Lanes * n)
		defer s.give()
		to = s.data
	}
	src.holds(cols, rows)
	const size = 4 * Lanes
	for i := range rows {
		for j, squares := range squaresOf(cols) {
			lanesTransposeAVX2(&to[i*cols+j], &src.at(j, i)[0], 4*n, size*src.row, size, size*Lanes*src.row, squares)
		}
		for j := 0; j < cols && cols < Lanes; j++ {
			for l, v := range src.at(j, i) {
				to[l*n+i*cols+j] = v
			}
		}
	}
	for l := range count {
		if (bad != 0 || count < Lanes) && bad>>l&1 == 0 {
			copy(x[l*n:(l+1)*n], to[l*n:])
		}
	}
}

// used returns the mask of count matrices.
func used(count int) uint8 { return uint8(1<<count - 1) }

// laneColumns is the number of columns that are factored one by one before a product updates
// the others.
const laneColumns = 4

// CholeskyLanes is [Cholesky] for count matrices, which it does not change.
func CholeskyLanes(out, a []float32, order, count int) (bad uint8) {
	m := takeVectors(order * order)
	defer m.give()
	g := grid{m.data, order, 1}
	pack(m.data, a, count)
	for j := 0; j < order; j += laneColumns {
		end := min(j+laneColumns, order)
		g.from(j, j).less(g.from(j, 0), g.from(j, 0).t(), order-j, end-j, j)
		for c := j; c < end; c++ {
			g.from(c, c).less(g.from(c, j), g.from(c, j).t(), order-c, 1, c-j)
			s := g.at(c, c)
			for l, v := range s {
				if !(v > 0) || math.IsInf(float64(v), 1) {
					bad |= 1 << l
				}
				s[l] = float32(math.Sqrt(float64(v)))
			}
			if c+1 < order {
				g.from(c+1, c).divide(s, order-c-1)
			}
		}
	}
	if bad &= used(count); bad == used(count) {
		return bad
	}
	for i := range order {
		clear(m.data[i*order+i+1 : (i+1)*order])
	}
	unpack(out, m.data, count, bad)
	return bad
}
