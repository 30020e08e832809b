package op

import (
	"errors"
	"testing"
)

// TestDeepExpressionsAreRefused checks that an expression that is too deep for any stack is an error.
func TestDeepExpressionsAreRefused(t *testing.T) {
	o := Unary("deep", func(x Expr) Expr {
		for range 3_000_000 {
			x = x.Neg()
		}
		return x
	})
	if !errors.Is(o.Err(), ErrUnsupported) {
		t.Errorf("got %v", o.Err())
	}
}
