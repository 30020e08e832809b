package devicetest

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/op"
)

// attention returns cases of heads, masks by order, and lengths.
func (g *generator) attention(d op.DType, short bool) []Case {
	var cases []Case
	for i, s := range []struct {
		lead              op.Shape
		h, hkv, tq, tk, d int
	}{
		{nil, 1, 1, 1, 1, 1}, {nil, 1, 1, 1, 33, 16}, {nil, 4, 4, 7, 7, 8}, {nil, 6, 2, 5, 9, 24}, {op.Shape{2}, 4, 1, 17, 17, 32},
		{nil, 2, 2, 9, 4, 5}, {nil, 2, 1, 65, 65, 64}, {op.Shape{3}, 2, 2, 1, 70, 20}, {nil, 2, 2, 3, 0, 4}, {nil, 2, 2, 0, 3, 4},
		{nil, 0, 0, 3, 3, 4}, {op.Shape{0}, 2, 2, 3, 3, 4}, {nil, 1, 1, 3, 3, 0}, {nil, 8, 2, 1, 300, 64}, {nil, 1, 1, 70, 260, 65},
	} {
		if short && i > 12 {
			break
		}
		q := append(append(op.Shape{}, s.lead...), s.h, s.tq, s.d)
		k := append(append(op.Shape{}, s.lead...), s.hkv, s.tk, s.d)
		for _, o := range []op.AttentionOpts{{}, {Causal: true}, {Causal: true, Scale: 0.3}, {Scale: op.Zero}} {
			cases = append(cases, Case{Op: op.Attention, Options: o,
				In: []Tensor{g.tensor(d, q, g.tame), g.tensor(d, k, g.tame), g.tensor(d, k, g.tame)}})
		}
	}
	// Only some of the keys are valid; the other keys are NaN.
	for i, c := range []struct {
		lead    op.Shape
		lengths []int
	}{{nil, []int{5}}, {op.Shape{3}, []int{1, 70, 33}}, {op.Shape{2}, []int{17}}, {op.Shape{3}, []int{0, -4, 1000}}} {
		for _, tq := range []int{1, 7, 40} {
			q, k := append(slices.Clone(c.lead), 4, tq, 16), append(slices.Clone(c.lead), 2, 70, 16)
			n := g.tensor(op.I32, op.Shape{len(c.lengths)}, g.tame)
			x, v := g.tensor(d, k, g.tame), g.tensor(d, k, g.tame)
			for j, length := range c.lengths {
				n.Data[j] = float64(length)
			}
			for j := range x.Data {
				if j/16%70 >= max(0, c.lengths[j/(2*70*16)%len(c.lengths)]) {
					x.Data[j], v.Data[j] = math.NaN(), math.NaN()
				}
			}
			cases = append(cases, Case{Op: op.Attention, Options: op.AttentionOpts{Causal: (i+tq)%2 == 0}, In: []Tensor{g.tensor(d, q, g.tame), x, v, n}})
		}
	}
	// NaN in keys that the causal mask hides must not change the results.
	c := Case{Op: op.Attention, Options: op.AttentionOpts{Causal: true}}
	for range 3 {
		c.In = append(c.In, g.tensor(d, op.Shape{1, 6, 8}, g.tame))
	}
	c.In[1].Data[5*8+3] = math.NaN()
	return append(append(append(cases, c), g.attentionVariants(d, short)...), g.attentionRows(d)...)
}

// attentionSizes are the extents of a case of attention.
type attentionSizes struct{ batch, heads, kv, tq, tk, d, e int }

// attentionVariants returns cases of windows, bounded scores, masks, pages, values of
// another width and keys of another type.
func (g *generator) attentionVariants(d op.DType, short bool) []Case {
	var cases []Case
	for i, s := range []attentionSizes{{1, 2, 2, 1, 1, 1, 3}, {2, 4, 2, 5, 7, 8, 8}, {1, 4, 1, 1, 70, 20, 33}, {2, 2, 2, 40, 33, 16, 16}, {1, 1, 1, 3, 0, 4, 4},
		{2, 6, 2, 9, 130, 40, 8}, {1, 2, 1, 19, 1100, 8, 300}} {
		if short && i > 5 {
			break
		}
		keys := d
		if d == op.F32 {
			keys = []op.DType{op.F32, op.F16, op.BF16}[i%3]
		}
		for j, o := range []op.AttentionOpts{{Window: 3}, {Causal: true, Window: 20}, {Causal: true, FromStart: true}, {Softcap: 0.7}, {Softcap: 30, Scale: 2},
			{Window: math.MaxInt, Causal: true}, {Window: 1, FromStart: true}} {
			cases = append(cases, Case{Op: op.Attention, Options: o, In: g.variant(d, keys, s, (i+j)%4, j%2 == 1, j%3 == 1)})
		}
	}
	return cases
}

// attentionRows returns cases as in a pass over prompts of several sessions: each sequence has one query, and
// consecutive sequences are consecutive positions of a text, each with one key more.
func (g *generator) attentionRows(d op.DType) []Case {
	keys := d
	if d == op.F32 {
		keys = []op.DType{op.F32, op.F16}[g.IntN(2)]
	}
	lengths := []float64{3, 4, 5, 6, 7, 8, 9, 26, 27, 1, 2, 0, 1, 12, 12}
	texts := []int{0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 0, 0, 3, 3} // the pages of each
	var cases []Case
	for _, o := range []op.AttentionOpts{{Causal: true}, {Causal: true, Window: 4, Softcap: 20}, {}} {
		in := g.variant(d, keys, attentionSizes{len(lengths), 4, 2, 1, 25, 8, 12}, 0, true, true)
		table, n := in[op.AttentionTable], in[op.AttentionTable].Shape[1]
		pages := slices.Clone(table.Data)
		for i, text := range texts {
			in[op.AttentionLengths].Data[i] = lengths[i]
			copy(table.Data[i*n:][:n], pages[text*n:][:n])
		}
		cases = append(cases, Case{Op: op.Attention, Options: o, In: in})
	}
	return cases
}

// variant returns the operands of an attention: with a mask of one of three kinds or none,
// with lengths, and with pages.
func (g *generator) variant(d, keys op.DType, s attentionSizes, mask int, lengths, paged bool) []Tensor {
	q := g.tensor(d, op.Shape{s.batch, s.heads, s.tq, s.d}, g.tame)
	in := []Tensor{q, g.tensor(keys, op.Shape{s.batch, s.kv, s.tk, s.d}, g.tame), g.tensor(keys, op.Shape{s.batch, s.kv, s.tk, s.e}, g.tame), {}, {}, {}}
	tk := s.tk
	if paged {
		const page = 5
		n := (s.tk + page - 1) / page
		pages := s.batch*n + 1
		tk = n * page
		in[1], in[2] = g.tensor(keys, op.Shape{pages, page, s.kv, s.d}, g.tame), g.tensor(keys, op.Shape{pages, page, s.kv, s.e}, g.tame)
		table := g.tensor(op.I32, op.Shape{s.batch, n}, g.tame)
		for i, p := range g.Perm(pages)[:s.batch*n] {
			table.Data[i] = float64(p)
			if i%7 == 3 { // a page that is not there
				table.Data[i] = []float64{-1, float64(pages), math.MinInt32, math.MaxInt32}[g.IntN(4)]
			}
		}
		in[op.AttentionTable] = table
	}
	if lengths {
		n := g.tensor(op.I32, op.Shape{s.batch}, g.tame)
		for i := range n.Data {
			n.Data[i] = float64(g.IntN(tk+3) - 1)
		}
		in[op.AttentionLengths] = n
	}
	in[op.AttentionMask] = g.mask(d, op.Shape{s.batch, s.heads, s.tq, tk}, mask)
	for in[len(in)-1].Type == op.InvalidType {
		in = in[:len(in)-1]
	}
	return in
}

// mask returns no mask, bools for each score, numbers for each query and key, or bools
// for each head.
func (g *generator) mask(d op.DType, scores op.Shape, kind int) Tensor {
	yes := func(op.DType) float64 { return float64(min(g.IntN(4), 1)) }
	switch kind {
	case 1:
		m := g.tensor(op.Bool, scores, yes)
		for i := range min(len(m.Data), scores[3]) { // a query that sees nothing
			m.Data[i] = 0
		}
		return m
	case 2:
		return g.tensor(d, slices.Clone(scores[2:]), func(d op.DType) float64 {
			if g.IntN(4) == 0 {
				return math.Inf(-1)
			}
			return g.tame(d)
		})
	case 3:
		return g.tensor(op.Bool, op.Shape{scores[1], 1, scores[3]}, yes)
	}
	return Tensor{}
}
