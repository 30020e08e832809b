package simd

import (
	"sync"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/workers"
)

// Cumsum sets each element of dst to the sum of the same element of x and the elements before it in its
// row. Rows of cols elements lie one after the other. dst may be x, and must not overlap it otherwise.
// With a nil Pool it uses only the calling thread. It panics if a slice is too short.
//
// Sums are computed in float32 within blocks of [ReduceBlock] elements and in float64
// across blocks, so they do not depend on the number of threads.
func Cumsum(p *workers.Pool, dst, x []float32, rows, cols int) {
	n := area(rows, cols)
	if len(dst) < n || len(x) < n {
		panic(fmt.Sprintf("simd: Cumsum of %d rows of %d: dst and x have lengths %d and %d", rows, cols, len(dst), len(x)))
	}
	if n == 0 {
		return
	}
	threads := p.Threads()
	if !p.Worth(float64(rows)*reduceRowNS + 2*readNS(n) + float64(n)*cumsumNS) {
		p, threads = p.Serial(), 1
	}
	t := cumsums.Get().(*cumsumTask)
	*t = cumsumTask{dst: dst, x: x, rows: rows, cols: cols, starts: t.starts}
	switch {
	case threads == 1 && cols > uninterrupted:
		t.way, t.group = inTurn, uninterrupted/ReduceBlock
		for t.row = range rows {
			t.before = 0
			p.Do(t.parts(), t)
		}
	case threads > 1 && cols > 2*ReduceBlock && rows < 4*threads:
		for t.row = range rows {
			t.long(p, threads)
		}
	default:
		t.group = max(1, min((rows+8*threads-1)/(8*threads), uninterrupted/cols))
		p.Do((rows+t.group-1)/t.group, t)
	}
	t.dst, t.x = nil, nil
	cumsums.Put(t)
}

// cumsumNS is the time for an element in the cache, in nanoseconds, without reading and writing it.
const cumsumNS = 0.05

type cumsumTask struct {
	dst, x     []float32
	rows, cols int
	way        cumsumWay
	group      int // rows of a part, or blocks of a part of a long row

	// For a long row, which is computed alone:
	row    int
	before float64   // inTurn: the sum of the parts that are done
	starts []float64 // the sums of its blocks, then the sums of all elements before its blocks
}

// cumsumWay says what a part computes.
type cumsumWay uint8

const (
	wholeRows   cumsumWay = iota // whole rows
	inTurn                       // blocks of a row; parts run in their order
	blockSums                    // the sums of blocks of a row; parts run in any order
	fromOffsets                  // blocks of a row, from the sums before them; parts run in any order
)

// parts returns the number of parts of a long row.
func (t *cumsumTask) parts() int {
	return (t.blocks() + t.group - 1) / t.group
}

func (t *cumsumTask) blocks() int { return (t.cols + ReduceBlock - 1) / ReduceBlock }

var cumsums = sync.Pool{New: func() any { return new(cumsumTask) }}

// long computes row t.row with several threads, in two passes over its blocks: first the sums of
// the blocks, then the running sums.
func (t *cumsumTask) long(p *workers.Pool, threads int) {
	if cap(t.starts) < t.blocks() {
		t.starts = make([]float64, t.blocks())
	}
	t.starts = t.starts[:t.blocks()]
	t.group = max(1, len(t.starts)/(8*threads))
	t.way = blockSums
	p.Spread(t.parts(), false, t)
	before := 0.0
	for i, s := range t.starts {
		t.starts[i] = before
		before += s
	}
	t.way = fromOffsets
	p.Spread(t.parts(), true, t) // in reverse: the elements that a thread read last are in its cache
}

// Part implements workers.Task.
func (t *cumsumTask) Part(i int) {
	if t.way == wholeRows {
		if t.cols <= shortRow {
			lo, hi := i*t.group*t.cols, min((i+1)*t.group, t.rows)*t.cols
			cumsumShortRows(t.dst[lo:hi], t.x[lo:hi], t.cols)
			return
		}
		for r := i * t.group; r < min((i+1)*t.group, t.rows); r++ {
			cumsumBlocks(t.dst[r*t.cols:][:t.cols], t.x[r*t.cols:][:t.cols], 0)
		}
		return
	}
	first, last := i*t.group, min((i+1)*t.group, t.blocks())
	lo, hi := t.row*t.cols+first*ReduceBlock, t.row*t.cols+min(last*ReduceBlock, t.cols)
	dst, x := t.dst[lo:hi], t.x[lo:hi]
	switch t.way {
	case inTurn:
		t.before = cumsumBlocks(dst, x, t.before)
	case blockSums:
		for b := range last - first {
			t.starts[first+b] = ReduceSum.Block(blockOf(x, b), nil, 0).value
		}
	case fromOffsets:
		for b := range last - first {
			in := blockOf(x, b)
			rowKernel().cumsum(&blockOf(dst, b)[0], &in[0], len(in), float32(t.starts[first+b]))
		}
	}
}

// cumsumBlocks computes the running sums of x, starting from before, block by block, and returns
// the sum before the next block.
func cumsumBlocks(dst, x []float32, before float64) float64 {
	if len(x) <= ReduceBlock && before == 0 {
		rowKernel().cumsum(&dst[0], &x[0], len(x), 0)
		return 0 // there is no next block: parts of a long row have several blocks
	}
	for b := 0; b*ReduceBlock < len(x); b++ {
		in := blockOf(x, b)
		sum := ReduceSum.Block(in, nil, 0).value // first, because dst may be x
		rowKernel().cumsum(&blockOf(dst, b)[0], &in[0], len(in), float32(before))
		before += sum
	}
	return before
}

// shortRow is the length up to which a plain loop over a row is faster than the call of a kernel: the
// processor adds the elements of several rows at the same time.
const shortRow = 24

// cumsumShortRows computes the running sums of whole rows of cols elements.
func cumsumShortRows[T float32 | uint32](dst, x []T, cols int) {
	for cols > 0 && len(x) >= cols {
		d, sum := dst[:cols], T(0)
		for i, v := range x[:cols] {
			sum += v
			d[i] = sum
		}
		dst, x = dst[cols:], x[cols:]
	}
}

// rowsCumsumGeneric adds up eight elements at a time, so that few additions wait for
// previous ones.
func rowsCumsumGeneric(dst, x *float32, n int, before float32) {
	d, s := floats(dst, n), floats(x, n)
	carry := float32(0)
	i := 0
	for ; i+8 <= n; i += 8 {
		v := (*[8]float32)(s[i:])
		w := (*[8]float32)(d[i:])
		a1, b1 := v[0]+v[1], v[4]+v[5]
		a2, b2 := a1+v[2], b1+v[6]
		a3, b3 := a2+v[3], b2+v[7]
		a0, b0 := v[0], a3+v[4]
		b1, b2, b3 = a3+b1, a3+b2, a3+b3
		w[0], w[1], w[2], w[3] = before+(carry+a0), before+(carry+a1), before+(carry+a2), before+(carry+a3)
		w[4], w[5], w[6], w[7] = before+(carry+b0), before+(carry+b1), before+(carry+b2), before+(carry+b3)
		carry += b3
	}
	for ; i < n; i++ {
		carry += s[i]
		d[i] = before + carry
	}
}
