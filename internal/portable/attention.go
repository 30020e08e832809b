//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// attentionTile is the tile configuration of an attention kernel. A workgroup computes Rows queries
// and iterates over the keys, Keys at a time. Side lanes share one query. A workgroup loads heads
// into workgroup memory in slices of Slice elements.
type attentionTile struct {
	Rows, Keys, Side, Slice int
	// Each is the number of queries of a lane in kernels that use vectors; 0 for kernels that use
	// single elements.
	Each int
}

// bytes returns the bytes of workgroup memory that a tile with vectors needs.
func (t *attentionTile) bytes() int {
	return 16*(t.Rows*(t.Slice/4+1)+t.Keys*(t.Slice/4+1)+t.Rows*(t.Keys/4+1)) + 4*t.Rows*t.Side
}

// load loads n rows into workgroup memory with a row pitch in elements. element reports whether an
// element exists at a row and a column, and reads it; other elements become zeros.
func (t *attentionTile) load(b *kernel.Builder, to kernel.Array[kernel.F32], pitch, n int, element func(row, column kernel.U32) (is kernel.Bool, read func() kernel.F32)) {
	for k := 0; k < n*t.Slice; k += b.Lanes() {
		i := b.Lane().Add(kernel.U(uint32(k)))
		move := func() {
			r, c := i.Div(kernel.U(uint32(t.Slice))), i.Mod(kernel.U(uint32(t.Slice)))
			v := kernel.NewVar(b, "element", kernel.F(0))
			is, read := element(r, c)
			b.If(is, func() { v.Set(read()) })
			to.Set(r.Mul(kernel.U(uint32(pitch))).Add(c), v.Get())
		}
		if k+b.Lanes() <= n*t.Slice {
			move()
		} else {
			b.If(i.Lt(kernel.U(uint32(n*t.Slice))), move)
		}
	}
}

// fits reports whether there are enough queries for a large tile, and lanes and workgroup memory for it.
func (tile attentionTile) fits(s op.AttentionSizes, t *Target) bool {
	return s.Tq*s.Heads/max(s.KVHeads, 1) > tile.Rows/2 && t.Lanes >= tile.Rows/tile.Each*tile.Side && t.Shared >= tile.bytes()
}

var (
	attention64 = attentionTile{64, 32, 8, 32, 4}
	attention32 = attentionTile{32, 32, 8, 32, 4}
)

var attentionSchedules = table[op.AttentionSizes, attentionTile]{
	{"64x32", func(s op.AttentionSizes, t *Target) bool { return attention64.fits(s, t) }, attention64},
	{"32x32", func(s op.AttentionSizes, t *Target) bool { return attention32.fits(s, t) }, attention32},
	{"16x32", func(s op.AttentionSizes, t *Target) bool {
		return s.Tq*s.Heads/max(s.KVHeads, 1) > 4 && t.Lanes >= 128
	}, attentionTile{16, 32, 8, 32, 0}},
	{"4x32", func(op.AttentionSizes, *Target) bool { return true }, attentionTile{4, 32, 16, 32, 0}},
}

// maxHead is the maximum number of result elements of a head that one workgroup computes. Longer
// heads are divided into parts, and each part computes the scores again.
const maxHead = 256

type attentionSpec struct {
	attentionTile
	Type   op.DType
	Causal bool
	PerKV  int // heads of keys that share one element of lengths; 0 without the operand lengths
	Parts  int // number of slices in the result of a workgroup
	// The following fields are for tiles with vectors only.
	Unit    int  // elements of one load
	Once    bool // one slice contains whole queries, so that they are loaded once
	Shuffle bool // the lanes of a query are in one subgroup and exchange values by shuffles

	Placed attentionPlaced // positions of rows that are not contiguous
}

type attentionParams struct {
	Heads, KVHeads, Tq, Tk, D uint32 // Heads is the number of query heads for each head of keys
	Tiles, Parts              uint32 // tiles for each head of keys; parts of each head of values
	Scale                     float32
}

// attentions computes attention in one pass over the keys, with a running maximum of the scores and
// a running sum of the weights. When a greater score appears, the kernel scales the sums down
// (online softmax). The queries of all heads that share a head of keys form the rows of one matrix,
// so that a single query of many heads fills a tile.
var attentions = maker[attentionParams, attentionSpec]{name: "attention", build: func(b *kernel.Builder, p *attentionParams, s attentionSpec, e *epilogue) {
	b.LocalSize(s.Side, s.Rows, 1)
	q, keys, values := input(b, "q", s.Type), input(b, "k", s.Type), input(b, "v", s.Type)
	length := lengthsInput(b, s)
	put := e.result(b, s.Type)
	u := func(n int) kernel.U32 { return kernel.U(uint32(n)) }
	qs := kernel.Shared[kernel.F32](b, "queries", s.Rows*s.Slice)
	ks := kernel.Shared[kernel.F32](b, "slice", s.Keys*(s.Slice+1)) // a slice of the keys, later of the values
	weights := kernel.Shared[kernel.F32](b, "weights", s.Rows*s.Keys)

	share, tq, tk, d := b.U32(&p.Heads), b.U32(&p.Tq), b.U32(&p.Tk), b.U32(&p.D)
	tiles, parts := b.U32(&p.Tiles), b.U32(&p.Parts)
	part, g := b.Group().Mod(parts), b.Group().Div(parts)
	number, head := g.Mod(tiles), g.Div(tiles) // head counts the heads of keys of the whole batch
	b.If(head.Lt(b.U32(&p.KVHeads)), func() {  // a folded grid has more workgroups than heads
		rows := share.Mul(tq)
		first := number.Mul(u(s.Rows))
		lx, ly := b.LocalX(), b.LocalY()
		row := first.Add(ly)
		last := first.Add(u(s.Rows - 1)).Min(rows.Sub(kernel.U(1)))
		v := visibility(s.Causal, first, last, tq, length(head, tk))
		seen, end := v.of(row.Min(last)), v.end // keys that the query sees; keys that any query of the tile sees
		lie := s.rows(head, rows, first, tq, tk, d, 1)
		// load loads rows into workgroup memory; missing elements become zeros.
		load := func(to kernel.Array[kernel.F32], pitch, n int, x func(kernel.U32) kernel.F32, row rowStart, left, at kernel.U32) {
			s.load(b, to, pitch, n, func(r, c kernel.U32) (kernel.Bool, func() kernel.F32) {
				return r.Lt(left).And(at.Add(c).Lt(d)), func() kernel.F32 { return x(row(r).Add(at).Add(c)) }
			})
		}
		each := s.Slice / s.Side // elements of a slice that a lane computes
		sums := kernel.NewVars(b, "sum", s.Parts*each, kernel.F(0))
		limit := kernel.NewVar(b, "most", kernel.F(0))
		total := kernel.NewVar(b, "total", kernel.F(0))
		b.ForStep(kernel.U(0), end, u(s.Keys), func(at kernel.U32) {
			scores := kernel.NewVars(b, "score", s.Keys/s.Side, kernel.F(0))
			key, value := lie.keys(at)
			b.ForStep(kernel.U(0), d, u(s.Slice), func(c kernel.U32) {
				b.Barrier() // no lane reads the previous slice any more
				load(qs, s.Slice, s.Rows, q, lie.query, rows.Sub(first), c)
				load(ks, s.Slice+1, s.Keys, keys, key, tk.Sub(at), c)
				b.Barrier()
				b.For(kernel.U(0), u(s.Slice), func(i kernel.U32) {
					x := qs.At(ly.Mul(u(s.Slice)).Add(i))
					for j := range scores {
						y := ks.At(lx.Add(u(j * s.Side)).Mul(u(s.Slice + 1)).Add(i))
						scores[j].Set(x.MulAdd(y, scores[j].Get()))
					}
				})
			})
			for j := range scores {
				weights.Set(ly.Mul(u(s.Keys)).Add(lx.Add(u(j*s.Side))), scores[j].Get().Mul(b.F32(&p.Scale)))
			}
			b.Barrier()
			// Each lane of a query computes the maximum of the query's scores so far.
			now := kernel.NewVar(b, "now", limit.Get())
			b.For(kernel.U(0), u(s.Keys), func(j kernel.U32) {
				key := at.Add(j)
				b.If(key.Lt(seen), func() {
					x := weights.At(ly.Mul(u(s.Keys)).Add(j))
					now.Set(kernel.Select(key.Eq(kernel.U(0)), x, now.Get().Max(x)))
				})
			})
			down := kernel.Select(at.Eq(kernel.U(0)).Or(at.Ge(seen)), kernel.F(1), limit.Get().Sub(now.Get()).Exp())
			limit.Set(now.Get())
			total.Set(total.Get().Mul(down))
			for i := range sums {
				sums[i].Set(sums[i].Get().Mul(down))
			}
			b.Barrier()
			for j := range scores {
				i := ly.Mul(u(s.Keys)).Add(lx.Add(u(j * s.Side)))
				sees := at.Add(lx).Add(u(j * s.Side)).Lt(seen)
				weights.Set(i, kernel.Select(sees, weights.At(i).Sub(now.Get()).Exp(), kernel.F(0)))
			}
			for c := range s.Parts {
				b.Barrier()
				load(ks, s.Slice+1, s.Keys, values, value, tk.Sub(at), part.Mul(u(s.Parts)).Add(u(c)).Mul(u(s.Slice)))
				b.Barrier()
				b.For(kernel.U(0), u(s.Keys).Min(end.Sub(at)), func(j kernel.U32) {
					// A value that the query does not see may be NaN, so its product is skipped.
					b.If(at.Add(j).Lt(seen), func() {
						w := weights.At(ly.Mul(u(s.Keys)).Add(j))
						for i := range each {
							sum := sums[c*each+i]
							sum.Set(w.MulAdd(ks.At(j.Mul(u(s.Slice+1)).Add(lx.Add(u(i*s.Side)))), sum.Get()))
						}
					})
				})
			}
			b.For(kernel.U(0), u(s.Keys), func(j kernel.U32) {
				total.Set(total.Get().Add(weights.At(ly.Mul(u(s.Keys)).Add(j))))
			})
		})
		b.If(row.Lt(rows), func() {
			for c := range s.Parts {
				for i := range each {
					at := part.Mul(u(s.Parts)).Add(u(c)).Mul(u(s.Slice)).Add(lx.Add(u(i * s.Side)))
					b.If(at.Lt(d), func() {
						v := kernel.Select(seen.Eq(kernel.U(0)), kernel.F(0), sums[c*each+i].Get().Div(total.Get()))
						put(lie.result(ly).Add(at), kernel.Dyn(v))
					})
				}
			}
		})
	})
}}

// lengthsInput declares the operand lengths, if there is one. It returns a function that gives the
// number of keys for a head of keys, which is at most limit.
func lengthsInput(b *kernel.Builder, s attentionSpec) func(head, limit kernel.U32) kernel.U32 {
	if s.PerKV == 0 {
		return func(_, limit kernel.U32) kernel.U32 { return limit }
	}
	lengths := kernel.Input[kernel.I32](b, "lengths")
	return func(head, limit kernel.U32) kernel.U32 {
		n := lengths.At(head.Div(kernel.U(uint32(s.PerKV))))
		return n.Max(kernel.I(0)).U32().Min(limit)
	}
}

func planAttention(q *request) (*Plan, error) {
	var shapes []op.Shape
	for _, x := range q.In {
		shapes = append(shapes, x.Shape)
	}
	s, err := op.AttentionOf(&q.Attrs, shapes)
	if err != nil {
		return nil, err
	}
	if !plainAttention(q, &s) {
		return planAnyAttention(q, s)
	}
	t, name, err := attentionSchedules.choose(q, s)
	if err != nil {
		return nil, err
	}
	return launchAttention(q, s, t, name)
}

// launchAttention plans attention with tile t.
func launchAttention(q *request, s op.AttentionSizes, t attentionTile, name string) (*Plan, error) {
	slices := (min(s.D, maxHead)-1)/t.Slice + 1
	spec := attentionSpec{attentionTile: t, Type: q.In[0].Type, Causal: op.AttentionOptsOf(&q.Attrs).Causal, Parts: slices}
	if s.Lengths > 0 {
		spec.PerKV = s.Batch * s.KVHeads / s.Lengths
	}
	var err error
	if spec.Placed, err = placedAttention(&q.Request, &s); err != nil {
		return nil, err
	}
	share := s.Heads / s.KVHeads
	tiles, parts := (share*s.Tq-1)/t.Rows+1, (s.D-1)/(slices*t.Slice)+1
	params := attentionParams{Heads: uint32(share), KVHeads: uint32(s.Batch * s.KVHeads), Tq: uint32(s.Tq), Tk: uint32(s.Tk), D: uint32(s.D),
		Tiles: uint32(tiles), Parts: uint32(parts), Scale: s.Scale}
	var p planner
	kernels := &attentions
	if t.Each > 0 {
		kernels = &tiledAttentions
		spec.Unit, spec.Once = unitOf(spec.Type, s.D), s.D <= t.Slice
		if q.epilogue != nil && !alignedOperands(q.epilogue.in, size(q.shapes[0])) || !spec.Placed.inUnits(q, spec.Unit) {
			spec.Unit = 1
		}
		spec.Shuffle = q.Target.Subgroups && q.Target.Subgroup >= t.Side
	}
	p.stage(kernels.of(spec, q.epilogue), kernel.GridOf(s.Batch*s.KVHeads*tiles*parts), params, append(q.inputs(), q.outputs()...)...)
	return p.done(name)
}
