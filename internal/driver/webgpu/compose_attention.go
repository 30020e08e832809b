package webgpu

import (
	"github.com/rayo-go/rayo/op"
)

// attention computes attention by heads of keys, with the queries that share each;
// of one, by heads of queries; of one of these, by queries.
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
	switch {
	case heads > 1:
		return w.runs(heads, func(from, n int) error {
			return w.request(op.Attention, r.Attrs, []located{q.rows(from*share, n*share), k.rows(from, n), v.rows(from, n)},
				[]located{y.rows(from*share, n*share)}, nil)
		}, q.rowBytes()*int64(share), k.rowBytes())
	case share > 1 && !w.large(k):
		return w.runs(share, func(from, n int) error {
			return w.request(op.Attention, r.Attrs, []located{q.rows(from, n), k, v}, []located{y.rows(from, n)}, nil)
		}, q.rowBytes())
	}
	q, y = q.shaped(share*s.Tq, s.D), y.shaped(share*s.Tq, s.D)
	k, v = k.shaped(s.Tk, s.D), v.shaped(s.Tk, s.D)
	if w.large(k) {
		return w.tooLarge
	}
	causal := op.AttentionOptsOf(&r.Attrs).Causal
	one := func(a located) located { return a.shaped(append(op.Shape{1}, a.Shape...)...) }
	return w.runs(s.Tq, func(from, n int) error {
		// The last query of each run is at the position of the last key of its run.
		seen := s.Seen(from+n-1, causal)
		if seen == 0 {
			return w.nothing(y.rows(from, n))
		}
		return w.request(op.Attention, r.Attrs, []located{one(q.rows(from, n)), one(k.rows(0, seen)), one(v.rows(0, seen))},
			[]located{one(y.rows(from, n))}, nil)
	}, q.rowBytes())
}

// nothing sets an array to 0.
func (w *windows) nothing(y located) error { return w.program(y, arg(0), w.number(0)) }
