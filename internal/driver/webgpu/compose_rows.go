package webgpu

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// Reductions and row operations of one row that is too large.

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

// total reduces n elements of an expression of operands, or the operands themselves: it reduces
// runs by first, and the results by last. The result is a float32.
func (w *windows) total(first, last *op.Operation, n int, e *ir.Node, in ...operand) (operand, error) {
	each, count, err := w.elementsOf(n)
	if err != nil {
		return operand{}, err
	}
	whole, err := w.reserve(op.F32, op.Shape{})
	if err != nil {
		return operand{}, err
	}
	kept := w.local
	pieces, err := w.reserve(op.F32, op.Shape{count})
	if err != nil {
		return operand{}, err
	}
	local := w.local
	err = w.inTurn(n, each, func(k, from, m int) error {
		var parts []operand
		for _, x := range in {
			o, at, err := w.cut(x.Operand, x.at, n, from, m)
			if err != nil {
				return err
			}
			parts = append(parts, operand{o, at})
		}
		if e != nil {
			y, err := w.reserve(op.F32, op.Shape{m})
			if err != nil {
				return err
			}
			if err := w.program(y, e, parts...); err != nil {
				return err
			}
			parts = []operand{y.spread(op.Full)}
		}
		var arrays []located
		for _, x := range parts {
			a := located{at: x.at}
			a.Type, a.Shape = x.Type, op.Shape{m}
			arrays = append(arrays, a)
		}
		return w.piece(pieces, k, first, arrays, nil)
	})
	if err != nil {
		return operand{}, err
	}
	w.local = local
	err = w.request(last, op.Attrs{}, []located{pieces}, []located{whole}, nil)
	w.local = kept
	return whole.spread(op.Scalar), err
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

// reduce computes a reduction whose partial results another reduction combines.
func (w *windows) reduce(last *op.Operation) error {
	r := w.r
	var in []operand
	n := 0
	for i := range r.In {
		var x located
		x, n = w.row(i)
		in = append(in, x.spread(op.Full))
	}
	first, e, with := r.Op, arg(0), []operand(nil)
	if r.Op == op.Mean {
		first, e, with = op.Sum, node(ir.Div, arg(0), arg(1)), []operand{w.number(float64(n))}
	}
	y, err := w.total(first, last, n, nil, in...)
	if err != nil {
		return err
	}
	return w.program(w.result(0), e, append([]operand{y}, with...)...)
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

// moments returns the mean of a row and the sum of the squares of the distances from
// it. The mean is a sum of shares, as the sum of the elements might overflow.
func (w *windows) moments(x operand, n int) (mean, squares operand, err error) {
	mean, err = w.total(op.Sum, op.Sum, n, node(ir.Mul, arg(0), arg(1)), x, w.number(1/float64(n)))
	if err != nil {
		return mean, squares, err
	}
	d := node(ir.Sub, arg(0), arg(1))
	squares, err = w.total(op.Sum, op.Sum, n, node(ir.Mul, d, d), x, mean)
	return mean, squares, err
}

// variance computes the variance of one row.
func (w *windows) variance() error {
	x, n := w.row(0)
	_, squares, err := w.moments(x.spread(op.Full), n)
	if err != nil {
		return err
	}
	free := max(n-op.VarOptsOf(&w.r.Attrs).DDOF, 0)
	return w.program(w.result(0), node(ir.Div, arg(0), arg(1)), squares, w.number(float64(free)))
}

// softmax computes softmax and log_softmax of one row. A row whose results must all be NaN has a
// sum of NaN, or distances of NaN from the maximum.
func (w *windows) softmax() error {
	a, n := w.row(0)
	x := a.spread(op.Full)
	greatest, err := w.total(op.Max, op.Max, n, nil, x)
	if err != nil {
		return err
	}
	d := node(ir.Sub, arg(0), arg(1))
	e := node(ir.Exp, d)
	sum, err := w.total(op.Sum, op.Sum, n, e, x, greatest)
	if err != nil {
		return err
	}
	y := node(ir.Div, e, arg(2))
	if w.r.Op == op.LogSoftmax {
		y = node(ir.Sub, d, node(ir.Log, arg(2)))
	}
	return w.program(w.result(0), y, x, greatest, sum)
}

// norm computes layer_norm and rms_norm of one row.
func (w *windows) norm() error {
	a, n := w.row(0)
	x, eps := a.spread(op.Full), w.number(float64(op.NormOptsOf(&w.r.Attrs).Eps))
	var in []operand
	add := func(o operand) *ir.Node {
		in = append(in, o)
		return arg(len(in) - 1)
	}
	var squares operand
	var err error
	y := add(x)
	if w.r.Op == op.LayerNorm {
		var mean operand
		if mean, squares, err = w.moments(x, n); err != nil {
			return err
		}
		y = node(ir.Sub, y, add(mean))
	} else if squares, err = w.total(op.Sum, op.Sum, n, node(ir.Mul, arg(0), arg(0)), x); err != nil {
		return err
	}
	size := node(ir.Sqrt, node(ir.Add, node(ir.Div, add(squares), add(w.number(float64(n)))), add(eps)))
	y = node(ir.Div, y, size)
	if w.has(1) {
		y = node(ir.Mul, y, add(w.given(1).spread(op.Full)))
	}
	if w.has(2) {
		y = node(ir.Add, y, add(w.given(2).spread(op.Full)))
	}
	return w.program(w.result(0), y, in...)
}

// cumsum computes the running sums of one row, in runs that each start from the sum of the runs
// before.
func (w *windows) cumsum() error {
	x, n := w.row(0)
	y := w.result(0).shaped(n)
	each, count, err := w.elementsOf(n)
	if err != nil {
		return err
	}
	sums, err := w.reserve(op.F32, op.Shape{count})
	if err != nil {
		return err
	}
	before, err := w.reserve(op.F32, op.Shape{count})
	if err != nil {
		return err
	}
	local := w.local
	err = w.inTurn(n, each, func(k, from, m int) error {
		return w.piece(sums, k, op.Sum, []located{x.rows(from, m)}, nil)
	})
	if err != nil {
		return err
	}
	if err := w.request(op.Cumsum, op.Attrs{}, []located{sums}, []located{before}, nil); err != nil {
		return err
	}
	w.local = local
	behind := node(ir.Add, arg(0), arg(1))
	return w.inTurn(n, each, func(k, from, m int) error {
		in, out := []located{x.rows(from, m)}, []located{y.rows(from, m)}
		if k == 0 {
			return w.request(op.Cumsum, op.Attrs{}, in, out, nil)
		}
		return w.request(op.Cumsum, op.Attrs{}, in, out, behind, before.rows(k-1, 1).spread(op.Scalar))
	})
}
