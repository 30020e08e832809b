package cpu

import (
	"unsafe"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// permuteLimits are the limits of permuted copies by matrices, in elements, measured on 2 cores of an AMD EPYC with
// AVX2, 2026-11-28 (go test -bench Permute ./internal/driver/cpu).
var permuteLimits = struct{ matrix, piece, prefetch int }{
	matrix:   48,       // of a matrix for which a call is efficient, at least
	piece:    16 << 10, // of a call: it processes more steps until it has so many
	prefetch: 4 << 10,  // of a matrix that is prefetched, at most
}

// A permutation describes the copy of a permuted array as transpositions of matrices. The elements
// of a row of a matrix are adjacent in the operand, those of a column are adjacent in the result.
// The zero value is for layouts that are copied in another way.
type permutation struct {
	axis  *op.Factor // axis along which elements are adjacent in the operand
	unit  int        // stride of this axis in the result; 0 if the layout is copied in another way
	piece int        // number of elements in a piece of work
}

const (
	// A call processes stepsOfCall steps along the axis, so that it reads whole cache lines, or more until it has
	// permuteLimits.piece elements.
	stepsOfCall = 64
)

// permutationOf returns the permutation of a layout.
func permutationOf(l *op.Layout) (t permutation) {
	unit, columns := 1, 0
	for k := int(l.Rank) - 1; k >= 0 && !l.Windowed(); k-- {
		f := &l.F[k]
		if f.Stride < 1 {
			break
		}
		if f.Stride == 1 {
			if f.N*columns >= permuteLimits.matrix {
				t = permutation{f, unit, max(stepsOfCall*unit, permuteLimits.piece/unit*unit)}
				if all := f.N * unit; all <= callElements {
					t.piece = callElements / all * all
				}
			}
			break
		}
		if columns == 0 {
			columns = f.N
		}
		unit *= f.N
	}
	return t
}

// tiles writes elements from pos on to dst. pos and the length of dst are multiples of the unit.
func (t *permutation) tiles(dst []uint32, base *uint32, l *op.Layout, pos int) {
	for len(dst) > 0 {
		n := min(t.axis.N-pos/t.unit%t.axis.N, len(dst)/t.unit)
		t.transpose(&dst[0], t.unit, base, l, pos, t.unit, n)
		dst, pos = dst[n*t.unit:], pos+n*t.unit
	}
}

// transpose writes width elements from pos on to the first row of a matrix at dst, whose rows are ds elements apart, and
// as many for each of the next n-1 steps along the axis to the other rows.
func (t *permutation) transpose(dst *uint32, ds int, base *uint32, l *op.Layout, pos, width, n int) {
	columns := &l.F[l.Rank-1]
	var o odometer
	row := o.start(l, pos)
	for at := 0; at < width; {
		rows, x := min(columns.N-row, width-at), element(base, o.off+row*columns.Stride)
		to := address(unsafe.Pointer(element(dst, at)))
		if at, row = at+rows, 0; at < width {
			if o.next(); rows*n <= permuteLimits.prefetch {
				simd.Prefetch(address(unsafe.Pointer(element(base, o.off))), columns.Stride, rows, n)
			}
		}
		simd.TransposeTile(to, address(unsafe.Pointer(x)), ds, columns.Stride, rows, n)
	}
}
