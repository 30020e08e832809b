package devicetest

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// small returns a random small integer, so that values repeat.
func small(g *generator) float64 { return float64(g.IntN(12) - 4) }

// special returns a random one of a few numbers, among them NaN, zeros of both signs and infinities, for
// which order and equality have special rules.
func special(g *generator) float64 {
	list := []float64{-2, -1, -0.25, 0, math.Copysign(0, -1), 0.5, 1, 2, 3, math.Inf(1), math.Inf(-1), math.NaN()}
	return list[g.IntN(len(list))]
}

// joined returns several results as one list of f32.
func joined(b *batch.Batch, list ...batch.Value) batch.Value {
	for i, v := range list {
		list[i] = b.Reshape(b.Cast(v, op.F32), -1)
	}
	return b.Concat(0, list...)
}

// list returns an array of one axis.
func list(parts ...[]float64) nd {
	all := slices.Concat(parts...)
	return nd{op.Shape{len(all)}, all}
}

// before reports whether x comes before y in sorted order, in which NaN follows the numbers.
func before(x, y float64) bool { return x < y || y != y && x == x }

// order compares two numbers as sort functions need it.
func order(x, y float64) int { return int(truth(before(y, x)) - truth(before(x, y))) }

// slots returns n elements: the given ones, then v.
func slots(given []float64, n int, v float64) []float64 {
	return append(slices.Clone(given), slices.Repeat([]float64{v}, n-len(given))...)
}

// searches has the methods that search for elements.
var searches = slices.Concat(
	[]composition{
		nonZero(op.Shape{}), nonZero(op.Shape{0}), nonZero(op.Shape{70}), nonZero(op.Shape{3, 4, 6}), nonZero(op.Shape{2, 0, 3}),
		{name: "compress of truth values", shapes: []op.Shape{{9}}, draw: small,
			record: func(b *batch.Batch, x []batch.Value) batch.Value {
				values, count := b.Compress(b.Cast(b.Relu(x[0]), op.Bool), x[0])
				return joined(b, values, count)
			},
			want: func(x []nd) nd {
				var kept []float64
				for _, v := range x[0].data {
					if v != 0 {
						kept = append(kept, truth(v > 0))
					}
				}
				return list(slots(kept, 9, 0), []float64{float64(len(kept))})
			}},
		compress(op.Shape{}), compress(op.Shape{0, 2}), compress(op.Shape{7, 11}),
		uniqueElements(op.Shape{0}, op.F32, special), uniqueElements(op.Shape{}, op.F32, special), uniqueElements(op.Shape{70}, op.F32, special),
		uniqueElements(op.Shape{5, 7}, op.I32, small), uniqueElements(op.Shape{33}, op.U32, func(g *generator) float64 { return float64(g.IntN(9)) }),
		uniqueElements(op.Shape{40}, op.F16, special), uniqueElements(op.Shape{3000}, op.F32, func(g *generator) float64 { return float64(g.IntN(2000)) }),
		uniqueSlices(op.Shape{9, 3}, 0), uniqueSlices(op.Shape{2, 17, 1}, -2), uniqueSlices(op.Shape{0, 3}, 0), uniqueSlices(op.Shape{4, 0}, 0), uniqueSlices(op.Shape{2, 1, 9}, 2),
	},
	searchSorted(0), searchSorted(1), searchSorted(64), searchSorted(67),
	[]composition{
		isIn(0, op.F32, special), isIn(1, op.F32, special), isIn(5, op.F32, special), isIn(4, op.BF16, special), isIn(4, op.I32, small), isIn(1, op.I32, small),
		bincount(op.Shape{6, 13}, 7), bincount(op.Shape{}, 3), bincount(op.Shape{0}, 4), bincount(op.Shape{5}, 0),
		histogram(op.Shape{9, 9}, 7, -2, 2), histogram(op.Shape{40}, 1, 0, 0.5), histogram(op.Shape{0}, 3, -1e30, 1),
	},
	quantiles,
)

// nonZero tests NonZero: the indices and the count.
func nonZero(s op.Shape) composition {
	return composition{name: "nonzero of " + s.String(), shapes: []op.Shape{s}, draw: special,
		record: func(b *batch.Batch, x []batch.Value) batch.Value {
			at, count := b.NonZero(x[0])
			return joined(b, at, count)
		},
		want: func(x []nd) nd {
			rows, count := make([][]float64, len(s)), 0.0
			made(s, func(p []int) float64 {
				if x[0].at(p...) != 0 {
					count++
					for i, v := range p {
						rows[i] = append(rows[i], float64(v))
					}
				}
				return 0
			})
			for i := range rows {
				rows[i] = slots(rows[i], len(x[0].data), -1)
			}
			return list(append(rows, []float64{count})...)
		}}
}

// compress tests Compress with a mask of the elements above 0: the values and the count.
func compress(s op.Shape) composition {
	return composition{name: "compress of " + s.String(), shapes: []op.Shape{s, s}, draw: special,
		record: func(b *batch.Batch, x []batch.Value) batch.Value {
			values, count := b.Compress(x[0], b.Reshape(b.Greater(x[1], single(b, 0)), s...))
			return joined(b, values, count)
		},
		want: func(x []nd) nd {
			var kept []float64
			for i, v := range x[0].data {
				if x[1].data[i] > 0 {
					kept = append(kept, v)
				}
			}
			return list(slots(kept, len(x[0].data), 0), []float64{float64(len(kept))})
		}}
}

// different returns the results of Unique for n rows, in one list.
func different(rows [][]float64, width int) nd {
	n := len(rows)
	place := make([]int, n)
	for i := range place {
		place[i] = i
	}
	slices.SortStableFunc(place, func(i, j int) int { return slices.CompareFunc(rows[i], rows[j], order) })
	var values, first, counts []float64
	inverse := make([]float64, n)
	for k, i := range place {
		if k == 0 || !slices.Equal(rows[i], rows[place[k-1]]) { // NaN differs from NaN
			values = append(values, rows[i]...)
			first, counts = append(first, float64(i)), append(counts, 0)
		}
		counts[len(counts)-1]++
		inverse[i] = float64(len(counts) - 1)
	}
	return list(slots(values, n*width, 0), slots(first, n, -1), inverse, slots(counts, n, 0), []float64{float64(len(counts))})
}

// uniqueElements tests Unique of elements of a type.
func uniqueElements(s op.Shape, t op.DType, draw func(*generator) float64) composition {
	return composition{name: "unique of " + t.String() + s.String(), shapes: []op.Shape{s}, draw: draw,
		record: func(b *batch.Batch, x []batch.Value) batch.Value {
			u := b.Unique(b.Cast(x[0], t))
			return joined(b, u.Values, u.First, u.Inverse, u.Counts, u.Count)
		},
		want: func(x []nd) nd {
			var rows [][]float64
			for _, v := range x[0].data {
				rows = append(rows, []float64{v})
			}
			return different(rows, 1)
		}}
}

// uniqueSlices tests Unique along an axis.
func uniqueSlices(s op.Shape, axis int) composition {
	return composition{name: "unique slices of " + s.String(), shapes: []op.Shape{s}, draw: func(g *generator) float64 {
		return []float64{0, 1, 1, 1, math.NaN()}[g.IntN(2+3*g.IntN(2))]
	},
		record: func(b *batch.Batch, x []batch.Value) batch.Value {
			u := b.Unique(x[0], op.UniqueOpts{Along: op.Axes(axis)})
			return joined(b, b.MoveAxis(u.Values, axis, 0), u.First, u.Inverse, u.Counts, u.Count)
		},
		want: func(x []nd) nd {
			along := (axis + len(s)) % len(s)
			rows := make([][]float64, s[along])
			made(s, func(p []int) float64 {
				rows[p[along]] = append(rows[p[along]], x[0].at(p...))
				return 0
			})
			width := 1
			for i, n := range s {
				if i != along {
					width *= n
				}
			}
			return different(rows, width)
		}}
}

// searchSorted tests SearchSorted on both sides.
func searchSorted(n int) []composition {
	var both []composition
	for _, right := range []bool{false, true} {
		both = append(both, composition{name: "search_sorted of " + op.Shape{n}.String() + map[bool]string{true: " right"}[right],
			shapes: []op.Shape{{n}, {3, 9}}, draw: special,
			record: func(b *batch.Batch, x []batch.Value) batch.Value {
				sorted, _ := b.Sort(x[0])
				return b.Cast(b.SearchSorted(sorted, x[1], op.SearchOpts{Right: right}), op.F32)
			},
			want: func(x []nd) nd {
				return made(x[1].s, func(p []int) float64 {
					v := x[1].at(p...)
					return summed(n, func(i int) float64 {
						e := x[0].data[i]
						return truth(before(e, v) || right && !before(v, e))
					})
				})
			}})
	}
	return both
}

// isIn tests IsIn of n values of a type.
func isIn(n int, t op.DType, draw func(*generator) float64) composition {
	return composition{name: "is_in of " + t.String() + op.Shape{n}.String(), shapes: []op.Shape{{5, 8}, {n}}, draw: draw,
		record: func(b *batch.Batch, x []batch.Value) batch.Value {
			return b.Cast(b.IsIn(b.Cast(x[0], t), b.Cast(x[1], t)), op.F32)
		},
		want: func(x []nd) nd {
			return made(x[0].s, func(p []int) float64 { return truth(slices.Contains(x[1].data, x[0].at(p...))) })
		}}
}

// bincount tests Bincount of numbers from -4 to 7.
func bincount(s op.Shape, n int) composition {
	return composition{name: "bincount of " + s.String(), shapes: []op.Shape{s}, draw: small,
		record: func(b *batch.Batch, x []batch.Value) batch.Value {
			return b.Cast(b.Bincount(b.Cast(x[0], op.I32), n), op.F32)
		},
		want: func(x []nd) nd {
			return made(op.Shape{n}, func(p []int) float64 {
				return summed(len(x[0].data), func(i int) float64 { return truth(x[0].data[i] == float64(p[0])) })
			})
		}}
}

// histogram tests Histogram: the counts and the edges.
func histogram(s op.Shape, bins int, lo, hi float32) composition {
	return composition{name: "histogram of " + s.String(), shapes: []op.Shape{s}, draw: special,
		record: func(b *batch.Batch, x []batch.Value) batch.Value {
			counts, edges := b.Histogram(x[0], bins, lo, hi)
			return joined(b, counts, edges)
		},
		want: func(x []nd) nd {
			edges, counts := make([]float64, bins+1), make([]float64, bins)
			for i := range edges {
				t := float64(i) / float64(bins)
				edges[i] = float64(float32(float64(lo)*(1-t) + float64(hi)*t))
			}
			for i := range counts {
				for _, v := range x[0].data {
					if edges[i] <= v && (v < edges[i+1] || i == bins-1 && v == edges[bins]) {
						counts[i]++
					}
				}
			}
			return list(counts, edges)
		}}
}

// share returns the quantile q of elements.
func share(row []float64, q float64) float64 {
	row = slices.SortedFunc(slices.Values(row), order)
	last := row[len(row)-1]
	whole, part := math.Modf(q * float64(len(row)-1))
	x := row[int(whole)]
	switch {
	case last != last:
		return last
	case part == 0 || x == row[int(whole)+1]:
		return x
	}
	return x*(1-part) + row[int(whole)+1]*part
}

// quantile tests Quantile along the last axis of a matrix or of its transpose, or of all elements.
func quantile(name string, s op.Shape, q float64, draw func(*generator) float64, along ...op.Along) composition {
	return composition{name: "quantile " + name, shapes: []op.Shape{s}, draw: draw, loose: 1e-6,
		record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Quantile(x[0], q, along...) },
		want: func(x []nd) nd {
			if len(along) == 0 {
				return nd{op.Shape{}, []float64{share(x[0].data, q)}}
			}
			axes, _, _ := along[0].Of(2)
			axis := axes[0]
			out := slices.Clone(s)
			out[axis] = 1
			y := made(out, func(p []int) float64 {
				var row []float64
				for i := range s[axis] {
					p[axis] = i
					row = append(row, x[0].at(p...))
				}
				p[axis] = 0
				return share(row, q)
			})
			if !along[0].Keeps() {
				y.s = slices.Delete(out, axis, axis+1)
			}
			return y
		}}
}

var quantiles = []composition{
	quantile("of rows", op.Shape{6, 35}, 0.3, nil, op.Axes(-1)),
	quantile("of columns", op.Shape{10, 5}, 0.5, nil, op.Axes(0).KeepDims()),
	quantile("of all", op.Shape{4, 9}, 0.99, nil),
	quantile("of a scalar", op.Shape{}, 0.7, special),
	quantile("of special numbers", op.Shape{40, 3}, 0.6, special, op.Axes(1)),
	{name: "quantile of f16", shapes: []op.Shape{{4, 9}}, draw: small,
		record: func(b *batch.Batch, x []batch.Value) batch.Value {
			return b.Cast(b.Quantile(b.Cast(x[0], op.F16), 0.5), op.F32)
		},
		want: func(x []nd) nd { return nd{op.Shape{}, []float64{share(x[0].data, 0.5)}} }},
	quantile("least", op.Shape{8, 6}, 0, special, op.Axes(1)),
	quantile("greatest", op.Shape{8, 6}, 1, special, op.Axes(1)),
	{name: "quantiles of equal elements", shapes: []op.Shape{{40, 1}},
		record: func(b *batch.Batch, x []batch.Value) batch.Value {
			var list []batch.Value
			for _, q := range []float64{0.07, 0.3, 0.61, 0.83} {
				list = append(list, b.Quantile(b.Expand(x[0], 40, 8), q, op.Axes(1)))
			}
			return b.Stack(0, list...)
		},
		want: func(x []nd) nd { return made(op.Shape{4, 40}, func(p []int) float64 { return x[0].data[p[1]] }) }},
	quantile("of no rows", op.Shape{0, 6}, 0.5, nil, op.Axes(1)),
}
