package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
)

// Swapped products. The first operand of a product of tiles is sixteen rows of blocks, and the second one rounded rows, which are
// interleaved once. The levels of blocks stay in the order of their elements: interleaving them takes longer than the products if
// there are few rounded rows. The sums of sixteen lanes of rounded rows are
// computed at once, unit by unit. If there are more than eight rows, each has a lane, and a unit is a group. Fewer rows have two or
// four lanes each, and a unit is two or four groups, which are multiplied in different lanes: the other integers of
// each lane are zeros.

// swappedUnit is the number of elements of a unit for few rows.
const swappedUnit = 64

// An int8SwappedCall has the operands of a kernel that adds the dot products of some rounded rows with blocks times int8Width rows
// of levels to a part of c.
type int8SwappedCall struct {
	c          *float32
	cRow, rows int // the bytes between the rows of c, and their number
	levels     *byte
	row, step  int // the bytes between rows of levels, and between units
	// The factors of the levels: for few rows one for each 16 levels, otherwise one for each unit, at any distance. biases is nil for formats
	// without biases. Rows are scalesRow bytes apart, units scalesStep, and the first of each int8Width rows scalesBlock.
	scales, biases                     *float32
	scalesRow, scalesStep, scalesBlock int
	// The integers, scales and sums of rounded rows: see interleave.
	x           *int8
	xs, xsums   *float32
	group, unit int // the numbers of elements of a group (16 or 32) and of a unit
	units       int
	blocks      int
	// For each unit, some bytes are prefetched: ahead bytes after src, and aheadStep bytes later for the next unit.
	src              *byte
	ahead, aheadStep int
}

// int8Swapped are the kernels of swapped products.
type int8Swapped struct {
	many, few func(*int8SwappedCall)
	// halves converts the binary16 at the beginning of blocks of int8Width rows. The blocks of a row are step bytes apart. It writes those of
	// the first block of all rows first.
	halves func(dst *float32, src *byte, row, step, blocks int)
}

// swappedMin and swappedMin8 are the least numbers of rows for swapped kernels, swappedMin8 with blocks of Q8_0, which are not decoded. Fewer
// rows are multiplied one after the other by encoded blocks.
const (
	swappedMin  = 5
	swappedMin8 = 3
)

// swappedMax is the largest number of rows for formats whose groups have 32 elements. The other tiles of AMX, for which blocks are interleaved once for all
// rows, are faster for more rows.
const swappedMax = 64

// swappedFew is the largest number of rows that have several lanes.
const swappedFew = 8

// unit returns the number of elements of a unit, or 0 if other kernels are faster. The levels of Q8_0 are read from the blocks,
// where groups are not adjacent.
func (t *int8Swapped) unit(f block.Format, m, k int) int {
	switch {
	case t == nil || m < swappedMin8 || m < swappedMin && f != block.Q8_0 || m > swappedMax && f.Group()%op.Int8Group == 0:
		return 0
	case m <= swappedFew && k%swappedUnit == 0 && f != block.Q8_0:
		return swappedUnit
	}
	return min(f.Group(), op.Int8Group)
}

// swappedRows returns the number of rounded rows of a call.
func (p *Int8Product) swappedRows() int { return int8Width * p.group / p.unit }

// RowUnit returns the number of rows, from a multiple of it on, whose rounded forms are in the same lines of the cache. One goroutine should round them.
func (p *Int8Product) RowUnit() int {
	if p.swapped == nil {
		return 1
	}
	return p.swappedRows()
}

// swappedCalls returns the number of calls for all rounded rows.
func (p *Int8Product) swappedCalls() int { return (p.M + p.swappedRows() - 1) / p.swappedRows() }

// swappedLane returns the lane of a row and of a group of a unit. Four adjacent lanes of few rows are multiplied by the factors of
// four times 16 levels.
func (p *Int8Product) swappedLane(row, group int) int {
	switch {
	case p.unit == p.group:
		return row
	case p.group == block.LevelGroup:
		return 4*row + group
	}
	return 4*(row/2) + 2*group + row%2
}

// interleave stores integers of row r, from element at on, with their scales and sums. Four integers of all lanes are adjacent, and so
// are the scales and the sums of all lanes.
func (p *Int8Product) interleave(r, at int, q []int8, scales, sums []float32) {
	b, row := r/p.swappedRows(), r%p.swappedRows()
	groups := p.unit / p.group
	words := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(p.q))), len(p.q)/4)[(b*p.K+at)/4*int8Width:]
	from := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(q))), len(q)/4)
	for g := range groups {
		lane := p.swappedLane(row, g)
		for i := range len(from) / (p.group / 4) {
			to := words[i*p.group/4*int8Width:]
			if i%groups != g {
				for k := range p.group / 4 {
					to[k*int8Width+lane] = 0
				}
				continue
			}
			for k, v := range from[i*p.group/4:][:p.group/4] {
				to[k*int8Width+lane] = v
			}
		}
	}
	first := (b*p.K + at) / p.unit * int8Width
	p.turnFactors(p.scales[first:], r, op.Int8Group/p.group, scales)
	if p.format.Biased() {
		p.turnFactors(p.sums[first:], r, 1, sums)
	}
}

// turnFactors stores the factors of row r, each for the given number of groups. For the last row it stores zeros for the rows of its call that do
// not exist, because arithmetic with subnormal numbers would be slow.
func (p *Int8Product) turnFactors(dst []float32, r, each int, src []float32) {
	groups, row := p.unit/p.group, r%p.swappedRows()
	for i := range len(src) * each {
		to := dst[i/groups*int8Width:][:int8Width]
		to[p.swappedLane(row, i%groups)] = src[i/each]
		if r == p.M-1 {
			for k := row + 1; k < p.swappedRows(); k++ {
				to[p.swappedLane(k, i%groups)] = 0
			}
		}
	}
}

// swappedSpan is the largest number of columns of a call. A call begins and ends slowly.
const swappedSpan = 4 * int8Width

// swappedColumns adds the products of columns j to j+width-1 to c. width is at most int8Width, or a multiple of it up to swappedSpan.
func (p *Int8Product) swappedColumns(l *int8Lane, c []float32, w []byte, j, width int) {
	e, size := p.format.Elements(), p.format.Bytes()
	row := p.K / e * size
	t := int8SwappedCall{group: p.group, unit: p.unit, scales: &l.scales[0], aheadStep: int8Width * size * p.unit / e,
		blocks: (width + int8Width - 1) / int8Width}
	for at := 0; at < p.K; at += l.depth {
		n := min(l.depth, p.K-at)
		src := w[j*row+at/e*size:]
		t.src, t.ahead = (*byte)(noescape(unsafe.Pointer(&src[0]))), width*row+(width-1)*at/e*size
		t.units = n / p.unit
		if p.format == block.Q8_0 && width >= int8Width {
			for b := range t.blocks {
				p.swapped.halves(&l.scales[b*int8Width*t.units], (*byte)(noescape(unsafe.Pointer(&src[b*int8Width*row]))), row, size, t.units)
			}
			t.levels, t.row, t.step = (*byte)(noescape(unsafe.Pointer(&src[2]))), row, size
			t.scalesRow, t.scalesStep, t.scalesBlock = 4, 4*int8Width, 4*int8Width*t.units
		} else {
			p.apart(l, w, j, width, at, n)
			if width < int8Width {
				clear(l.levels[width*n : int8Width*n])
				clear(l.scales[width*n/block.LevelGroup : int8Width*n/block.LevelGroup])
				clear(l.biases[width*n/block.LevelGroup : int8Width*n/block.LevelGroup])
			}
			t.levels, t.row, t.step = (*byte)(noescape(unsafe.Pointer(&l.levels[0]))), n, p.unit
			t.scalesRow, t.scalesStep = 4*n/block.LevelGroup, 4*p.unit/block.LevelGroup
			t.scalesBlock = int8Width * t.scalesRow
		}
		p.swappedTiles(l, &t, c, j, width, at)
	}
}

// swappedTiles multiplies rows of levels, from element at on, by all rounded rows.
func (p *Int8Product) swappedTiles(l *int8Lane, t *int8SwappedCall, c []float32, j, width, at int) {
	run := p.swapped.many
	if p.unit > p.group {
		run = p.swapped.few
	}
	for b := range p.swappedCalls() {
		r := b * p.swappedRows()
		t.rows = min(p.swappedRows(), p.M-r)
		first := (b*p.K + at) * int8Width
		t.x, t.xs = &p.q[first], &p.scales[first/p.unit]
		if p.format.Biased() {
			t.biases, t.xsums = &l.biases[0], &p.sums[first/p.unit]
		}
		to, apart := c[r*p.N+j:], p.N
		if width < int8Width {
			clear(l.edge)
			to, apart = l.edge, int8Width
		}
		t.c, t.cRow = hide(to), 4*apart
		run((*int8SwappedCall)(noescape(unsafe.Pointer(t))))
		if width < int8Width {
			for i := range t.rows {
				for k, v := range l.edge[i*int8Width:][:width] {
					c[(r+i)*p.N+j+k] += v
				}
			}
		}
	}
}
