package portable

import "github.com/rayo-go/rayo/op"

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

// attentionPlaced specialises a kernel for rows that are not contiguous; the zero value means
// contiguous rows. Strides of 0 and 1 need no code.
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
