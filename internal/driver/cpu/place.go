package cpu

import (
	"context"
	"unsafe"

	"github.com/rayo-go/rayo/op"
)

// placeTask copies rows from or to a position that is an operand. Elements may have any size.
type placeTask struct {
	o     *op.Operation
	sizes op.Placed
	size  int // bytes of an element
	v     *op.Layout
}

// layouts implements reader: an update reads v in any layout.
func (t *placeTask) layouts(ls []*op.Layout) {
	if len(ls) > 2 {
		t.v = ls[2]
	}
}

// elements implements mover.
func (t *placeTask) elements(size int) { t.size = size }

func (t *placeTask) configure(o *op.Operation, a *op.Attrs, dims []op.Shape) (err error) {
	t.o = o
	t.sizes, err = op.PlacedOf(a, dims[:len(dims)-1])
	return err
}

func (t *placeTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	s := t.sizes
	row := s.Inner * t.size
	bytes := func(p unsafe.Pointer, rows int) []byte {
		if p == nil || rows*row == 0 {
			return nil
		}
		return unsafe.Slice((*byte)(p), rows*row)
	}
	x := bytes(in[0], s.Outer*s.Extent)
	at := int(*(*int32)(in[1]))
	if t.o == op.SliceAt {
		y := bytes(out[0], s.Outer*s.Part)
		start, run := s.Start(at), s.Part*row
		for o := range s.Outer {
			if run > 0 {
				copy(y[o*run:(o+1)*run], x[(o*s.Extent+start)*row:])
			}
		}
		return ctx.Err()
	}
	y := bytes(out[0], s.Outer*s.Extent)
	if in[0] != out[0] {
		copy(y, x)
	}
	n := s.Outer * s.Part * s.Inner
	var v []byte
	if t.v == nil {
		v = bytes(in[2], s.Outer*s.Part)
	}
	if first, last := s.Rows(at); first < last && n > 0 {
		for o := range s.Outer {
			if t.v != nil {
				bring(unsafe.Pointer(&y[(o*s.Extent+at+first)*row]), in[2], t.v, (o*s.Part+first)*s.Inner, (last-first)*s.Inner, t.size, false)
				continue
			}
			copy(y[(o*s.Extent+at+first)*row:], v[(o*s.Part+first)*row:(o*s.Part+last)*row])
		}
	}
	return ctx.Err()
}
