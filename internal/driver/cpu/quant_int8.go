package cpu

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// int8Part is the state of a quantTask whose rows are rounded to 8 bits (option Int8). All rows are
// rounded first; then each thread computes columns.
type int8Part struct {
	product simd.Int8Product
	rounder int8Rounder
	columns int // number of columns in a part
	words   int // number of words of the rounded rows
	lane    int // number of words of each thread
}

// int8RoundNS and int8ProductNS are the times in nanoseconds of one thread to round an element of
// a, and for a product.
const (
	int8RoundNS   = 0.15
	int8ProductNS = 0.01
)

// int8Columns is the maximum number of columns in a part. The context is not checked within a part.
const int8Columns = 256

// int8StreamColumns is that number, before it is rounded up, for a single row and kernels that read several places of a
// part at once. These parts are large, because the first bytes at each place arrive late.
const int8StreamColumns = 1024

func (t *quantTask) configureInt8(p op.Product) {
	q := &t.rounded
	t.int8 = q
	q.product = simd.NewInt8Product(t.format, p.M, p.K, p.N)
	q.rounder.t = t
	q.words, q.lane = q.product.Scratch()
	threads := t.d.pool.Threads()
	if p.M == 1 && q.product.Streams() > 0 {
		q.columns = streamColumns(p.N, threads)
	} else {
		parts := partsPerThread * threads
		q.columns = min(int8Columns, (p.N+parts-1)/parts)
		q.columns = max(panelUnit, q.columns/panelUnit*panelUnit)
	}
	t.rows = q.columns
	t.work(min(threads, t.panels()))
}

// streamColumns returns the number of columns in a part of a single row of n columns. Each thread gets as few parts as
// int8StreamColumns permits, and no thread gets one more than that.
func streamColumns(n, threads int) int {
	parts := (n + int8StreamColumns - 1) / int8StreamColumns
	parts = max(1, (parts+threads-1)/threads) * threads
	each := (n + parts - 1) / parts
	return max(panelUnit, (each+panelUnit-1)/panelUnit*panelUnit)
}

// An int8Rounder rounds rows, a few in a part.
type int8Rounder struct {
	t    *quantTask
	rows int
}

// Part rounds some rows.
func (r *int8Rounder) Part(i int) {
	r.t.int8.product.Round(r.t.a, i*r.rows, min((i+1)*r.rows, r.t.m))
}

// roundInt8 rounds all rows, on several threads if this is faster.
func (t *quantTask) roundInt8() {
	r := &t.int8.rounder
	r.rows = max(1, t.m)
	if t.m > 1 && t.d.pool.Worth(int8RoundNS*float64(t.m)*float64(t.k)) {
		parts := min(t.m, partsPerThread*t.d.pool.Threads())
		r.rows = (t.m + parts - 1) / parts
		unit := t.int8.product.RowUnit()
		r.rows = (r.rows + unit - 1) / unit * unit
	}
	t.d.pool.Do((t.m+r.rows-1)/r.rows, r)
}

// columnsInt8 computes columns first to end of C.
func (l *quantLane) columnsInt8(first, end int) {
	t := l.t
	t.int8.product.Columns(l.panel, t.c, t.w, t.bias, first, end)
	if t.hook() != nil {
		for i := range t.m {
			t.epilogue.run(t.c[i*t.n:][first:end], i, first)
		}
	}
}
