package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
)

type (
	// int8TurnedFunc adds the dot products of up to int8Width rounded rows with int8Width rows of levels to a part of c, whose rows
	// are cRow bytes apart. Rows of levels are row bytes apart, and their groups step bytes. Their scales and biases are scalesRow bytes apart,
	// and those of their groups scalesStep bytes. biases is nil for formats without biases.
	// x, xs and xsums are the integers, scales and sums of int8Width rounded rows: see turn.
	int8TurnedFunc func(c *float32, cRow, rows int, levels *byte, row, step int, scales, biases *float32, scalesRow, scalesStep int, x *int8, xs, xsums *float32, group, groups int)
	// int8HalfScalesFunc converts the binary16 at the beginning of blocks of int8Width rows. The blocks of a row are step bytes apart. It writes those
	// of the first block of all rows first.
	int8HalfScalesFunc func(dst *float32, src *byte, row, step, groups int)
)

// int8Turned are the kernels that multiply int8Width rows of levels by int8Width rounded rows. A tile has rows of
// levels in the order of their elements, so that blocks are not interleaved. That takes longer than the products if there
// are few rounded rows.
type int8Turned struct {
	run    int8TurnedFunc
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
	for at := 0; at < p.K; at += l.depth {
		n := min(l.depth, p.K-at)
		if p.format == block.Q8_0 && width == int8Width {
			size := p.format.Bytes()
			row := p.K / block.Q8_0.Elements() * size
			src := w[j*row+at/block.Q8_0.Elements()*size:]
			p.turned.halves(&l.scales[0], (*byte)(noescape(unsafe.Pointer(&src[0]))), row, size, n/op.Int8Group)
			p.turnedTiles(l, c, (*byte)(noescape(unsafe.Pointer(&src[2]))), row, size, 4, 4*int8Width, j, width, at, n)
			continue
		}
		p.apart(l, w, j, width, at, n)
		if width < int8Width {
			clear(l.levels[width*n : int8Width*n])
			clear(l.scales[width*n/block.LevelGroup : int8Width*n/block.LevelGroup])
			clear(l.biases[width*n/block.LevelGroup : int8Width*n/block.LevelGroup])
		}
		p.turnedTiles(l, c, (*byte)(unsafe.Pointer(&l.levels[0])), n, p.group, 4*n/block.LevelGroup, 4*p.group/block.LevelGroup, j, width, at, n)
	}
}

// turnedTiles multiplies n elements of int8Width rows of levels by all rounded rows.
func (p *Int8Product) turnedTiles(l *int8Lane, c []float32, levels *byte, row, step, scalesRow, scalesStep, j, width, at, n int) {
	var biases, sums *float32
	for b := range p.turnedBlocks() {
		r := b * int8Width
		rows := min(int8Width, p.M-r)
		first := r*p.K + at*int8Width
		if p.format.Biased() {
			biases, sums = &l.biases[0], &p.sums[first/p.group]
		}
		to, apart := c[r*p.N+j:], p.N
		if width < int8Width {
			clear(l.edge)
			to, apart = l.edge, int8Width
		}
		p.turned.run(hide(to), 4*apart, rows, levels, row, step, &l.scales[0], biases, scalesRow, scalesStep,
			&p.q[first], &p.scales[first/op.Int8Group], sums, p.group, n/p.group)
		if width < int8Width {
			for i := range rows {
				for k, v := range l.edge[i*int8Width:][:width] {
					c[(r+i)*p.N+j+k] += v
				}
			}
		}
	}
}
