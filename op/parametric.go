package op

import (
	"slices"

	"github.com/rayo-go/rayo/internal/ir"
)

// Parametric returns the operation that computes the same as the elementwise operation o
// but takes its float parameters as operands: scalars of float32 after the others, in the
// order of [Operation.Params]. One plan then serves all values of the parameters. It
// returns nil for other operations.
func (o *Operation) Parametric() *Operation { return o.parametric }

// Fixed returns the operation of which o is the Parametric form, or nil.
func (o *Operation) Fixed() *Operation { return o.fixed }

// setParametric makes what Parametric returns, once.
func (o *Operation) setParametric() {
	n := o.arity[1]
	if o.class != Elementwise || len(o.params) == 0 || n+len(o.params) > MaxInputs {
		return
	}
	p := *o
	p.fixed, p.id, p.key = o, -1, o.Key()+" of operands"
	p.params, p.options, p.aliases, p.plain = nil, "", nil, false
	p.inputs = slices.Clone(o.inputs)
	var args []*ir.Node
	for i, q := range o.params {
		p.inputs = append(p.inputs, q.Name)
		args = append(args, ir.NewArg(n+i, ir.F32))
	}
	p.arity = [2]int{len(p.inputs), len(p.inputs)}
	p.expr = ir.Substitute(o.expr, nil, args)
	if o.mag != nil {
		p.mag = ir.Substitute(o.mag, nil, args)
	}
	p.types = func(a *Attrs, in []DType) ([]DType, error) {
		for i, d := range in[n:] {
			if d != F32 {
				return nil, unsupported("parameter %s has type %v: expected f32", o.params[i].Name, d)
			}
		}
		return o.Types(a, in[:n])
	}
	o.parametric = &p
}
