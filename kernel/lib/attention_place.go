package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// AttentionPlace says where an operand or the result of an attention is: its first
// element, and the elements from one of the batch, one head and one row to the next.
// The elements of a row are neighbours. Of keys and values in pages, Batch is from one
// page to the next.
type AttentionPlace struct{ Off, Batch, Head, Row int }

// AttentionPlaces returns where q, k, v and the result of an attention are, by their
// layouts, nil for row by row. The error wraps [op.ErrUnsupported] for a layout that
// has no such strides: [Reads] says which have.
func AttentionPlaces(s *op.AttentionSizes, layouts [4]*op.Layout) (places [4]AttentionPlace, err error) {
	for i, l := range layouts {
		// Outer extents, heads and rows in the order in which they are in the shape.
		axes, head, row := op.Shape{s.Batch, s.KVHeads, s.Tk, s.D}, 1, 2
		switch {
		case i%3 == 0:
			axes[1], axes[2] = s.Heads, s.Tq
		case s.Page > 0:
			axes, head, row = op.Shape{s.Pages, s.Page, s.KVHeads, s.D}, 2, 1
		}
		if i >= 2 {
			axes[3] = s.E
		}
		off, strides := 0, []int{axes[1] * axes[2] * axes[3], axes[2] * axes[3], axes[3], 1}
		if l != nil {
			var ok bool
			if off, strides, ok = l.Strides(axes); !ok || !inRows(axes, strides) {
				return places, unsupported("attention of %v in the layout %v", axes, l)
			}
			if axes[row] == 1 {
				strides[row] = axes[3]
			}
		}
		places[i] = AttentionPlace{off, strides[0], strides[head], strides[row]}
	}
	return places, nil
}

// AttentionLayouts returns the layouts of q, k, v and the result of a request for
// attention, and whether there are any.
func AttentionLayouts(r *Request) (layouts [4]*op.Layout, laid bool) {
	layouts = [4]*op.Layout{r.In[op.AttentionQ].Layout, r.In[op.AttentionK].Layout, r.In[op.AttentionV].Layout, r.Out[0].Layout}
	return layouts, layouts != [4]*op.Layout{}
}

// inRows reports whether elements of a row are neighbours, and the others lie further on.
func inRows(axes op.Shape, strides []int) bool {
	last := len(axes) - 1
	for _, n := range strides {
		if n < 0 {
			return false
		}
	}
	return axes[last] == 1 || strides[last] == 1
}

// readsAttention reports whether kernels of attention find operand at of shape s by the
// strides of a layout.
func readsAttention(at int, s op.Shape, l *op.Layout) bool {
	if at > op.AttentionV || len(s) > 4 {
		return false
	}
	axes := append(op.Shape{1, 1}, s...)
	axes = axes[len(axes)-4:]
	_, strides, ok := l.Strides(axes)
	return ok && inRows(axes, strides)
}

// attentionPlaced specialises a kernel for rows that do not follow each other; the zero
// value stands for rows that do. What is 0 and what is 1 costs nothing then.
type attentionPlaced struct {
	Laid       bool
	KVHeads    int // of one of the batch; 0 if there is one
	Share      int // heads of queries for each head of keys
	Q, K, V, Y AttentionPlace
}

// placedAttention returns how kernels for the plain attention find rows.
func placedAttention(r *Request, s *op.AttentionSizes) (attentionPlaced, error) {
	layouts, laid := AttentionLayouts(r)
	if !laid {
		return attentionPlaced{}, nil
	}
	places, err := AttentionPlaces(s, layouts)
	if err != nil {
		return attentionPlaced{}, err
	}
	p := attentionPlaced{Laid: true, Share: s.Heads / s.KVHeads, Q: places[0], K: places[1], V: places[2], Y: places[3]}
	if s.Batch > 1 {
		p.KVHeads = s.KVHeads
		return p, nil
	}
	for _, a := range []*AttentionPlace{&p.Q, &p.K, &p.V, &p.Y} {
		a.Batch = 0 // which no kernel depends on then
	}
	return p, nil
}

// inUnits reports whether rows begin at multiples of the unit, in memory of whole ones.
func (p *attentionPlaced) inUnits(q *request, unit int) bool {
	if !p.Laid {
		return true
	}
	for _, a := range []AttentionPlace{p.Q, p.K, p.V, p.Y} {
		if (a.Off|a.Batch|a.Head|a.Row)%unit != 0 {
			return false
		}
	}
	for _, a := range append(q.In[:op.AttentionV+1:op.AttentionV+1], q.Out...) {
		if a.Layout != nil && a.N%unit != 0 {
			return false
		}
	}
	return true
}

// rowStart returns where a row begins, in units.
type rowStart func(r kernel.U32) kernel.U32

// attentionRows says where the rows of a tile begin.
type attentionRows struct {
	query, result rowStart                                  // of the queries
	keys          func(at kernel.U32) (key, value rowStart) // of the keys from one on
}

// rows returns where the rows of a tile begin, of queries from first on. Heads of keys
// are counted over the batch; rows of d units follow each other unless s says where
// they are.
func (s *attentionSpec) rows(head, rows, first, tq, tk, d kernel.U32, unit int) *attentionRows {
	if p := &s.Placed; p.Laid {
		return p.rows(head, first, tq, unit)
	}
	queries := head.Mul(rows).Add(first).Mul(d)
	past := head.Mul(tk).Mul(d) // where the keys and values of the head begin
	query := func(r kernel.U32) kernel.U32 { return queries.Add(r.Mul(d)) }
	return &attentionRows{query: query, result: query, keys: func(at kernel.U32) (key, value rowStart) {
		start := past.Add(at.Mul(d))
		row := func(r kernel.U32) kernel.U32 { return start.Add(r.Mul(d)) }
		return row, row
	}}
}

// rows is [attentionSpec.rows] of rows that do not follow each other.
func (p *attentionPlaced) rows(head, first, tq kernel.U32, unit int) *attentionRows {
	batch := kernel.U(0)
	if p.KVHeads > 0 {
		batch, head = head.Div(kernel.U(uint32(p.KVHeads))), head.Mod(kernel.U(uint32(p.KVHeads)))
	}
	step := func(x kernel.U32, n int) kernel.U32 { return x.Mul(kernel.U(uint32(n / unit))) }
	begin := func(a *AttentionPlace, head kernel.U32) kernel.U32 {
		return behind(a.Off/unit, step(batch, a.Batch).Add(step(head, a.Head)))
	}
	of := func(a *AttentionPlace) rowStart { // queries of all heads that share a head of keys
		start := begin(a, head.Mul(kernel.U(uint32(p.Share))))
		return func(r kernel.U32) kernel.U32 {
			r = first.Add(r)
			if p.Share == 1 {
				return start.Add(step(r, a.Row))
			}
			return start.Add(step(r.Div(tq), a.Head)).Add(step(r.Mod(tq), a.Row))
		}
	}
	keys, values := begin(&p.K, head), begin(&p.V, head)
	return &attentionRows{query: of(&p.Q), result: of(&p.Y), keys: func(at kernel.U32) (key, value rowStart) {
		row := func(start kernel.U32, a *AttentionPlace) rowStart {
			return func(r kernel.U32) kernel.U32 { return start.Add(step(at.Add(r), a.Row)) }
		}
		return row(keys, &p.K), row(values, &p.V)
	}}
}

// behind returns the place off elements behind another.
func behind(off int, at kernel.U32) kernel.U32 {
	if off == 0 {
		return at
	}
	return at.Add(kernel.U(uint32(off)))
}
