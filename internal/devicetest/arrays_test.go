package devicetest

import (
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// TestArrays compares methods that package batch composes of operations with plain loops.
func TestArrays(t *testing.T) { arrays(t, cpu(0)) }

// TestArraysPortable is TestArrays of the portable kernels.
func TestArraysPortable(t *testing.T) { arrays(t, openPortable) }

// TestEinsumCopies checks that the plans of products that need no copy have one step each.
func TestEinsumCopies(t *testing.T) {
	dev := start(t, cpu(0))
	for spec, shapes := range map[string][]op.Shape{
		"bqhd,bkhd->bhqk": {{2, 5, 3, 8}, {2, 6, 3, 8}},
		"ij,jk->ik":       {{3, 4}, {4, 5}},
		"ji,kj->ki":       {{3, 4}, {5, 3}},
		"bij,bjk->bik":    {{2, 3, 4}, {2, 4, 5}},
		"abij,jk->abik":   {{2, 3, 4, 5}, {5, 6}},
		"ibj,jbk->bik":    {{3, 2, 4}, {4, 2, 5}},
	} {
		b := batch.New(dev)
		var in []batch.Value
		for _, s := range shapes {
			n, _ := s.Size()
			in = append(in, b.Upload(make([]float32, n), s...))
		}
		plan, err := b.Compile(t.Context(), b.Einsum(spec, in...))
		if err != nil {
			t.Fatal(err)
		}
		if n := copiesOf(plan); n > 0 {
			t.Errorf("%s: %d copies:\n%v", spec, n, plan)
		}
		plan.Close()
	}
}
