package cpu

import (
	"context"
	"unsafe"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// concatTask concatenates arrays along an axis. Elements may have any size.
type concatTask struct {
	d     *processor
	outer int
	rows  []int // number of elements of each operand in a row of the result
	pitch int   // row length of the result: the sum of rows
	size  int   // bytes of an element
	from  []*op.Layout

	// Set during a run.
	in   []unsafe.Pointer
	out  unsafe.Pointer
	each int // number of rows in a part
	cuts int // number of parts of a long row
}

// concatPart is the number of elements in a part for the workers.
const concatPart = 16 << 10

// elements implements mover.
func (t *concatTask) elements(size int) { t.size = size }

// layouts implements reader.
func (t *concatTask) layouts(ls []*op.Layout) { t.from = ls }

func (t *concatTask) configure(_ *op.Operation, a *op.Attrs, dims []op.Shape) error {
	in := dims[:len(dims)-1]
	axis, err := op.ConcatOf(a, in)
	if err != nil {
		return err
	}
	t.outer, t.rows, t.pitch = size(in[0][:axis]), nil, 0
	for _, s := range in {
		t.rows = append(t.rows, size(s[axis:]))
		t.pitch += size(s[axis:])
	}
	return nil
}

func (t *concatTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	t.in, t.out = in, out[0]
	if t.pitch == 0 {
		return nil
	}
	pool := t.d.pool.Under(ctx)
	t.each, t.cuts = max(1, concatPart/t.pitch), max(1, t.pitch/concatPart)
	pool.Spread((t.outer+t.each-1)/t.each*t.cuts, false, t)
	pool.Release()
	t.in, t.out = nil, nil
	return ctx.Err()
}

// Part implements workers.Task.
func (t *concatTask) Part(i int) {
	if t.cuts > 1 {
		t.cut(i/t.cuts, i%t.cuts*concatPart, (i%t.cuts+1)*concatPart)
		return
	}
	first, last := i*t.each, min((i+1)*t.each, t.outer)
	if simd.HasRows && t.interleaves(first, last) {
		return
	}
	if len(t.rows) == 1 {
		t.piece(0, first*t.pitch, first*t.pitch, (last-first)*t.pitch)
		return
	}
	if t.pitch <= shortRun*len(t.rows) {
		at := first * t.pitch
		for k, n := range t.rows {
			switch {
			case n == 0: // at may be the end of the result, which is not a valid address
			case t.size == 1:
				columns(t, element((*uint8)(t.out), at), k, n, first, last)
			case t.size == 2:
				columns(t, element((*uint16)(t.out), at), k, n, first, last)
			default:
				columns(t, element((*uint32)(t.out), at), k, n, first, last)
			}
			at += n
		}
		return
	}
	if t.joins(first, last) {
		return
	}
	for each := max(1, concatBlock/(t.pitch*t.size)); first < last; first += each {
		t.block(first, min(first+each, last))
	}
}

// cut copies the elements from lo to hi of a row of the result. The last part of a row has its remaining elements too.
func (t *concatTask) cut(row, lo, hi int) {
	if hi > t.pitch-concatPart {
		hi = t.pitch
	}
	at := 0
	for k, n := range t.rows {
		if from, to := max(lo, at), min(hi, at+n); from < to {
			t.piece(k, row*t.pitch+from, row*n+from-at, to-from)
		}
		at += n
	}
}

// concatBlock is the number of bytes of the result that are copied from one operand after the other: they stay in the first
// cache.
const concatBlock = 16 << 10

// block copies rows [first, last) of the result.
func (t *concatTask) block(first, last int) {
	at := first * t.pitch
	for k, n := range t.rows {
		switch {
		case n == 0: // at may be the end of the result, which is no address
		case n*t.size <= copyPiece && t.copyRows(k, n, at, first, last):
		default:
			for r := first; r < last; r++ {
				t.piece(k, at+(r-first)*t.pitch, r*n, n)
			}
		}
		at += n
	}
}

// even returns the first element of operand k, and the distance of its rows. It returns false unless the elements of each row are adjacent in memory.
func (t *concatTask) even(k int) (off, ss int, ok bool) {
	n := t.rows[k]
	if k >= len(t.from) || t.from[k] == nil {
		return 0, n, true
	}
	l := t.from[k]
	f := l.Factors()
	switch {
	case len(f) == 0 || l.Windowed() || f[len(f)-1].Stride != 1:
		return 0, 0, false
	case len(f) == 2 && f[1].N == n:
		return l.Off, f[0].Stride, true
	}
	return l.Off, n, len(f) == 1
}

// joins writes rows [first, last) of the result with a kernel for the rows of all operands. It reports whether it did.
func (t *concatTask) joins(first, last int) bool {
	var parts [8]simd.JoinPart
	n := 0
	for k, width := range t.rows {
		off, ss, ok := t.even(k)
		switch {
		case width == 0:
			continue
		case n == len(parts) || !ok:
			return false
		}
		parts[n] = simd.JoinPart{X: t.in[k], At: (off + first*ss) * t.size, Bytes: width * t.size, Stride: ss * t.size}
		n++
	}
	return simd.JoinPieces((*byte)(unsafe.Add(t.out, first*t.pitch*t.size)), parts[:n], last-first)
}

// copyRows copies rows [first, last) of operand k, of n elements each, to the rows of the result that begin at element at. It
// does nothing and returns false unless the elements of each row are adjacent in memory.
func (t *concatTask) copyRows(k, n, at, first, last int) bool {
	off, ss, ok := t.even(k)
	if !ok {
		return false
	}
	copyRows(unsafe.Add(t.out, at*t.size), unsafe.Add(t.in[k], (off+first*ss)*t.size), n*t.size, t.pitch*t.size, ss*t.size, last-first, false)
	return true
}

// piece copies n elements of operand k, from element pos on, to element at of the result.
func (t *concatTask) piece(k, at, pos, n int) {
	to := unsafe.Add(t.out, at*t.size)
	if k < len(t.from) && t.from[k] != nil {
		bring(to, t.in[k], t.from[k], pos, n, t.size, false)
	} else {
		copyPieces(to, unsafe.Add(t.in[k], pos*t.size), n*t.size)
	}
}

// interleaves writes rows [first, last) of the result with a kernel if each operand has one word in
// each row. It reports whether it did.
func (t *concatTask) interleaves(first, last int) bool {
	var src [8]*uint32
	if t.size != 4 || t.pitch != len(t.rows) || len(t.rows) > len(src) {
		return false
	}
	for k, n := range t.rows {
		if n != 1 || k < len(t.from) && t.from[k] != nil {
			return false
		}
		src[k] = element((*uint32)(t.in[k]), first)
	}
	return simd.Interleave(element((*uint32)(t.out), first*t.pitch), &src, len(t.rows), last-first)
}

// copyPiece is the maximum number of bytes for one call of copy. Longer copies bypass the cache,
// although the arrays may be in the cache.
const copyPiece = 256 << 10

// copyPieces copies n bytes in pieces.
func copyPieces(dst, src unsafe.Pointer, n int) {
	to, from := unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n)
	for len(to) > 0 {
		k := copy(to[:min(copyPiece, len(to))], from)
		to, from = to[k:], from[k:]
	}
}

// columns copies rows [first, last) of operand k, of n elements each, to their positions in the
// rows of the result. to is the position in the first row. It is fast for many short rows.
func columns[T uint8 | uint16 | uint32](t *concatTask, to *T, k, n, first, last int) {
	var block [1024]T
	for r := first; r < last; {
		rows := min(last-r, len(block)/n)
		from := &block[0]
		if k >= len(t.from) || t.from[k] == nil {
			from = element((*T)(t.in[k]), r*n)
		} else {
			bring(unsafe.Pointer(from), t.in[k], t.from[k], r*n, rows*n, t.size, false)
		}
		src := unsafe.Slice(from, rows*n)
		at := (r - first) * t.pitch
		if n == 1 {
			for i, v := range src {
				*element(to, at+i*t.pitch) = v
			}
		} else {
			for i := range rows {
				copy(unsafe.Slice(element(to, at+i*t.pitch), n), src[i*n:(i+1)*n])
			}
		}
		r += rows
	}
}
