package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// foldOf returns the fold of an operation for elements that are computed in type t, or nil
// if the operation does not accept this type.
type foldOf func(t ir.Type) *ir.Reducer

// reducer returns the definition of a reduction or scan of elements of type d, or nil if
// the operation has none.
func (o *Operation) reducer(d DType) *ir.Reducer {
	if o.def().fold == nil {
		return nil
	}
	return o.def().fold(register(d))
}

// ReadsColumns reports whether kernels that are generated from the operation's fold can
// read an operand of shape s and layout l without a copy: see [Layout.Columns].
func (o *Operation) ReadsColumns(s Shape, l *Layout) bool {
	if o.def().class != Reduction || len(s) == 0 {
		return false
	}
	_, _, ok := l.Columns(s.Rows())
	return ok && o.reducer(F32) != nil
}

// The expressions of folds.
func element(t ir.Type) Expr            { return Expr{ir.NewArg(0, t)} }
func literal(v float64, t ir.Type) Expr { return Expr{ir.NewConst(v, t)} }
func (x Expr) to(t ir.Type) Expr        { return Expr{ir.NewConvert(x.n, t)} }
func (c Cond) to(t ir.Type) Expr        { return Expr{ir.NewConvert(c.n, t)} }
func (x Expr) isNaN() Cond              { return x.Ne(x) }
func identical(x Expr) Expr             { return x }
func countOf(states int) Expr           { return Expr{ir.NewArg(states, ir.F32)} }
func nonzero(x Expr, to ir.Type) (is Expr) {
	if x.n.Type == ir.Bool {
		return x.to(to)
	}
	return x.Ne(x.like(0)).to(to)
}

// folded returns a fold with a state of one number: lift converts an element to a state, merge
// combines two states, and finish computes the result from a state and the count.
func folded(t ir.Type, identity Expr, lift func(x Expr) Expr, merge func(x, y Expr) Expr, finish func(s, n Expr) Expr) *ir.Reducer {
	state := identity.n.Type
	f := &ir.Reducer{
		Identity: []*ir.Node{identity.n},
		Lift:     []*ir.Node{lift(element(t)).n},
		Merge:    []*ir.Node{merge(Expr{ir.NewArg(0, state)}, Expr{ir.NewArg(1, state)}).n},
		Finish:   ir.NewArg(0, state),
	}
	if finish != nil {
		f.Finish = finish(Expr{f.Finish}, countOf(1)).n
	}
	return f
}

func foldSum(t ir.Type) *ir.Reducer {
	to := t
	if t == ir.Bool {
		to = ir.I32
	}
	return folded(t, literal(0, to), func(x Expr) Expr { return x.to(to) }, Expr.Add, nil)
}

func foldProd(t ir.Type) *ir.Reducer { return folded(t, literal(1, t), identical, Expr.Mul, nil) }

func foldMean(t ir.Type) *ir.Reducer {
	return folded(t, literal(0, t), identical, Expr.Add, func(s, n Expr) Expr { return s.Div(n) })
}

func foldNormL1(t ir.Type) *ir.Reducer { return folded(t, literal(0, t), Expr.Abs, Expr.Add, nil) }

func foldNormL2(t ir.Type) *ir.Reducer {
	return folded(t, literal(0, t), Expr.Square, Expr.Add, func(s, _ Expr) Expr { return s.Sqrt() })
}

func foldNormLinf(t ir.Type) *ir.Reducer { return folded(t, literal(0, t), Expr.Abs, Expr.Max, nil) }

// ends returns the least and the greatest number of a type.
func ends(t ir.Type) (least, greatest Expr) {
	switch t {
	case ir.I32:
		return literal(math.MinInt32, t), literal(math.MaxInt32, t)
	case ir.U32:
		return literal(0, t), literal(math.MaxUint32, t)
	}
	return literal(math.Inf(-1), t), literal(math.Inf(1), t)
}

func foldMin(t ir.Type) *ir.Reducer {
	_, greatest := ends(t)
	return folded(t, greatest, identical, Expr.Min, nil)
}

func foldMax(t ir.Type) *ir.Reducer {
	least, _ := ends(t)
	return folded(t, least, identical, Expr.Max, nil)
}

func foldAny(t ir.Type) *ir.Reducer {
	return folded(t, literal(0, ir.U32), func(x Expr) Expr { return nonzero(x, ir.U32) }, Expr.Max, truthful)
}

func foldAll(t ir.Type) *ir.Reducer {
	return folded(t, literal(1, ir.U32), func(x Expr) Expr { return nonzero(x, ir.U32) }, Expr.Min, truthful)
}

func truthful(s, _ Expr) Expr { return Expr{s.Ne(s.like(0)).n} }

func foldCount(t ir.Type) *ir.Reducer {
	return folded(t, literal(0, ir.I32), func(x Expr) Expr { return nonzero(x, ir.I32) }, Expr.Add, nil)
}

// foldPlace returns the fold of argmin or argmax. The state is an element and its index; of
// equal elements the one with the lower index is better. The identity has the greatest index. NaN is
// better than any number.
func foldPlace(better func(x, y Expr) Cond, identity func(t ir.Type) Expr) foldOf {
	return func(t ir.Type) *ir.Reducer {
		x, i := Expr{ir.NewArg(0, t)}, Expr{ir.NewArg(1, ir.I32)}
		y, j := Expr{ir.NewArg(2, t)}, Expr{ir.NewArg(3, ir.I32)}
		second, equal := better(y, x), y.Eq(x)
		if t == ir.F32 {
			second, equal = second.Or(y.isNaN().And(x.isNaN().Not())), equal.Or(y.isNaN().And(x.isNaN()))
		}
		second = second.Or(equal.And(j.Lt(i)))
		return &ir.Reducer{
			Identity: []*ir.Node{identity(t).n, literal(math.MaxInt32, ir.I32).n},
			Lift:     []*ir.Node{x.n, i.n},
			Merge:    []*ir.Node{Select(second, y, x).n, Select(second, j, i).n},
			Finish:   i.n,
		}
	}
}

func foldArgMin(t ir.Type) *ir.Reducer {
	return foldPlace(Expr.Lt, func(t ir.Type) Expr { _, greatest := ends(t); return greatest })(t)
}

func foldArgMax(t ir.Type) *ir.Reducer {
	return foldPlace(Expr.Gt, func(t ir.Type) Expr { least, _ := ends(t); return least })(t)
}

// foldLogSumExp has as its state the greatest element m and Σ e**(x-m). If m is infinite, the sum is
// Σ e**x, so that no infinity is subtracted from another.
func foldLogSumExp(t ir.Type) *ir.Reducer {
	m, s := Expr{ir.NewArg(0, t)}, Expr{ir.NewArg(1, t)}
	k, r := Expr{ir.NewArg(2, t)}, Expr{ir.NewArg(3, t)}
	least, _ := ends(t)
	greatest := m.Max(k)
	from := Select(greatest.Abs().Lt(literal(math.Inf(1), t)), greatest, literal(0, t))
	return &ir.Reducer{
		Identity: []*ir.Node{least.n, literal(0, t).n},
		Lift:     []*ir.Node{element(t).n, literal(1, t).n},
		Merge:    []*ir.Node{greatest.n, s.Mul(m.Sub(from).Exp()).Add(r.Mul(k.Sub(from).Exp())).n},
		Finish:   m.Add(s.Log()).n,
	}
}

// foldVar has as its state a count, a mean and a sum of squared distances from the mean. Two states
// are combined by the formulas of Chan, Golub and LeVeque ("Updating formulae and a pairwise
// algorithm for computing sample variances", 1979). The new mean is computed without a difference of
// elements, which might overflow. The count of elements that the result is divided by is the number
// of degrees of freedom.
func foldVar(t ir.Type) *ir.Reducer {
	arg := func(i int) Expr { return Expr{ir.NewArg(i, t)} }
	n, mean, squares := arg(0), arg(1), arg(2)
	k, mean2, squares2 := arg(3), arg(4), arg(5)
	all, zero, one := n.Add(k), literal(0, t), literal(1, t)
	share := k.Div(all.Max(one))
	distance := mean2.Sub(mean)
	return &ir.Reducer{
		Identity: []*ir.Node{zero.n, zero.n, zero.n},
		Lift:     []*ir.Node{one.n, element(t).n, zero.n},
		Merge:    []*ir.Node{all.n, mean.Add(mean2.Mul(share).Sub(mean.Mul(share))).n, squares.Add(squares2).Add(distance.Mul(n.Mul(share)).Mul(distance)).n},
		Finish:   Select(mean.Abs().Lt(literal(math.Inf(1), t)), squares.Div(countOf(3)), literal(math.NaN(), t)).n,
	}
}

// reduceByFold is the reference of a reduction whose result is exact.
func reduceByFold(f *ir.Reducer, x *Array, out *Array) {
	if len(out.Data) == 0 {
		return
	}
	e, cols := f.Evaluator(), len(x.Data)/len(out.Data)
	for r := range out.Data {
		e.Begin()
		for i, v := range x.Data[r*cols:][:cols] {
			e.Take(v, i)
		}
		out.Data[r] = e.Result(cols)
	}
}
