package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
)

type (
	// int8HalfScalesFunc converts the binary16 at the beginning of blocks of int8Width rows. The blocks of a row are step bytes apart. It writes those
	// of the first block of all rows first.
	int8HalfScalesFunc func(dst *float32, src *byte, row, step, groups int)
)

// An int8TurnedCall has the operands of a kernel that adds the dot products of up to int8Width rounded rows with int8Width rows of
// levels to a part of c.
type int8TurnedCall struct {
	c          *float32
	cRow, rows int // the bytes between the rows of c, and their number
	// Rows of levels are row bytes apart, and groups step bytes.
	levels    *byte
	row, step int
	// biases is nil for formats without biases. Rows of scales and of biases are scalesRow bytes apart, and groups scalesStep bytes.
	scales, biases        *float32
	scalesRow, scalesStep int
	// The integers, scales and sums of int8Width rounded rows: see turn.
	x         *int8
	xs, xsums *float32
	group     int // the number of elements of a group: 16 or 32
	groups    int
	// For each group, about as many bytes as it has are prefetched: ahead bytes after src, and aheadStep bytes later for the next group.
	src              *byte
	ahead, aheadStep int
}

// int8Turned are the kernels that multiply int8Width rows of levels by int8Width rounded rows. A tile has rows of
// levels in the order of their elements, so that blocks are not interleaved. That takes longer than the products if there
// are few rounded rows.
type int8Turned struct {
	run    func(*int8TurnedCall)
	halves int8HalfScalesFunc
	rows   int // the least number of rounded rows for which the kernel is the fastest
}

// turnedBlocks returns the number of blocks of int8Width rounded rows.
func (p *Int8Product) turnedBlocks() int { return (p.M + int8Width - 1) / int8Width }

// turn stores integers of row r, from element at on, with their scales and sums. Four integers of all rows of a
// block of int8Width rows are adjacent, and so are the scales and the sums of a group.
func (p *Int8Product) turn(r, at int, q []int8, scales, sums []float32) {
	block, lane := r/int8Width, r%int8Width
	words := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(p.q))), len(p.q)/4)[(block*p.K+at)/4*int8Width:]
	from := unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(q))), len(q)/4)
	for i, v := range from {
		words[i*int8Width+lane] = v
	}
	p.turnFactors(p.scales[(block*p.K+at)/op.Int8Group*int8Width:], r, scales)
	if p.format.Biased() {
		p.turnFactors(p.sums[(block*p.K+at)/p.group*int8Width:], r, sums)
	}
}

// turnFactors stores the factors of groups of row r. After the last row it stores zeros for the other rows of its block, because
// arithmetic with subnormal numbers would be slow.
func (p *Int8Product) turnFactors(dst []float32, r int, src []float32) {
	lane, end := r%int8Width, r%int8Width+1
	if r == p.M-1 {
		end = int8Width
	}
	for i, v := range src {
		to := dst[i*int8Width:][:int8Width]
		clear(to[lane:end])
		to[lane] = v
	}
}

// turnedColumns adds the products of columns j to j+width-1 to c.
func (p *Int8Product) turnedColumns(l *int8Lane, c []float32, w []byte, j, width int) {
	e, size := p.format.Elements(), p.format.Bytes()
	row := p.K / e * size
	t := int8TurnedCall{group: p.group, scales: &l.scales[0], aheadStep: int8Width * size * p.group / e}
	for at := 0; at < p.K; at += l.depth {
		n := min(l.depth, p.K-at)
		src := w[j*row+at/e*size:]
		t.src, t.ahead = (*byte)(noescape(unsafe.Pointer(&src[0]))), int8Width*row+(int8Width-1)*at/e*size
		t.groups = n / p.group
		if p.format == block.Q8_0 && width == int8Width {
			p.turned.halves(t.scales, t.src, row, size, t.groups)
			t.levels, t.row, t.step = (*byte)(noescape(unsafe.Pointer(&src[2]))), row, size
			t.scalesRow, t.scalesStep = 4, 4*int8Width
		} else {
			p.apart(l, w, j, width, at, n)
			if width < int8Width {
				clear(l.levels[width*n : int8Width*n])
				clear(l.scales[width*n/block.LevelGroup : int8Width*n/block.LevelGroup])
				clear(l.biases[width*n/block.LevelGroup : int8Width*n/block.LevelGroup])
			}
			t.levels, t.row, t.step = (*byte)(noescape(unsafe.Pointer(&l.levels[0]))), n, p.group
			t.scalesRow, t.scalesStep = 4*n/block.LevelGroup, 4*p.group/block.LevelGroup
		}
		p.turnedTiles(l, &t, c, j, width, at)
	}
}

// turnedTiles multiplies rows of levels, from element at on, by all rounded rows.
func (p *Int8Product) turnedTiles(l *int8Lane, t *int8TurnedCall, c []float32, j, width, at int) {
	run := func(t *int8TurnedCall) { p.turned.run((*int8TurnedCall)(noescape(unsafe.Pointer(t)))) }
	for r := 0; r < p.M; r += int8Width {
		t.rows = min(int8Width, p.M-r)
		first := r*p.K + at*int8Width
		t.x, t.xs = &p.q[first], &p.scales[first/op.Int8Group]
		if p.format.Biased() {
			t.biases, t.xsums = &l.biases[0], &p.sums[first/p.group]
		}
		if width == int8Width {
			t.c, t.cRow = hide(c[r*p.N+j:]), 4*p.N
			run(t)
			continue
		}
		clear(l.edge)
		t.c, t.cRow = &l.edge[0], 4*int8Width
		run(t)
		for i := range t.rows {
			for k, v := range l.edge[i*int8Width:][:width] {
				c[(r+i)*p.N+j+k] += v
			}
		}
	}
}
