package cpu

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// boxLimits are the limits of copies by boxes, in elements, measured on 2 cores of an AMD EPYC with AVX2 and of an
// Intel Xeon with AVX-512, 2026-11-29 (docs/measurements/cpu.md).
var boxLimits = struct{ array, join, short, tile int }{
	array: 32 << 10,  // of an array that is copied by boxes, at least
	join:  384 << 10, // of an array whose boxes JoinRows writes, at least
	short: 32,        // rows of a box, if there are so many
	tile:  64,        // sides from which on tiles are faster in the last-level cache if rows do not share sets of the first cache
}

// A boxes describes the copy of a permuted array as transpositions of boxes. The elements of a row of a box are adjacent in the
// operand, those of a column are adjacent in the result. A box is transposed to a buffer in the second cache, so that long runs of
// elements are read in sequence, and then long runs are written. Whatever the distance of the runs, they do not replace each other
// in the caches. Unless joinRows is set, an array that the last-level cache holds is transposed by strips, for which a buffer in the
// first cache is large enough, or directly to the result (strip.go).
type boxes struct {
	rows         []dim // the axes along a column, the innermost first. Together they are contiguous in the result.
	total, high  int   // number of their elements, and number of them in a box
	cols         []dim // the axes along a row, the innermost first. Together they are contiguous in the operand.
	inner, wide  int   // product of the extents of the axes but the last, and number of elements along the last one in a box
	outer        []dim // the other axes
	across, down int   // number of boxes along the rows and along the columns
	count        int   // number of boxes
	joined       bool  // the columns along the last axis of cols are contiguous in the result: they have all its rows
	lines        bool  // all columns begin with a cache line if the result does

	strip int // number of columns of a strip, or 0
	ahead int // distance of prefetches in elements

	// TurnGroups and JoinRows transpose the boxes of large arrays, unless rows share sets of the first cache. Tiles are faster if the
	// last-level cache holds the arrays and all rows and columns are whole cache lines.
	joinRows bool

	// The boxes are transposed directly to the result: see stripped. far is true if the second cache does not hold the arrays.
	direct, far bool
	tiled       bool    // tiles are transposed instead of strips
	tables      [][]int // offsets of the rows of the boxes along the rows, or nil: see locateAll
	narrow      bool    // the boxes have all columns: see narrowed

	size int // bytes of an element if whole cache lines are copied (see copyLines), otherwise 0

	planes, pitch int  // number of planes, and their distance: see copyPlanes; 0 if others are copied
	split         bool // the elements are divided into planes, not interleaved

	run int // if it is not 0, elements of runs that are contiguous in both: see runBoxes

	// Columns that JoinLines or JoinRows copies with one call: distance of the first from the first column of the box in the result, for each
	// call; number of columns from one call to the next one; distances of the columns of a call in the result, and in the buffer.
	starts           []int
	hop, ds, between int
}

// A dim is an axis: the distances of its elements in the operand and in the result.
type dim struct{ n, src, dst int }

// The sizes of boxes in elements. A buffer fits the second cache.
const (
	boxSide     = line // smallest side
	boxRows     = 128
	boxTall     = 256 // number of rows up to which a box has all rows
	boxCols     = 1024
	boxMost     = boxRows * boxCols
	boxParts    = 8        // number of boxes into which small arrays are divided
	runElements = 16 << 10 // elements of a box of runs
	conflict    = 4 << 10  // lines at distances of multiples of so many bytes share a set of the first cache
	turnGap     = 4        // distance between groups of lines in the buffer, so that these use different sets of the cache
)

// boxesOf returns the boxes of a layout, or nil if it is copied in another way. The conditions were measured
// (docs/measurements/cpu.md).
func boxesOf(l *op.Layout) *boxes {
	return boxesFor(l, 16*l.Size() < memory.LastLevelCache(), boxLimits.join)
}

// boxesPast returns boxes that are faster than b with non-temporal stores, or b.
func boxesPast(l *op.Layout, b *boxes) *boxes {
	if b != nil && b.direct {
		if past := boxesFor(l, false, boxLimits.join); past != nil {
			return past
		}
	}
	return b
}

// boxesFor is boxesOf. near is true if the last-level cache holds the arrays. from is boxLimits.join.
func boxesFor(l *op.Layout, near bool, from int) *boxes {
	n := l.Size()
	if !simd.HasTurn() || n < boxLimits.array || l.Windowed() {
		return nil
	}
	dims, first := boxDims(l)
	if first < 0 {
		return nil
	}
	if first == 0 {
		return runBoxes(dims)
	}
	b := &boxes{rows: dims[:1:1], total: dims[0].n, cols: dims[first : first+1 : first+1], inner: 1}
	b.outer = append(dims[1:first:first], dims[first+1:]...)
	if b.narrowed() {
		return b
	}
	b.extend(boxLimits.short)
	if near && n <= stripLimits.array && b.stripped(n) {
		return b
	}
	most := boxMost / max(boxRows, min(b.total, boxTall))
	b.widen(min(most, max(boxSide, n/(boxRows*boxParts))))
	b.extend(boxRows)
	if b.total < boxSide || b.inner*b.wide < boxSide {
		return nil
	}
	b.joinRows = simd.HasJoinRows() && n >= from && 4*b.rows[0].src%conflict != 0 && !(near && b.onLines() && b.rows[0].src%line == 0)
	b.divide(near && !b.joinRows)
	if b.joinRows {
		return b
	}
	if side := min(dims[0].n, dims[first].n); near && (side < boxSide || side >= boxLimits.tile && 4*b.rows[0].src%conflict != 0) {
		return nil
	}
	return b
}

// boxDims returns the axes of a layout from the last to the first, and the number of the axis along which elements are
// adjacent in the operand. The number is -1 if there is no such axis, or if boxes cannot copy the layout.
func boxDims(l *op.Layout) (dims []dim, first int) {
	first = -1
	for k, at := int(l.Rank)-1, 1; k >= 0; k-- {
		f := &l.F[k]
		if f.Stride < 1 || f.Stride == 1 && first >= 0 {
			return nil, -1
		}
		if f.Stride == 1 {
			first = len(dims)
		}
		dims = append(dims, dim{f.N, f.Stride, at})
		at *= f.N
	}
	return dims, first
}

// extend adds axes to the rows until these have want elements.
func (b *boxes) extend(want int) {
	for k := 0; k < len(b.outer) && b.total < want; k++ {
		if d := b.outer[k]; d.dst == b.total {
			b.rows, b.total = append(b.rows, d), b.total*d.n
			b.outer = append(b.outer[:k:k], b.outer[k+1:]...)
			k = -1
		}
	}
}

// widen adds axes to the columns until these have about want elements.
func (b *boxes) widen(want int) {
	for k := 0; ; k++ {
		last := b.cols[len(b.cols)-1]
		b.wide = min(last.n, want/b.inner)
		if b.wide < last.n || 2*b.inner*b.wide > want || k == len(b.outer) {
			return
		}
		if d := b.outer[k]; d.src == last.n*last.src {
			b.cols, b.inner = append(b.cols, d), b.inner*last.n
			b.outer = append(b.outer[:k:k], b.outer[k+1:]...)
			k = -1
		}
	}
}

// divide determines the boxes. near is as in boxesFor.
func (b *boxes) divide(near bool) {
	last := b.cols[len(b.cols)-1]
	if b.high = b.total; b.total > boxTall || b.total*b.inner*b.wide > boxMost {
		b.high = boxRows
	}
	b.across, b.down = (b.total+b.high-1)/b.high, (last.n+b.wide-1)/b.wide
	b.wide = (last.n + b.down - 1) / b.down // about the same for all boxes
	if b.inner == 1 {
		b.wide = min(last.n, (b.wide+line-1)&^(line-1))
	}
	b.down = (last.n + b.wide - 1) / b.wide
	b.countBoxes()
	b.lines = b.onLines()
	calls := b.inner * b.wide
	b.joined = b.across == 1 && last.dst == b.total && b.inner >= boxSide
	far := 4*b.rows[0].src%conflict != 0
	if far {
		b.ahead = 4 * line
	}
	if near && (b.lines || !b.joined) {
		b.joined, b.strip = false, 2*line
		if far {
			b.strip = line
		}
		b.ahead = b.strip + line - 1
	}
	switch {
	case b.joined:
		b.hop, b.ds, b.between, calls = 1, b.total, b.inner*line, b.inner
	case b.inner == 1:
		b.hop, b.ds, b.between = b.wide, last.dst, line
	default:
		b.hop, b.ds, b.between = b.cols[0].n, b.cols[0].dst, line
	}
	b.startColumns(calls)
}

// startColumns determines the starts of calls for the given number of columns.
func (b *boxes) startColumns(columns int) {
	for j := 0; j < columns; j += b.hop {
		at, i := 0, j
		for _, d := range b.cols {
			at += i % d.n * d.dst
			i /= d.n
		}
		b.starts = append(b.starts, at)
	}
}

// onLines reports whether all columns begin at multiples of a cache line in the result.
func (b *boxes) onLines() bool {
	offLine := func(d dim) bool { return d.dst%line != 0 }
	return !slices.ContainsFunc(b.outer, offLine) && !slices.ContainsFunc(b.cols, offLine)
}

// runBoxes returns boxes of runs along the first of the axes. Runs along cols are adjacent in the operand, so that they are read in
// sequence. A box has wide of these, for each of high steps along rows. It returns nil if there is nothing to gain.
func runBoxes(dims []dim) *boxes {
	b := &boxes{run: dims[0].n, outer: dims[1:]}
	slices.SortFunc(b.outer, func(x, y dim) int { return x.src - y.src })
	if b.run < shortestRun || len(b.outer) < 2 || b.outer[0].dst == b.run {
		return nil
	}
	b.cols, b.rows, b.outer = b.outer[:1], b.outer[1:2], b.outer[2:]
	b.wide = min(b.cols[0].n, max(1, runElements/b.run))
	b.high = min(b.rows[0].n, max(1, runElements/(b.run*b.wide)))
	b.across, b.down = (b.rows[0].n+b.high-1)/b.high, (b.cols[0].n+b.wide-1)/b.wide
	b.count, b.inner, b.total = b.across*b.down, 1, b.rows[0].n
	for _, d := range b.outer {
		b.count *= d.n
	}
	return b
}

// copyRuns copies a box of runs.
func (b *boxes) copyRuns(dst, src *uint32, first, cols int, past bool) {
	r, c := &b.rows[0], &b.cols[0]
	for i := first; i < min(first+b.high, r.n); i++ {
		to, from := element(dst, i*r.dst), element(src, i*r.src)
		copyRows(unsafe.Pointer(to), unsafe.Pointer(from), 4*b.run, 4*c.dst, 4*c.src, cols, past)
	}
}

// copy copies box i. With past, it uses non-temporal stores, and the caller calls [simd.StreamFence].
func (b *boxes) copy(dst, src *uint32, i int, past bool) {
	if !simd.HasTurn() {
		return // the linker removes the rest
	}
	first, cols, from, to := b.place(i)
	if b.size > 0 {
		dst, src := unsafe.Add(unsafe.Pointer(dst), to*b.size), unsafe.Add(unsafe.Pointer(src), from*b.size)
		if b.planes > 0 {
			b.copyPlanes(dst, src, first, cols)
		} else {
			b.copyLines(dst, src, first, cols, past)
		}
		return
	}
	dst, src = element(dst, to), element(src, from)
	switch {
	case b.run > 0:
		b.copyRuns(dst, src, first, cols, past)
	case b.narrow:
		b.copyNarrow(dst, src, first)
	case b.direct:
		b.copyStrips(dst, src, first, cols)
	default:
		b.copyStaged(element(dst, first), src, first, cols, past)
	}
}

// place returns the first row of box i and the number of its columns, and the places of its first column in the operand
// and in the result.
func (b *boxes) place(i int) (first, cols, from, to int) {
	first = i % b.across * b.high
	i /= b.across
	k := i % b.down * b.wide
	i /= b.down
	last := b.cols[len(b.cols)-1]
	cols = min(b.wide, last.n-k) * b.inner
	if b.direct && k/b.wide == b.down-1 {
		cols = (last.n - k) * b.inner
	}
	from, to = k*last.src, k*last.dst
	for _, o := range b.outer {
		from, to = from+i%o.n*o.src, to+i%o.n*o.dst
		i /= o.n
	}
	return first, cols, from, to
}

// copyStaged transposes columns to a buffer and writes the buffer to the result.
func (b *boxes) copyStaged(dst, src *uint32, first, cols int, past bool) {
	w := boxWriter{boxes: b, stage: stages.Get().(*stage), past: past, first: first}
	w.have = min(b.high, b.total-first)
	if w.skew = (past || b.joinRows) && !b.joined && !(b.lines && onLine(dst)); w.skew {
		w.have = min(b.high+line, b.total-first)
	}
	b.locate(w.at[:w.have], first)
	groups := (w.have + line - 1) / line
	if b.joinRows {
		for i := w.have; i < line*groups; i++ {
			w.at[i] = w.at[w.have-1]
		}
	} else {
		for i := w.have; i < line; i++ {
			w.at[i] = w.at[0]
		}
		copy(w.at[line*(groups-1):], w.at[max(w.have-line, 0):max(w.have, line)]) // the last groups overlap
	}
	for j := 0; j < cols; j += w.cols {
		if w.cols = cols - j; b.strip > 0 && w.cols >= 2*b.strip {
			w.cols = b.strip
		}
		w.gap = line * (w.cols + turnGap)
		turn := simd.TurnRows
		if b.joinRows {
			turn = simd.TurnGroups
		}
		turn(w.group(0), element(src, j), w.at[:line*groups], w.gap, b.ahead, w.cols)
		if b.strip > 0 {
			w.writeStrip(dst, j)
		} else {
			w.write(dst)
		}
	}
	stages.Put(w.stage)
}

// onLine reports whether p is the address of a cache line.
func onLine(p *uint32) bool { return uintptr(unsafe.Pointer(p))%(4*line) == 0 }

// locate sets at to the distances in bytes of rows from first on in the operand.
func (b *boxes) locate(at []int, first int) {
	var digits [op.MaxRank]int
	off, size := 0, 4
	if b.size > 0 {
		size = b.size
	}
	for k, d := range b.rows {
		digits[k] = first % d.n
		first /= d.n
		off += digits[k] * d.src
	}
	for i := range at {
		at[i] = size * off
		for k := range b.rows {
			d := &b.rows[k]
			digits[k]++
			off += d.src
			if digits[k] < d.n {
				break
			}
			digits[k] = 0
			off -= d.n * d.src
		}
	}
}

// A stage is the buffer for a box: groups of 16 rows, transposed. Unless joinRows is set, the last two groups overlap if there are more
// than 16 rows. JoinRows also reads the group after the last one.
type stage struct {
	groups [line + boxMost + boxTall*turnGap + 2*line*(boxCols+turnGap)]uint32
	at     [boxTall + line]int
	row    [3*line + boxMost/boxSide]uint32
}

var stages = sync.Pool{New: func() any { return new(stage) }}

// A boxWriter copies a box.
type boxWriter struct {
	*boxes
	*stage
	first, have int // the first row, and number of rows in the buffer
	cols        int // in the buffer
	gap         int // distance between groups in the buffer
	past        bool
	// Each box writes from the first whole cache line of a column on, which may differ between columns, to the first line of the next box.
	skew bool
}

// group returns the address of group k of the rows.
func (w *boxWriter) group(k int) *uint32 { return element(firstLine(w.groups[:]), k*w.gap) }

// firstLine returns the first address of a cache line in x.
func firstLine(x []uint32) *uint32 { return &x[-uintptr(unsafe.Pointer(&x[0]))/4%line] }

// writeStrip writes the buffer to columns from j on of the result.
func (w *boxWriter) writeStrip(dst *uint32, j int) {
	for x, end := w.group(0), j+w.cols; j < end; {
		n := min(end-j, w.hop-j%w.hop)
		w.writeColumns(element(dst, w.starts[j/w.hop]+j%w.hop*w.ds), x, n)
		j, x = j+n, element(x, n*line)
	}
}

// write writes the buffer to the result.
func (w *boxWriter) write(dst *uint32) {
	n := w.cols / w.inner
	for k, at := range w.starts {
		if !w.joined {
			if n = min(w.hop, w.cols-k*w.hop); n <= 0 {
				break
			}
		}
		w.writeColumns(element(dst, at), element(w.group(0), k*w.hop*line), n)
	}
}

// writeColumns writes n columns from x on to dst.
func (w *boxWriter) writeColumns(dst, x *uint32, n int) {
	switch {
	case w.joinRows && (!w.joined || !w.past):
		high := w.have
		if w.skew && w.first+w.high < w.total {
			high = w.high
		}
		simd.JoinRows(dst, x, w.ds, w.between, w.gap, w.first == 0 || !w.skew, high, w.have, n, w.past)
	case w.joinRows:
		row := w.joinedRow(n)
		simd.JoinRows(&row[0], x, w.have, w.between, w.gap, true, w.have, w.have, n, false)
		simd.CopyPast(unsafe.Slice(dst, len(row)), row)
	case w.skew && w.first > 0 && w.have == w.high+line: // all columns have the same number of lines
		simd.JoinLinesSkew(dst, x, w.ds, w.between, w.gap, w.high/line, n, firstLine(w.row[:]))
	case w.have >= line && !w.past:
		w.join(simd.JoinLines, dst, x, n)
	case !w.skew && w.have%line == 0 && w.ds%line == 0 && onLine(dst):
		w.join(simd.JoinLinesPast, dst, x, n)
	case w.joined:
		row := w.row[:n*w.have]
		w.join(simd.JoinLines, &row[0], x, n)
		simd.CopyPast(unsafe.Slice(dst, len(row)), row)
	default:
		for j := range n {
			w.column(element(dst, j*w.ds), element(x, j*w.between))
		}
	}
}

// joinedRow returns a buffer for n columns.
func (w *boxWriter) joinedRow(n int) []uint32 { return unsafe.Slice(firstLine(w.row[:]), n*w.have) }

// join writes n columns from x on to dst. They have at least 16 rows.
func (w *boxWriter) join(f func(dst, x *uint32, ds, xs, ss, lines, count int), dst, x *uint32, n int) {
	f(dst, x, w.ds, w.between, w.gap, w.have/line, n)
	if w.have%line > 0 {
		f(element(dst, w.have-line), element(x, w.have/line*w.gap), w.ds, w.between, w.gap, 1, n)
	}
}

// column writes one column from x on to dst.
func (w *boxWriter) column(dst, x *uint32) {
	from, to := 0, w.have
	if w.skew {
		lead := int(-uintptr(unsafe.Pointer(dst)) / 4 % line)
		if w.first > 0 {
			from = lead
		}
		if w.first+w.high < w.total {
			to = min(w.high+lead, w.have)
		}
	}
	if from >= to {
		return
	}
	rows, row := w.have, w.row[:max(w.have, line)]
	simd.JoinLines(&row[0], x, 0, 0, w.gap, max(1, rows/line), 1)
	if rows > line && rows%line > 0 {
		simd.JoinLines(&row[rows-line], element(x, rows/line*w.gap), 0, 0, 0, 1, 1)
	}
	if row, column := row[from:to], unsafe.Slice(element(dst, from), to-from); w.past {
		simd.CopyPast(column, row)
	} else {
		copy(column, row)
	}
}
