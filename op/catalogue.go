package op

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rayo-go/rayo/internal/ir"
)

// This file comes before those that use its variables, so that entries are
// initialized, and listed, in the order in which they are declared.

// ErrShape is the error of sizes, shapes or parameters that an operation does
// not take. Test for it with errors.Is.
var ErrShape = errors.New("shape mismatch")

// ErrUnsupported is the error of something that is well formed but not
// defined or not available: an element type that an operation does not take,
// a feature that a device lacks.
var ErrUnsupported = errors.New("unsupported")

// errZero is the error of the zero Operation.
var errZero = fmt.Errorf("the zero Operation computes nothing: %w", ErrUnsupported)

var catalogue []*Operation

// The entries are in several files, and Go initializes them in the order of the file names; the
// catalogue lists the simple classes first.
func init() {
	slices.SortStableFunc(catalogue, func(a, b *Operation) int { return int(a.class) - int(b.class) })
	for i, o := range catalogue {
		o.id = i
		o.setParametric()
	}
}

// Catalogue returns the built-in operations, in the order of docs/OPS.md.
func Catalogue() []*Operation { return append([]*Operation(nil), catalogue...) }

// Lookup returns the built-in operation of that name or alias, or nil.
func Lookup(name string) *Operation {
	for _, o := range catalogue {
		if o.name == name {
			return o
		}
		for _, a := range o.aliases {
			if a == name {
				return o
			}
		}
	}
	return nil
}

// add enters o into the catalogue.
func add(o *Operation) *Operation {
	if o.outs == 0 {
		o.outs = 1
	}
	if o.expr != nil && o.formula == "" {
		var names []string
		for _, p := range o.params {
			names = append(names, p.Name)
		}
		o.formula = ir.Format(o.expr, o.inputs, names)
	}
	o.setPlain()
	catalogue = append(catalogue, o)
	return o
}
