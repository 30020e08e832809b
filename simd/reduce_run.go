package simd

import (
	"fmt"
	"sync"

	"github.com/rayo-go/rayo/internal/workers"
)

// What one thread takes for an element, in nanoseconds, where the cores have
// memory bandwidth to spare: what decides whether a split pays.
const (
	reduceNS     = 0.05
	reduceVarNS  = 0.12
	reduceRowsNS = 4 // for a row, besides its elements
)

func (r Reduction) ns() float64 {
	if r == ReduceVar {
		return reduceVarNS
	}
	return reduceNS
}

// Sum returns the sum of x: see [Reduction] for its accuracy.
func Sum(x []float32) float32 { return Reduce(nil, ReduceSum, x, nil) }

// Dot returns the sum of the products of the elements of x and y, which are
// of one length: see [Reduction] for its accuracy.
func Dot(x, y []float32) float32 { return Reduce(nil, ReduceDot, x, y) }

// Max returns the greatest element of x, or NaN if there is a NaN or nothing.
func Max(x []float32) float32 { return Reduce(nil, ReduceMax, x, nil) }

// Min returns the least element of x, or NaN if there is a NaN or nothing.
func Min(x []float32) float32 { return Reduce(nil, ReduceMin, x, nil) }

// ArgMax returns the index of the first NaN of x, or else of the first of its
// greatest elements, or -1 if x is empty.
func ArgMax(x []float32) int { return ReduceArgMax.Index(Fold(nil, ReduceArgMax, x, nil)) }

// ArgMin returns the index of the first NaN of x, or else of the first of its
// least elements, or -1 if x is empty.
func ArgMin(x []float32) int { return ReduceArgMin.Index(Fold(nil, ReduceArgMin, x, nil)) }

// Mean returns the mean of x, NaN if x is empty.
func Mean(x []float32) float32 { return Reduce(nil, ReduceMean, x, nil) }

// Var returns the variance of x, dividing by len(x)-ddof.
func Var(x []float32, ddof int) float32 {
	return ReduceVar.Value(Fold(nil, ReduceVar, x, nil), ddof)
}

// Reduce returns the reduction of x, and of y for ReduceDot, with the threads
// of p; a nil Pool is the calling thread alone. A variance has ddof 0; for that
// and for indices see [Fold].
func Reduce(p *workers.Pool, r Reduction, x, y []float32) float32 {
	// Short slices pay for no more than they need.
	if n := len(x); n <= ReduceBlock && r <= ReduceMaxAbs && r != ReduceVar && (r != ReduceDot || len(y) == n) {
		return r.Value(r.Block(x, y, 0), 0)
	}
	return r.Value(Fold(p, r, x, y), 0)
}

// Fold returns the reduction of x, and of y for ReduceDot, as a Partial. It
// allocates nothing once it is warm and panics if y does not fit x.
func Fold(p *workers.Pool, r Reduction, x, y []float32) Partial {
	if r == ReduceDot && len(y) != len(x) || r >= numReductions {
		panic(fmt.Sprintf("simd: %v of %d and %d elements", r, len(x), len(y)))
	}
	blocks := (len(x) + ReduceBlock - 1) / ReduceBlock
	if blocks < 2 || !p.Worth(float64(len(x))*r.ns()) {
		return r.fold(x, y, 0, blocks)
	}
	t := folds.Get().(*foldTask)
	t.r, t.x, t.y, t.blocks = r, x, y, blocks
	// Parts of a few blocks each, several for each thread.
	t.group = max(1, blocks/(8*p.Threads()))
	parts := (blocks + t.group - 1) / t.group
	// The order of additions must not depend on the threads, so every block
	// has a result of its own even though a part has many.
	if cap(t.partials) < blocks {
		t.partials = make([]Partial, blocks)
	}
	t.partials = t.partials[:blocks]
	p.Do(parts, t)
	var sum Partial
	for _, q := range t.partials {
		sum = r.Join(sum, q)
	}
	t.x, t.y = nil, nil
	folds.Put(t)
	return sum
}

// fold joins the blocks from first to last.
func (r Reduction) fold(x, y []float32, first, last int) Partial {
	var sum Partial
	for b := first; b < last; b++ {
		sum = r.Join(sum, r.nth(x, y, b))
	}
	return sum
}

// nth reduces block b of x.
func (r Reduction) nth(x, y []float32, b int) Partial {
	lo, hi := b*ReduceBlock, min((b+1)*ReduceBlock, len(x))
	if r == ReduceDot {
		return r.Block(x[lo:hi], y[lo:hi], lo)
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
	for b := i * t.group; b < min((i+1)*t.group, t.blocks); b++ {
		t.partials[b] = t.r.nth(t.x, t.y, b)
	}
}
