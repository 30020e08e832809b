package cpu

import (
	"unsafe"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// A permutation describes the copy of a permuted array as transpositions of matrices. The elements
// of a row of a matrix are adjacent in the operand, those of a column are adjacent in the result.
// The zero value is for layouts that are copied in another way.
type permutation struct {
	axis  *op.Factor // axis along which elements are adjacent in the operand
	unit  int        // stride of this axis in the result; 0 if the layout is copied in another way
	piece int        // number of elements in a piece of work
}

// minMatrix is the smallest number of elements in a matrix for which a call is efficient. A call
// processes stepsOfCall steps along the axis, so that it reads whole cache lines.
const (
	minMatrix   = 48
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
			if f.N*columns >= minMatrix {
				t = permutation{f, unit, stepsOfCall * unit}
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
	columns := &l.F[l.Rank-1]
	for len(dst) > 0 {
		n := min(t.axis.N-pos/t.unit%t.axis.N, len(dst)/t.unit)
		for at := 0; at < t.unit; at += columns.N {
			off, _ := l.At(pos + at)
			simd.TransposeTile(address(unsafe.Pointer(&dst[at])), address(unsafe.Pointer(element(base, off))), t.unit, columns.Stride, columns.N, n)
		}
		dst, pos = dst[n*t.unit:], pos+n*t.unit
	}
}
