package portable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/op"
)

func TestAttention(t *testing.T) {
	rnd := rand.New(rand.NewPCG(61, 62))
	for i, s := range []struct{ batch, heads, kv, tq, tk, d int }{
		{1, 1, 1, 1, 1, 1}, {2, 3, 3, 5, 7, 8}, {1, 4, 2, 17, 33, 20}, {1, 8, 2, 1, 70, 33}, {1, 2, 1, 40, 31, 64},
		{1, 1, 1, 3, 0, 4}, {1, 1, 1, 2, 5, 300}, {1, 6, 1, 7, 129, 16}, {1, 2, 2, 70, 100, 72},
	} {
		for _, causal := range []bool{false, true} {
			c := &trial{o: op.Attention, attrs: op.AttentionOpts{Causal: causal}.Attrs(), types: []op.DType{op.F32, op.F32, op.F32},
				values: []*op.Array{normal(rnd, s.batch, s.heads, s.tq, s.d), normal(rnd, s.batch, s.kv, s.tk, s.d), normal(rnd, s.batch, s.kv, s.tk, s.d)}}
			if i == 4 && causal {
				// Only the last query sees the last value: a NaN there must not affect the results
				// of other queries.
				v := c.values[2].Data
				v[len(v)-1] = missing
			}
			for _, w := range attentionSchedules {
				for _, subgroup := range []int{0, 32} {
					if subgroup > 0 && w.spec.Each == 0 || !sampled() {
						continue
					}
					t.Run(fmt.Sprintf("%s/%v/%v/%d", w.name, s, causal, subgroup), func(t *testing.T) {
						g := &rig{check: s.heads*s.tq*s.tk*s.d < 50_000, subgroup: 32}
						err := c.runBy(g, func(q *request) (*Plan, error) {
							sizes, err := op.AttentionOf(&q.Attrs, []op.Shape{q.In[0].Shape, q.In[1].Shape, q.In[2].Shape})
							if err != nil {
								return nil, err
							}
							q.Target.Subgroups, q.Target.Subgroup = subgroup > 0, subgroup
							return launchAttention(q, sizes, w.spec, "")
						})
						if err != nil {
							t.Error(err)
						}
					})
				}
			}
		}
	}
}

// packedHeads places q, k and v of an attention request in one array, and the result where merged
// heads lie.
func packedHeads(r *Request) {
	q, k := r.In[op.AttentionQ].Shape, r.In[op.AttentionK].Shape
	first, all := 0, q[1]+2*k[1]
	for i := range op.AttentionV + 1 {
		a := &r.In[i]
		a.Layout, a.N = optest.Heads(a.Shape, all, first)
		first += a.Shape[1]
	}
	y := &r.Out[0]
	y.Layout, y.N = optest.Heads(y.Shape, y.Shape[1], 0)
}

// TestAttentionLaid runs attention on packed heads with every variant.
func TestAttentionLaid(t *testing.T) {
	rnd := rand.New(rand.NewPCG(65, 66))
	for i, s := range []struct{ batch, heads, kv, tq, tk, d int }{{1, 1, 1, 3, 4, 1}, {2, 3, 3, 5, 7, 8}, {2, 4, 2, 17, 33, 20}, {1, 8, 2, 1, 70, 33}, {1, 2, 2, 70, 40, 72}} {
		for j, o := range []op.AttentionOpts{{}, {Causal: true}, {Causal: true, Window: 3}} {
			c := &trial{o: op.Attention, attrs: o.Attrs(), types: []op.DType{op.F32, op.F32, op.F32}, layouts: packedHeads,
				values: []*op.Array{normal(rnd, s.batch, s.heads, s.tq, s.d), normal(rnd, s.batch, s.kv, s.tk, s.d), normal(rnd, s.batch, s.kv, s.tk, s.d)}}
			for _, w := range attentionSchedules {
				if j == 2 && w.name != attentionSchedules[0].name || !sampled() {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%+v", w.name, s, o), func(t *testing.T) {
					g := &rig{check: i < 3, subgroup: 32, extra: uint32(i)}
					err := c.runBy(g, func(q *request) (*Plan, error) {
						sizes, err := op.AttentionOf(&q.Attrs, []op.Shape{q.In[0].Shape, q.In[1].Shape, q.In[2].Shape})
						if err != nil || !sizes.Plain() {
							return planAnyAttention(q, sizes)
						}
						return launchAttention(q, sizes, w.spec, "")
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// TestAnyAttention runs attention with windows, masks, capped scores and pages.
func TestAnyAttention(t *testing.T) {
	rnd := rand.New(rand.NewPCG(63, 64))
	index := func(v float64, n int, dims ...int) *op.Array {
		x := op.NewArray(dims)
		for i := range x.Data {
			x.Data[i] = v + float64(rnd.IntN(n))
		}
		return x
	}
	for i, s := range []struct{ heads, kv, tq, pages, d, e int }{{1, 1, 1, 1, 1, 1}, {4, 2, 7, 5, 12, 40}, {4, 4, 19, 9, 33, 8}, {2, 1, 3, 20, 8, 300}} {
		const batch, page = 2, 4
		for j, o := range []op.AttentionOpts{{Window: 5}, {Causal: true, Window: 9}, {Softcap: 1.5}, {Causal: true, FromStart: true}} {
			c := &trial{o: op.Attention, attrs: o.Attrs(), types: []op.DType{op.F32, op.F32, op.F32, op.I32, op.F32, op.I32},
				values: []*op.Array{normal(rnd, batch, s.heads, s.tq, s.d), normal(rnd, s.pages, page, s.kv, s.d), normal(rnd, s.pages, page, s.kv, s.e),
					index(-1, s.pages*page+2, batch), normal(rnd, s.tq, s.pages*page), index(-1, s.pages+2, batch, s.pages)}}
			if j%2 == 0 {
				c.types[4], c.values[4] = op.Bool, index(0, 2, s.heads, 1, s.pages*page)
			}
			t.Run(fmt.Sprintf("%v/%v", s, o), func(t *testing.T) {
				g := &rig{check: i < 3, subgroup: 32, extra: uint32(i)}
				err := c.runBy(g, func(q *request) (*Plan, error) { return planAttention(q) })
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
