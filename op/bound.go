package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// ranges implements [irhook.Range].
func (o *Operation) ranges(a *Attrs, types []DType) (func(in []ir.Interval) ir.Interval, error) {
	e, err := o.expression(a, types)
	if err != nil {
		return nil, err
	}
	out, err := o.Types(a, types)
	if err != nil {
		return nil, err
	}
	params := make([]float64, len(a.F))
	for i := range params {
		params[i] = float64(a.Float(i))
	}
	if o.def().id < 0 {
		steps := stepwise(e)
		return func(in []ir.Interval) ir.Interval {
			return Tolerance{}.widen(steps.Enclose(in, params), 0, out[0])
		}, nil
	}
	exact := ir.NewEncloser(e, nil)
	if o.def().mag == nil {
		return func(in []ir.Interval) ir.Interval {
			return o.def().tol.widen(exact.Enclose(in, params), 0, out[0])
		}, nil
	}
	magnitude := ir.NewEncloser(o.def().mag, nil)
	return func(in []ir.Interval) ir.Interval {
		v := exact.Enclose(in, params)
		finite := make([]ir.Interval, len(in))
		for i, x := range in {
			finite[i] = x
			if x.Certain() && !(x.Lo-x.Hi == 0) {
				finite[i] = ir.Point(0) // the reference does the same
			}
		}
		m := magnitude.Enclose(finite, params)
		if m.NaN || m.Hi >= overflow {
			return ir.Anything()
		}
		return o.def().tol.widen(v, m.Hi, out[0])
	}, nil
}

// widen returns the range of the results of type d that t allows if the references
// lie in v and their magnitudes are at most mag.
func (t Tolerance) widen(v ir.Interval, mag float64, d DType) ir.Interval {
	if !d.Float() || v.Lo > v.Hi {
		return v
	}
	if max(t.ULP, 0.5) == 0.5 && t.Mag == 0 && t.Abs == 0 {
		// A correctly rounded result is at most the next number beyond an end, and a number that
		// needs no rounding does not change.
		if u := ulpOf(v.Lo, d); v.Lo-v.Lo == 0 {
			v.Lo = math.Floor(v.Lo/u) * u
		}
		if u := ulpOf(v.Hi, d); v.Hi-v.Hi == 0 {
			v.Hi = math.Ceil(v.Hi/u) * u
		}
	} else {
		b := max(t.Bound(v.Lo, mag, d), t.Bound(v.Hi, mag, d))
		v.Lo, v.Hi = v.Lo-b, v.Hi+b
	}
	if v.Hi >= infinityOf(d) {
		v.Hi = math.Inf(1)
	}
	if v.Lo <= -infinityOf(d) {
		v.Lo = math.Inf(-1)
	}
	return v
}

// compositeULP bounds the error of a composite function in an expression, in units in
// the last place of its result. Arithmetic is correctly rounded.
const compositeULP = 4

// stepwise returns an encloser that rounds each step of the expression to float32. Its
// enclosures are the tolerance of a user's operation, which states none.
func stepwise(e *ir.Node) *ir.Encloser {
	return ir.NewEncloser(e, func(n *ir.Node, v ir.Interval) ir.Interval {
		switch {
		case n.Type != ir.F32 || exactCode(n.Code):
			return v
		case n.Code.Composite():
			return Tolerance{ULP: compositeULP}.widen(v, 0, F32)
		}
		return Tolerance{}.widen(v, 0, F32)
	})
}

// exactCode reports whether a code never rounds.
func exactCode(c ir.Code) bool {
	switch c {
	case ir.Neg, ir.Abs, ir.Min, ir.Max, ir.Floor, ir.Ceil, ir.Trunc, ir.Round, ir.CopySign, ir.Select:
		return true
	}
	return false
}

// distance returns the largest distance from v of a number in r. It is infinite if r may
// be NaN or if v is not finite, unless r has only one value and that is v.
func distance(r ir.Interval, v float64) float64 {
	switch {
	case r.Certain() && r.Contains(v):
		return 0
	case r.NaN || v-v != 0:
		return math.Inf(1)
	}
	return max(r.Hi-v, v-r.Lo, 0)
}
