package webgpu

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// Reductions of all elements of an array that is too large.

// combinedBy is the reduction that combines the results of another reduction over runs of elements.
var combinedBy = map[*op.Operation]*op.Operation{
	op.Sum: op.Sum, op.Dot: op.Sum, op.Mean: op.Sum, op.Min: op.Min, op.Max: op.Max,
	op.NormL1: op.Sum, op.NormL2: op.NormL2, op.NormLinf: op.Max,
}

// row returns an operand of one row in one dimension.
func (w *windows) row(i int) (located, int) {
	a := w.given(i)
	n, _ := a.Shape.Size()
	return a.shaped(n), n
}

// piece computes element k of pieces as a reduction of all elements, with post, if
// there is one, behind it.
func (w *windows) piece(pieces located, k int, o *op.Operation, in []located, post *ir.Node, with ...operand) error {
	one, err := w.reserve(pieces.Type, op.Shape{})
	if err != nil {
		return err
	}
	if post == nil && in[0].Type != pieces.Type {
		post = arg(0) // a half float is not rounded to
	}
	if err := w.request(o, op.Attrs{}, in, []located{one}, post, with...); err != nil {
		return err
	}
	return w.copy(pieces.rows(k, 1).at, one.at)
}

// reduce computes a reduction of all elements: it reduces runs of them, and the results by last.
func (w *windows) reduce(last *op.Operation) error {
	r := w.r
	var in []located
	n := 0
	for i := range r.In {
		var x located
		x, n = w.row(i)
		in = append(in, x)
	}
	first, e, with := r.Op, arg(0), []operand(nil)
	if r.Op == op.Mean {
		first, e, with = op.Sum, node(ir.Div, arg(0), arg(1)), []operand{w.number(float64(n))}
	}
	each, count, err := w.elementsOf(n)
	if err != nil {
		return err
	}
	whole, err := w.reserve(op.F32, op.Shape{})
	if err != nil {
		return err
	}
	pieces, err := w.reserve(op.F32, op.Shape{count})
	if err != nil {
		return err
	}
	local := w.local
	err = w.inTurn(n, each, func(k, from, m int) error {
		var parts []located
		for _, x := range in {
			a := x.rows(from, m)
			if a.at, err = w.aligned(a.at); err != nil {
				return err
			}
			parts = append(parts, a)
		}
		return w.piece(pieces, k, first, parts, nil)
	})
	if err != nil {
		return err
	}
	w.local = local
	if err := w.request(last, op.Attrs{}, []located{pieces}, []located{whole}, nil); err != nil {
		return err
	}
	return w.program(w.result(0), e, append([]operand{whole.spread(op.Scalar)}, with...)...)
}

// place computes the index of an extreme: the index in the first run that has it.
func (w *windows) place() error {
	greatest := op.Max
	if w.r.Op == op.ArgMin {
		greatest = op.Min
	}
	x, n := w.row(0)
	each, count, err := w.elementsOf(n)
	if err != nil {
		return err
	}
	values, err := w.reserve(op.F32, op.Shape{count})
	if err != nil {
		return err
	}
	places, err := w.reserve(op.I32, op.Shape{count})
	if err != nil {
		return err
	}
	behind := node(ir.Add, ir.NewArg(0, ir.I32), ir.NewArg(1, ir.I32))
	err = w.inTurn(n, each, func(k, from, m int) error {
		run := []located{x.rows(from, m)}
		if err := w.piece(values, k, greatest, run, nil); err != nil {
			return err
		}
		return w.piece(places, k, w.r.Op, run, behind, w.integer(from))
	})
	if err != nil {
		return err
	}
	run, err := w.reserve(op.I32, op.Shape{})
	if err != nil {
		return err
	}
	if err := w.request(w.r.Op, op.Attrs{}, []located{values}, []located{run}, nil); err != nil {
		return err
	}
	return w.chosen(places, run, w.result(0))
}

// chosen takes elements of x, of 32 bits, by their places.
func (w *windows) chosen(x, places, y located) error {
	n, _ := places.Shape.Size()
	// Which bits they are does not matter to a gather.
	x.Type, y.Type = op.F32, op.F32
	return w.request(op.Gather, op.Attrs{}, []located{x.shaped(x.Shape[0], 1), places}, []located{y.shaped(n, 1)}, nil)
}
