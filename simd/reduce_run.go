package simd

import (
	"sync"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/internal/workers"
)

// The time of one thread in nanoseconds, which decides whether threads share the work.
const (
	cachedByteNS = 0.009 // for a byte in the second cache
	remoteByteNS = 0.03  // for a byte in a farther cache or in memory
	reduceRowNS  = 4     // for a row, besides its elements
)

// readNS returns the time to read n elements.
func readNS(n int) float64 {
	bytes := 4 * float64(n)
	if bytes > float64(memory.CPUCaches().L2) {
		return bytes * remoteByteNS
	}
	return bytes * cachedByteNS
}

// ns returns the time to reduce n elements.
func (r Reduction) ns(n int) float64 {
	switch r {
	case ReduceDot:
		n *= 2
	case ReduceVar:
		return readNS(n) + float64(n)*0.04 // the second pass
	case ReduceLogSumExp:
		return readNS(n) + float64(n)*0.4 // the exponentials
	}
	return readNS(n)
}

// Sum returns the sum of x: see [Reduction] for its accuracy.
func Sum(x []float32) float32 { return Reduce(nil, ReduceSum, x, nil) }

// Dot returns the sum of the products of the elements of x and y, which are
// of one length: see [Reduction] for its accuracy.
func Dot(x, y []float32) float32 {
	if n := len(x); n > 0 && n <= ReduceBlock && len(y) == n { // for short vectors Reduce itself takes most of the time
		if raw := reducers().block[kindDot](&x[0], &y[0], n); finite(raw) {
			return raw
		}
	}
	return Reduce(nil, ReduceDot, x, y)
}

// Max returns the greatest element of x, or NaN if an element is NaN or x is empty.
func Max(x []float32) float32 { return Reduce(nil, ReduceMax, x, nil) }

// Min returns the least element of x, or NaN if an element is NaN or x is empty.
func Min(x []float32) float32 { return Reduce(nil, ReduceMin, x, nil) }

// ArgMax returns the index of the first NaN of x, or without NaN the index of the
// first of the greatest elements. It returns -1 if x is empty.
func ArgMax(x []float32) int { return ReduceArgMax.Index(Fold(nil, ReduceArgMax, x, nil)) }

// ArgMin returns the index of the first NaN of x, or without NaN the index of the
// first of the least elements. It returns -1 if x is empty.
func ArgMin(x []float32) int { return ReduceArgMin.Index(Fold(nil, ReduceArgMin, x, nil)) }

// Mean returns the mean of x, NaN if x is empty.
func Mean(x []float32) float32 { return Reduce(nil, ReduceMean, x, nil) }

// Var returns the variance of x, dividing by len(x)-ddof.
func Var(x []float32, ddof int) float32 {
	return ReduceVar.Value(Fold(nil, ReduceVar, x, nil), ddof)
}

// Reduce returns the reduction of x, and of y for ReduceDot, with the threads
// of p. With a nil Pool it uses only the calling thread. A variance has ddof 0: for
// other values, and for indices, use [Fold].
func Reduce(p *workers.Pool, r Reduction, x, y []float32) float32 {
	// Short slices skip the overhead of Fold.
	if n := len(x); n <= ReduceBlock && r <= ReduceMaxAbs && r != ReduceVar && (r != ReduceDot || len(y) == n) {
		return r.Value(r.Block(x, y, 0), 0)
	}
	return r.Value(Fold(p, r, x, y), 0)
}

// Fold returns the reduction of x, and of y for ReduceDot, as a Partial. After a
// first call it does not allocate. It panics if x and y have different lengths.
func Fold(p *workers.Pool, r Reduction, x, y []float32) Partial {
	if r == ReduceDot && len(y) != len(x) || r >= numReductions {
		panic(fmt.Sprintf("simd: %v of x with %d and y with %d elements: the reduction must exist, and a dot needs equal lengths", r, len(x), len(y)))
	}
	blocks := (len(x) + ReduceBlock - 1) / ReduceBlock
	if blocks < 2 || !p.Worth(r.ns(len(x))) {
		return r.Search(x, r.fold(x, y, 0, blocks))
	}
	t := folds.Get().(*foldTask)
	t.r, t.x, t.y, t.blocks = r, x, y, blocks
	// Parts of a few blocks each, several for each thread.
	t.group = max(1, blocks/(8*p.Threads()))
	parts := (blocks + t.group - 1) / t.group
	// The order of additions must not depend on the threads, so every block has its own result even
	// though a part has many blocks.
	if cap(t.partials) < blocks {
		t.partials = make([]Partial, blocks)
	}
	t.partials = t.partials[:blocks]
	p.Spread(parts, p.Turn(), t)
	sum := r.JoinAll(Partial{}, t.partials)
	t.x, t.y = nil, nil
	folds.Put(t)
	return r.Search(x, sum)
}

// Search replaces the block in p, a result of [Reduction.Blocks] for ReduceArgMax or ReduceArgMin, by the
// index of the extreme. Searching only one block halves the work. x is the whole slice. For other
// reductions Search returns p.
func (r Reduction) Search(x []float32, p Partial) Partial {
	if (r == ReduceArgMax || r == ReduceArgMin) && p.n > 0 {
		block := x[p.at:min(p.at+ReduceBlock, len(x))]
		p.at += reducers().index(&block[0], len(block), float32(p.value))
	}
	return p
}

// fold joins the blocks from first to last-1.
func (r Reduction) fold(x, y []float32, first, last int) Partial {
	if last-first == 1 {
		return r.nth(x, y, first)
	}
	var sum Partial
	s := chunks.Get().(*chunk)
	for ; first < last; first += len(s.parts) {
		parts := s.parts[:min(len(s.parts), last-first)]
		r.nths(parts, x, y, first)
		sum = r.JoinAll(sum, parts)
	}
	chunks.Put(s)
	return sum
}

// nths sets dst to the results of nth for len(dst) blocks, starting with block first.
func (r Reduction) nths(dst []Partial, x, y []float32, first int) {
	lo := first * ReduceBlock
	hi := min(lo+len(dst)*ReduceBlock, len(x))
	if y != nil {
		y = y[lo:hi]
	}
	r.Blocks(dst, x[lo:hi], y, lo)
}

// nth reduces block b of x. For an index it finds only the block, which Search
// then searches.
func (r Reduction) nth(x, y []float32, b int) Partial {
	lo, hi := b*ReduceBlock, min((b+1)*ReduceBlock, len(x))
	switch r {
	case ReduceDot:
		return r.Block(x[lo:hi], y[lo:hi], lo)
	case ReduceArgMax, ReduceArgMin:
		return Partial{n: hi - lo, value: float64(reducers().block[r.kind()](&x[lo], nil, hi-lo)), at: lo}
	}
	return r.Block(x[lo:hi], nil, lo)
}

type foldTask struct {
	r             Reduction
	x, y          []float32
	blocks, group int
	partials      []Partial
}

var folds = sync.Pool{New: func() any { return new(foldTask) }}

// Part reduces a few blocks.
func (t *foldTask) Part(i int) {
	first := i * t.group
	t.r.nths(t.partials[first:min(first+t.group, t.blocks)], t.x, t.y, first)
}
