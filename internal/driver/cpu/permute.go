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

	// smallAxis is the smallest number of bytes along the axis for elements that do not have four bytes, and there are at least four. Fewer are
	// copied one after the other.
	smallAxis = 16
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

// tiles writes n elements of size bytes from pos on to dst. pos and n are multiples of the unit.
func (t *permutation) tiles(dst, base unsafe.Pointer, l *op.Layout, pos, n, size int) {
	for at := 0; at < n; { // computes no pointer beyond the last element
		steps := min(t.axis.N-(pos+at)/t.unit%t.axis.N, (n-at)/t.unit)
		t.transpose(unsafe.Add(dst, at*size), base, l, pos+at, steps, size)
		at += steps * t.unit
	}
}

// transpose writes a unit of elements from pos on to the first row of a matrix at dst, and as many for each of the next n-1 steps along the
// axis to the other rows.
func (t *permutation) transpose(dst, base unsafe.Pointer, l *op.Layout, pos, n, size int) {
	columns := &l.F[l.Rank-1]
	var o odometer
	row := o.start(l, pos)
	for at := 0; at < t.unit; {
		rows, x := min(columns.N-row, t.unit-at), unsafe.Add(base, (o.off+row*columns.Stride)*size)
		to := unsafe.Add(dst, at*size)
		if at, row = at+rows, 0; at < t.unit {
			if o.next(); size == 4 && rows*n <= permuteLimits.prefetch {
				simd.Prefetch(address(unsafe.Add(base, 4*o.off)), columns.Stride, rows, n)
			}
		}
		if size == 4 {
			simd.TransposeTile(address(to), address(x), t.unit, columns.Stride, rows, n)
		} else {
			simd.TransposeSmall(to, x, size, t.unit, columns.Stride, rows, n)
		}
	}
}

// widen describes the array by larger elements of up to eight bytes: each one joins several elements of size bytes that are adjacent in the operand
// and in the result. It returns the layout of the larger elements, and the number of elements that one joins: 1 if none can be joined. For example, the
// copy of [1000 1000 2] with axes 1, 0, 2 of two bytes each moves elements of four bytes.
func widen(l *op.Layout, size int) (w op.Layout, times int) {
	if l.Rank < 2 || l.Windowed() {
		return w, 1
	}
	n, rest := l.F[l.Rank-1].N, l.Off
	for _, f := range l.F[:l.Rank-1] {
		rest |= f.Stride
	}
	if l.F[l.Rank-1].Stride != 1 || n < 2 || n&(n-1) != 0 || n*size > 8 || rest&(n-1) != 0 {
		return w, 1
	}
	w = *l
	w.Rank--
	w.Off /= n
	for k := range w.F[:w.Rank] {
		w.F[k].Stride /= n
	}
	w.F[w.Rank] = op.Factor{}
	return w, n
}

// permutationOfSize is permutationOf for elements of size bytes.
func permutationOfSize(l *op.Layout, size int) permutation {
	t := permutationOf(l)
	if size == 4 || t.unit == 0 {
		return t
	}
	wide := max(4, smallAxis/size)
	if t.axis.N < wide {
		return permutation{}
	}
	if half := (t.axis.N + 1) / 2; half >= wide && t.axis.N*t.unit > callElements { // two threads may share the work
		t.piece = min(t.piece, half*t.unit)
	}
	return t
}

// widen stores the layout of the larger elements of the stream, if there are any. It returns the number of elements in a piece of the copy, or 0 if the
// copy does not transpose.
func (s *stream) widen() (piece int) {
	w, n := widen(s.layout, s.size)
	if n > 1 {
		s.wide, s.times = &w, n
		return n * permutationOfSize(&w, n*s.size).piece
	}
	return permutationOfSize(s.layout, s.size).piece
}
