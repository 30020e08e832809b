package devicetest

import (
	"fmt"
	"math"
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// rowOptions has the methods on rows whose options select other operations.
var rowOptions = slices.Concat(
	[]composition{std(op.Shape{5, 7}, 0, 0), std(op.Shape{3, 4, 6}, 1, 1), std(op.Shape{9}, -1, 2), std(op.Shape{1, 3}, 0, 1)},
	[]composition{
		topOf(op.Shape{40}, op.F32, 7, -1, true, special), topOf(op.Shape{3, 11, 2}, op.F32, 4, 1, true, special), topOf(op.Shape{3, 11, 2}, op.F32, 4, 1, false, special),
		topOf(op.Shape{6, 9}, op.I32, 9, -1, false, small), topOf(op.Shape{17, 4}, op.I32, 3, 0, true, small), topOf(op.Shape{6, 9}, op.U32, 2, 1, false, func(g *generator) float64 { return float64(g.IntN(9)) }),
		topOf(op.Shape{4, 5}, op.F16, 0, 0, true, special), topOf(op.Shape{0, 5}, op.I32, 2, 1, false, small),
	},
	scanOptions(),
)

// rowsAlong calls f for each row of x along an axis, and returns the array in which the result of f, of n
// elements, replaces the row.
func rowsAlong(x nd, axis, n int, f func(row []float64) []float64) nd {
	axis = (axis + len(x.s)) % len(x.s)
	s := slices.Clone(x.s)
	s[axis] = n
	rows := map[string][]float64{}
	return made(s, func(p []int) float64 {
		q := slices.Clone(p)
		q[axis] = 0
		key := fmt.Sprint(q)
		if _, ok := rows[key]; !ok {
			row := make([]float64, x.s[axis])
			for i := range row {
				q[axis] = i
				row[i] = x.at(q...)
			}
			rows[key] = f(row)
		}
		return rows[key][p[axis]]
	})
}

// std is Std along an axis.
func std(s op.Shape, axis, ddof int) composition {
	return composition{name: fmt.Sprintf("std of %v along %d less %d", s, axis, ddof), shapes: []op.Shape{s}, loose: 4,
		record: func(b *batch.Batch, x []batch.Value) batch.Value {
			return b.Std(x[0], op.VarOpts{DDOF: ddof, Along: op.Axes(axis).KeepDims()})
		},
		want: func(x []nd) nd {
			return rowsAlong(x[0], axis, 1, func(row []float64) []float64 {
				n := float64(len(row))
				mean := summed(len(row), func(i int) float64 { return row[i] }) / n
				squares := summed(len(row), func(i int) float64 { return (row[i] - mean) * (row[i] - mean) })
				return []float64{math.Sqrt(squares / max(n-float64(ddof), 0))}
			})
		}}
}

// topOf is TopK with its options: the elements, then the indices.
func topOf(s op.Shape, d op.DType, k, axis int, least bool, draw func(*generator) float64) composition {
	return composition{name: fmt.Sprintf("top %d of %v %v along %d, least %v", k, d, s, axis, least), shapes: []op.Shape{s}, draw: draw,
		record: func(b *batch.Batch, x []batch.Value) batch.Value {
			v, i := b.TopK(b.Cast(x[0], d), k, op.TopOpts{Smallest: least, Along: op.Axes(axis)})
			return joined(b, v, i)
		},
		want: func(x []nd) nd {
			sorted := func(row []float64) []int {
				at := make([]int, len(row))
				for i := range at {
					at[i] = i
				}
				slices.SortStableFunc(at, func(i, j int) int {
					if least {
						return order(row[i], row[j])
					}
					return order(row[j], row[i])
				})
				return at[:k]
			}
			values := rowsAlong(x[0], axis, k, func(row []float64) (y []float64) {
				for _, i := range sorted(row) {
					y = append(y, row[i])
				}
				return y
			})
			places := rowsAlong(x[0], axis, k, func(row []float64) (y []float64) {
				for _, i := range sorted(row) {
					y = append(y, float64(i))
				}
				return y
			})
			return list(values.data, places.data)
		}}
}

// scanned is the reference of a scan as a loop: its initial value, and its step for an element.
type scanned struct {
	name    string
	scan    func(b *batch.Batch, x batch.Value, opts ...op.ScanOpts) batch.Value
	nothing map[op.DType]float64 // of each type
	f       func(x, y float64) float64
}

// row returns the scan of a row.
func (c *scanned) row(row []float64, d op.DType, o op.ScanOpts) []float64 {
	row = slices.Clone(row)
	if o.Reverse {
		slices.Reverse(row)
	}
	so := c.nothing[d]
	for i, v := range row {
		before := so
		if so = c.f(so, v); o.Exclusive {
			row[i] = before
		} else {
			row[i] = so
		}
	}
	if o.Reverse {
		slices.Reverse(row)
	}
	return row
}

// scanOptions are the scans with each of their options.
func scanOptions() (list []composition) {
	inf := math.Inf(1)
	for _, c := range []scanned{
		{"cumsum", (*batch.Batch).Cumsum, map[op.DType]float64{op.F32: 0, op.I32: 0}, func(x, y float64) float64 { return x + y }},
		{"cumprod", (*batch.Batch).Cumprod, map[op.DType]float64{op.F32: 1}, func(x, y float64) float64 { return x * y }},
		{"cummax", (*batch.Batch).Cummax, map[op.DType]float64{op.F32: -inf, op.I32: math.MinInt32}, math.Max},
		{"cummin", (*batch.Batch).Cummin, map[op.DType]float64{op.F32: inf, op.I32: math.MaxInt32, op.U32: math.MaxUint32}, math.Min},
		{"logcumsumexp", (*batch.Batch).LogCumsumExp, map[op.DType]float64{op.F32: -inf}, func(x, y float64) float64 { return math.Log(math.Exp(x) + math.Exp(y)) }},
	} {
		for d := range c.nothing {
			list = append(list,
				c.along(d, op.Shape{3, 70}, -1, op.ScanOpts{Reverse: true}), c.along(d, op.Shape{5, 1}, -1, op.ScanOpts{Exclusive: true}),
				c.along(d, op.Shape{9, 4}, 0, op.ScanOpts{Reverse: true, Exclusive: true, Along: op.Axes(0)}),
				c.along(d, op.Shape{3001, 7}, -1, op.ScanOpts{}), // several parts on the CPU, the last one smaller
				c.along(d, op.Shape{2, 6, 3}, 1, op.ScanOpts{Along: op.Axes(1)}), c.along(d, op.Shape{0, 3}, 0, op.ScanOpts{Exclusive: true, Along: op.Axes(0)}))
		}
	}
	return list
}

// along returns the case of a scan of elements of type d along an axis; o has the same axis.
func (c scanned) along(d op.DType, s op.Shape, axis int, o op.ScanOpts) composition {
	draw := func(g *generator) float64 { return []float64{-2, -1, -0.5, 0.5, 1, 2}[g.IntN(6)] }
	if d != op.F32 {
		draw = func(g *generator) float64 { return float64(g.IntN(3)) }
	}
	return composition{name: fmt.Sprintf("%s of %v %v: %+v", c.name, d, s, o), shapes: []op.Shape{s}, loose: 16, draw: draw,
		record: func(b *batch.Batch, x []batch.Value) batch.Value {
			y := c.scan(b, b.Cast(x[0], d), o)
			if d == op.F32 {
				return y
			}
			// float32 does not hold all integers, so the halves of the integers are compared.
			return joined(b, b.ShiftRight(y, b.Cast(b.Const(16), d)), b.And(y, b.Cast(b.Const(0xffff), d)))
		},
		want: func(x []nd) nd {
			y := rowsAlong(x[0], axis, x[0].s[(axis+len(s))%len(s)], func(row []float64) []float64 { return c.row(row, d, o) })
			if d == op.F32 {
				return y
			}
			var high, low []float64
			for _, v := range y.data {
				high, low = append(high, float64(int64(v)>>16)), append(low, float64(int64(v)&0xffff))
			}
			return nd{op.Shape{len(high) + len(low)}, append(high, low...)}
		}}
}
