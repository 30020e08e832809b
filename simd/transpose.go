package simd

import (
	"sync"

	"github.com/rayo-go/rayo/internal/workers"
)

// Transpose sets dst[j*rows+i] = x[i*cols+j] for a matrix of rows rows and
// cols columns, with the threads of p. With a nil Pool it uses only the calling
// thread. dst must not overlap x. It panics if a slice is too short.
func Transpose(p *workers.Pool, dst, x []float32, rows, cols int) {
	n := area(rows, cols)
	dst, x = dst[:n], x[:n]
	if n == 0 || rows == 1 || cols == 1 {
		copy(dst, x)
		return
	}
	t := transposes.Get().(*transposeTask)
	t.dst, t.x, t.rows, t.cols = dst, x, rows, cols
	t.high, t.wide = transposeSide, transposeSide
	if HasRows && cols <= narrowMost {
		t.high *= transposeSide
	} else if HasRows && rows <= narrowMost {
		t.wide *= transposeSide
	}
	t.across = (cols + t.wide - 1) / t.wide
	t.blocks = (rows + t.high - 1) / t.high * t.across
	t.group = max(1, min(t.blocks, transposePart/(t.high*t.wide)))
	if p.Worth(float64(n) * transposeNS) {
		t.group = max(1, min(t.group, t.blocks/(8*p.Threads())))
	}
	p.Do((t.blocks+t.group-1)/t.group, t)
	t.dst, t.x = nil, nil
	transposes.Put(t)
}

const (
	// transposeSide is the side of the squares that are transposed at a time. A square
	// touches few enough pages and cache lines to stay in the TLB and the first cache.
	transposeSide = 64
	narrowMost    = 8   // with at most this many rows or columns, rectangles are longer
	transposeNS   = 0.2 // nanoseconds for an element
	// transposePart is the approximate number of elements of a part. A pool with a context checks it
	// between parts.
	transposePart = 1 << 16
)

type transposeTask struct {
	dst, x     []float32
	rows, cols int
	high, wide int // extents of a rectangle that is transposed at a time
	across     int // rectangles along a row of the matrix
	blocks     int // rectangles of the matrix
	group      int // rectangles of a part
}

var transposes = sync.Pool{New: func() any { return new(transposeTask) }}

// Part transposes a few rectangles.
func (t *transposeTask) Part(i int) {
	for b, last := i*t.group, min((i+1)*t.group, t.blocks); b < last; b++ {
		dst, x, rows, cols := t.rectangle(b)
		TransposeTile(dst, x, t.rows, t.cols, rows, cols)
	}
}

// rectangle returns the first elements of rectangle b in dst and x, and its extents in x.
func (t *transposeTask) rectangle(b int) (dst, x *float32, rows, cols int) {
	i, j := b/t.across*t.high, b%t.across*t.wide
	return &t.dst[j*t.rows+i], &t.x[i*t.cols+j], min(t.high, t.rows-i), min(t.wide, t.cols-j)
}

// TransposeTile sets dst[j*ds+i] = x[i*ss+j] for each row i < rows and column j < cols of a part of a
// matrix: rows are ss elements apart in x, and columns ds in dst.
func TransposeTile(dst, x *float32, ds, ss, rows, cols int) {
	if transposeNarrow(dst, x, ds, ss, rows, cols) {
		return
	}
	k := gemmActive()
	for j := 0; j < cols; j += transposeSide {
		c := min(transposeSide, cols-j)
		for i := transposeTall(step(dst, j*ds), step(x, j), ds, ss, rows, c); i < rows; i += k.lanes {
			r := min(i, max(0, rows-k.lanes)) // the last vector overlaps the one before, because partial stores are slow
			k.transpose(step(dst, j*ds+r), step(x, r*ss+j), 4*ds, 4*ss, min(k.lanes, rows-r), c)
		}
	}
}

// Prefetch requests rows of cols elements, which are stride elements apart, for the first cache.
func Prefetch(x *float32, stride, rows, cols int) {
	if rowKernel().fetch != nil {
		rowKernel().fetch(x, 4*stride, rows, 4*cols)
	}
}
