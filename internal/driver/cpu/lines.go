package cpu

import (
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// linesLimits are the limits of copies by whole cache lines, measured on 2 cores of an Intel Xeon with AVX-512, 2026-11-30 (docs/measurements/cpu.md).
var linesLimits = struct{ array, rows, cols, part, parts, tabled int }{
	array:  1 << 10,  // elements of an array, at least
	rows:   16,       // cache lines of a column of a box
	cols:   512,      // bytes of a row of a box
	part:   8 << 10,  // elements of a box of a small array
	parts:  8,        // boxes of an array, if there are enough columns
	tabled: 16 << 10, // rows up to which the tables of all boxes are kept
}

// linesMatrices are the limits of matrices of elements of 1 to 4 bytes that are copied by whole cache lines, measured as linesLimits. Tiles of AVX2
// are as fast or faster for others. Other arrays than matrices have rows along several axes.
var linesMatrices = [5]struct {
	narrow      int // columns below which the next limits do not apply
	rows        int // rows, at least
	elements    int // elements, at least
	whole       int // columns, at most, if they begin with cache lines
	batch       int // rows of each of several matrices, at least
	most, wide  int // rows, at most, if there are fewer columns than wide
	tall, large int // rows along the first axis from which on tiles are faster for other arrays, from so many elements on; 0 if they are not
}{
	1: {narrow: 24, rows: 192, batch: 192, most: 640, wide: math.MaxInt, whole: 24, elements: 30_000, tall: 60, large: 120_000},
	2: {narrow: 32, rows: 64, batch: 100, most: 704, wide: 128, whole: 100, elements: 10_000},
	4: {narrow: 24, rows: 40, batch: 48, most: 384, wide: 128, whole: 24, elements: 4 << 10},
}

// linesOf returns boxes of elements of size bytes that are copied by whole cache lines, or nil.
func linesOf(l *op.Layout, size int) *boxes {
	if n := l.Size(); !simd.HasLines(size) || n < linesLimits.array || size == 4 && n >= boxLimits.array || l.Windowed() {
		return nil
	}
	dims, first := boxDims(l)
	if first <= 0 {
		return nil
	}
	b := &boxes{rows: dims[:1:1], total: dims[0].n, cols: dims[first : first+1 : first+1], inner: 1}
	b.outer = append(dims[1:first:first], dims[first+1:]...)
	if !b.lined(l.Size(), size) {
		return nil
	}
	return b
}

// lined changes the boxes to boxes of n elements of size bytes that are copied by whole cache lines, or returns false if their sides are too short.
func (b *boxes) lined(n, size int) bool {
	least, group := 16/size, 4*line/size // columns, and rows
	unit := min(group, line)             // columns: threads share few cache lines of the result if boxes of narrow arrays are narrow too
	b.extend(2 * group)
	if b.total < group || size == 4 && b.total < 2*group || b.tilesFaster(n, size) {
		return false
	}
	tall := linesLimits.rows * group
	parts := min(linesLimits.parts, 1+n/linesLimits.part)
	b.widen(min(linesLimits.cols/size, max(unit, n/(min(b.total, tall)*parts))))
	if b.inner*b.wide < least {
		return false
	}
	b.extend(tall / 2)
	b.high = b.total
	if k := (b.total + tall/2) / tall; k > 1 {
		b.high = ((b.total+k-1)/k + group - 1) / group * group
	}
	last := b.cols[len(b.cols)-1]
	least = (least + b.inner - 1) / b.inner
	if b.inner == 1 {
		b.wide = min(last.n, (b.wide+unit-1)/unit*unit)
	}
	// The last box has the rest if that is too small for a box.
	b.across, b.down = (b.total-group)/b.high+1, (last.n-least)/b.wide+1
	b.countBoxes()
	b.direct, b.size, b.far = true, size, 2*n*size > memory.CPUCaches().L2
	b.hop = 1
	b.startColumns(min(last.n, b.wide+least-1) * b.inner)
	for i := range b.starts {
		b.starts[i] *= size
	}
	b.locateAllLines()
	return true
}

// tilesFaster reports whether tiles of AVX2 are faster than whole cache lines for n elements of size bytes.
func (b *boxes) tilesFaster(n, size int) bool {
	if size >= len(linesMatrices) {
		return false
	}
	m, rows, cols, apart := &linesMatrices[size], b.total, b.cols[0].n, size*b.rows[0].src
	longer := slices.ContainsFunc(b.outer, func(d dim) bool { return d.dst == rows }) // extend can add an axis to the rows
	switch {
	case len(b.rows) > 1 || longer && size == 1:
		return m.tall > 0 && b.rows[0].n >= m.tall && n >= m.large
	case !longer && len(b.outer) > 0 && rows < m.batch, rows > m.most && cols < m.wide: // boxes are small, or threads share columns
		return true
	case cols < m.narrow:
		return false
	case rows < m.rows, rows*cols < m.elements, rows*size%(4*line) == 0 && cols >= m.whole: // tiles store whole cache lines too
		return true
	}
	return size < 4 && apart%(conflict/16) == 0 // rows share sets of the first cache
}

// locateAllLines determines the tables of all boxes if these are small, as locateAll does.
func (b *boxes) locateAllLines() {
	if len(b.rows) == 1 || b.total <= linesLimits.tabled {
		b.tables = make([][]int, b.across)
		for i := range b.tables {
			first := i * b.high
			switch rows := b.rowsOf(first); {
			case len(b.rows) > 1:
				b.tables[i] = b.locateLines(make([]int, rows+simd.LinesAhead), first)
			case i == 0 || rows != b.high:
				b.tables[i] = b.locateLines(make([]int, rows+simd.LinesAhead), 0)
			default:
				b.tables[i] = b.tables[0]
			}
		}
	}
}

// locateLines sets the table to the offsets of rows from first on, and of those that are prefetched after them: the first rows of the
// next columns.
func (b *boxes) locateLines(at []int, first int) []int {
	rows := len(at) - simd.LinesAhead
	b.locate(at[:rows], first)
	for i := range simd.LinesAhead {
		at[rows+i] = at[i%rows] + 4*line
	}
	return at
}

// A linesStage is the memory for boxes that are copied by whole cache lines.
type linesStage struct {
	memory simd.LinesMemory
	table  []int
}

var linesStages = sync.Pool{New: func() any { return new(linesStage) }}

// copyLines copies columns of the box whose first row is row first.
func (b *boxes) copyLines(dst, src unsafe.Pointer, first, cols int, past bool) {
	if len(b.rows) == 1 {
		src = unsafe.Add(src, first*b.rows[0].src*b.size)
	}
	dst = unsafe.Add(dst, first*b.size)
	if b.tables != nil && !past {
		simd.TransposeLines(dst, src, b.size, b.tables[first/b.high], b.starts[:cols], nil, b.far, false)
		return
	}
	s := linesStages.Get().(*linesStage)
	var at []int
	if b.tables != nil {
		at = b.tables[first/b.high]
	} else {
		need := b.rowsOf(first) + simd.LinesAhead
		if cap(s.table) < need {
			s.table = make([]int, need)
		}
		at = b.locateLines(s.table[:need], first)
	}
	simd.TransposeLines(dst, src, b.size, at, b.starts[:cols], &s.memory, b.far, past)
	linesStages.Put(s)
}
