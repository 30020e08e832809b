package portable

import "github.com/rayo-go/rayo/op"

// AttentionPlace says where an operand or the result of an attention lies: Off is its first
// element, and Batch, Head and Row are the strides in elements. The elements of a row are
// contiguous. For keys and values in pages, Batch is the stride of pages.
type AttentionPlace struct{ Off, Batch, Head, Row int }

// AttentionPlaces returns the places of q, k, v and the result of an attention from their layouts.
// A nil layout means contiguous rows. The error wraps [op.ErrUnsupported] for a layout that an
// AttentionPlace cannot describe; [Reads] reports which layouts it can describe.
func AttentionPlaces(s *op.AttentionSizes, layouts [4]*op.Layout) (places [4]AttentionPlace, err error) {
	for i, l := range layouts {
		// axes are the extents in the order of the array's shape; head and row are the indices of
		// two of them.
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
				return places, unsupported("attention cannot read or write an array of shape %v in the layout %v", axes, l)
			}
			if axes[row] == 1 {
				strides[row] = axes[3]
			}
		}
		places[i] = AttentionPlace{off, strides[0], strides[head], strides[row]}
	}
	return places, nil
}

// AttentionLayouts returns the layouts of q, k, v and the result of an attention request, and
// reports whether any of them is not nil.
func AttentionLayouts(r *Request) (layouts [4]*op.Layout, laid bool) {
	layouts = [4]*op.Layout{r.In[op.AttentionQ].Layout, r.In[op.AttentionK].Layout, r.In[op.AttentionV].Layout, r.Out[0].Layout}
	return layouts, layouts != [4]*op.Layout{}
}

// inRows reports whether the elements of a row are contiguous and no stride is negative.
func inRows(axes op.Shape, strides []int) bool {
	last := len(axes) - 1
	for _, n := range strides {
		if n < 0 {
			return false
		}
	}
	return axes[last] == 1 || strides[last] == 1
}

// readsAttention reports whether attention kernels can address operand at, of shape s, by the
// strides of layout l.
func readsAttention(at int, s op.Shape, l *op.Layout) bool {
	if at > op.AttentionV || len(s) > 4 {
		return false
	}
	axes := append(op.Shape{1, 1}, s...)
	axes = axes[len(axes)-4:]
	_, strides, ok := l.Strides(axes)
	return ok && inRows(axes, strides)
}

func writesAttention(s op.Shape, l *op.Layout) bool { return readsAttention(op.AttentionQ, s, l) }

// attentionPlaced specialises a kernel for rows that are not contiguous; the zero value means
// contiguous rows. Strides of 0 and 1 need no code.
type attentionPlaced struct {
	Laid       bool
	KVHeads    int // heads of keys of a batch entry; 0 if there is one entry
	Share      int // query heads for each head of keys
	Q, K, V, Y AttentionPlace
}

// placedAttention returns the specialisation of the plain attention kernels for the layouts of r.
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
		a.Batch = 0 // no kernel uses this stride for one batch entry
	}
	return p, nil
}
