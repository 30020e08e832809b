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
	var so [2]located // the result after the previous parts
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
