package cpu

import (
	"context"
	"math"
	"slices"
	"unsafe"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/workers"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// attentionTask is the scaled dot-product attention.
type attentionTask struct {
	d     *processor
	sizes op.AttentionSizes
	a     simd.Attention // without the memory
	mask  op.DType
	half  op.DType // type of 16-bit keys and values, otherwise the zero value
	in    []*op.Layout
	to    *op.Layout         // layout of the result, or nil if it is contiguous
	q     []attentionOperand // q, k, v and the result, if batch entries are computed one by one
	call  attentionCall
}

// attentionCall has the operands of a run that computes batch entries one by one.
type attentionCall struct {
	a              simd.Attention // without the operands of a batch entry
	in             []unsafe.Pointer
	q, dst, k, v   []float32
	kHalf, vHalf   []uint16
	lengths, table []int32
	spans          []attentionSpan
}

// attentionSpan is a number of batch entries that are computed as one attention, from entry first on.
type attentionSpan struct {
	first, n int
	ns       float64 // estimated time
}

// attentionOperand has the position of an operand and its strides between batch entries (or pages),
// heads and rows.
type attentionOperand struct {
	operandPart
	batch, head, row int
}

// operands implements typed.
func (t *attentionTask) operands(types []op.DType) {
	if len(types) > op.AttentionMask {
		t.mask = types[op.AttentionMask]
	}
}

// layouts implements reader.
func (t *attentionTask) layouts(ls []*op.Layout) { t.in = ls }

// place computes the positions of the operands, whose shapes are dims.
func (t *attentionTask) place(dims []op.Shape) error {
	s := t.sizes
	t.q = nil
	var layouts [3]*op.Layout
	copy(layouts[:], t.in)
	if t.half == op.InvalidType && layouts == [3]*op.Layout{} && s.Plain() && s.Lengths == 0 && t.to == nil {
		return nil
	}
	shapes := append(dims[:op.AttentionV+1:op.AttentionV+1], dims[len(dims)-1])
	all := [4]*op.Layout{layouts[0], layouts[1], layouts[2], t.to}
	places, err := portable.AttentionPlaces(&s, all)
	if err != nil {
		return err
	}
	for i, l := range all {
		n := size(shapes[i])
		if l != nil {
			first, end := l.Bounds()
			n = end - first
		}
		t.q = append(t.q, attentionOperand{operandPart{places[i].Off, n}, places[i].Batch, places[i].Head, places[i].Row})
	}
	return nil
}

func (t *attentionTask) configure(_ *op.Operation, a *op.Attrs, dims []op.Shape) error {
	s, err := op.AttentionOf(a, dims[:len(dims)-1])
	t.sizes = s
	if s.Scale == 0 {
		s.Scale = float32(math.Copysign(0, -1)) // 0 selects the default scale there
	}
	// Treat batch entries as additional heads.
	t.a = simd.Attention{Heads: s.Batch * s.Heads, KVHeads: s.Batch * s.KVHeads, Queries: s.Tq, Keys: s.Tk,
		Dim: s.D, ValueDim: s.E, Scale: s.Scale, Causal: s.Causal,
		Sight: simd.Sight{Softcap: s.Softcap, Window: s.Window, FromStart: s.FromStart,
			MaskHead: s.Mask[1], MaskRow: s.Mask[2], MaskKey: s.Mask[3], Page: s.Page, Pages: s.Pages}}
	if err != nil {
		return err
	}
	return t.place(dims)
}

func (t *attentionTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	a, s := t.a, &t.sizes
	q, k := a.Heads*a.Queries, a.KVHeads*a.Keys
	if q*s.E == 0 {
		return nil
	}
	pool := t.d.pool.Under(ctx)
	defer pool.Release()
	if t.q == nil {
		a.Dst = slice(out[0], q*s.E)
		a.Q, a.K, a.V = slice(in[0], q*s.D), slice(in[1], k*s.D), slice(in[2], k*s.E)
		a.Run(pool)
		return ctx.Err()
	}
	defer t.unbind() // also after a panic, because the frame runs other submissions
	t.bind(a, in, out)
	t.eachOfBatch(pool)
	return ctx.Err()
}

// bind sets the operands of the call.
func (t *attentionTask) bind(a simd.Attention, in, out []unsafe.Pointer) {
	c, s, q, k, v, dst := &t.call, &t.sizes, t.q[0], t.q[1], t.q[2], t.q[3]
	c.in = in
	if s.Lengths > 0 {
		c.lengths = integers(in[op.AttentionLengths], s.Lengths)
	}
	if s.Page > 0 {
		c.table = integers(in[op.AttentionTable], s.Batch*(s.Tk/s.Page))
		a.KPage, a.VPage = k.batch, v.batch
	}
	a.Heads, a.KVHeads = s.Heads, s.KVHeads
	a.DstHead, a.DstRow = dst.head, dst.row
	a.QHead, a.QRow, a.KHead, a.KRow, a.VHead, a.VRow = q.head, q.row, k.head, k.row, v.head, v.row
	c.dst, c.q = dst.slice(out[0]), q.slice(in[0])
	if a.Half = t.half; a.Half == op.InvalidType {
		c.k, c.v = k.slice(in[1]), v.slice(in[2])
	} else {
		c.kHalf, c.vHalf = k.halves(in[1]), v.halves(in[2])
	}
	c.a = a
}

// unbind drops the operands and the spans of the call.
func (t *attentionTask) unbind() { t.call = attentionCall{spans: t.call.spans[:0]} }

// attentionNS are estimates of the times of one thread in nanoseconds: for a span, and for an element of keys and values of a query.
const (
	attentionSpanNS    = 2000
	attentionElementNS = 0.04
)

// eachOfBatch computes the batch entries. Several threads compute a span together if it takes much of the time, and otherwise each thread
// computes other spans.
func (t *attentionTask) eachOfBatch(pool *workers.Pool) {
	c, s, total := &t.call, &t.sizes, 0.0
	for i, n := 0, 0; i < s.Batch; i += n {
		n = chunk(s, c.lengths, c.table, i)
		ns := attentionSpanNS + attentionElementNS*float64(s.Heads*max(n, s.Tq)*t.keys(i+n-1)*(s.D+s.E))
		c.spans = append(c.spans, attentionSpan{i, n, ns})
		total += ns
	}
	rest, small := c.spans[:0], 0.0
	for _, p := range c.spans {
		if p.ns*float64(2*pool.Threads()) > total {
			t.span(p, pool)
		} else {
			rest, small = append(rest, p), small+p.ns
		}
	}
	c.spans = rest
	if !pool.Worth(small) {
		pool = pool.Serial()
	}
	pool.Do(len(rest), t)
}

// Part computes a span on one thread.
func (t *attentionTask) Part(i int) { t.span(t.call.spans[i], nil) }

// keys returns the number of keys of a batch entry.
func (t *attentionTask) keys(entry int) int {
	if l := t.call.lengths; l != nil {
		return max(0, t.sizes.Of(int(l[entry%len(l)])).Tk)
	}
	return t.sizes.Tk
}

// span computes a span.
func (t *attentionTask) span(p attentionSpan, pool *workers.Pool) {
	c, s, q, k, v, dst, i := &t.call, &t.sizes, &t.q[0], &t.q[1], &t.q[2], &t.q[3], p.first
	part := c.a
	if p.n > 1 {
		part.Queries, part.QRow, part.DstRow = p.n, q.batch, dst.batch
	}
	part.Keys = t.keys(i + p.n - 1)
	part.Q, part.Dst = c.q[i*q.batch:], c.dst[i*dst.batch:]
	kAt, vAt := i*k.batch, i*v.batch
	if s.Page > 0 {
		n := s.Tk / s.Page
		part.Table, kAt, vAt = c.table[i*n:][:n], 0, 0
	}
	switch {
	case part.Keys <= 0:
	case t.half != op.InvalidType:
		part.KHalves, part.VHalves = c.kHalf[kAt:], c.vHalf[vAt:]
	default:
		part.K, part.V = c.k[kAt:], c.v[vAt:]
	}
	t.masks(&part, c.in, i)
	part.Run(pool)
}

// chunk returns the number of sequences, from i on, that are successive queries of one sequence:
// they have one query each and the same pages, and each has one more key than the previous one.
// Computing them as one attention reads the keys only once.
func chunk(s *op.AttentionSizes, lengths, table []int32, i int) int {
	n := 1
	if s.Tq != 1 || s.Page == 0 || s.Masked || !s.Causal || s.FromStart || len(lengths) != s.Batch || lengths[i] <= 0 {
		return n
	}
	pages := s.Tk / s.Page
	first := table[i*pages:][:pages]
	for at := i + 1; at < s.Batch && lengths[at] == lengths[at-1]+1 && int(lengths[at]) <= s.Tk; at++ {
		used := (int(lengths[at])-1)/s.Page + 1
		if !slices.Equal(table[at*pages:][:used], first[:used]) {
			break
		}
		n++
	}
	return n
}

// masks sets the mask of one batch entry.
func (t *attentionTask) masks(a *simd.Attention, in []unsafe.Pointer, batch int) {
	s := &t.sizes
	if !s.Masked || a.Keys == 0 {
		return
	}
	n := 1 + (s.Heads-1)*s.Mask[1] + (s.Tq-1)*s.Mask[2] + (s.Tk-1)*s.Mask[3]
	p := unsafe.Add(in[op.AttentionMask], 4*batch*s.Mask[0])
	if t.mask == op.Bool {
		a.Show = unsigned(p, n)
	} else {
		a.Add = slice(p, n)
	}
}
