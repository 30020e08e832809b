package devicetest

import (
	"math"

	"github.com/rayo-go/rayo/op"
)

// matMulExperts multiplies by matrices of type d, of 16-bit types and of every quantised type: by one matrix
// for each row and by several. Some matrices belong to many rows and some to none.
func (g *generator) matMulExperts(d op.DType) []Case {
	if !d.Float() {
		return nil
	}
	var cases []Case
	put := func(lead op.Shape, each int, w Tensor) *Case {
		experts, k := w.Shape[0], w.Shape[2]
		ids := append(op.Shape{}, lead...)
		if each > 0 {
			ids = append(ids, each)
		}
		c := Case{Op: op.MatMulExperts, Options: op.MatMulExpertsOpts{Int8: len(cases)%2 == 1},
			In: []Tensor{g.tensor(d, append(append(op.Shape{}, lead...), k), g.tame), w, g.ids(ids, experts)}}
		cases = append(cases, c)
		return &cases[len(cases)-1]
	}
	types := []op.DType{d}
	if d == op.F32 {
		types = append(types, op.F16, op.BF16)
	}
	for _, w := range types {
		for _, s := range []struct {
			lead                op.Shape
			each, experts, n, k int
		}{
			{op.Shape{}, 0, 3, 5, 7}, {op.Shape{1}, 2, 4, 33, 40}, {op.Shape{13}, 0, 2, 1, 65}, {op.Shape{2, 9}, 3, 5, 17, 33}, {op.Shape{300}, 1, 1, 3, 5},
			{op.Shape{4}, 2, 3, 5, 0}, {op.Shape{0}, 2, 3, 5, 4}, {op.Shape{3}, 0, 0, 5, 4}, {op.Shape{3}, 2, 4, 0, 4}, {op.Shape{5}, 0, 2, 70, 1030}, {op.Shape{3}, 1, 2, 5, 9},
		} {
			put(s.lead, s.each, g.tensor(w, op.Shape{s.experts, s.n, s.k}, g.tame))
		}
		// NaN and infinities must affect only their own rows.
		c := put(op.Shape{6}, 2, g.tensor(w, op.Shape{3, 9, 8}, g.tame))
		c.In[0].Data[2*8+3], c.In[1].Data[9*8+5] = math.NaN(), math.Inf(1)
	}
	for i, w := range op.QuantTypes() {
		e := w.Block().Elements()
		if d != op.F32 && i%3 > 0 {
			continue
		}
		put(op.Shape{1}, 2, g.quantised(w, op.Shape{3, 5, e}))
		if native(w) {
			put(op.Shape{11}, 3, g.quantised(w, op.Shape{4, 19, 2 * e}))
			put(op.Shape{40}, 0, g.quantised(w, op.Shape{3, 7, e}))
		}
	}
	return cases
}
