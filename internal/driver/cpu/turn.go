package cpu

import (
	"unsafe"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// A turn is how a permuted array is copied: by transposing matrices whose rows are neighbours in the operand, and whose
// columns are neighbours in the result.
type turn struct {
	axis  *op.Factor // along which elements are neighbours in the operand
	unit  int        // elements of the result from one step along it to the next; 0: the layout is no turn
	piece int        // elements of a piece of work
}

// turnLeast is the elements that a matrix has at least, and turnedSteps how many steps along the axis are made in one call:
// they read whole lines of the cache.
const (
	turnLeast   = 48
	turnedSteps = 64
)

// turnOf returns how elements in a layout are copied by transposition.
func turnOf(l *op.Layout) (t turn) {
	unit, columns := 1, 0
	for k := int(l.Rank) - 1; k >= 0 && !l.Windowed(); k-- {
		f := &l.F[k]
		if f.Stride < 1 {
			break
		}
		if f.Stride == 1 {
			if f.N*columns >= turnLeast {
				t = turn{f, unit, turnedSteps * unit}
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

// tiles writes elements from pos on to dst, both multiples of the unit.
func (t *turn) tiles(dst []uint32, base *uint32, l *op.Layout, pos int) {
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
