package cpu

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/simd"
)

// stripLimits are the limits of boxes that are transposed directly to the result, in elements, measured on 2 cores
// of an AMD EPYC with AVX2 and of an Intel Xeon with AVX-512, 2026-11-29 (docs/measurements/cpu.md).
var stripLimits = struct{ array, tiles, tabled, columns, narrow, tall, high int }{
	array:   2 << 20,  // of an array, at most
	tiles:   16,       // arrays up to so many times the second cache: tiles of rows at the same distance are faster than strips without AVX-512
	tabled:  16 << 10, // rows along several axes up to which their offsets are kept
	columns: 4,        // adjacent columns, at least
	narrow:  8,        // columns up to which all of them are copied together
	tall:    1 << 10,  // rows of such columns, at least
	high:    4 << 10,  // rows of a box of such columns
}

// The sizes and limits of boxes that are transposed directly to the result, in elements.
const (
	stripRows = 256 // rows of a box
	stripCols = 512 // largest number of columns of a box

)

// narrowed changes the boxes to boxes of all columns if these are few, or returns false.
func (b *boxes) narrowed() bool {
	if len(b.rows) > 1 || b.total < stripLimits.tall || b.cols[0].n > stripLimits.narrow {
		return false
	}
	b.high, b.inner, b.wide, b.down = stripLimits.high, 1, b.cols[0].n, 1
	b.across = (b.total + b.high - 1) / b.high
	b.narrow = true
	b.countBoxes()
	return true
}

// countBoxes determines the number of boxes from across and down.
func (b *boxes) countBoxes() {
	b.count = b.across * b.down
	for _, d := range b.outer {
		b.count *= d.n
	}
}

// stripped changes the boxes to boxes that are transposed by strips, or returns false if their sides are too short. n is the number of
// elements of the array.
func (b *boxes) stripped(n int) bool {
	sharing := 4*b.rows[0].src%conflict == 0 || 4*b.cols[0].dst%conflict == 0 // sets of the first cache
	if b.total < simd.StripRows || b.cols[0].n < stripLimits.columns || sharing {
		return false
	}
	b.widen(min(stripCols, max(4*line, n/(boxRows*boxParts))))
	b.extend(boxRows)
	last := b.cols[len(b.cols)-1]
	b.high = b.total
	if k := (b.total + stripRows/2) / stripRows; k > 1 {
		b.high = ((b.total+k-1)/k + line - 1) &^ (line - 1)
	}
	least := (line + b.inner - 1) / b.inner
	if b.inner == 1 {
		b.wide, least = min(last.n, (b.wide+line-1)&^(line-1)), stripLimits.columns
	}
	least = min(least, last.n)
	// The last box has the rest if that is too small for a box.
	b.across, b.down = (b.total-simd.StripRows)/b.high+1, (last.n-least)/b.wide+1
	b.countBoxes()
	b.direct, b.far = true, 8*n > memory.CPUCaches().L2
	b.tiled = len(b.rows) == 1 && !simd.HasJoinRows() && n <= stripLimits.tiles*memory.CPUCaches().L2/8
	most := min(last.n, b.wide+least-1) * b.inner // columns of a box
	b.hop, b.ds = b.cols[0].n, b.cols[0].dst
	switch {
	case b.inner == 1:
		b.starts = []int{0}
	case b.hop%line != 0 && most >= line && !b.tiled:
		b.hop = 1
		b.startColumns(most)
		for i := range b.starts {
			b.starts[i] *= 4
		}
	default:
		b.startColumns(most)
	}
	b.locateAll()
	return true
}

// A stripTable has the offsets of the rows of a box.
type stripTable [2*boxTall + simd.StripAhead]int

var stripTables = sync.Pool{New: func() any { return new(stripTable) }}

// locateStrips sets the table to the offsets of rows from first on, and of those that are prefetched after them: the first rows of the
// next strip.
func (b *boxes) locateStrips(t *stripTable, first, rows int) []int {
	at := t[:rows+simd.StripAhead]
	b.locate(at[:rows], first)
	for i := range simd.StripAhead {
		at[rows+i] = at[i] + 4*line
	}
	return at
}

// locateAll determines the tables of all boxes if these are small. With one axis of rows the tables are relative to the first row of a box,
// and all but the last one are the same.
func (b *boxes) locateAll() {
	if b.tiled || len(b.rows) > 1 && b.total > stripLimits.tabled {
		return
	}
	b.tables = make([][]int, b.across)
	for i := range b.tables {
		first := i * b.high
		switch rows := b.rowsOf(first); {
		case len(b.rows) > 1:
			b.tables[i] = slices.Clone(b.locateStrips(new(stripTable), first, rows))
		case i == 0 || rows != b.high:
			b.tables[i] = slices.Clone(b.locateStrips(new(stripTable), 0, rows))
		default:
			b.tables[i] = b.tables[0]
		}
	}
}

// rowsOf returns the number of rows of the box whose first row is row first.
func (b *boxes) rowsOf(first int) int {
	if first/b.high == b.across-1 {
		return b.total - first
	}
	return b.high
}

// copyStrips copies columns of the box whose first row is row first.
func (b *boxes) copyStrips(dst, src *uint32, first, cols int) {
	if len(b.rows) == 1 {
		src = element(src, first*b.rows[0].src)
	}
	if b.tiled {
		b.copyTiles(element(dst, first), src, b.rowsOf(first), cols)
		return
	}
	var at []int
	if b.tables != nil {
		at = b.tables[first/b.high]
	} else {
		t := stripTables.Get().(*stripTable)
		defer stripTables.Put(t)
		at = b.locateStrips(t, first, b.rowsOf(first))
	}
	dst = element(dst, first)
	switch {
	case b.inner == 1:
		simd.TransposeStrips(dst, src, at, b.ds, cols, b.far)
	case b.hop == 1:
		simd.TransposeColumns(dst, src, at, b.starts[:cols], b.far)
	default:
		for j := 0; j < cols; j += b.hop {
			simd.TransposeStrips(element(dst, b.starts[j/b.hop]), element(src, j), at, b.ds, b.hop, b.far)
		}
	}
}

// copyTiles copies columns of a box with the given number of rows.
func (b *boxes) copyTiles(dst, src *uint32, rows, cols int) {
	n := cols
	if b.inner > 1 {
		n = b.hop
	}
	for k, to := range b.starts {
		if j := k * n; j < cols {
			simd.TransposeTile(address(unsafe.Pointer(element(dst, to))), address(unsafe.Pointer(element(src, j))), b.ds, b.rows[0].src, rows, n)
		}
	}
}

// copyNarrow copies all columns of the box whose first row is row first.
func (b *boxes) copyNarrow(dst, src *uint32, first int) {
	r, c := &b.rows[0], &b.cols[0]
	to, from := element(dst, first), element(src, first*r.src)
	simd.TransposeTile(address(unsafe.Pointer(to)), address(unsafe.Pointer(from)), c.dst, r.src, min(b.high, b.total-first), c.n)
}
