package devicetest

import (
	"fmt"
	"math"
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// rowOptions are the methods of rows with options that are other operations.
var rowOptions = slices.Concat(
	[]composition{std(op.Shape{5, 7}, 0, 0), std(op.Shape{3, 4, 6}, 1, 1), std(op.Shape{9}, -1, 2), std(op.Shape{1, 3}, 0, 1)},
	[]composition{
		topOf(op.Shape{40}, op.F32, 7, -1, true, special), topOf(op.Shape{3, 11, 2}, op.F32, 4, 1, true, special), topOf(op.Shape{3, 11, 2}, op.F32, 4, 1, false, special),
		topOf(op.Shape{6, 9}, op.I32, 9, -1, false, small), topOf(op.Shape{17, 4}, op.I32, 3, 0, true, small), topOf(op.Shape{6, 9}, op.U32, 2, 1, false, func(g *generator) float64 { return float64(g.IntN(9)) }),
		topOf(op.Shape{4, 5}, op.F16, 0, 0, true, special), topOf(op.Shape{0, 5}, op.I32, 2, 1, false, small),
	},
	scanOptions(),
)

// rowsAlong calls f for each row of x along an axis, and returns what f gives for it in
// the place of the row, n elements.
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
			return b.Std(x[0], op.VarOpts{DDof: ddof, Along: op.Axes(axis).KeepDims()})
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

// scanOptions are the scans with each of their options.
func scanOptions() (list []composition) {
	for _, c := range []struct {
		name    string
		scan    func(b *batch.Batch, x batch.Value, opts ...op.ScanOpts) batch.Value
		types   []op.DType
		nothing func(d op.DType) float64
		f       func(x, y float64) float64
	}{
		{"cumsum", (*batch.Batch).Cumsum, []op.DType{op.F32, op.I32}, func(op.DType) float64 { return 0 }, func(x, y float64) float64 { return x + y }},
		{"cumprod", (*batch.Batch).Cumprod, []op.DType{op.F32}, func(op.DType) float64 { return 1 }, func(x, y float64) float64 { return x * y }},
		{"cummax", (*batch.Batch).Cummax, []op.DType{op.F32, op.I32}, func(d op.DType) float64 {
			if d == op.I32 {
				return math.MinInt32
			}
			return math.Inf(-1)
		}, math.Max},
		{"cummin", (*batch.Batch).Cummin, []op.DType{op.F32, op.I32, op.U32}, func(d op.DType) float64 {
			if d != op.F32 {
				return map[op.DType]float64{op.I32: math.MaxInt32, op.U32: math.MaxUint32}[d]
			}
			return math.Inf(1)
		}, math.Min},
		{"logcumsumexp", (*batch.Batch).LogCumsumExp, []op.DType{op.F32}, func(op.DType) float64 { return math.Inf(-1) },
			func(x, y float64) float64 { return math.Log(math.Exp(x) + math.Exp(y)) }},
	} {
		for _, d := range c.types {
			for i, o := range []op.ScanOpts{{Reverse: true}, {Exclusive: true}, {Reverse: true, Exclusive: true, Along: op.Axes(0)}, {Along: op.Axes(1)}, {Exclusive: true, Along: op.Axes(0)}} {
				s := []op.Shape{{3, 70}, {5, 1}, {9, 4}, {2, 6, 3}, {0, 3}}[i]
				axis := []int{-1, -1, 0, 1, 0}[i]
				list = append(list, composition{name: fmt.Sprintf("%s of %v %v: %+v", c.name, d, s, o), shapes: []op.Shape{s}, loose: 16,
					draw: func(g *generator) float64 {
						if d == op.U32 {
							return float64(g.IntN(3))
						}
						return []float64{-2, -1, -0.5, 0.5, 1, 2}[g.IntN(6)]
					},
					record: func(b *batch.Batch, x []batch.Value) batch.Value {
						y := c.scan(b, b.Cast(x[0], d), o)
						if d == op.F32 {
							return y
						}
						// The least and the greatest integers are seen by halves.
						return joined(b, b.ShiftRight(y, b.Cast(b.Const(16), d)), b.And(y, b.Cast(b.Const(0xffff), d)))
					},
					want: func(x []nd) nd {
						if d != op.F32 {
							for i, v := range x[0].data {
								x[0].data[i] = math.Trunc(v)
							}
						}
						y := rowsAlong(x[0], axis, x[0].s[(axis+len(s))%len(s)], func(row []float64) []float64 {
							row = slices.Clone(row)
							if o.Reverse {
								slices.Reverse(row)
							}
							so := c.nothing(d)
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
						})
						if d == op.F32 {
							return y
						}
						var high, low []float64
						for _, v := range y.data {
							high, low = append(high, float64(int64(v)>>16)), append(low, float64(int64(v)&0xffff))
						}
						return nd{op.Shape{len(high) + len(low)}, append(high, low...)}
					}})
			}
		}
	}
	return list
}
