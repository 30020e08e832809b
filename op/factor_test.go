package op

import (
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestFactors checks that the references of factorisations pass CheckResults, and that
// results that are not factors fail.
func TestFactors(t *testing.T) {
	r := testutil.Rand(t)
	for _, o := range Catalogue() {
		if !o.CheckedAsWhole() {
			continue
		}
		in, types := []*Array{NewArray(Shape{2, 7, 7})}, []DType{F32}
		for i := range in[0].Data {
			in[0].Data[i] = r.NormFloat64()
			if i%49%8 == 0 {
				in[0].Data[i] = 20
			}
		}
		if fewest, _ := o.Arity(); fewest > 1 {
			in, types = append(in, in[0]), append(types, F32)
		}
		out, err := o.Reference(&Attrs{}, in, types)
		if err != nil {
			t.Fatalf("%v: %v", o, err)
		}
		if err := o.CheckResults(&Attrs{}, in, out); err != nil {
			t.Errorf("%v: %v", o, err)
		}
		out[0].Data[49%len(out[0].Data)] += 0.5
		if o.CheckResults(&Attrs{}, in, out) == nil {
			t.Errorf("%v: a wrong result passes", o)
		}
	}
}
