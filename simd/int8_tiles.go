package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
)

// An int8Lane is the memory in which one goroutine decodes blocks: sixteen rows of the depth of a
// tile, and their packed form.
type int8Lane struct {
	depth          int // elements of a row
	levels         []int8
	scales, biases []float32 // for each 16 elements
	packed         []int8
	ws, wb         []float32
	edge           []float32 // of c
	words          int
}

func (p *Int8Product) lane(memory []float32) int8Lane {
	c := carver{memory: memory}
	l := int8Lane{depth: min(int8Depth, p.K)}
	n := int8Width * l.depth
	if p.swapped != nil {
		n = swappedSpan * l.depth
	}
	l.levels, l.scales, l.biases = c.bytes(n), c.floats(n/block.LevelGroup), c.floats(n/block.LevelGroup)
	if p.tiles != nil {
		l.packed, l.ws, l.wb = c.bytes(n), c.floats(n/p.group), c.floats(n/p.group)
		l.edge = c.floats(p.tiles.most() * int8Width)
	}
	if p.swapped != nil {
		l.edge = c.floats(int8Width * int8Width)
	}
	l.words = c.words
	return l
}

// apart decodes n elements of rows j to j+width-1 of w, from element at on.
func (p *Int8Product) apart(l *int8Lane, w []byte, j, width, at, n int) {
	e, bytes := p.format.Elements(), p.format.Bytes()
	row, from, size, groups := p.K/e*bytes, at/e*bytes, n/e*bytes, n/block.LevelGroup
	var kernel int8LevelsFunc
	if int(p.format) < len(p.k.levels) {
		kernel = p.k.levels[p.format]
	}
	if kernel == nil {
		for i := range width {
			// The lengths are right.
			_ = p.format.Levels(l.levels[i*n:][:n], l.scales[i*groups:][:groups], l.biases[i*groups:][:groups], w[(j+i)*row+from:][:size])
		}
		return
	}
	// The bounds are checked once for all rows, because a row takes only 50 ns.
	levels, scales, biases := &l.levels[:width*n][0], &l.scales[:width*groups][0], &l.biases[:width*groups][0]
	src := (*byte)(noescape(unsafe.Pointer(&w[j*row+from:][:(width-1)*row+size][0])))
	for i := range width {
		kernel((*int8)(unsafe.Add(unsafe.Pointer(levels), i*n)), (*float32)(unsafe.Add(unsafe.Pointer(scales), 4*i*groups)),
			(*float32)(unsafe.Add(unsafe.Pointer(biases), 4*i*groups)), (*byte)(unsafe.Add(unsafe.Pointer(src), i*row)), n/e)
	}
}

// tileColumns adds the products of columns j to j+width-1 to c.
func (p *Int8Product) tileColumns(l *int8Lane, c []float32, w []byte, j, width int) {
	for at := 0; at < p.K; at += l.depth {
		n := min(l.depth, p.K-at)
		p.apart(l, w, j, width, at, n)
		if width < int8Width {
			clear(l.levels[width*n : int8Width*n])
			clear(l.scales[width*n/block.LevelGroup : int8Width*n/block.LevelGroup])
			clear(l.biases[width*n/block.LevelGroup : int8Width*n/block.LevelGroup])
		}
		p.k.pack(l.bytes(), &l.levels[0], n, uint32(p.zero), n/op.Int8Group)
		p.packFactors(l.ws, l.scales, n)
		if p.format.Biased() {
			p.packFactors(l.wb, l.biases, n)
		}
		for r, most := 0, p.tiles.most(); r < p.M; r += most {
			rows := min(p.M-r, most)
			// The tile computes all rows from row from on. At the end of the matrix, a tile of a fixed number of rows
			// starts earlier. It computes again some rows that the previous tile has added to c, and drops them.
			from, all := r, rows
			if p.tiles.rows > 0 {
				from, all = min(r, p.M-most), most
			}
			if width == int8Width && all == rows {
				p.tile(l, c[r*p.N+j:], p.N, r, rows, at, n)
				continue
			}
			clear(l.edge)
			p.tile(l, l.edge, int8Width, from, all, at, n)
			for i := range rows {
				for k, v := range l.edge[(r-from+i)*int8Width:][:width] {
					c[(r+i)*p.N+j+k] += v
				}
			}
		}
	}
}

// tile calls the kernel for the given number of rows.
func (p *Int8Product) tile(l *int8Lane, c []float32, cRow, r, rows, at, n int) {
	var wb *float32
	if p.format.Biased() {
		wb = &l.wb[0]
	}
	at += r * p.K
	p.tiles.tiles[min(rows, len(p.tiles.tiles))-1](hide(c), 4*cRow, &p.q[at], &p.scales[at/op.Int8Group], &p.sums[at/p.group], &p.corrections[at/p.group], p.K,
		l.bytes(), &l.ws[0], wb, n/op.Int8Group)
}

// packFactors interleaves the factors of sixteen rows: those of one group of all rows are adjacent.
func (p *Int8Product) packFactors(dst, src []float32, n int) {
	each, skip := n/block.LevelGroup, p.group/block.LevelGroup
	for i := range int8Width {
		row := src[i*each:][:each]
		for g := range n / p.group {
			dst[g*int8Width+i] = row[g*skip]
		}
	}
}

// plainColumns adds the products of columns j to j+width-1 to c in plain Go.
func (p *Int8Product) plainColumns(l *int8Lane, c []float32, w []byte, j, width int) {
	for at := 0; at < p.K; at += l.depth {
		n := min(l.depth, p.K-at)
		groups := n / block.LevelGroup
		p.apart(l, w, j, width, at, n)
		for r := range p.M {
			first := r*p.K + at
			q, scales, sums := p.q[first:][:n], p.scales[first/op.Int8Group:], p.sums[first/p.group:]
			for i := range width {
				c[r*p.N+j+i] += plainDot(l.levels[i*n:][:n], q, l.scales[i*groups:][:groups], scales, l.biases[i*groups:][:groups], sums, p.format.Biased())
			}
		}
	}
}

// plainDot returns the dot product of a row of levels with a row of integers.
func plainDot(levels, q []int8, ws, scales, biases, sums []float32, biased bool) float32 {
	total, below := float32(0), float32(0)
	for g, s := range ws {
		a, b := (*[block.LevelGroup]int8)(levels[g*block.LevelGroup:]), (*[block.LevelGroup]int8)(q[g*block.LevelGroup:])
		sum := int32(0)
		for i, v := range a {
			sum += int32(v) * int32(b[i])
		}
		total += s * scales[g*block.LevelGroup/op.Int8Group] * float32(sum)
		if biased {
			below += biases[g] * sums[g]
		}
	}
	return total + below
}

// bytes returns the address of packed.
func (l *int8Lane) bytes() *byte { return (*byte)(unsafe.Pointer(unsafe.SliceData(l.packed))) }
