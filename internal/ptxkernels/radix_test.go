package ptxkernels

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/op"
)

// orderable returns an array with random numbers, ties, and the special values of the type.
func orderable(t op.DType, shape ...int) *op.Array {
	a := op.NewArray(shape)
	few := rand.IntN(2) == 0
	for i := range a.Data {
		switch {
		case t == op.I32:
			a.Data[i] = float64(int32(rand.Uint32()))
		case t == op.U32:
			a.Data[i] = float64(rand.Uint32())
		case rand.IntN(50) == 0:
			a.Data[i] = []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1)}[rand.IntN(5)]
		default:
			a.Data[i] = t.Round(rand.NormFloat64())
		}
		if few {
			a.Data[i] = float64(int(a.Data[i]) & 3)
		}
	}
	return a
}

// TestSort sorts rows of several types and lengths.
func TestSort(t *testing.T) {
	for _, typ := range []op.DType{op.F32, op.F16, op.BF16, op.I32, op.U32} {
		for i, shape := range [][]int{{1, radixShortest + 1}, {3, 4097}, {1, 4 * 4096}, {2, 9001}} {
			if !sampled() {
				continue
			}
			o := op.SortOpts{Descending: i%2 == 0}
			newTrial(op.Sort, o.Attrs(), typ, orderable(typ, shape...)).must(t, []Device{h200, a100}[i%2])
		}
	}
}

// TestTopK finds the greatest elements of long rows.
func TestTopK(t *testing.T) {
	for i, typ := range []op.DType{op.F32, op.F16, op.BF16} {
		o := op.TopKOpts{K: []int{100, 2, 2050}[i]}
		newTrial(op.TopK, o.Attrs(), typ, orderable(typ, 2, 1<<17/o.K+2049)).must(t, h200)
	}
}

// TestScatter adds elements to many rows: few elements to most rows, many to some. Elements of the largest buckets are
// folded in shared memory.
func TestScatter(t *testing.T) {
	for i, typ := range []op.DType{op.F32, op.F16, op.BF16, op.I32, op.U32} {
		x, ids, v := op.NewArray([]int{radixScatterRows<<(2*i%3) + 3*i}), op.NewArray([]int{radixScatterIDs + i}), op.NewArray([]int{radixScatterIDs + i})
		for j := range x.Data {
			x.Data[j] = float64(rand.IntN(100))
		}
		for j := range ids.Data {
			ids.Data[j] = float64(rand.IntN(2*len(x.Data)+2) - len(x.Data) - 1)
			if rand.IntN(3) == 0 {
				ids.Data[j] = float64(rand.IntN(20))
			}
			v.Data[j] = float64(rand.IntN(100))
		}
		c := newTrial(op.Scatter, op.ScatterOf(0, op.ScatterAdd), typ, x, ids, v)
		c.types[1] = op.I32
		c.must(t, h200)
	}
}
