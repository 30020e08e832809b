package simd

import (
	"math"
	"sync"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/workers"
)

// ReduceRows sets dst[i] to the reduction of row i of x, and of y for
// ReduceDot. Rows of cols elements lie one after the other. ddof is for ReduceVar.
// Each result equals the result of [Reduce] for the row. dst must not overlap x or y.
// It panics if a slice is too short, and for reductions to an index: use
// [ReduceRowsIndex] for these.
func ReduceRows(p *workers.Pool, r Reduction, ddof int, dst, x, y []float32, rows, cols int) {
	if r == ReduceArgMax || r == ReduceArgMin {
		panic(fmt.Sprintf("simd: ReduceRows: the results of %v are indices: call ReduceRowsIndex", r))
	}
	reduceRows(p, rowsTask{r: r, ddof: ddof, dst: dst, x: x, y: y, rows: rows, cols: cols}, len(dst))
}

// ReduceRowsIndex sets dst[i] to the result of r, which is ReduceArgMax or ReduceArgMin,
// for row i of x: see [ReduceRows]. The result for a row without elements is -1.
func ReduceRowsIndex(p *workers.Pool, r Reduction, dst []int32, x []float32, rows, cols int) {
	if r != ReduceArgMax && r != ReduceArgMin {
		panic(fmt.Sprintf("simd: ReduceRowsIndex: the results of %v are not indices: call ReduceRows", r))
	}
	reduceRows(p, rowsTask{r: r, index: dst, x: x, rows: rows, cols: cols}, len(dst))
}

func reduceRows(p *workers.Pool, task rowsTask, have int) {
	rows, cols := task.rows, task.cols
	n := area(rows, cols)
	if have < rows || len(task.x) < n || task.r == ReduceDot && len(task.y) < n || task.r >= numReductions {
		panic(fmt.Sprintf("simd: %v of %d rows of %d: dst, x and y have lengths %d, %d and %d", task.r, rows, cols, have, len(task.x), len(task.y)))
	}
	if rows == 0 {
		return
	}
	if !p.Worth(float64(rows)*reduceRowNS + task.r.ns(n)) {
		task.do(nil, 0, rows)
		return
	}
	if rows < 4*p.Threads() && cols > 2*ReduceBlock {
		task.do(p, 0, rows)
		return
	}
	t := rowsTasks.Get().(*rowsTask)
	*t = task
	parts := min(rows, 8*p.Threads())
	t.group = (rows + parts - 1) / parts
	p.Do((rows+t.group-1)/t.group, t)
	*t = rowsTask{}
	rowsTasks.Put(t)
}

// area returns rows*cols. It panics if one is negative or the product overflows
// an int.
func area(rows, cols int) int {
	if rows < 0 || cols < 0 || rows > 0 && cols > math.MaxInt/rows {
		panic(fmt.Sprintf("simd: %d rows of %d elements: a number is negative or the product overflows", rows, cols))
	}
	return rows * cols
}

type rowsTask struct {
	r          Reduction
	ddof       int
	dst        []float32
	index      []int32
	x, y       []float32
	rows, cols int
	group      int
}

var rowsTasks = sync.Pool{New: func() any { return new(rowsTask) }}

// Part reduces a few rows.
func (t *rowsTask) Part(i int) { t.do(nil, i*t.group, min((i+1)*t.group, t.rows)) }

// do reduces the rows from first to last-1.
func (t *rowsTask) do(p *workers.Pool, first, last int) {
	r, cols := t.r, t.cols
	many := p == nil && cols > 0 && cols <= ReduceBlock
	switch {
	case t.index != nil && many:
		eachChunk(first, last, cols, func(s *chunk, i, n int) {
			x := &t.x[i*cols]
			reducers().rows[r.kind()](&s.a[0], x, nil, n, cols)
			reducers().indexRows(&t.index[i], x, &s.a[0], n, cols)
		})
		return
	case t.index != nil:
		for i := first; i < last; i++ {
			x, y := t.row(i)
			t.index[i] = int32(r.Index(Fold(p, r, x, y)))
		}
		return
	case r == ReduceVar && many:
		eachChunk(first, last, cols, func(s *chunk, i, n int) {
			s.variances(t.x[i*cols:], n, cols)
			for j := range n {
				t.dst[i+j] = r.Value(s.parts[j], t.ddof)
			}
		})
		return
	case r == ReduceLogSumExp && many:
		eachChunk(first, last, cols, func(s *chunk, i, n int) {
			s.logSumExps(t.dst[i:i+n], t.x[i*cols:], cols)
		})
		return
	case !many || r == ReduceVar:
		for i := first; i < last; i++ {
			x, y := t.row(i)
			t.dst[i] = r.Value(Fold(p, r, x, y), t.ddof)
		}
		return
	}
	step := max(1, uninterrupted/cols)
	for ; first < last; first += step {
		t.direct(first, min(first+step, last))
	}
}

// uninterrupted is the largest number of elements of one call of a kernel. While a kernel
// runs, its thread cannot stop for the garbage collector.
const uninterrupted = 1 << 16

// divideRows is the number of rows from which a kernel that divides sums is faster than one division after the other.
const divideRows = 16

// direct reduces rows of one block each with the kernel for many rows.
func (t *rowsTask) direct(first, last int) {
	r, cols, k := t.r, t.cols, t.r.kind()
	var yp *float32
	if k == kindDot {
		yp = &t.y[first*cols]
	}
	dst := t.dst[first:last]
	reducers().rows[k](&dst[0], &t.x[first*cols], yp, len(dst), cols)
	switch r {
	case ReduceMax, ReduceMin, ReduceMaxAbs:
		return
	case ReduceMean:
		if len(dst) < divideRows {
			break
		}
		if divide := LevelMap("code.div.vs"); divide != nil && allFinite(dst) {
			s := chunks.Get().(*chunk)
			s.a[0] = float32(cols) // exact, so the quotients are those of float64, rounded
			divide(&dst[0], &dst[0], nil, nil, len(dst), &s.a[0])
			chunks.Put(s)
			return
		}
	}
	for i, raw := range dst {
		switch {
		case k.doubtful(raw) || r == ReduceNorm:
		case r == ReduceMean:
			dst[i] = float32(float64(raw) / float64(cols))
			continue
		default: // the result is the sum
			continue
		}
		v := float64(raw)
		if k.doubtful(raw) {
			x, y := t.row(first + i)
			v = k.repair(raw, x, y)
		}
		dst[i] = r.Value(Partial{n: cols, value: v}, 0)
	}
}

// allFinite reports whether x has neither infinities nor NaNs.
func allFinite(x []float32) bool {
	bad := uint32(0)
	for _, v := range x {
		bad |= (math.Float32bits(v)>>23&0xff + 1) >> 8 // the greatest exponent
	}
	return bad == 0
}

// row returns row i of x, and of y for ReduceDot.
func (t *rowsTask) row(i int) (x, y []float32) {
	x = t.x[i*t.cols:][:t.cols]
	if t.r == ReduceDot {
		y = t.y[i*t.cols:][:t.cols]
	}
	return x, y
}

// chunkRows is the largest number of rows of a chunk, and chunkElements the largest
// number of elements, so that a chunk stays in the first cache.
const (
	chunkRows     = 64
	chunkElements = 4096
)

// A chunk holds intermediate results of some rows, which one kernel writes and the next
// one reads.
type chunk struct {
	a, b, c [chunkRows]float32
	parts   [chunkRows]Partial
	msb     [3 * chunkRows]float32
}

var chunks = sync.Pool{New: func() any { return new(chunk) }}

// logSumExps sets dst to the logarithms of the sums of the exponentials of rows of x.
func (s *chunk) logSumExps(dst, x []float32, cols int) {
	n := len(dst)
	reducers().rows[kindMax](&s.a[0], &x[0], nil, n, cols)
	for j, top := range s.a[:n] {
		s.b[j] = expFrom(top)
	}
	rowKernel().expSumRows(&x[0], &s.b[0], &s.c[0], n, cols)
	for j := range dst {
		dst[j] = ReduceLogSumExp.Value(Partial{n: cols, value: float64(s.a[j]), m2: float64(s.c[j])}, 0)
	}
}

// eachChunk divides the rows from first to last-1 into chunks and calls f for each, which has n rows
// from row i on.
func eachChunk(first, last, cols int, f func(s *chunk, i, n int)) {
	s := chunks.Get().(*chunk)
	step := max(1, min(chunkRows, chunkElements/cols))
	for i := first; i < last; i += step {
		f(s, i, min(step, last-i))
	}
	chunks.Put(s)
}

// variances sets parts to the result of ReduceVar.Block for each of n rows of x.
func (s *chunk) variances(x []float32, n, cols int) {
	reducers().rows[kindSum](&s.a[0], &x[0], nil, n, cols)
	for j, raw := range s.a[:n] {
		sum := float64(raw)
		if !finite(raw) {
			sum = kindSum.repair(raw, x[j*cols:][:cols], nil)
		}
		s.a[j] = float32(sum / float64(cols))
	}
	reducers().deviationsRows(&s.b[0], &s.c[0], &x[0], &s.a[0], n, cols)
	for j, m := range s.a[:n] {
		q := Partial{n: cols}
		q.value, q.m2 = settle(x[j*cols:][:cols], m, s.b[j], s.c[j])
		s.parts[j] = q
	}
}
