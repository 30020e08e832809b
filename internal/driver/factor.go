package driver

import (
	"math"
	"unsafe"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
	"github.com/rayo-go/rayo/simd/linalg"
)

// A Factoring computes an operation of linear algebra on the host, one matrix after the
// other or, of many, several at a time. The CPU does so always, other devices where they
// have no kernel.
type Factoring struct {
	one   factoring
	many  lockstep // or its zero value
	opts  linalg.Triangle
	batch int
	rows  int // of the first operand
	cols  int
	right int // columns of the second operand
	in    []int
	out   []int // elements of each result for one matrix
}

// A factoring computes an operation for one matrix. Results of i32 have the bits of integers.
type factoring func(p *simd.Pool, f *Factoring, in, out [][]float32)

// factorings are the operations of linear algebra, once [UseFactors] was called.
var factorings map[*op.Operation]factoring

// UseFactors links linear algebra into the program. The CPU driver calls it before main begins;
// where it is not called, as in pages that do not import package batch, the references compute the
// operations.
func UseFactors() {
	factorings = map[*op.Operation]factoring{
		op.Cholesky: func(p *simd.Pool, f *Factoring, in, out [][]float32) {
			copy(out[0], in[0])
			settle(linalg.Cholesky(p, packed(out[0], f.rows, f.rows)), out)
		},
		op.SolveTriangular: func(p *simd.Pool, f *Factoring, in, out [][]float32) {
			copy(out[0], in[1])
			f.opts.SolveLeft(p, packed(in[0], f.rows, f.rows), packed(out[0], f.rows, f.right))
		},
		op.LU: func(p *simd.Pool, f *Factoring, in, out [][]float32) {
			copy(out[0], in[0])
			linalg.LU(p, packed(out[0], f.rows, f.cols), integers(out[1]))
		},
		op.Solve: func(p *simd.Pool, f *Factoring, in, out [][]float32) {
			copy(out[0], in[1])
			settle(linalg.Solve(p, packed(in[0], f.rows, f.rows), packed(out[0], f.rows, f.right)), out)
		},
		op.QR: func(p *simd.Pool, f *Factoring, in, out [][]float32) {
			k := min(f.rows, f.cols)
			q := linalg.NewQR(p, packed(in[0], f.rows, f.cols))
			q.Q(p, packed(out[0], f.rows, k))
			q.R(packed(out[1], k, f.cols))
		},
		op.Eigh: func(p *simd.Pool, f *Factoring, in, out [][]float32) {
			settle(linalg.Eigh(p, packed(in[0], f.rows, f.rows), out[0], packed(out[1], f.rows, f.rows)), out)
		},
		op.SVD: func(p *simd.Pool, f *Factoring, in, out [][]float32) {
			k := min(f.rows, f.cols)
			settle(linalg.SVD(p, packed(in[0], f.rows, f.cols), packed(out[0], f.rows, k), out[1], packed(out[2], k, f.cols)), out)
		},
	}
}

func packed(x []float32, rows, cols int) linalg.Matrix {
	return linalg.Matrix{Data: x, Rows: rows, Cols: cols, Stride: cols}
}

// settle sets results to NaN if the system has no solution.
func settle(ok bool, out [][]float32) {
	if ok {
		return
	}
	for _, x := range out {
		for i := range x {
			x[i] = float32(math.NaN())
		}
	}
}

func integers(x []float32) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// Factors reports whether o is an operation of linear algebra, for which devices have
// kernels up to some sizes only, and the host computes larger matrices.
func Factors(o *op.Operation) bool { return factorings[o] != nil }

// FactoringOf returns what computes an operation over operands and results of these
// shapes, which have been checked; false for operations of any other kind.
func FactoringOf(o *op.Operation, a *op.Attrs, dims []op.Shape) (*Factoring, bool) {
	one, ok := factorings[o]
	if !ok {
		return nil, false
	}
	n := len(dims[0]) - 2
	f := &Factoring{one: one, rows: dims[0][n], cols: dims[0][n+1]}
	f.batch, _ = dims[0][:n].Size()
	if o == op.SolveTriangular {
		t := op.SolveTriangularOptsOf(a)
		f.opts = linalg.Triangle{Upper: t.Upper, Trans: t.Trans, Unit: t.Unit}
	}
	operands, _ := o.Arity()
	if operands > 1 {
		f.right = dims[1][n+1]
	}
	for i, s := range dims {
		size, _ := s[n:].Size()
		if i < operands {
			f.in = append(f.in, size)
		} else {
			f.out = append(f.out, size)
		}
	}
	f.many = lockstepOf(o, f)
	return f, true
}

// alone is the number of elements from which several threads work on one matrix of many.
const alone = 256 * 256

// Run computes the results from the operands. A nil pool is the calling thread alone.
func (f *Factoring) Run(p *simd.Pool, in, out [][]byte) {
	threads := p.Threads()
	if f.batch < 2 || threads == 1 || f.batch < 2*threads && f.rows*f.cols >= alone {
		for i := 0; i < f.batch; {
			i += next(f, p, i, f.batch, in, out)
		}
		return
	}
	group := whole(f, max(1, f.batch/(8*threads)))
	p.Do((f.batch+group-1)/group, matrices(func(part int) {
		for i, end := part*group, min((part+1)*group, f.batch); i < end; {
			i += next(f, nil, i, end, in, out)
		}
	}))
}

// matrices is a task whose parts are calls of a function.
type matrices func(part int)

// Part implements workers.Task.
func (f matrices) Part(i int) { f(i) }

// matrix computes the results for matrix i.
func (f *Factoring) matrix(p *simd.Pool, i int, in, out [][]byte) {
	f.one(p, f, parts(in, f.in, i, 1), parts(out, f.out, i, 1))
}

// parts returns the elements of count matrices from matrix i on, for matrices of these sizes.
func parts(all [][]byte, sizes []int, i, count int) [][]float32 {
	xs := make([][]float32, len(sizes))
	for k, n := range sizes {
		if n > 0 {
			xs[k] = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(all[k]))), len(all[k])/4)[i*n:][:count*n]
		}
	}
	return xs
}
