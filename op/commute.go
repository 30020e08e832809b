package op

import "github.com/rayo-go/rayo/internal/ir"

// Commutes reports whether the two operands may be swapped without changing the result. It is true
// for add and mul, and false for sub and for maximum, which may return either of two zeros.
func (o *Operation) Commutes() bool {
	e := o.def().expr
	return e != nil && o.def().arity[1] == 2 && e.Code.Arity() == 2 && e.Code.Commutes() &&
		e.Args[0].Code == ir.Arg && e.Args[1].Code == ir.Arg && e.Args[0].Index != e.Args[1].Index
}
