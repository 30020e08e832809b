package webgpu

import (
	"github.com/rayo-go/rayo/op"
)

// attention computes attention separately for each head of keys and its heads of queries.
func (w *windows) attention() error {
	r := w.r
	for i := op.AttentionLengths; i < len(r.In); i++ {
		if r.In[i].Shape != nil {
			return w.tooLarge
		}
	}
	s, err := op.AttentionOf(&r.Attrs, []op.Shape{r.In[0].Shape, r.In[1].Shape, r.In[2].Shape})
	if err != nil {
		return err
	}
	if !s.Plain() || r.In[op.AttentionK].Type != r.In[op.AttentionQ].Type {
		return w.tooLarge
	}
	heads, share := s.Batch*s.KVHeads, s.Heads/s.KVHeads
	q, y := w.given(0).shaped(heads*share, s.Tq, s.D), w.result(0).shaped(heads*share, s.Tq, s.D)
	k, v := w.given(1).shaped(heads, s.Tk, s.D), w.given(2).shaped(heads, s.Tk, s.D)
	return w.runs(heads, func(from, n int) error {
		return w.request(op.Attention, r.Attrs, []located{q.rows(from*share, n*share), k.rows(from, n), v.rows(from, n)},
			[]located{y.rows(from*share, n*share)}, nil)
	}, q.rowBytes()*int64(share), k.rowBytes())
}
