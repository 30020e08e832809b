package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
)

type (
	// int8RoundFunc computes [op.RoundInt8] for one or more groups of 32 numbers. It writes the sums of
	// each four neighbouring integers, times a factor, to quads.
	int8RoundFunc func(q *int8, scales *float32, quads *int32, times int32, x *float32, groups int)
	// int8LevelsFunc computes Levels of package block for one or more blocks.
	int8LevelsFunc func(levels *int8, scales, biases *float32, src *byte, blocks int)
	// int8DotFunc writes the dot products of a fixed number of rows of integers with one or more
	// blocks. Rows of x and of quads are stride bytes apart, and rows of scales stride/8 bytes. Rows
	// of sums are as many floats apart as a row has groups. quads are sums of four integers of x,
	// times the negated offset between unsigned codes and levels.
	int8DotFunc func(dst *float32, x *int8, scales, sums *float32, quads *int32, stride int, src *byte, blocks int)
	// int8ColumnsFunc writes the dot products of one row of integers with count rows of one or more
	// blocks, row bytes apart. A kernel with streams (see int8Columns) writes those with streams*count rows.
	// The operands are those of int8DotFunc, after the order of int8Columns if that is not nil.
	int8ColumnsFunc func(dst *float32, x *int8, scales, sums *float32, quads *int32, src *byte, row, blocks, count int)
	// int8PackFunc interleaves groups of 32 levels of sixteen rows: four levels of each row, then the
	// next four of each. It adds zero to each level.
	int8PackFunc func(dst *byte, levels *int8, stride int, zero uint32, groups int)
	// int8TileFunc adds the dot products of a fixed number of rows of integers with
	// sixteen packed rows to a part of c. wb is nil without biases. corrections are the sums of
	// the integers of each group, times -zero of int8PackFunc.
	int8TileFunc func(c *float32, cRow int, x *int8, scales, sums *float32, corrections *int32, stride int, w *byte, ws, wb *float32, groups int)
)

// int8Dots are the kernels of a format for one row and for four rows.
type int8Dots struct {
	one, four int8DotFunc
	// signed means that the kernels multiply codes as signed bytes. Unsigned codes are levels minus the
	// least level, or levels plus signedOffset of int8Kernels.
	signed bool
}

// int8Columns is a kernel of a format for many columns. signed has the meaning of signed of int8Dots.
type int8Columns struct {
	run    int8ColumnsFunc
	signed bool
	// order rearranges the integers of a row and their quads for the kernel. For some kernels it stores
	// the scales in the memory of the quads. It is nil for kernels that read the row in its own order.
	// If it is not nil, the length of the row must be a multiple of columnSuper, or of columnTail with streams.
	order func(q []int8, quads []int32, scales []float32, group int)
	// streams, if it is not 0, is the number of consecutive parts into which the kernel divides the rows of
	// blocks. Each part has count rows, and the kernel reads one row of each part at a time. The operands of
	// the multiplied row are padded with zeros to a multiple of columnPad elements.
	streams int
}

// columnSuper is the number of elements that kernels with an order multiply at once.
const columnSuper = 256

// A row for a kernel with streams has a multiple of columnTail elements, at least columnSuper, and is padded to a
// multiple of columnPad.
const (
	columnTail = 64
	columnPad  = 128
)

// int8Tiles are the kernels for packed rows: tiles[0] is for one row, tiles[1] for two, and so on.
type int8Tiles struct {
	group int // the number of elements that share a scale
	codes int // the greatest unsigned code; 0 for signed codes
	tiles []int8TileFunc
	rows  int // the number of rows of the only tile; 0 if tiles has one for each number of rows
}

// most returns the number of rows of the largest tile.
func (t *int8Tiles) most() int { return max(len(t.tiles), t.rows) }

// int8Kernels are the kernels of a level; the zero value means plain Go.
type int8Kernels struct {
	prepare func() // must be called before kernels of formats with codebooks
	round   int8RoundFunc
	pack    int8PackFunc
	levels  []int8LevelsFunc // indexed by format
	dots    []int8Dots       // indexed by format
	// columns, indexed by format, are for few rows on systems where the call of a kernel is slow.
	columns []int8Columns
	// columnRows is the largest number of rows for which columns is faster than dots; 0 means Int8Few.
	columnRows int
	// signedOffset is added to signed codes to make them unsigned, or 0.
	signedOffset int
	tiles        []int8Tiles  // the fastest first
	swapped      *int8Swapped // nil if there is none
}

// int8Width is the number of columns of a tile.
const int8Width = 16

// Int8Few is the largest number of rows for which an [Int8Product] multiplies encoded blocks directly. For more
// rows it decodes the blocks once and multiplies tiles.
const Int8Few = 8

// int8Depth is the largest number of elements of a row in a tile: sixteen such rows fit into the first
// cache. It is a multiple of the number of elements of every block.
const int8Depth = 1024

// An Int8Product multiplies M rows of K numbers, rounded to 8 bits by [op.RoundInt8], by the
// transpose of N rows of blocks. The sums of products of a group are integers, which are the same on
// every machine. Sums over groups are float32.
//
// Make one with [NewInt8Product], give it memory with Bind, call Round for all rows, and then
// Columns for all columns. Several goroutines may share the rows, and then the columns.
type Int8Product struct {
	M, K, N int

	format  block.Format
	k       *int8Kernels
	dots    *int8Dots    // nil if there are too many rows, or no kernel
	many    *int8Columns // nil if there are too many rows, or no kernel
	swapped *int8Swapped // nil if there are too few rows, or no kernel
	tiles   *int8Tiles   // nil for plain Go, or with dots
	group   int          // elements of a sum of the rows
	unit    int          // elements of a unit of swapped
	stride  int          // elements between the rounded rows: K, or more with zeros at the end
	zero    int          // the difference of codes and levels

	// The rounded rows, one after the other.
	q                  []int8
	scales             []float32
	sums               []float32 // for each group the sum of its integers, times its scale
	quads, corrections []int32
}

// FastInt8 reports whether there are kernels for integer products of m rows of k numbers with blocks of
// format f. Without them an [Int8Product] is slower than [DotBlocks] and than [Gemm] of dequantised rows.
func FastInt8(f block.Format, m, k int) bool {
	return activeInt8().tiles != nil || activeInt8().columnsFor(f, m, k) != nil
}

// columnsFor returns the kernel for few rows, or nil.
func (k *int8Kernels) columnsFor(f block.Format, m, depth int) *int8Columns {
	if n, _ := quantCall(f, depth); m > Int8Few || n != depth || n == 0 || int(f) >= len(k.columns) || k.columns[f].run == nil {
		return nil
	}
	c := &k.columns[f]
	if k.columnRows != 0 && m > k.columnRows || c.order != nil && depth%c.multiple() != 0 || c.streams != 0 && depth < columnSuper {
		return nil
	}
	return c
}

func (c *int8Columns) multiple() int {
	if c.streams != 0 {
		return columnTail
	}
	return columnSuper
}

// NewInt8Product returns a product with blocks of a format. It panics if rows are not
// whole blocks.
func NewInt8Product(f block.Format, m, k, n int) Int8Product {
	return newInt8Product(activeInt8(), f, m, k, n)
}

func newInt8Product(all *int8Kernels, f block.Format, m, k, n int) Int8Product {
	if f.Scalar() || !f.Valid() || k%f.Elements() != 0 {
		panic(fmt.Sprintf("simd: rows of %d numbers are not whole blocks of %v", k, f))
	}
	p := Int8Product{M: m, K: k, N: n, format: f, k: all, group: block.LevelGroup, stride: k}
	if all.prepare != nil && f.Layout().Level.Grid != nil {
		all.prepare()
	}
	if p.unit = all.swapped.unit(f, m, k); p.unit > 0 {
		p.swapped, p.group = all.swapped, min(f.Group(), op.Int8Group)
		return p
	}
	least, most := f.LevelRange()
	if p.many = all.columnsFor(f, m, k); p.many != nil {
		p.group = min(f.Group(), op.Int8Group)
		if !p.many.signed {
			p.zero = -least
		}
		if p.many.streams != 0 {
			p.stride = (k + columnPad - 1) / columnPad * columnPad
		}
		return p
	}
	if m <= Int8Few && int(f) < len(all.dots) && all.dots[f].one != nil {
		p.dots, p.group, p.zero = &all.dots[f], min(f.Group(), op.Int8Group), -least
		if p.dots.signed {
			p.zero = all.signedOffset
		}
		return p
	}
	for i := range all.tiles {
		t := &all.tiles[i]
		if m < t.rows || f.Group()%t.group != 0 || t.codes > 0 && most-least > t.codes && t.codes != anyCode {
			continue
		}
		p.tiles, p.group = t, t.group
		switch t.codes {
		case 0:
		case anyCode:
			p.zero = 128
		default:
			p.zero = -least
		}
		break
	}
	return p
}

// anyCode is the greatest code of tiles that support all bytes.
const anyCode = 255

// Streams returns the number of parts into which the kernel divides the columns of a call of Columns, because it reads
// all parts at once. It is 0 for kernels that read the blocks in their order.
func (p *Int8Product) Streams() int {
	if p.many == nil {
		return 0
	}
	return p.many.streams
}

// Scratch returns the numbers of 32-bit words of memory that Bind and each call of Columns need: shared
// is for the rounded rows, and lane for a call of Columns.
func (p *Int8Product) Scratch() (shared, lane int) {
	mk, scales, sums := p.sizes()
	shared = mk/4 + scales + sums
	switch {
	case p.dots != nil || p.many != nil:
		return shared + mk/4, 0
	case p.tiles != nil:
		shared += mk / p.group
	}
	return shared, p.lane(nil).words
}

// sizes returns the numbers of integers, scales and sums of the rounded rows.
func (p *Int8Product) sizes() (integers, scales, sums int) {
	if p.swapped != nil {
		lanes := p.swappedCalls() * int8Width
		return lanes * p.K, lanes * p.K / p.unit, lanes * p.K / p.unit
	}
	mk := p.M * p.stride
	return mk, mk / op.Int8Group, mk / p.group
}

// Bind gives the product memory of Scratch's shared words, which it uses until the next call of Bind.
func (p *Int8Product) Bind(memory []float32) {
	c := carver{memory: memory}
	mk, scales, sums := p.sizes()
	p.q, p.scales, p.sums = c.bytes(mk), c.floats(scales), c.floats(sums)
	switch {
	case p.dots != nil || p.many != nil:
		p.quads = c.integers(mk / 4)
	case p.tiles != nil:
		p.corrections = c.integers(mk / p.group)
	}
}

// A carver divides memory into parts. Without memory it only adds up their sizes.
type carver struct {
	memory []float32
	words  int
}

func (c *carver) floats(n int) []float32 {
	c.words += n
	if c.memory == nil {
		return nil
	}
	return c.memory[c.words-n:][:n:n]
}

func (c *carver) integers(n int) []int32 {
	x := c.floats(n)
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

func (c *carver) bytes(n int) []int8 {
	x := c.floats((n + 3) / 4)
	if x == nil {
		return nil
	}
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(x))), n)
}

// Round rounds the rows from first to end-1 of a, of K numbers each. first must be a multiple of RowUnit, and so must end if it is not M.
func (p *Int8Product) Round(a []float32, first, end int) {
	if p.K == 0 {
		return
	}
	if p.swapped != nil {
		for r := first; r < end; r += p.swappedRows() {
			p.roundSwapped(a, r, min(r+p.swappedRows(), end))
		}
		return
	}
	for r := first; r < end; r++ {
		p.roundRow(a[r*p.K:][:p.K], r)
	}
}

// roundSize is the largest number of numbers that one call of a kernel rounds.
const roundSize = 4096

func (p *Int8Product) roundRow(x []float32, r int) {
	n := p.stride
	q, scales, sums := p.q[r*n:][:n], p.scales[r*n/op.Int8Group:][:n/op.Int8Group], p.sums[r*n/p.group:][:n/p.group]
	var own [roundSize / 4]int32
	for at := 0; at < p.K; at += roundSize {
		n := min(roundSize, p.K-at)
		quads, times := own[:n/4], 1
		if p.quads != nil {
			quads = p.quads[(r*p.stride+at)/4:][:n/4]
			if p.zero != 0 {
				times = -p.zero
			}
		}
		q, scales := q[at:][:n], scales[at/op.Int8Group:][:n/op.Int8Group]
		p.roundPart(q, scales, quads, int32(times), x[at:][:n])
		var corrections []int32
		if p.corrections != nil {
			corrections = p.corrections[(r*p.stride+at)/p.group:][:n/p.group]
		}
		p.groupSums(sums[at/p.group:][:n/p.group], corrections, scales, quads, int32(times))
		if p.zero == 0 && p.quads != nil {
			clear(quads)
		}
	}
	if p.many != nil && p.many.order != nil {
		quads := p.quads[r*n/4:][:n/4]
		clear(q[p.K:])
		clear(quads[p.K/4:])
		clear(scales[p.K/op.Int8Group:])
		clear(sums[p.K/p.group:])
		p.many.order(q, quads, scales, p.group)
	}
}

// roundPart rounds numbers. It writes the sums of each four neighbouring integers, times a factor, to quads.
func (p *Int8Product) roundPart(q []int8, scales []float32, quads []int32, times int32, x []float32) {
	if p.k.round != nil {
		p.k.round((*int8)(noescape(unsafe.Pointer(&q[0]))), (*float32)(noescape(unsafe.Pointer(&scales[0]))), (*int32)(noescape(unsafe.Pointer(&quads[0]))), times, &x[0], len(x)/op.Int8Group)
		return
	}
	op.RoundInt8(q, scales, x)
	quadSums(quads, q, times)
}

// quadSums writes the sums of each four neighbouring integers, times a factor, to quads.
func quadSums(quads []int32, q []int8, times int32) {
	for i := range quads {
		v := (*[4]int8)(q[4*i:])
		quads[i] = times * (int32(v[0]) + int32(v[1]) + int32(v[2]) + int32(v[3]))
	}
}

// groupSums computes the sums of the integers of groups from the sums of each four, which were multiplied by times.
func (p *Int8Product) groupSums(sums []float32, corrections []int32, scales []float32, quads []int32, times int32) {
	if !p.format.Biased() && corrections == nil {
		return // the kernels do not need them
	}
	each := p.group / 4
	for i := range sums {
		sum := int32(0)
		for _, v := range quads[i*each:][:each] {
			sum += v
		}
		if times != 1 {
			sum /= times
		}
		sums[i] = scales[i*p.group/op.Int8Group] * float32(sum)
		if corrections != nil {
			corrections[i] = -int32(p.zero) * sum
		}
	}
}

// Columns computes columns first to end-1 of c, a matrix whose rows are N numbers apart, from rows first to
// end-1 of the blocks w, and adds bias if it is not nil. lane is scratch memory of this call: see Scratch.
func (p *Int8Product) Columns(lane []float32, c []float32, w []byte, bias []float32, first, end int) {
	if p.many != nil {
		p.manyColumns(c, w, bias, first, end)
		return
	}
	if p.dots != nil {
		p.dotColumns(c, w, bias, first, end)
		return
	}
	for r := range p.M {
		row := c[r*p.N:][first:end]
		if bias != nil {
			copy(row, bias[first:end])
		} else {
			clear(row)
		}
	}
	if p.K == 0 {
		return
	}
	l := p.lane(lane)
	span := int8Width
	if p.swapped != nil {
		span = swappedSpan
	}
	for j, width := first, 0; j < end; j += width {
		if width = min(span, end-j); width > int8Width {
			width = width / int8Width * int8Width
		}
		switch {
		case p.swapped != nil:
			p.swappedColumns(&l, c, w, j, width)
		case p.tiles != nil:
			p.tileColumns(&l, c, w, j, width)
		default:
			p.plainColumns(&l, c, w, j, width)
		}
	}
}

// dotColumns multiplies encoded blocks directly, one row of blocks at a time.
func (p *Int8Product) dotColumns(c []float32, w []byte, bias []float32, first, end int) {
	row := p.K / p.format.Elements() * p.format.Bytes()
	if n, _ := quantCall(p.format, p.K); p.M == 1 && n == p.K && n > 0 {
		p.dotVector(c[first:end], w[first*row:end*row])
		if bias != nil {
			for j, b := range bias[first:end] {
				c[first+j] += b
			}
		}
		return
	}
	var sums [4]float32
	for j := first; j < end; j++ {
		b, add := w[j*row:][:row], float32(0)
		if bias != nil {
			add = bias[j]
		}
		for r := 0; r < p.M; {
			dot, n := p.dots.one, 1
			if p.M-r >= 4 {
				dot, n = p.dots.four, 4
			}
			p.dotRow(&sums, dot, r, b)
			for i := range n {
				c[(r+i)*p.N+j] = sums[i] + add
			}
			r += n
		}
	}
}

// manyColumns multiplies encoded blocks directly, many rows of blocks at a time.
func (p *Int8Product) manyColumns(c []float32, w []byte, bias []float32, first, end int) {
	if first == end {
		return
	}
	blocks := p.K / p.format.Elements()
	row := blocks * p.format.Bytes()
	each := max(4, columnsCall/p.K&^3) // columns of a call: a multiple of 4, which kernels compute together or read from as many streams
	for r := range p.M {
		to := c[r*p.N:][first:end]
		for j := 0; j < len(to); j += each {
			p.callColumns(to[j:min(j+each, len(to))], r, w[(first+j)*row:], row)
		}
		if bias != nil {
			for i, v := range bias[first:end] {
				to[i] += v
			}
		}
	}
}

// callColumns multiplies row r by as many rows of blocks as dst has numbers.
func (p *Int8Product) callColumns(dst []float32, r int, w []byte, row int) {
	at, blocks, n := r*p.stride, p.K/p.format.Elements(), len(dst)
	q, scales, sums, quads := &p.q[at], &p.scales[at/op.Int8Group], &p.sums[at/p.group], &p.quads[at/4]
	src := func(j int) *byte { return (*byte)(noescape(unsafe.Pointer(&w[j*row]))) }
	if p.many.streams == 0 {
		p.many.run(hide(dst), q, scales, sums, quads, src(0), row, blocks, n)
		return
	}
	count := n / p.many.streams
	if count > 0 {
		p.many.run(hide(dst), q, scales, sums, quads, src(0), row, blocks, count)
	}
	for j := count * p.many.streams; j < n; j++ {
		var same [maxStreams]float32 // with rows at distance 0, all parts are this row
		p.many.run(hide(same[:]), q, scales, sums, quads, src(j), 0, blocks, 1)
		dst[j] = same[0]
	}
}

// maxStreams is the largest number of streams of a kernel.
const maxStreams = 4

// columnsCall is the approximate number of multiplications of one call of a kernel. The runtime cannot
// preempt a goroutine in a kernel.
const columnsCall = 1 << 20

// dotVector multiplies a single row by rows of blocks, if one call of a kernel computes a whole row. It
// does little between the calls.
func (p *Int8Product) dotVector(c []float32, w []byte) {
	if len(c) == 0 {
		return
	}
	blocks := p.K / p.format.Elements()
	row := len(w) / len(c)
	one, q, scales, sums, quads, k := p.dots.one, &p.q[0], &p.scales[0], &p.sums[0], &p.quads[0], p.K
	for j := range c {
		one(hide(c[j:]), q, scales, sums, quads, k, (*byte)(noescape(unsafe.Pointer(&w[j*row]))), blocks)
	}
}

// dotRow multiplies row r by one row of blocks. Each call of the kernel computes as many blocks as
// quantCall allows.
func (p *Int8Product) dotRow(dst *[4]float32, dot int8DotFunc, r int, src []byte) {
	if n, _ := quantCall(p.format, p.K); n == p.K && n > 0 {
		p.dotPart(dst, dot, r*p.K, src)
		return
	}
	var total [4]float64
	for at := 0; at < p.K; {
		n, size := quantCall(p.format, p.K-at)
		p.dotPart(dst, dot, r*p.K+at, src[:size])
		for i, v := range dst {
			total[i] += float64(v)
		}
		at, src = at+n, src[size:]
	}
	for i, v := range total {
		dst[i] = float32(v)
	}
}

func (p *Int8Product) dotPart(dst *[4]float32, dot int8DotFunc, at int, src []byte) {
	dot(hide(dst[:]), &p.q[at], &p.scales[at/op.Int8Group], &p.sums[at/p.group], &p.quads[at/4], p.K, (*byte)(noescape(unsafe.Pointer(&src[0]))), len(src)/p.format.Bytes())
}
