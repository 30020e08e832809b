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
	// interleave writes words of 16 lanes, those of the same index adjacent. Their number is a multiple of 8.
	interleave func(dst, src *int32, lanes *int8Lanes, words int)
}

// swappedMin and swappedMin8 are the least numbers of rows for swapped kernels, swappedMin8 with blocks of Q8_0, which are not decoded. Fewer
// rows are multiplied one after the other by encoded blocks.
const (
	swappedMin  = 4
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

// RowUnit returns the number of rows, from a multiple of it on, that one call of Round must round, because their rounded forms are interleaved.
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

// swappedRound is the number of elements of each row that are rounded before they are interleaved.
const swappedRound = 256

// roundSwapped rounds rows first to end-1, which are the rows of a call.
func (p *Int8Product) roundSwapped(a []float32, first, end int) {
	var (
		words  [int8Width][swappedRound / 4]int32
		quads  [swappedRound / 4]int32
		scales [swappedRound / op.Int8Group]float32
		sums   [swappedRound / block.LevelGroup]float32
	)
	b := first / p.swappedRows()
	lanes := p.laneWords(end-first, int(unsafe.Sizeof(words[0])))
	for at := 0; at < p.K; at += swappedRound {
		n := min(swappedRound, p.K-at)
		to, factors := (b*p.K+at)/p.unit*int8Width, n/p.unit*int8Width
		if end-first < p.swappedRows() {
			// Arithmetic with subnormal numbers in unused lanes would be slow.
			clear(p.scales[to:][:factors])
			clear(p.sums[to:][:factors])
		}
		for r := first; r < end; r++ {
			q := unsafe.Slice((*int8)(unsafe.Pointer(&words[r-first])), n)
			p.roundPart(q, scales[:n/op.Int8Group], quads[:n/4], 1, a[r*p.K+at:][:n])
			p.turnFactors(p.scales[to:], r-first, op.Int8Group/p.group, scales[:n/op.Int8Group])
			if p.format.Biased() {
				p.groupSums(sums[:n/p.group], nil, scales[:n/op.Int8Group], quads[:n/4], 1)
				p.turnFactors(p.sums[to:], r-first, 1, sums[:n/p.group])
			}
		}
		q := p.q[(b*p.K+at)*int8Width:][:n*int8Width]
		p.swapped.interleave((*int32)(noescape(unsafe.Pointer(&q[0]))), (*int32)(noescape(unsafe.Pointer(&words))), (*int8Lanes)(noescape(unsafe.Pointer(&lanes))), n/4)
	}
}

// int8Lanes says what is interleaved: for each lane the distance in bytes to the first of the source, and the words of each 16 that are not zero.
type int8Lanes struct {
	at    [int8Width]int
	masks [int8Width]uint64
}

// laneWords returns the lanes of a number of rows, whose sources are apart bytes from each other.
func (p *Int8Product) laneWords(rows, apart int) (l int8Lanes) {
	groups, words := p.unit/p.group, p.group/4
	for r := range rows {
		for g := range groups {
			lane := p.swappedLane(r, g)
			l.at[lane] = r * apart
			for i := range int8Width / words {
				if i%groups == g {
					l.masks[lane] |= (1<<words - 1) << (i * words)
				}
			}
			if words >= int8Width || groups == 1 {
				l.masks[lane] = 1<<int8Width - 1
			}
		}
	}
	return l
}

// turnFactors stores the factors of a row of a call, each for the given number of groups, which is 1 or 2. Those of all lanes are adjacent.
func (p *Int8Product) turnFactors(dst []float32, row, each int, src []float32) {
	groups, half := p.unit/p.group, each-1
	for g := range groups {
		at := p.swappedLane(row, g)
		for i := g; i < len(src)*each; i += groups {
			dst[at] = src[i>>half]
			at += int8Width
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
