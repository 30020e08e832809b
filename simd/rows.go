package simd

import (
	"math"
	"sync"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/workers"
)

// RowKind is the kind of a [RowOp].
type RowKind uint8

// The kinds.
const (
	// RowSoftmax: exp(x) / sum(exp(x)), computed from x - max(x). A row with
	// NaN or +Inf, or with only -Inf, gives NaN in all elements.
	RowSoftmax RowKind = iota
	// RowLogSoftmax: the logarithm of RowSoftmax, x - max - log(sum(exp(x - max))).
	// The same rows give NaN. In other rows -Inf stays -Inf.
	RowLogSoftmax
	// RowLayerNorm: (x - mean) / sqrt(var + Eps) * Gamma + Beta, where the divisor
	// of the variance is the number of elements. A row with NaN or an infinity
	// gives NaN in all elements.
	RowLayerNorm
	// RowRMSNorm: x / sqrt(mean(x²) + Eps) * Gamma + Beta.
	RowRMSNorm

	numRowKinds
)

// A RowOp computes each row of a matrix from the same row of another.
//
// The error is a few units in the last place of the terms of the formula, plus, for a softmax,
// 2^-24·|x-max| of the result from rounding the difference, and for a layer norm a few units in the
// last place of Gamma from rounding the mean.
type RowOp struct {
	Kind RowKind
	// Gamma and Beta scale and shift the results of the norms; nil means
	// ones and zeros.
	Gamma, Beta []float32
	Eps         float32
}

// The time of one thread for an element, and for a row, in nanoseconds.
const (
	softmaxNS = 0.4
	normNS    = 0.25
	rowNS     = 20
)

// Softmax sets the rows of dst to the softmax of the rows of x: see [RowSoftmax].
func Softmax(p *workers.Pool, dst, x []float32, rows, cols int) {
	o := RowOp{Kind: RowSoftmax}
	o.Rows(p, dst, x, rows, cols)
}

// Rows computes rows rows of cols elements, without gaps, with the threads of p.
// With a nil Pool it uses only the calling thread. dst may be x, but must not overlap
// it otherwise. The result does not depend on the number of threads. After a first
// call Rows does not allocate. It panics if a slice is too short.
func (o *RowOp) Rows(p *workers.Pool, dst, x []float32, rows, cols int) {
	n := area(rows, cols)
	if len(dst) < n || len(x) < n || o.Kind >= numRowKinds ||
		o.Gamma != nil && len(o.Gamma) < cols || o.Beta != nil && len(o.Beta) < cols {
		panic(fmt.Sprintf("simd: RowOp of kind %d of %d rows of %d: dst, x, Gamma and Beta have lengths %d, %d, %d and %d",
			o.Kind, rows, cols, len(dst), len(x), len(o.Gamma), len(o.Beta)))
	}
	if n == 0 {
		return
	}
	ns := normNS
	if o.Kind <= RowLogSoftmax {
		ns = softmaxNS
	}
	split := p.Worth(float64(rows) * (rowNS + float64(cols)*ns))
	if !split && cols <= ReduceBlock {
		o.short(dst, x, 0, rows, cols)
		return
	}
	t := rowTasks.Get().(*rowTask)
	t.op, t.dst, t.x, t.rows, t.cols = *o, dst[:n], x[:n], rows, cols
	blocks := (cols + ReduceBlock - 1) / ReduceBlock
	switch {
	case !split:
		t.long(0, rows)
	case rows >= 4*p.Threads() || blocks == 1:
		t.phase = byRows
		t.group = max(1, rows/(8*p.Threads()))
		p.Do((rows+t.group-1)/t.group, t)
	default:
		t.reserve(blocks)
		t.group = max(1, blocks/(8*p.Threads()))
		for r := range rows {
			t.dst, t.x = dst[r*cols:][:cols], x[r*cols:][:cols]
			t.phase = byBlocks
			p.Do((blocks+t.group-1)/t.group, t)
			t.total()
			t.phase = finish
			p.Do((blocks+t.group-1)/t.group, t)
		}
	}
	t.op, t.dst, t.x = RowOp{}, nil, nil
	rowTasks.Put(t)
}

// short computes the rows from first to last-1, each of one block.
func (o *RowOp) short(dst, x []float32, first, last, cols int) {
	if f := rowKernel().softmaxRows; f != nil && o.Kind == RowSoftmax {
		f(&dst[first*cols], &x[first*cols], last-first, cols)
		return
	}
	if last-first == 1 || cols > chunkElements/2 {
		for r := first; r < last; r++ {
			d, s := dst[r*cols:][:cols], x[r*cols:][:cols]
			q := o.begin(d, s)
			o.end(d, s, 0, q, q)
		}
		return
	}
	eachChunk(first, last, cols, func(s *chunk, i, n int) {
		o.chunk(s, dst[i*cols:][:n*cols], x[i*cols:][:n*cols], n, cols)
	})
}

// chunk computes n rows at once. It gives the results of begin and end for each row.
func (o *RowOp) chunk(s *chunk, dst, x []float32, n, cols int) {
	from := x
	switch o.Kind {
	case RowLayerNorm:
		s.variances(x, n, cols)
	case RowRMSNorm:
		reducers().rows[kindSumSquares](&s.a[0], &x[0], nil, n, cols)
		for j, raw := range s.a[:n] {
			v := float64(raw)
			if !finite(raw) || raw < tiny {
				v = kindSumSquares.repair(raw, x[j*cols:][:cols], nil)
			}
			s.parts[j] = Partial{n: cols, value: v}
		}
	default:
		reducers().rows[kindMax](&s.a[0], &x[0], nil, n, cols)
		for j, top := range s.a[:n] {
			s.b[j] = expFrom(top)
		}
		if o.Kind == RowSoftmax {
			rowKernel().expStoreRows(&dst[0], &x[0], &s.b[0], &s.c[0], n, cols)
			from = dst
		} else {
			rowKernel().expSumRows(&x[0], &s.b[0], &s.c[0], n, cols)
			logKernel()(&s.c[0], &s.c[0], nil, nil, n, nil)
			for j, top := range s.a[:n] {
				s.msb[3*j], s.msb[3*j+1], s.msb[3*j+2] = top, 1, -s.c[j]
			}
			rowKernel().affineRows(&dst[0], &x[0], nil, nil, &s.msb[0], n, cols)
			return
		}
		for j, top := range s.a[:n] {
			s.parts[j] = Partial{n: cols, value: float64(top), m2: float64(s.c[j])}
		}
	}
	for j, q := range s.parts[:n] {
		s.msb[3*j], s.msb[3*j+1], s.msb[3*j+2] = o.coefficients(q, q)
	}
	gamma, beta := o.weights(0)
	rowKernel().affineRows(&dst[0], &from[0], gamma, beta, &s.msb[0], n, cols)
}

// Row computes one row in the calling thread. Use it to process a row further while it is in the
// cache. dst and x must have one length; dst may be x.
func (o *RowOp) Row(dst, x []float32) { o.Rows(nil, dst, x, 1, len(x)) }

// rowTask computes a RowOp with several threads. Rows of more than one block take
// two passes. The first computes the Partial of each block (and for a softmax the
// exponentials, relative to the maximum of the block). The second finishes the
// blocks with the joined Partial of the row.
type rowTask struct {
	op         RowOp
	dst, x     []float32
	rows, cols int
	group      int
	phase      rowPhase
	parts      []Partial
	all        Partial
}

type rowPhase uint8

const (
	byRows   rowPhase = iota // a part is a group of rows
	byBlocks                 // a part is the first pass over some blocks of one row
	finish                   // a part is the second pass over some blocks of one row
)

var rowTasks = sync.Pool{New: func() any { return new(rowTask) }}

// Part does one part of the phase.
func (t *rowTask) Part(i int) {
	first, last := i*t.group, (i+1)*t.group
	switch t.phase {
	case byRows:
		if t.cols <= ReduceBlock {
			t.op.short(t.dst, t.x, first, min(last, t.rows), t.cols)
			return
		}
		u := rowTasks.Get().(*rowTask)
		u.op, u.dst, u.x, u.cols = t.op, t.dst, t.x, t.cols
		u.long(first, min(last, t.rows))
		u.op, u.dst, u.x = RowOp{}, nil, nil
		rowTasks.Put(u)
	case byBlocks:
		for b := first; b < min(last, len(t.parts)); b++ {
			lo, hi := t.block(b)
			t.parts[b] = t.op.begin(t.dst[lo:hi], t.x[lo:hi])
		}
	case finish:
		for b := first; b < min(last, len(t.parts)); b++ {
			lo, hi := t.block(b)
			t.op.end(t.dst[lo:hi], t.x[lo:hi], lo, t.parts[b], t.all)
		}
	}
}

// block returns the columns of block b of a row.
func (t *rowTask) block(b int) (lo, hi int) {
	return b * ReduceBlock, min((b+1)*ReduceBlock, t.cols)
}

func (t *rowTask) reserve(blocks int) {
	if cap(t.parts) < blocks {
		t.parts = make([]Partial, blocks)
	}
	t.parts = t.parts[:blocks]
}

// total joins the partials of all blocks of a row.
func (t *rowTask) total() {
	t.all = Partial{}
	for _, q := range t.parts {
		t.all = t.op.join(t.all, q)
	}
}

// long computes the rows from first to last-1, each of several blocks.
func (t *rowTask) long(first, last int) {
	cols := t.cols
	t.reserve((cols + ReduceBlock - 1) / ReduceBlock)
	for r := first; r < last; r++ {
		dst, x := t.dst[r*cols:][:cols], t.x[r*cols:][:cols]
		for b := range t.parts {
			lo, hi := t.block(b)
			t.parts[b] = t.op.begin(dst[lo:hi], x[lo:hi])
		}
		t.total()
		for b := range t.parts {
			lo, hi := t.block(b)
			t.op.end(dst[lo:hi], x[lo:hi], lo, t.parts[b], t.all)
		}
	}
}

// begin is the first pass over a block of a row. The Partial of a softmax is
// the maximum and the sum of exponentials relative to it; that of a norm is a
// variance or a sum of squares.
func (o *RowOp) begin(dst, x []float32) Partial {
	switch o.Kind {
	case RowLayerNorm:
		return ReduceVar.Block(x, nil, 0)
	case RowRMSNorm:
		return ReduceSumSquares.Block(x, nil, 0)
	}
	n := len(x)
	top := reducers().block[kindMax](&x[0], nil, n)
	var sum float32
	if o.Kind == RowSoftmax {
		sum = rowKernel().expStore(&dst[0], &x[0], n, expFrom(top))
	} else {
		sum = rowKernel().expSum(&x[0], n, expFrom(top))
	}
	return Partial{n: n, value: float64(top), m2: float64(sum)}
}

// expFrom returns the number that is subtracted from the arguments of the exponentials of a block with
// maximum top. For -Inf it is 0, so that the exponentials are zeros: other blocks of the row may be
// finite.
func expFrom(top float32) float32 {
	if math.IsInf(float64(top), -1) {
		return 0
	}
	return top
}

// join joins the Partial b of a block with the Partial a of the blocks before it.
func (o *RowOp) join(a, b Partial) Partial {
	switch {
	case o.Kind == RowLayerNorm:
		return ReduceVar.Join(a, b)
	case o.Kind == RowRMSNorm:
		return ReduceSumSquares.Join(a, b)
	case a.n == 0:
		return b
	}
	return joinExponentials(a, b)
}

// joinExponentials joins two sums of exponentials, each relative to its greatest element.
func joinExponentials(a, b Partial) Partial {
	m := max(a.value, b.value)
	return Partial{n: a.n + b.n, value: m, m2: a.m2*shrink(a.value, m) + b.m2*shrink(b.value, m)}
}

// shrink returns exp(from - to), the factor that changes exponentials relative to
// from into exponentials relative to to.
func shrink(from, to float64) float64 {
	switch {
	case math.IsInf(from, -1):
		return 0 // even if to is -Inf: the exponentials are zeros
	case from == to && !math.IsInf(to, 1):
		return 1
	}
	return math.Exp(from - to)
}

// end is the second pass over a block whose first column is at. block is the result of
// begin for the block, and row the joined results for all blocks.
func (o *RowOp) end(dst, x []float32, at int, block, row Partial) {
	if o.Kind == RowSoftmax {
		x = dst
	}
	gamma, beta := o.weights(at)
	m, s, b := o.coefficients(block, row)
	rowKernel().affine(&dst[0], &x[0], gamma, beta, len(x), m, s, b)
}

// weights returns Gamma and Beta from column at on, or nil.
func (o *RowOp) weights(at int) (gamma, beta *float32) {
	if o.Kind >= RowLayerNorm && o.Gamma != nil {
		gamma = &o.Gamma[at]
	}
	if o.Kind >= RowLayerNorm && o.Beta != nil {
		beta = &o.Beta[at]
	}
	return gamma, beta
}

// coefficients returns the m, s and b for which (x-m)*s+b is the result for an element x of
// a block, or for an exponential x if Kind is RowSoftmax.
func (o *RowOp) coefficients(block, row Partial) (m, s, b float32) {
	switch o.Kind {
	case RowSoftmax:
		return 0, float32(shrink(block.value, row.value) / row.m2), 0
	case RowLogSoftmax:
		// m is the maximum, so that x-m is accurate however large the elements are.
		sum := [1]float32{float32(row.m2)}
		at := hide(sum[:])
		logKernel()(at, at, nil, nil, 1, nil)
		return float32(row.value), 1, -sum[0]
	case RowLayerNorm:
		m = float32(row.value)
		f := 1 / math.Sqrt(row.m2/float64(row.n)+float64(o.Eps))
		return m, float32(f), float32((float64(m) - row.value) * f)
	default:
		return 0, float32(1 / math.Sqrt(row.value/float64(row.n)+float64(o.Eps))), 0
	}
}
