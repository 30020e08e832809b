package simd

import (
	"math"

	"github.com/rayo-go/rayo/internal/fmt"
)

//go:generate go -C _asm run ./reduce ..

// Reduction is a reduction of many numbers to one.
//
// Sums are computed in float32, with many accumulators, within blocks of ReduceBlock
// elements, and in float64 across blocks, always in the same order: the result does
// not depend on the number of threads. If a sum within a block overflows or, for a
// norm, underflows, the block is summed again in float64, so that a result overflows
// only if its true value does.
//
// The error of a sum of n terms is at most 2^-23·(8+min(n, ReduceBlock)/32) of
// the sum of their magnitudes, and usually less than a tenth of that.
//
// If an element is NaN, the result is NaN or its index. The greatest or least of -0 and +0
// may be either.
type Reduction uint8

// The reductions of x, and for ReduceDot of x and y, with their results for no elements.
const (
	ReduceSum        Reduction = iota // sum; 0
	ReduceSumAbs                      // sum of |x|, the L1 norm; 0
	ReduceSumSquares                  // sum of x²; 0
	ReduceNorm                        // square root of the sum of x², the L2 norm; 0
	ReduceDot                         // sum of x·y; 0
	ReduceMean                        // sum divided by the number; NaN
	ReduceVar                         // mean of (x-mean)², with ddof taken off the number; NaN
	ReduceMax                         // greatest; NaN
	ReduceMin                         // least; NaN
	ReduceMaxAbs                      // greatest |x|, the L∞ norm; 0
	ReduceLogSumExp                   // logarithm of the sum of e**x; -Inf
	ReduceArgMax                      // index of the first NaN, or of the first greatest; -1
	ReduceArgMin                      // index of the first NaN, or of the first least; -1

	numReductions
)

var reductionNames = [numReductions]string{"sum", "sumabs", "sumsquares", "norm", "dot", "mean", "var",
	"max", "min", "maxabs", "logsumexp", "argmax", "argmin"}

// String returns the name.
func (r Reduction) String() string {
	if r < numReductions {
		return reductionNames[r]
	}
	return fmt.Sprintf("Reduction(%d)", uint8(r))
}

// ReduceBlock is the number of elements of a block. Only the last block of a slice may
// have fewer.
const ReduceBlock = 8192

// Partial is the reduction of some adjacent elements, with all state that is needed to combine it
// with the Partial of the next elements. The zero Partial is the reduction of no elements.
type Partial struct {
	n     int     // the number of elements
	value float64 // the sum, or the extreme; for a variance the mean; for a logsumexp the greatest element
	m2    float64 // for a variance: the sum of squared distances from the mean; for a logsumexp: the sum of e**(x-value)
	at    int     // for an index: the index of value, or of the start of its block
}

// kind returns the kind of the kernel that reduces blocks.
func (r Reduction) kind() kind {
	switch r {
	case ReduceSumAbs:
		return kindSumAbs
	case ReduceSumSquares, ReduceNorm:
		return kindSumSquares
	case ReduceDot:
		return kindDot
	case ReduceMax, ReduceArgMax, ReduceLogSumExp:
		return kindMax
	case ReduceMin, ReduceArgMin:
		return kindMin
	case ReduceMaxAbs:
		return kindMaxAbs
	}
	return kindSum
}

// Block reduces one block: at most ReduceBlock elements of x, and for
// ReduceDot as many of y. y is nil for other reductions. at is the index of x[0]
// in the whole slice.
func (r Reduction) Block(x, y []float32, at int) Partial {
	n := len(x)
	if n == 0 {
		return Partial{}
	}
	k := r.kind()
	var yp *float32
	if k == kindDot {
		yp = &y[:n][0]
	}
	raw := reducers().block[k](&x[0], yp, n)
	p := Partial{n: n, value: float64(raw), at: at}
	switch r {
	case ReduceVar:
		p.value = k.repair(raw, x, y)
		p.value, p.m2 = deviations(x, p.value/float64(n))
	case ReduceArgMax, ReduceArgMin:
		p.at += reducers().index(&x[0], n, raw)
	case ReduceLogSumExp:
		p.m2 = float64(rowKernel().expSum(&x[0], n, expFrom(raw)))
	case ReduceMax, ReduceMin, ReduceMaxAbs:
	default:
		p.value = k.repair(raw, x, y)
	}
	return p
}

// blocksAtOnce is the largest number of blocks that a kernel reduces in one call.
const blocksAtOnce = uninterrupted / ReduceBlock

// Blocks sets dst to the results of [Reduction.Block] for adjacent blocks from the start of x, and
// of y for ReduceDot. Only the last block may be shorter than ReduceBlock. Blocks is faster than
// Block in a loop, because a kernel starts the next block while it adds up the accumulators of the
// last one. For an index it finds only the block: see [Reduction.Search].
func (r Reduction) Blocks(dst []Partial, x, y []float32, at int) {
	k := r.kind()
	if r != ReduceVar && r != ReduceLogSumExp && len(dst) > 1 {
		s := chunks.Get().(*chunk)
		for n := min(len(dst), len(x)/ReduceBlock, blocksAtOnce); n > 1; n = min(len(dst), len(x)/ReduceBlock, blocksAtOnce) {
			var yp *float32
			if k == kindDot {
				yp = &y[:n*ReduceBlock][0]
			}
			reducers().rows[k](&s.a[0], &x[0], yp, n, ReduceBlock)
			for i, raw := range s.a[:n] {
				value := float64(raw)
				if k.doubtful(raw) {
					value = k.repair(raw, blockOf(x, i), blockOf(y, i))
				}
				dst[i] = Partial{n: ReduceBlock, value: value, at: at + i*ReduceBlock}
			}
			dst, x, at = dst[n:], x[n*ReduceBlock:], at+n*ReduceBlock
			if k == kindDot {
				y = y[n*ReduceBlock:]
			}
		}
		chunks.Put(s)
	}
	if r == ReduceArgMax {
		r = ReduceMax // which does not search the index
	} else if r == ReduceArgMin {
		r = ReduceMin
	}
	for i := range dst {
		dst[i] = r.Block(blockOf(x, i), blockOf(y, i), at+i*ReduceBlock)
	}
}

// blockOf returns block i of x, or nil if x is nil.
func blockOf(x []float32, i int) []float32 {
	if x == nil {
		return nil
	}
	return x[i*ReduceBlock : min((i+1)*ReduceBlock, len(x))]
}

// deviations returns the mean of x and the sum of the squared distances from
// the mean, given a rounded mean.
func deviations(x []float32, mean float64) (exact, m2 float64) {
	m := float32(mean)
	s1, s2 := reducers().deviations(&x[0], len(x), m)
	return settle(x, m, s1, s2)
}

// settle returns the mean of x and the sum of the squared distances from the mean, given m, a rounded
// mean, the sum s1 of the distances from m, and the sum s2 of their squares. s1 gives the rounding
// error of m, which corrects both results.
func settle(x []float32, m, s1, s2 float32) (exact, m2 float64) {
	if !finite(s2) {
		return deviations64(x, float64(m))
	}
	d := float64(s1) / float64(len(x))
	return float64(m) + d, max(0, float64(s2)-d*float64(s1))
}

// Join returns the reduction of a's elements followed by b's.
func (r Reduction) Join(a, b Partial) Partial {
	if a.n == 0 {
		return b
	}
	if b.n == 0 {
		return a
	}
	switch r {
	case ReduceVar:
		n := float64(a.n + b.n)
		d := b.value - a.value
		a.m2 += b.m2 + d*d*(float64(a.n)/n)*float64(b.n)
		a.value += d * (float64(b.n) / n)
	case ReduceLogSumExp:
		return joinExponentials(a, b)
	case ReduceMax, ReduceMaxAbs, ReduceArgMax:
		if b.value > a.value || b.value != b.value && a.value == a.value {
			a.value, a.at = b.value, b.at
		}
	case ReduceMin, ReduceArgMin:
		if b.value < a.value || b.value != b.value && a.value == a.value {
			a.value, a.at = b.value, b.at
		}
	default:
		a.value += b.value
	}
	a.n += b.n
	return a
}

// JoinAll joins a and the parts in their order.
func (r Reduction) JoinAll(a Partial, parts []Partial) Partial {
	switch r {
	case ReduceSum, ReduceSumAbs, ReduceSumSquares, ReduceNorm, ReduceDot, ReduceMean:
		if a.n == 0 && len(parts) > 0 {
			a, parts = parts[0], parts[1:]
		}
		for i := range parts {
			a.value += parts[i].value
			a.n += parts[i].n
		}
		return a
	}
	for _, p := range parts {
		a = r.Join(a, p)
	}
	return a
}

// Value returns the result of the reduction. ddof is subtracted from the number of elements in the
// divisor of a variance, which is never below 0. Other reductions ignore ddof. For an index see
// [Reduction.Index].
func (r Reduction) Value(p Partial, ddof int) float32 {
	n := float64(p.n)
	switch r {
	case ReduceNorm:
		return float32(math.Sqrt(p.value))
	case ReduceMean:
		return float32(p.value / n)
	case ReduceVar:
		return float32(p.m2 / max(0, n-float64(ddof)))
	case ReduceLogSumExp:
		switch {
		case p.n == 0:
			return float32(math.Inf(-1))
		case math.IsInf(p.value, 1): // no element is NaN
			return float32(p.value)
		}
		return float32(p.value + math.Log(p.m2))
	case ReduceMax, ReduceMin:
		if p.n == 0 {
			return float32(math.NaN())
		}
	}
	return float32(p.value)
}

// Index returns the result of ReduceArgMax or ReduceArgMin, or -1 for no elements.
func (r Reduction) Index(p Partial) int {
	if p.n == 0 {
		return -1
	}
	return p.at
}

func finite(x float32) bool { return x-x == 0 }
