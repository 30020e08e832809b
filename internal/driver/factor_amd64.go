//go:build amd64 && !noasm

package driver

import (
	"math/bits"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
	"github.com/rayo-go/rayo/simd/linalg"
)

// A lockstep computes an operation for count matrices in lock-step, at most [linalg.Lanes]. It returns a mask of
// those that it leaves to the factoring.
type lockstep func(f *Factoring, in, out [][]float32, count int) uint8

// locksteps are the operations whose small matrices are computed in lock-step.
var locksteps = map[*op.Operation]lockstep{
	op.Cholesky: func(f *Factoring, in, out [][]float32, count int) uint8 {
		return linalg.CholeskyLanes(out[0], in[0], f.rows, count)
	},
	op.LU: func(f *Factoring, in, out [][]float32, count int) uint8 {
		return linalg.LULanes(out[0], integers(out[1]), in[0], f.rows, f.cols, count)
	},
	op.Solve: func(f *Factoring, in, out [][]float32, count int) uint8 {
		return linalg.SolveLanes(out[0], in[0], in[1], f.rows, f.right, count)
	},
	op.QR: func(f *Factoring, in, out [][]float32, count int) uint8 {
		return linalg.QRLanes(out[0], out[1], in[0], f.rows, f.cols, count)
	},
	op.Eigh: func(f *Factoring, in, out [][]float32, count int) uint8 {
		return linalg.EighLanes(out[0], out[1], in[0], f.rows, count)
	},
	op.SVD: func(f *Factoring, in, out [][]float32, count int) uint8 {
		return linalg.SVDLanes(out[0], out[1], out[2], in[0], f.rows, f.cols, count)
	},
}

// lockstepOf returns what computes several matrices at a time, or nil.
func lockstepOf(o *op.Operation, f *Factoring) lockstep {
	if !linalg.Together(f.rows, max(f.cols, f.right)) || o == op.Solve && f.right == 0 {
		return nil
	}
	return locksteps[o]
}

// whole rounds a number of matrices up to groups in lock-step.
func whole(f *Factoring, n int) int {
	if f.many == nil {
		return n
	}
	return (n + linalg.Lanes - 1) / linalg.Lanes * linalg.Lanes
}

// few is the number of matrices up to which they are factored one after the other.
const few = 3

// next computes the results for matrix i, and for others before end with it. It returns how many these are.
func next(f *Factoring, p *simd.Pool, i, end int, in, out [][]byte) int {
	count := min(end-i, linalg.Lanes)
	if f.many == nil || count <= few {
		f.matrix(p, i, in, out)
		return 1
	}
	for bad := f.many(f, parts(in, f.in, i, count), parts(out, f.out, i, count), count); bad != 0; bad &= bad - 1 {
		f.matrix(p, i+bits.TrailingZeros8(bad), in, out)
	}
	return count
}
