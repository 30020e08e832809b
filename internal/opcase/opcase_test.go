package opcase

import (
	"testing"

	"github.com/rayo-go/rayo/op"
)

// TestEveryOperation: each has a case that its rules take.
func TestEveryOperation(t *testing.T) {
	for _, o := range op.Catalogue() {
		c, ok := Of(o, 1000)
		if !ok {
			t.Errorf("no case of %v: add its operands to shaped", o)
			continue
		}
		a := c.Attrs()
		if _, err := o.Types(&a, c.Types); err != nil {
			t.Errorf("%v: %v", o, err)
		}
		if _, err := o.Shapes(&a, c.Shapes); err != nil {
			t.Errorf("%v: %v", o, err)
		}
	}
}
