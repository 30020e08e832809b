package simd

import (
	"math"
	"sync"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/workers"
)

// Attention is scaled dot-product attention over heads:
//
//	Dst[h, i, :] = sum over j of softmax_j(Scale · Q[h, i, :]·K[g, j, :]) · V[g, j, :]
//
// Q is [Heads, Queries, Dim], K [KVHeads, Keys, Dim], V [KVHeads, Keys, ValueDim]
// and Dst [Heads, Queries, ValueDim]. They are contiguous unless strides are given.
// Heads is a multiple of KVHeads, and g is h·KVHeads/Heads: neighbouring heads share
// their keys and values. For a batch, multiply Heads and KVHeads by its size.
//
// With Causal, query i sees the keys j <= i + Keys - Queries, otherwise all keys;
// [Sight] has more options. A query that sees no key gives zeros. Keys and values that
// a query does not see do not affect it, even if they are NaN.
//
// Scores are stored only for one block of queries and keys at a time: a running softmax
// is corrected for each further block of keys (Milakov and Gimelshein 2018).
type Attention struct {
	Heads, KVHeads int
	Queries, Keys  int
	Dim            int
	ValueDim       int // 0 means Dim
	Q, K, V, Dst   []float32
	Halves
	// Strides in elements from one head to the next and from one row to the next. An operand with
	// a Row of 0 is contiguous.
	QHead, QRow, KHead, KRow, VHead, VRow, DstHead, DstRow int

	Scale  float32 // 0 means 1/sqrt(Dim), -0 is the number 0
	Causal bool
	Sight
}

const (
	attentionRows = 64  // queries in a block, which may belong to several heads that share keys
	attentionKeys = 512 // keys in a block

	// Few queries give work to several threads only along the keys. Up to
	// fewQueries queries, keys are therefore split into stretches, on any number
	// of threads, so that the result does not depend on that number.
	fewQueries       = 16
	attentionStretch = 1024

	// dotQueries is the largest number of queries in a block whose scores are
	// computed by dot products, which read the keys in place.
	dotQueries = 4
)

// strides sets the strides of a contiguous operand.
func strides(head, row *int, rows, dim int) {
	if *row == 0 {
		*head, *row = rows*dim, dim
	}
}

// Run computes the attention with the threads of p. With a nil Pool it uses only the
// calling thread. Dst must not overlap the operands. The result does not depend
// on the number of threads. Run panics if a size is invalid or a slice too short.
func (a *Attention) Run(p *workers.Pool) {
	d := *a
	if d.ValueDim == 0 {
		d.ValueDim = d.Dim
	}
	if math.Float32bits(d.Scale) == 0 {
		d.Scale = float32(1 / math.Sqrt(float64(d.Dim)))
	}
	queries := area(d.Heads, d.Queries)
	strides(&d.QHead, &d.QRow, d.Queries, d.Dim)
	strides(&d.KHead, &d.KRow, d.Keys, d.Dim)
	strides(&d.VHead, &d.VRow, d.Keys, d.ValueDim)
	strides(&d.DstHead, &d.DstRow, d.Queries, d.ValueDim)
	if d.Heads > 0 && (d.KVHeads <= 0 || d.Heads%d.KVHeads != 0) ||
		d.DstRow < d.ValueDim {
		panic(fmt.Sprintf("simd: Attention of %d heads of %d queries, %d of %d keys, dim %d and %d: lengths %d, %d, %d, %d",
			d.Heads, d.Queries, d.KVHeads, d.Keys, d.Dim, d.ValueDim, len(d.Q), len(d.K), len(d.V), len(d.Dst)))
	}
	fits("Dst", len(d.Dst), d.Heads, d.DstHead, d.Queries, d.DstRow, d.ValueDim, 1)
	fits("Q", len(d.Q), d.Heads, d.QHead, d.Queries, d.QRow, d.Dim, 1)
	if d.Page > 0 && d.Keys > 0 {
		d.checkPages(d.Keys)
	} else {
		fits("K", d.elements(d.K, d.KHalves), d.KVHeads, d.KHead, d.Keys, d.KRow, d.Dim, 1)
		fits("V", d.elements(d.V, d.VHalves), d.KVHeads, d.VHead, d.Keys, d.VRow, d.ValueDim, 1)
	}
	if queries == 0 || d.ValueDim == 0 {
		return
	}
	if d.Keys <= 0 {
		for i := range queries {
			clear(d.Dst[i/d.Queries*d.DstHead+i%d.Queries*d.DstRow:][:d.ValueDim])
		}
		return
	}
	t := attentions.Get().(*attentionTask)
	t.run(d, p)
	t.Attention = Attention{}
	attentions.Put(t)
}

// attentionTask computes an Attention with several threads. The rows of a head of
// keys are the queries of all heads that share it, which are adjacent in memory.
type attentionTask struct {
	Attention
	rows   int // rows of one head of keys
	blocks int // blocks of rows
	splits int // stretches of keys

	// If there are several stretches: for each, the sums of weighted values before the division, and
	// the maxima and sums of the softmax that join needs.
	partial []float32
	tops    []float32 // maxima of the scores
	sums    []float64 // sums of their exponentials
	shown   []int     // the number of keys that each query saw
}

// attentionScratch is the temporary memory of a part.
type attentionScratch struct {
	q, scores []float32
	few       attentionFew
	k, v      []float32 // keys and values converted from 16 bits
	out       []float32 // results that are not contiguous in Dst
	tops      []float32
	sums      []float64
	shown     []int
}

var (
	attentions         = sync.Pool{New: func() any { return new(attentionTask) }}
	attentionScratches = sync.Pool{New: func() any { return new(attentionScratch) }}
)

// resized returns s with length n and unspecified elements.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

func (t *attentionTask) run(a Attention, p *workers.Pool) {
	t.Attention = a
	t.rows = a.Heads / a.KVHeads * a.Queries
	t.blocks, t.splits = ceilDiv(t.rows, attentionRows), 1
	if t.rows <= fewQueries {
		t.splits = ceilDiv(a.Keys, attentionStretch)
	}
	queries := a.Heads * a.Queries
	if t.splits > 1 {
		t.partial = resized(t.partial, t.splits*queries*a.ValueDim)
		t.tops, t.sums, t.shown = resized(t.tops, t.splits*queries), resized(t.sums, t.splits*queries), resized(t.shown, t.splits*queries)
	}
	parts := a.KVHeads * t.blocks * t.splits
	ns := float64(queries) * float64(a.Keys) * float64(a.Dim+a.ValueDim) / 25
	if !p.Worth(ns) {
		p = p.Serial()
	}
	p.Do(parts, t)
	if t.splits > 1 {
		t.join()
	}
}

// Part computes one block of queries with one stretch of keys.
func (t *attentionTask) Part(i int) {
	split, block, head := i%t.splits, i/t.splits%t.blocks, i/t.splits/t.blocks
	// The last queries see the most keys: their blocks go first.
	block = t.blocks - 1 - block
	r0, r1 := spread(t.rows, t.blocks, block), spread(t.rows, t.blocks, block+1)
	k0, k1 := spread(t.Keys, t.splits, split), spread(t.Keys, t.splits, split+1)
	n := r1 - r0

	s := attentionScratches.Get().(*attentionScratch)
	s.q, s.scores = resized(s.q, n*t.Dim), resized(s.scores, n*attentionKeys)
	s.tops, s.sums, s.shown = resized(s.tops, n), resized(s.sums, n), resized(s.shown, n)

	first := head*t.rows + r0 // the first row of Q
	w := attentionWeights{tops: s.tops, sums: s.sums, shown: s.shown}
	beside := t.DstRow == t.ValueDim && t.DstHead == t.Queries*t.ValueDim
	var out []float32
	switch {
	case t.splits > 1:
	case beside:
		out = t.Dst[first*t.ValueDim:][:n*t.ValueDim]
	default:
		s.out = resized(s.out, n*t.ValueDim)
		out = s.out
	}
	if t.splits > 1 {
		at := split*t.Heads*t.Queries + first
		out = t.partial[at*t.ValueDim:][:n*t.ValueDim]
		w = attentionWeights{tops: t.tops[at:][:n], sums: t.sums[at:][:n], shown: t.shown[at:][:n]}
	}
	for r := range n {
		w.tops[r], w.sums[r], w.shown[r] = float32(math.Inf(-1)), 0, 0
	}
	w.out = out
	clear(out)
	t.queries(s.q, head, r0, n)
	s.few.prepare(s.q, n, t.Dim)
	least, most := k1, 0
	for r := r0; r < r1; r++ {
		first, end := t.sight(r)
		least, most = min(least, first), max(most, end)
	}
	k0, k1 = max(k0, least), min(k1, most)
	for j := k0; j < k1; {
		count := min(attentionKeys, k1-j)
		if t.Page > 0 {
			count = min(count, t.Page-j%t.Page)
		}
		t.keys(s, &w, head, r0, n, j, count)
		j += count
	}
	if t.splits == 1 {
		for r := range n {
			t.divide(out[r*t.ValueDim:][:t.ValueDim], w.sums[r], w.shown[r])
			if !beside {
				copy(t.result(first+r), out[r*t.ValueDim:][:t.ValueDim])
			}
		}
	}
	attentionScratches.Put(s)
}

// result returns the position of a query's result among all heads.
func (t *attentionTask) result(q int) []float32 {
	return t.Dst[q/t.Queries*t.DstHead+q%t.Queries*t.DstRow:][:t.ValueDim]
}

// queries writes the queries of n rows of a head of keys, from row r0 on, times the scale, to q.
func (t *attentionTask) queries(q []float32, head, r0, n int) {
	if n*t.Dim == 0 {
		return
	}
	scale := t.Scale
	if t.Softcap != 0 {
		scale /= t.Softcap
	}
	if t.QRow == t.Dim && t.QHead == t.Queries*t.Dim {
		rowKernel().affine(&q[0], &t.Q[(head*t.rows+r0)*t.Dim], nil, nil, n*t.Dim, 0, scale, 0)
		return
	}
	for r := range n {
		at := head*t.rows + r0 + r
		rowKernel().affine(&q[r*t.Dim], &t.Q[at/t.Queries*t.QHead+at%t.Queries*t.QRow], nil, nil, t.Dim, 0, scale, 0)
	}
}

// attentionWeights has, for each row, the running maximum and sum of the softmax, and the weighted
// sums of values before the division.
type attentionWeights struct {
	out, tops []float32
	sums      []float64
	shown     []int
}

// keys adds count keys, from key j on, to the results of n rows from row r0 on.
func (t *attentionTask) keys(s *attentionScratch, w *attentionWeights, head, r0, n, j, count int) {
	kAt, vAt, is := t.places(head, j)
	if !is {
		return
	}
	k, kRow := t.read(&s.k, t.K, t.KHalves, kAt, count, t.KRow, t.Dim)
	v, vRow := t.read(&s.v, t.V, t.VHalves, vAt, count, t.VRow, t.ValueDim)
	scores := s.scores[:n*count]
	switch {
	case t.Dim == 0:
		clear(scores)
	case n <= dotQueries && kRow == t.Dim:
		for r := range n {
			reducers().dotEach(&scores[r*count], &k[0], &s.q[r*t.Dim], count, t.Dim)
		}
	case s.few.kernels != nil:
		s.few.scores(scores, k, n, count, kRow, t.Dim)
	default:
		g := Gemm{M: n, N: count, K: t.Dim, A: s.q, B: k, BRow: 1, BCol: kRow, C: scores}
		g.Run(nil)
	}
	if t.Softcap != 0 {
		t.cap(scores)
	}

	hidden := false
	for r := range n {
		row := scores[r*count:][:count]
		first, end := t.stretch(r0+r, j, count)
		// Hidden keys get the weight 0.
		clear(row[:first])
		clear(row[end:])
		shown := t.masked(row, head, r0+r, j, first, end)
		w.shown[r] += shown
		hidden = hidden || shown < count
		if shown > 0 {
			t.weigh(w, r, row[first:end])
		} else {
			clear(row)
		}
	}

	// A value of NaN or infinity times a weight of 0 would make the product NaN.
	if hidden && !finiteRows(v, count, vRow, t.ValueDim) {
		t.addSeen(w, scores, v, vRow, head, r0, n, j, count)
		return
	}
	if s.few.kernels != nil {
		s.few.add(w.out, scores, v, n, count, vRow, t.ValueDim)
		return
	}
	g := Gemm{M: n, N: t.ValueDim, K: count, A: scores, B: v, BRow: vRow, BCol: 1, C: w.out, Accumulate: true}
	g.Run(nil)
}

// weigh converts the scores of row r to weights, and scales down the earlier sums if there is a new
// maximum.
func (t *attentionTask) weigh(w *attentionWeights, r int, row []float32) {
	top := max(w.tops[r], reducers().block[kindMax](&row[0], nil, len(row)))
	from := top
	if math.IsInf(float64(top), -1) {
		from = 0 // no weight yet, but a later key may have one
	}
	sum := rowKernel().expStore(&row[0], &row[0], len(row), from)
	if f := shrink(float64(w.tops[r]), float64(top)); f != 1 {
		o := &w.out[r*t.ValueDim]
		rowKernel().affine(o, o, nil, nil, t.ValueDim, 0, float32(f), 0)
		w.sums[r] *= f
	}
	w.sums[r] += float64(sum)
	w.tops[r] = top
}

// addSeen adds the values that each row sees, one by one.
func (t *attentionTask) addSeen(w *attentionWeights, scores, v []float32, vRow, head, r0, n, j, count int) {
	for r := range n {
		o := w.out[r*t.ValueDim:][:t.ValueDim]
		first, end := t.stretch(r0+r, j, count)
		for i := first; i < end; i++ {
			if !t.shows(head, r0+r, j+i) {
				continue
			}
			x := scores[r*count+i]
			for c, e := range v[i*vRow:][:t.ValueDim] {
				o[c] += x * e
			}
		}
	}
}

// rowsOf returns the part of x with the given rows of dim elements, stride apart, from element at on.
func rowsOf(x []float32, at, rows, stride, dim int) []float32 {
	if rows == 0 || dim == 0 {
		return nil
	}
	return x[at:][:(rows-1)*stride+dim]
}

// finiteRows reports whether no row has a NaN or an infinity.
func finiteRows(x []float32, rows, stride, dim int) bool {
	if stride == dim {
		return finite(reducers().allMaxAbs(x))
	}
	for i := range rows {
		if !finite(reducers().allMaxAbs(x[i*stride:][:dim])) {
			return false
		}
	}
	return true
}

// divide divides the sums of a row by the sum of its weights.
func (t *attentionTask) divide(row []float32, sum float64, shown int) {
	if shown == 0 {
		return // zeros
	}
	rowKernel().affine(&row[0], &row[0], nil, nil, len(row), 0, float32(1/sum), 0)
}

// join joins the stretches of keys, in their order.
func (t *attentionTask) join() {
	queries := t.Heads * t.Queries
	for q := range queries {
		top, sum, shown := math.Inf(-1), 0.0, 0
		for s := range t.splits {
			shown += t.shown[s*queries+q]
			top = max(top, float64(t.tops[s*queries+q]))
		}
		dst := t.result(q)
		clear(dst)
		for s := range t.splits {
			f := shrink(float64(t.tops[s*queries+q]), top)
			if f == 0 {
				continue // no visible keys, and possibly no keys at all
			}
			sum += t.sums[s*queries+q] * f
			w := float32(f)
			for c, e := range t.partial[(s*queries+q)*t.ValueDim:][:t.ValueDim] {
				dst[c] += e * w
			}
		}
		t.divide(dst, sum, shown)
	}
}
