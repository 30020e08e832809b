package engine

import (
	"errors"
	"reflect"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/op"
)

// TestLowerOne checks that pages without batches run the same program for an elementwise operation as others.
func TestLowerOne(t *testing.T) {
	e := open(t)
	tested := 0
	for _, o := range op.Catalogue() {
		if o.Class() != op.Elementwise {
			continue
		}
		shapes := []op.Shape{{3}, {0}, {2, 5}, {}}
		for _, s := range shapes {
			_, most := o.Arity()
			types := make([]op.DType, most)
			in := make([]Host, most)
			for i := range in {
				types[i] = op.F32
				if o == op.Where && i == 0 {
					types[i] = op.Bool
				}
				in[i] = HostOf(nil, types[i], s)
			}
			a := &op.Attrs{}
			made, err := o.Types(a, types)
			if err != nil {
				continue // it computes on other types
			}
			o, a, in := parametric(o, a, in)
			g, _, _ := graphOf(o, a, in, []Host{HostOf(nil, made[0], s)})
			want, err := e.lower(g)
			if err != nil {
				t.Fatalf("%s: %v", o.Name(), err)
			}
			got, err := e.lowerOne(g)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s of %v: %+v, %v; expected %+v", o.Name(), s, got, err, want)
			}
			tested++
		}
	}
	if tested < 200 {
		t.Errorf("only %d graphs", tested)
	}
	g, _, _ := graphOf(op.Sum, &op.Attrs{}, []Host{HostOf(nil, op.F32, op.Shape{3})}, []Host{HostOf(nil, op.F32, nil)})
	if _, err := e.lowerOne(g); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("a sum: %v", err)
	}
	if _, err := e.lowerOne(&graph.Graph{}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("an empty graph: %v", err)
	}
}
