//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// anyAttentionSpec specialises [anyAttentions]: attention with masks, windows, capped scores, pages
// of keys, values of another width than the keys, or keys of another type than the queries.
type anyAttentionSpec struct {
	attentionTile
	Query, Keys16 op.DType // type of the queries; type of the keys and values
	Mask          op.DType // type of the mask; InvalidType without a mask
	Lengths, Many bool     // Lengths: there is an operand with lengths; Many: it has one length for each batch entry
	Softcap       bool
	Paged         bool
	Parts         int // number of slices in the result of a workgroup
	// First elements of q, k, v and the result.
	QOff, KOff, VOff, YOff int
}

type anyAttentionParams struct {
	Share, KVHeads, Batch uint32 // query heads for each head of keys; heads of keys of one batch entry; batch entries
	Tq, Tk, D, E          uint32
	Tiles, Parts          uint32 // tiles for each head of keys; parts of each head of values
	Scale, Softcap        float32

	Behind, Ahead int32 // number of keys that a query sees before and after its own position
	FromStart     uint32

	Pages, Page, Table     uint32 // number of pages; keys of a page; pages in a row of the table
	KPage, VPage           uint32 // stride of pages in elements
	QBatch, QHead, QRow    uint32
	KBatch, KHead, KRow    uint32
	VBatch, VHead, VRow    uint32
	YBatch, YHead, YRow    uint32
	MBatch, MHead, MQ, MKV uint32
}

// anyAttention holds the values that the parts of the kernel share.
type anyAttention struct {
	b     *kernel.Builder
	p     *anyAttentionParams
	s     anyAttentionSpec
	tq    kernel.U32
	head  kernel.U32 // head of keys
	at    kernel.U32 // batch entry
	limit kernel.I32 // number of keys

	lengths, table kernel.Buffer[kernel.I32]
	mask           source
}

// query returns the head and the query of a row. Heads are counted within the batch entry.
func (a *anyAttention) query(row kernel.U32) (head, i kernel.U32) {
	return a.head.Mul(a.b.U32(&a.p.Share)).Add(row.Div(a.tq)), row.Mod(a.tq)
}

// placed returns the position of a row's first element, from off and the strides of batch, head and
// row.
func (a *anyAttention) placed(off int, head, row kernel.U32, batch, heads, rows *uint32) kernel.U32 {
	return behind(off, a.at.Mul(a.b.U32(batch)).Add(head.Mul(a.b.U32(heads))).Add(row.Mul(a.b.U32(rows))))
}

// sight returns the range of keys that query i sees: first is included, end is not.
func (a *anyAttention) sight(i kernel.U32) (first, end kernel.I32) {
	b := a.b
	last := a.limit.Sub(a.tq.I32())
	stands := i.I32().Add(kernel.Select(b.U32(&a.p.FromStart).Ne(kernel.U(0)), kernel.I(0), last))
	first = stands.Sub(b.I32(&a.p.Behind)).Max(kernel.I(0))
	end = stands.Add(b.I32(&a.p.Ahead)).Add(kernel.I(1)).Min(a.limit).Max(kernel.I(0))
	return first, end
}

// row returns the position of key j, or of its value, and reports whether the key exists.
func (a *anyAttention) row(off int, j kernel.U32, page, batch, heads, rows *uint32) (kernel.U32, kernel.Bool) {
	b := a.b
	if !a.s.Paged {
		return a.placed(off, a.head, j, batch, heads, rows), j.I32().Lt(a.limit)
	}
	number, is := a.page(j)
	j = j.Mod(b.U32(&a.p.Page))
	return behind(off, number.Mul(b.U32(page)).Add(a.head.Mul(b.U32(heads))).Add(j.Mul(b.U32(rows)))), is
}

// page returns the page of key j, and reports whether the page exists.
func (a *anyAttention) page(j kernel.U32) (kernel.U32, kernel.Bool) {
	b := a.b
	n := b.U32(&a.p.Table)
	there := j.I32().Lt(a.limit)
	k := kernel.Select(there, j.Div(b.U32(&a.p.Page)), kernel.U(0))
	number := a.table.At(a.at.Mul(n).Add(k)).U32()
	is := there.And(number.Lt(b.U32(&a.p.Pages))) // a negative number is a large unsigned number
	return kernel.Select(is, number, kernel.U(0)), is
}

// scored applies the soft cap and the mask to a score, and reports whether the query sees the key.
func (a *anyAttention) scored(x kernel.F32, row, key kernel.U32) (kernel.F32, kernel.Bool) {
	b := a.b
	if a.s.Softcap {
		limit := b.F32(&a.p.Softcap)
		x = x.Div(limit).Tanh().Mul(limit)
	}
	_, i := a.query(row)
	first, end := a.sight(i)
	j := key.I32()
	sees := j.Ge(first).And(j.Lt(end))
	if a.s.Paged {
		_, is := a.page(key)
		sees = sees.And(is)
	}
	if a.s.Mask == op.InvalidType {
		return x, sees
	}
	head, _ := a.query(row)
	at := a.placed(0, head, i, &a.p.MBatch, &a.p.MHead, &a.p.MQ).Add(key.Mul(b.U32(&a.p.MKV)))
	m := a.mask.at(kernel.Select(sees, at, kernel.U(0)))
	if a.s.Mask == op.Bool {
		return x, sees.And(kernel.As[kernel.Bool](b, m))
	}
	more := kernel.As[kernel.F32](b, m)
	return x.Add(kernel.Select(sees, more, kernel.F(0))), sees.And(more.AsU32().Ne(kernel.U(infBits | 1<<31)))
}

// anyAttentions computes attention as [attentions] does, but decides for each score whether the
// query sees the key.
var anyAttentions = maker[anyAttentionParams, anyAttentionSpec]{name: "attention_any", build: func(b *kernel.Builder, p *anyAttentionParams, s anyAttentionSpec, e *epilogue) {
	b.LocalSize(s.Side, s.Rows, 1)
	a := &anyAttention{b: b, p: p, s: s}
	q, keys, values := input(b, "q", s.Query), input(b, "k", s.Keys16), input(b, "v", s.Keys16)
	if s.Lengths {
		a.lengths = kernel.Input[kernel.I32](b, "lengths")
	}
	if s.Mask != op.InvalidType {
		a.mask = inputValue(b, "mask", s.Mask)
	}
	if s.Paged {
		a.table = kernel.Input[kernel.I32](b, "table")
	}
	put := e.result(b, s.Query)
	u := func(n int) kernel.U32 { return kernel.U(uint32(n)) }
	qs := kernel.Shared[kernel.F32](b, "queries", s.Rows*s.Slice)
	ks := kernel.Shared[kernel.F32](b, "slice", s.Keys*(s.Slice+1)) // a slice of the keys, later of the values
	weights := kernel.Shared[kernel.F32](b, "weights", s.Rows*s.Keys)
	seen := kernel.Shared[kernel.U32](b, "seen", s.Rows*s.Keys)

	a.tq = b.U32(&p.Tq)
	tk, d, width := b.U32(&p.Tk), b.U32(&p.D), b.U32(&p.E)
	tiles, parts, kv := b.U32(&p.Tiles), b.U32(&p.Parts), b.U32(&p.KVHeads)
	part, g := b.Group().Mod(parts), b.Group().Div(parts)
	number, all := g.Mod(tiles), g.Div(tiles)      // all counts the heads of keys of the whole batch
	b.If(all.Lt(kv.Mul(b.U32(&p.Batch))), func() { // a folded grid has more workgroups than heads
		a.at, a.head = all.Div(kv), all.Mod(kv)
		a.limit = tk.I32()
		if s.Lengths {
			of := kernel.U(0)
			if s.Many {
				of = a.at
			}
			a.limit = a.lengths.At(of).Max(kernel.I(0)).Min(tk.I32())
		}
		rows := b.U32(&p.Share).Mul(a.tq)
		first := number.Mul(u(s.Rows))
		lx, ly := b.LocalX(), b.LocalY()
		last := first.Add(u(s.Rows - 1)).Min(rows.Sub(u(1)))
		row := first.Add(ly).Min(last)
		// The loop covers the keys that any query of the tile sees. If all queries belong to one
		// head, these are the keys from the first key of the first query to the last key of the
		// last query.
		one := first.Div(a.tq).Eq(last.Div(a.tq))
		begin, _ := a.sight(kernel.Select(one, first.Mod(a.tq), kernel.U(0)))
		_, end := a.sight(kernel.Select(one, last.Mod(a.tq), a.tq.Sub(u(1))))
		from := begin.U32().Div(u(s.Keys)).Mul(u(s.Keys))

		load := func(to kernel.Array[kernel.F32], pitch, n int, x func(kernel.U32) kernel.F32, source func(r kernel.U32) (kernel.U32, kernel.Bool), at, limit kernel.U32) {
			s.load(b, to, pitch, n, func(r, c kernel.U32) (kernel.Bool, func() kernel.F32) {
				start, is := source(r)
				return is.And(at.Add(c).Lt(limit)), func() kernel.F32 { return x(start.Add(at).Add(c)) }
			})
		}
		each := s.Slice / s.Side // elements of a slice that a lane computes
		sums := kernel.NewVars(b, "sum", s.Parts*each, kernel.F(0))
		limit := kernel.NewVar(b, "most", kernel.U(lowestKey))
		total := kernel.NewVar(b, "total", kernel.F(0))
		any := kernel.NewVar(b, "any", kernel.U(0))
		b.ForStep(from, end.U32(), u(s.Keys), func(at kernel.U32) {
			scores := kernel.NewVars(b, "score", s.Keys/s.Side, kernel.F(0))
			b.ForStep(kernel.U(0), d, u(s.Slice), func(c kernel.U32) {
				b.Barrier() // no lane reads the previous slice any more
				load(qs, s.Slice, s.Rows, q, func(r kernel.U32) (kernel.U32, kernel.Bool) {
					head, i := a.query(first.Add(r).Min(last))
					return a.placed(s.QOff, head, i, &p.QBatch, &p.QHead, &p.QRow), first.Add(r).Lt(rows)
				}, c, d)
				load(ks, s.Slice+1, s.Keys, keys, func(r kernel.U32) (kernel.U32, kernel.Bool) {
					return a.row(s.KOff, at.Add(r), &p.KPage, &p.KBatch, &p.KHead, &p.KRow)
				}, c, d)
				b.Barrier()
				b.For(kernel.U(0), u(s.Slice), func(i kernel.U32) {
					x := qs.At(ly.Mul(u(s.Slice)).Add(i))
					for j := range scores {
						y := ks.At(lx.Add(u(j * s.Side)).Mul(u(s.Slice + 1)).Add(i))
						scores[j].Set(x.MulAdd(y, scores[j].Get()))
					}
				})
			})
			b.Barrier() // no lane reads the previous weights any more
			for j := range scores {
				x, sees := a.scored(scores[j].Get().Mul(b.F32(&p.Scale)), row, at.Add(lx).Add(u(j*s.Side)))
				i := ly.Mul(u(s.Keys)).Add(lx.Add(u(j * s.Side)))
				weights.Set(i, kernel.Select(sees, x, kernel.F(0)))
				seen.Set(i, kernel.Select(sees, orderOf(x.AsU32()).Max(kernel.U(1)), kernel.U(0)))
			}
			b.Barrier()
			// Each lane of a query computes the maximum of the query's scores so far.
			best := kernel.NewVar(b, "best", limit.Get())
			b.For(kernel.U(0), u(s.Keys), func(j kernel.U32) {
				key := seen.At(ly.Mul(u(s.Keys)).Add(j))
				best.Set(best.Get().Max(key))
				any.Set(any.Get().Max(key))
			})
			now := numberOf(best.Get())
			down := numberOf(limit.Get()).Sub(now).Exp()
			limit.Set(best.Get())
			total.Set(total.Get().Mul(down))
			for i := range sums {
				sums[i].Set(sums[i].Get().Mul(down))
			}
			b.Barrier()
			for j := range scores {
				i := ly.Mul(u(s.Keys)).Add(lx.Add(u(j * s.Side)))
				weights.Set(i, kernel.Select(seen.At(i).Ne(kernel.U(0)), weights.At(i).Sub(now).Exp(), kernel.F(0)))
			}
			for c := range s.Parts {
				b.Barrier()
				load(ks, s.Slice+1, s.Keys, values, func(r kernel.U32) (kernel.U32, kernel.Bool) {
					return a.row(s.VOff, at.Add(r), &p.VPage, &p.VBatch, &p.VHead, &p.VRow)
				}, part.Mul(u(s.Parts)).Add(u(c)).Mul(u(s.Slice)), width)
				b.Barrier()
				b.For(kernel.U(0), u(s.Keys), func(j kernel.U32) {
					i := ly.Mul(u(s.Keys)).Add(j)
					// A value that the query does not see may be NaN, so its product is skipped.
					b.If(seen.At(i).Ne(kernel.U(0)), func() {
						for n := range each {
							sum := sums[c*each+n]
							sum.Set(weights.At(i).MulAdd(ks.At(j.Mul(u(s.Slice+1)).Add(lx.Add(u(n*s.Side)))), sum.Get()))
						}
					})
				})
			}
			b.For(kernel.U(0), u(s.Keys), func(j kernel.U32) {
				total.Set(total.Get().Add(weights.At(ly.Mul(u(s.Keys)).Add(j))))
			})
		})
		head, i := a.query(row)
		to := a.placed(s.YOff, head, i, &p.YBatch, &p.YHead, &p.YRow)
		b.If(first.Add(ly).Lt(rows), func() {
			for c := range s.Parts {
				for n := range each {
					at := part.Mul(u(s.Parts)).Add(u(c)).Mul(u(s.Slice)).Add(lx.Add(u(n * s.Side)))
					b.If(at.Lt(width), func() {
						v := kernel.Select(any.Get().Eq(kernel.U(0)), kernel.F(0), sums[c*each+n].Get().Div(total.Get()))
						put(to.Add(at), kernel.Dyn(v))
					})
				}
			}
		})
	})
}}

// plainAttention reports whether [attentions] can compute the request.
func plainAttention(q *request, s *op.AttentionSizes) bool {
	return s.Plain() && q.In[op.AttentionK].Type == q.In[op.AttentionQ].Type
}

// reach limits the number of keys and of queries, so that sums of positions fit int32.
const reach = 1 << 29

// planAnyAttention plans attention by [anyAttentions].
func planAnyAttention(q *request, s op.AttentionSizes) (*Plan, error) {
	if s.Tq > reach || s.Tk > reach {
		return nil, unsupported("attention has %d queries and %d keys; with a mask, a window, a soft cap or pages, at most %d of each are supported", s.Tq, s.Tk, reach)
	}
	if q.Variant != "" {
		return nil, unsupported("variant %q does not support attention with a mask, a window, a soft cap or pages", q.Variant)
	}
	t := attentionTile{4, 32, 16, 32, 0}
	if s.Tq*s.Heads/s.KVHeads > 4 && q.Target.Lanes >= 128 {
		t = attentionTile{16, 32, 8, 32, 0}
	}
	slices := (min(s.E, maxHead)-1)/t.Slice + 1
	spec := anyAttentionSpec{attentionTile: t, Query: q.In[op.AttentionQ].Type, Keys16: q.In[op.AttentionK].Type, Lengths: s.Lengths > 0, Many: s.Lengths > 1,
		Softcap: s.Softcap != 0, Paged: s.Page > 0, Parts: slices}
	if s.Masked {
		spec.Mask = q.In[op.AttentionMask].Type
	}
	share := s.Heads / s.KVHeads
	tiles, parts := (share*s.Tq-1)/t.Rows+1, (s.E-1)/(slices*t.Slice)+1
	params := anyAttentionParams{Share: uint32(share), KVHeads: uint32(s.KVHeads), Batch: uint32(s.Batch), Tq: uint32(s.Tq), Tk: uint32(s.Tk),
		D: uint32(s.D), E: uint32(s.E), Tiles: uint32(tiles), Parts: uint32(parts), Scale: s.Scale, Softcap: s.Softcap,
		MBatch: uint32(s.Mask[0]), MHead: uint32(s.Mask[1]), MQ: uint32(s.Mask[2]), MKV: uint32(s.Mask[3])}
	params.Behind, params.Ahead = attentionReach(&s)
	if s.FromStart {
		params.FromStart = 1
	}
	layouts, _ := AttentionLayouts(&q.Request)
	places, err := AttentionPlaces(&s, layouts)
	if err != nil {
		return nil, err
	}
	spec.QOff, spec.KOff, spec.VOff, spec.YOff = places[0].Off, places[1].Off, places[2].Off, places[3].Off
	params.rows(&s, places)
	var p planner
	p.stage(anyAttentions.of(spec, q.epilogue), kernel.GridOf(s.Batch*s.KVHeads*tiles*parts), params, append(q.inputs(), q.outputs()...)...)
	return p.done("any")
}

// attentionReach returns how many keys a query sees before and after its own position.
func attentionReach(s *op.AttentionSizes) (behind, ahead int32) {
	behind, ahead = reach, reach
	if s.Window > 0 {
		behind = int32(min(s.Window-1, reach))
		ahead = behind
	}
	if s.Causal {
		ahead = 0
	}
	return behind, ahead
}

// rows sets the strides of rows and of pages.
func (p *anyAttentionParams) rows(s *op.AttentionSizes, places [4]AttentionPlace) {
	fill := func(batch, head, row *uint32, a AttentionPlace) {
		*batch, *head, *row = uint32(a.Batch), uint32(a.Head), uint32(a.Row)
	}
	fill(&p.QBatch, &p.QHead, &p.QRow, places[0])
	fill(&p.KBatch, &p.KHead, &p.KRow, places[1])
	fill(&p.VBatch, &p.VHead, &p.VRow, places[2])
	fill(&p.YBatch, &p.YHead, &p.YRow, places[3])
	if s.Page > 0 {
		p.Pages, p.Page, p.Table = uint32(s.Pages), uint32(s.Page), uint32(s.Tk/s.Page)
		p.KPage, p.VPage = p.KBatch, p.VBatch
	}
}
