package op

import "github.com/rayo-go/rayo/internal/ir"

// Commutes reports whether the two operands may be swapped without any change
// of the result: so of add and mul, but not of sub, nor of maximum, which may
// return either of two zeros.
func (o *Operation) Commutes() bool {
	e := o.expr
	return e != nil && o.arity[1] == 2 && e.Code.Arity() == 2 && e.Code.Commutes() &&
		e.Args[0].Code == ir.Arg && e.Args[1].Code == ir.Arg && e.Args[0].Index != e.Args[1].Index
}
