package devicetest

import (
	"math"

	"github.com/rayo-go/rayo/op"
)

// axis returns the axis of a case of gather or scatter, by default the first.
func (c *Case) axis() int {
	if len(c.Extents) == 0 {
		return 0
	}
	return c.Extents[0]
}

func (g *generator) gather(d op.DType) []Case {
	var cases []Case
	put := func(table, ids op.Shape, axis int) {
		n := table[(axis+len(table))%len(table)]
		c := Case{Op: op.Gather, In: []Tensor{g.tensor(d, table, g.tame), g.ids(ids, n)}}
		if axis != 0 {
			c.Extents = []int{axis}
		}
		cases = append(cases, c)
	}
	for _, table := range []op.Shape{{1, 1}, {7, 5}, {100, 64}, {33, 129}, {0, 3}, {3, 0}} {
		for _, ids := range []op.Shape{{}, {1}, {9}, {0}, {2, 3}, {65}} {
			put(table, ids, 0)
		}
	}
	put(op.Shape{9}, op.Shape{30}, 0)
	put(op.Shape{4, 6, 5}, op.Shape{3, 2}, 1)
	put(op.Shape{3, 40}, op.Shape{70}, -1)
	put(op.Shape{2, 5, 64}, op.Shape{9}, -2)
	put(op.Shape{2, 0, 3}, op.Shape{4}, 1)
	put(op.Shape{3, 4, 5}, op.Shape{}, 2)
	if d == op.F32 {
		cases = append(cases, g.gatherQ()...)
	}
	return cases
}

func (g *generator) scatter(d op.DType) []Case {
	var cases []Case
	for i, c := range []struct {
		x    op.Shape
		axis int
		ids  op.Shape
	}{
		{op.Shape{1, 2}, 0, op.Shape{}}, {op.Shape{9}, 0, op.Shape{40}}, {op.Shape{7, 5}, 0, op.Shape{2, 6}}, {op.Shape{4, 6, 5}, 1, op.Shape{9}},
		{op.Shape{3, 40}, -1, op.Shape{70}}, {op.Shape{100, 64}, 0, op.Shape{30}}, {op.Shape{5, 3}, 0, op.Shape{0}}, {op.Shape{0, 3}, 0, op.Shape{2}},
		{op.Shape{300}, 0, op.Shape{1000}}, {op.Shape{9}, 0, op.Shape{1030}}, {op.Shape{600}, 0, op.Shape{1030}}, {op.Shape{2, 0, 3}, 2, op.Shape{4}},
	} {
		axis := (c.axis + len(c.x)) % len(c.x)
		v := append(append(append(op.Shape{}, c.x[:axis]...), c.ids...), c.x[axis+1:]...)
		for reduce := op.ScatterSet; reduce <= op.ScatterMax; reduce++ {
			if d == op.Bool && reduce != op.ScatterSet {
				continue
			}
			value := g.tame
			if i%2 == 1 && (reduce == op.ScatterSet || reduce >= op.ScatterMin) {
				value = g.wild
			}
			cases = append(cases, Case{Op: op.Scatter, Extents: []int{c.axis, int(reduce)},
				In: []Tensor{g.tensor(d, c.x, value), g.ids(c.ids, c.x[axis]), g.tensor(d, v, value)}})
		}
	}
	return cases
}

// ids returns ids for a table of the given number of rows. Some count from the end, and
// some are outside the table.
func (g *generator) ids(s op.Shape, rows int) Tensor {
	t := g.tensor(op.I32, s, g.tame)
	for i := range t.Data {
		t.Data[i] = float64(g.IntN(max(2*rows, 1)) - rows)
		if g.IntN(6) == 0 {
			t.Data[i] = []float64{-1, float64(rows), float64(-rows - 1), math.MaxInt32, math.MinInt32}[g.IntN(5)]
		}
	}
	return t
}
