package cpu

import (
	"unsafe"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// A turn is how a permuted array is copied: by transposing matrices whose rows are neighbours in the operand, and whose
// columns are neighbours in the result.
type turn struct {
	axis int // the factor along which elements are neighbours in the operand
	unit int // elements of the result from one step along it to the next; 0: the layout is no turn
}

// turnLeast is the elements that a matrix has at least, and turnedSteps how many steps along the axis are made in one call:
// they read whole lines of the cache.
const (
	turnLeast   = 48
	turnedSteps = 64
)

// turnOf returns how elements in a layout are copied by transposition.
func turnOf(l *op.Layout) turn {
	last := int(l.Rank) - 1
	if last < 1 || l.F[last].Stride < 2 {
		return turn{}
	}
	t := turn{axis: last, unit: 1}
	for {
		f := &l.F[t.axis]
		if f.Lo != 0 || f.Hi != f.N {
			return turn{}
		}
		if f.Stride == 1 {
			break
		}
		if t.axis == 0 {
			return turn{}
		}
		t.unit *= f.N
		t.axis--
	}
	if l.F[t.axis].N*l.F[last].N < turnLeast {
		return turn{}
	}
	return t
}

// piece returns the elements of a piece of work.
func (t turn) piece(l *op.Layout) int {
	if all := l.F[t.axis].N * t.unit; all <= callElements {
		return callElements / all * all
	}
	return turnedSteps * t.unit
}

// tiles writes elements from pos on to dst, both multiples of the unit.
func (t turn) tiles(dst []uint32, base *uint32, l *op.Layout, pos int) {
	last := int(l.Rank) - 1
	axis, columns := &l.F[t.axis], &l.F[last]
	for len(dst) > 0 {
		off, in := l.At(pos)
		n := min(axis.N-pos/t.unit%axis.N, len(dst)/t.unit)
		var digits [op.MaxRank]int
		for at := 0; in && at < t.unit; at += columns.N {
			to, from := unsafe.Pointer(&dst[at]), unsafe.Pointer(element(base, off))
			simd.TransposeTile((*float32)(to), (*float32)(from), t.unit, columns.Stride, columns.N, n)
			for k := last - 1; k > t.axis; k-- {
				f := &l.F[k]
				if digits[k]++; digits[k] < f.N {
					off += f.Stride
					break
				}
				digits[k], off = 0, off-(f.N-1)*f.Stride
			}
		}
		if !in {
			repeat(dst[:n*t.unit], l.Fill)
		}
		dst, pos = dst[n*t.unit:], pos+n*t.unit
	}
}
