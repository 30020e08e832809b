package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// NewArray returns an array of zeros. The shape must be valid.
func NewArray(s Shape) *Array {
	n, err := s.Size()
	if err != nil {
		n = 0
	}
	return &Array{Shape: s, Data: make([]float64, n)}
}

// Reference computes the results in float64 for operands of the given element
// types. Absent operands are nil, with type InvalidType. Results are not rounded
// to their type. [Operation.Check] compares the results of devices with them.
func (o *Operation) Reference(a *Attrs, in []*Array, types []DType) ([]*Array, error) {
	if len(in) != len(types) {
		return nil, mismatch("%d operands and %d types: expected one type for each operand", len(in), len(types))
	}
	if _, err := o.Types(a, types); err != nil {
		return nil, err
	}
	shapes := make([]Shape, len(in))
	for i, x := range in {
		if x == nil {
			continue
		}
		shapes[i] = x.Shape
		if shapes[i] == nil {
			shapes[i] = Shape{}
		}
		if n, err := shapes[i].Size(); err != nil || n != len(x.Data) {
			return nil, mismatch("%d elements in an array of shape %v", len(x.Data), x.Shape)
		}
	}
	out, err := o.Shapes(a, shapes)
	if err != nil {
		return nil, err
	}
	if o.def().ref != nil {
		results := make([]*Array, len(out))
		for i, s := range out {
			results[i] = NewArray(s)
		}
		full := make([]*Array, MaxInputs) // so that absent operands at the end are nil too
		for i, x := range in {
			if x != nil {
				y := *x
				y.typ = types[i]
				full[i] = &y
			}
		}
		o.def().ref(a, full, results)
		for _, y := range results {
			y.roundHalf(types[0])
		}
		if a.Act != nil {
			activate(a, o.def().tol, results[0])
		}
		return results, nil
	}
	if o.def().view != nil {
		y := NewArray(out[0])
		o.look(a, in[0], y, types[0])
		return []*Array{y}, nil
	}
	y, err := o.evaluate(a, in, types, out[0])
	if err != nil {
		return nil, err
	}
	return []*Array{y}, nil
}

// roundHalf adds to Mag the error of rounding an intermediate result to a type of 16 bits.
func (x *Array) roundHalf(t DType) {
	if t != F16 && t != BF16 {
		return
	}
	for i, h := range x.half {
		x.Mag[i] += h * ulpOf(1, t) / 2 / epsilon
	}
}

// evaluate computes an elementwise operation.
func (o *Operation) evaluate(a *Attrs, in []*Array, types []DType, out Shape) (*Array, error) {
	e, err := o.expression(a, types)
	if err != nil {
		return nil, err
	}
	y := NewArray(out)
	at := make([]func(int) int, len(in))
	for i, x := range in {
		if at[i], err = Index(x.Shape, out); err != nil {
			return nil, err
		}
	}
	params := make([]float64, len(a.F))
	for i := range params {
		params[i] = float64(a.Float(i))
	}
	args := make([]float64, len(in))
	fill := func(dst []float64, root *ir.Node, finite bool) {
		ev := ir.NewEvaluator(root)
		for i := range dst {
			for j, x := range in {
				args[j] = x.Data[at[j](i)]
				if finite && args[j]-args[j] != 0 {
					args[j] = 0
				}
			}
			dst[i] = ev.Eval(args, params)
		}
	}
	fill(y.Data, e, false)
	if o.def().mag != nil {
		y.Mag = make([]float64, len(y.Data))
		fill(y.Mag, o.def().mag, true)
		for i, m := range y.Mag {
			if m >= overflow {
				y.Mag[i] = math.Inf(1) // a term is beyond the range, though the sum may not be
			}
		}
	}
	if o.def().id < 0 && o.def().fixed == nil {
		y.Mag = make([]float64, len(y.Data))
		b := stepwise(e)
		points := make([]ir.Interval, len(in))
		for i := range y.Mag {
			for j, x := range in {
				points[j] = ir.Point(x.Data[at[j](i)])
			}
			y.Mag[i] = distance(b.Enclose(points, params), y.Data[i]) / epsilon
		}
	}
	return y, nil
}

// Index returns a function that maps the index of an element of an elementwise
// result of shape out to the index of the element of an operand of shape s.
func Index(s, out Shape) (func(int) int, error) {
	l, err := Over(s, out)
	if err != nil {
		return nil, err
	}
	return func(i int) int {
		at, _ := l.At(i)
		return at
	}, nil
}

// Activation returns the elementwise operation that is applied to the result,
// and its parameters, or nil.
func (a *Attrs) Activation() (*Operation, Attrs) {
	return a.Act, Attrs{F: [4]uint32{a.ActF[0], a.ActF[1]}}
}

// withAct returns a with an activation. Zero parameters stand for the
// activation's defaults.
func withAct(a Attrs, act *Operation, params Attrs) Attrs {
	if act == nil {
		return a
	}
	if params == (Attrs{}) {
		params = act.Defaults()
	}
	a.Act = act
	copy(a.ActF[:], params.F[:])
	return a
}

// checkAct returns an ErrUnsupported if a.Act cannot be the activation of results of type d.
func (a *Attrs) checkAct(d DType) error {
	o := a.Act
	switch {
	case o == nil:
		return nil
	case o.def().err != nil:
		return o.def().err
	case o.def().class != Elementwise || o.def().arity[1] != 1 || len(o.def().params) > len(a.ActF):
		return unsupported("activation %s is not an elementwise operation of one operand and at most %d parameters", o.def().name, len(a.ActF))
	}
	_, attrs := a.Activation()
	got, err := o.Types(&attrs, []DType{d})
	if err != nil {
		return err
	}
	if got[0] != d {
		return unsupported("activation %s gives %v for an operand of %v: its result must have the type of its operand", o.def().name, got[0], d)
	}
	return nil
}

// activate applies the activation of a to r, an array of results with
// tolerance t, and carries the error bound through it.
func activate(a *Attrs, t Tolerance, r *Array) {
	o, attrs := a.Activation()
	e, err := o.expression(&attrs, []DType{F32})
	if err != nil {
		return // Types has refused it
	}
	ev := ir.NewEvaluator(e)
	params := []float64{float64(attrs.Float(0)), float64(attrs.Float(1))}
	f := func(v float64) float64 { return ev.Eval([]float64{v}, params) }
	if r.Mag == nil {
		r.Mag = make([]float64, len(r.Data))
	}
	for i, v := range r.Data {
		y := f(v)
		b := t.Bound(v, r.Mag[i], F32)
		spread := 0.0
		for _, w := range [...]float64{v - b, v + b} {
			if d := math.Abs(f(w) - y); d > spread {
				spread = d
			}
		}
		if math.IsInf(r.Mag[i], 1) {
			spread = r.Mag[i] // the element is undefined, even if the distances are finite
		}
		spread += o.def().tol.Bound(y, 0, F32)
		r.Data[i], r.Mag[i] = y, spread/(t.Mag*epsilon)
	}
}
