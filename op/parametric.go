package op

import (
	"slices"

	"github.com/rayo-go/rayo/internal/ir"
)

// Parametric returns the operation that computes the same as the elementwise operation o
// but takes its float parameters as operands: scalars of float32 after the others, in the
// order of [Operation.Params]. One plan then serves all values of the parameters. It
// returns nil for other operations.
func (o *Operation) Parametric() *Operation {
	d := o.def()
	if d.class != Elementwise || len(d.params) == 0 || d.arity[1]+len(d.params) > MaxInputs {
		return nil
	}
	o.inOperands.Do(func() { o.parametric = o.parametricOf(d) })
	return o.parametric
}

// Fixed returns the operation of which o is the Parametric form, or nil.
func (o *Operation) Fixed() *Operation { return o.def().fixed }

// parametricOf makes the result of Parametric; d is the definition of o.
func (o *Operation) parametricOf(d *definition) *Operation {
	n := d.arity[1]
	p := *d
	p.fixed, p.id, p.key = o, -1, d.name+" of operands"
	p.params, p.options, p.aliases, p.plain = nil, "", nil, false
	p.inputs = slices.Clone(d.inputs)
	var args []*ir.Node
	for i, q := range d.params {
		p.inputs = append(p.inputs, q.Name)
		args = append(args, ir.NewArg(n+i, ir.F32))
	}
	p.arity = [2]int{len(p.inputs), len(p.inputs)}
	p.expr = ir.Substitute(d.expr, nil, args)
	if d.mag != nil {
		p.mag = ir.Substitute(d.mag, nil, args)
	}
	p.types = func(a *Attrs, in []DType) ([]DType, error) {
		for i, t := range in[n:] {
			if t != F32 {
				return nil, unsupported("parameter %s has type %v: expected f32", d.params[i].Name, t)
			}
		}
		return o.Types(a, in[:n])
	}
	return operationOf(&p)
}
