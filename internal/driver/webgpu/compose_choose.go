package webgpu

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
)

// gather takes rows of a table that is too large: for each part of the table in turn, it takes the
// rows in that part.
func (w *windows) gather() error {
	table, ids, y := w.given(0), w.given(1), w.result(0)
	n, _ := ids.Shape.Size()
	rows := table.Shape[0]
	if s, err := op.IndexedOf(&w.r.Attrs, table.Shape, ids.Shape); err != nil || s.Outer != 1 {
		return w.tooLarge
	}
	each := w.span(rows, table.rowBytes())
	if each == 0 || (rows-1)/each+1 > maxWindows || rows > math.MaxInt32 {
		return w.tooLarge
	}
	var so [2]located // the result of the parts before
	for i := range so {
		var err error
		if so[i], err = w.reserve(y.Type, y.Shape); err != nil {
			return err
		}
	}
	here, err := w.reserve(op.I32, ids.Shape)
	if err != nil {
		return err
	}
	i32 := func(i int) *ir.Node { return ir.NewArg(i, ir.I32) }
	// Negative indices count from the end of the table, not of the part. Rows before the part, and
	// rows after it, get an index outside of the part.
	none := ir.NewConst(math.MinInt32, ir.I32)
	row := node(ir.Select, node(ir.Lt, i32(0), ir.NewConst(0, ir.I32)), node(ir.Add, i32(0), i32(2)), i32(0))
	relative := node(ir.Select, node(ir.Lt, row, i32(1)), none, node(ir.Sub, row, i32(1)))
	is := node(ir.And, node(ir.Le, ir.NewConst(0, ir.I32), i32(2)), node(ir.Lt, i32(2), i32(3)))
	t := irhook.Register(uint8(y.Type))
	either := node(ir.Select, is, ir.NewArg(0, t), ir.NewArg(1, t))
	local := w.local
	for k, from := 0, 0; from < rows; k, from = k+1, from+each {
		w.local = local
		part := table.rows(from, min(rows-from, each))
		to := so[k%2]
		if from+each >= rows {
			to = y
		}
		if err = w.program(here, relative, ids.spread(op.Full), w.integer(from), w.integer(rows)); err != nil {
			return err
		}
		if k == 0 {
			err = w.request(op.Gather, op.Attrs{}, []located{part, here}, []located{to}, nil)
		} else {
			over := here.spread(op.Repeated)
			over.N = n
			err = w.request(op.Gather, op.Attrs{}, []located{part, here}, []located{to}, either,
				so[(k+1)%2].spread(op.Full), over, w.integer(part.Shape[0]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// topK finds the greatest elements of one row among the greatest of runs of it.
// Equal ones stay in their order.
func (w *windows) topK() error {
	x, n := w.row(0)
	if x.Type != op.F32 {
		return errHalfWord
	}
	most := op.TopKOptsOf(&w.r.Attrs).K
	each, count, err := w.elementsOf(n)
	if err != nil {
		return err
	}
	all := (count-1)*min(most, each) + min(most, n-(count-1)*each)
	if all > n/2 {
		return w.tooLarge // sorted runs would have to be merged
	}
	values, err := w.reserve(op.F32, op.Shape{all})
	if err != nil {
		return err
	}
	places, err := w.reserve(op.I32, op.Shape{all})
	if err != nil {
		return err
	}
	behind := node(ir.Add, ir.NewArg(0, ir.I32), ir.NewArg(1, ir.I32))
	found := 0
	err = w.inTurn(n, each, func(_, from, m int) error {
		best := min(most, m)
		var ys [3]located // values, places in the run, places in the row
		for i, t := range []op.DType{op.F32, op.I32, op.I32} {
			if ys[i], err = w.reserve(t, op.Shape{best}); err != nil {
				return err
			}
		}
		if err := w.request(op.TopK, op.TopKOpts{K: best}.Attrs(), []located{x.rows(from, m)}, ys[:2], nil); err != nil {
			return err
		}
		if err := w.program(ys[2], behind, ys[1].spread(op.Full), w.integer(from)); err != nil {
			return err
		}
		if err := w.copy(values.rows(found, best).at, ys[0].at); err != nil {
			return err
		}
		if err := w.copy(places.rows(found, best).at, ys[2].at); err != nil {
			return err
		}
		found += best
		return nil
	})
	if err != nil {
		return err
	}
	among, err := w.reserve(op.I32, op.Shape{most})
	if err != nil {
		return err
	}
	if err := w.request(op.TopK, w.r.Attrs, []located{values}, []located{w.result(0).shaped(most), among}, nil); err != nil {
		return err
	}
	return w.chosen(places, among, w.result(1))
}
