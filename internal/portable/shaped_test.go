package portable

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

func TestTranspose(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 14))
	for _, shape := range [][]int{{1, 1}, {3, 5}, {32, 32}, {33, 31}, {1, 70}, {70, 1}, {3, 31, 33}, {2, 3, 4, 65}} {
		for _, d := range []op.DType{op.F32, op.I32, op.U32} {
			x := normal(rnd, shape...)
			for i := range x.Data {
				x.Data[i] = d.Round(100 * x.Data[i])
			}
			(&trial{o: op.Transpose, types: []op.DType{d}, values: []*op.Array{x}}).everyVariant(t, true)
		}
	}
}

func TestReshape(t *testing.T) {
	rnd := rand.New(rand.NewPCG(15, 16))
	for _, n := range []int{1, 7, 300, 1024} {
		a, err := op.ReshapeTo(n, 1)
		if err != nil {
			t.Fatal(err)
		}
		(&trial{o: op.Reshape, attrs: a, types: []op.DType{op.F32}, values: []*op.Array{with(rnd, normal(rnd, n), missing, inf)}}).everyVariant(t, true)
	}
}

func TestGather(t *testing.T) {
	rnd := rand.New(rand.NewPCG(17, 18))
	for _, s := range []struct{ v, ids, d int }{{1, 1, 1}, {5, 3, 7}, {4, 9, 8}, {100, 33, 64}, {0, 3, 4}, {3, 300, 4}} {
		ids := op.NewArray(op.Shape{s.ids})
		for i := range ids.Data {
			ids.Data[i] = float64(rnd.IntN(s.v+3) - 1)
		}
		ids = with(rnd, ids, -1<<31, 1<<31-1)
		(&trial{o: op.Gather, types: []op.DType{op.F32, op.I32}, values: []*op.Array{normal(rnd, s.v, s.d), ids}}).everyVariant(t, true)
	}
}

// TestGatherAxis gathers along axes, also for integers.
func TestGatherAxis(t *testing.T) {
	rnd := rand.New(rand.NewPCG(117, 118))
	for _, s := range []struct {
		table op.Shape
		axis  int
		typ   op.DType
	}{{op.Shape{3, 5, 4}, 1, op.F32}, {op.Shape{2, 7}, -1, op.I32}, {op.Shape{9}, 0, op.U32}, {op.Shape{2, 0, 3}, 1, op.I32}, {op.Shape{4, 6, 8}, 0, op.Bool}} {
		x := op.NewArray(s.table)
		for i := range x.Data {
			x.Data[i] = float64(rnd.IntN(2))
		}
		ids := op.NewArray(op.Shape{2, 6})
		for i := range ids.Data {
			ids.Data[i] = float64(rnd.IntN(24) - 12)
		}
		(&trial{o: op.Gather, attrs: op.GatherOf(s.axis), types: []op.DType{s.typ, op.I32}, values: []*op.Array{x, ids}}).everyVariant(t, true)
	}
}

func TestScatter(t *testing.T) {
	rnd := rand.New(rand.NewPCG(119, 120))
	for k, s := range []struct {
		x    op.Shape
		axis int
		ids  int
	}{{op.Shape{1}, 0, 1}, {op.Shape{5, 3}, 0, 40}, {op.Shape{3, 5, 4}, 1, 9}, {op.Shape{70}, 0, 300}, {op.Shape{2, 9}, -1, 0}, {op.Shape{3000}, 0, 5000}, {op.Shape{9}, 0, 5000}, {op.Shape{513}, 0, 4500}} {
		for reduce := op.ScatterSet; reduce <= op.ScatterMax; reduce++ {
			axis := (s.axis + len(s.x)) % len(s.x)
			v := slices.Concat(s.x[:axis], op.Shape{s.ids}, s.x[axis+1:])
			ids := op.NewArray(op.Shape{s.ids})
			for i := range ids.Data {
				ids.Data[i] = float64(rnd.IntN(2*s.x[axis]+4) - s.x[axis] - 2)
			}
			for _, d := range []op.DType{op.F32, op.I32, op.U32} {
				if d != op.F32 && k > 2 && k < 5 {
					continue
				}
				x, y := normal(rnd, s.x...), normal(rnd, v...)
				if d != op.F32 {
					for _, a := range []*op.Array{x, y} {
						for i := range a.Data {
							a.Data[i] = d.Round(float64(rnd.Uint32()) / 3)
						}
					}
				}
				(&trial{o: op.Scatter, attrs: op.ScatterOf(s.axis, reduce), types: []op.DType{d, op.I32, d}, values: []*op.Array{x, ids, y}}).everyVariant(t, d == op.F32 && (k == 1 || k == 3 && reduce == op.ScatterSet || k > 4) && reduce <= op.ScatterAdd)
			}
		}
	}
}

func TestRope(t *testing.T) {
	rnd := rand.New(rand.NewPCG(19, 20))
	for _, s := range [][]int{{1, 1, 2}, {3, 2, 6}, {5, 3, 64}, {2, 1, 130}} {
		for _, o := range []op.RopeOpts{{}, {Start: -7}, {Start: 1 << 20, Theta: 500000}, {Interleaved: true}} {
			x := with(rnd, normal(rnd, s...), inf, missing)
			c := &trial{o: op.Rope, attrs: o.Attrs(), types: []op.DType{op.F32}, values: []*op.Array{x}}
			c.everyVariant(t, true)
			positions := op.NewArray(op.Shape{s[0]})
			for i := range positions.Data {
				positions.Data[i] = float64(rnd.IntN(1<<25) - 1<<24)
			}
			c.values, c.types = append(c.values, positions), append(c.types, op.I32)
			c.everyVariant(t, true)
			frequencies := normal(rnd, s[2]/2)
			for i := range frequencies.Data {
				frequencies.Data[i] = float64(float32(frequencies.Data[i] / 1024))
			}
			c.values, c.types = append(c.values, frequencies), append(c.types, op.F32)
			c.everyVariant(t, true)
		}
	}
}

func TestTopK(t *testing.T) {
	rnd := rand.New(rand.NewPCG(21, 22))
	for _, s := range []struct {
		shape []int
		k     int
	}{{[]int{1}, 1}, {[]int{3, 5}, 5}, {[]int{2, 300}, 3}, {[]int{255}, 17}, {[]int{1024}, 20}, {[]int{2, 2049}, 2}, {[]int{2, 2500}, 60}, {[]int{40}, 0}} {
		x := normal(rnd, s.shape...)
		for i := range x.Data {
			x.Data[i] = float64(rnd.IntN(max(s.shape[0], 8))) - 3 // some elements are equal
		}
		for _, a := range []*op.Array{normal(rnd, s.shape...), with(rnd, x, missing, missing, inf, -inf, -inf)} {
			(&trial{o: op.TopK, attrs: op.TopKOpts{K: s.k}.Attrs(), types: []op.DType{op.F32}, values: []*op.Array{a}}).everyVariant(t, true)
		}
	}
}

func TestSort(t *testing.T) {
	rnd := testutil.Rand(t)
	for _, shape := range [][]int{{1}, {3, 2}, {0, 4}, {4, 0}, {3, 63}, {2, 64}, {2, 65}, {257}, {2, 1024}, {1025}, {2049}, {2, 5000}} {
		few := op.NewArray(shape)
		for i := range few.Data {
			few.Data[i] = float64(rnd.IntN(7))
		}
		signed := normal(rnd, shape...)
		for i := range signed.Data {
			signed.Data[i] = math.Trunc(signed.Data[i] * 1e3)
		}
		wild := with(rnd, normal(rnd, shape...), missing, missing, inf, -inf, -inf, 0, math.Copysign(0, -1), 0, math.Copysign(0, -1))
		for i, descending := range []bool{false, true} {
			for _, c := range []struct {
				typ op.DType
				x   *op.Array
			}{{op.F32, wild}, {op.F32, few}, {op.I32, with(rnd, signed, math.MinInt32, math.MaxInt32)}, {op.U32, with(rnd, few, math.MaxUint32)}} {
				(&trial{o: op.Sort, attrs: op.SortOpts{Descending: descending}.Attrs(), types: []op.DType{c.typ}, values: []*op.Array{c.x}}).everyVariant(t, len(few.Data) < 3000 || i == 0)
			}
		}
	}
}
