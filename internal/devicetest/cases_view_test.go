package devicetest

import (
	"math"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// lists has the operations whose parameters are a list of integers, Case.Extents.
var lists = map[*op.Operation]struct {
	attrs  func(c *Case) (op.Attrs, error)
	record func(b *batch.Batch, c *Case, in []batch.Value) batch.Value
	cases  func(g *generator, d op.DType) []Case
}{
	op.Reshape: {
		func(c *Case) (op.Attrs, error) { return op.ReshapeTo(c.Extents...) },
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value { return b.Reshape(in[0], c.Extents...) },
		(*generator).reshape,
	},
	op.Permute: {
		func(c *Case) (op.Attrs, error) { return op.PermuteTo(c.Extents...) },
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value { return b.Permute(in[0], c.Extents...) },
		(*generator).permute,
	},
	op.Slice: {
		func(c *Case) (op.Attrs, error) {
			return op.SliceTo(c.Extents[0], c.Extents[1], c.Extents[2], c.Extents[3]), nil
		},
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value {
			return b.Slice(in[0], c.Extents[0], c.Extents[1], c.Extents[2], c.Extents[3])
		},
		(*generator).slice,
	},
	op.Flip: {
		func(c *Case) (op.Attrs, error) { return op.FlipOf(c.Extents...) },
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value { return b.Flip(in[0], c.Extents...) },
		(*generator).flip,
	},
	op.Expand: {
		func(c *Case) (op.Attrs, error) { return op.ExpandTo(c.Extents...) },
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value { return b.Expand(in[0], c.Extents...) },
		(*generator).expand,
	},
	op.Pad: {
		func(c *Case) (op.Attrs, error) {
			return op.PadOf(c.Extents[0], c.Extents[1], c.Extents[2], c.Params[0]), nil
		},
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value {
			return b.Pad(in[0], c.Extents[0], c.Extents[1], c.Extents[2], c.Params[0])
		},
		(*generator).pad,
	},
	op.Diagonal: {
		func(c *Case) (op.Attrs, error) { return op.DiagonalOf(c.Extents[0], c.Extents[1], c.Extents[2]), nil },
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value {
			return b.Diagonal(in[0], c.Extents[0], c.Extents[1], c.Extents[2])
		},
		(*generator).diagonal,
	},
	op.SlidingWindow: {
		func(c *Case) (op.Attrs, error) {
			return op.SlidingWindowOf(c.Extents[0], c.Extents[1], c.Extents[2], c.Extents[3]), nil
		},
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value {
			return b.SlidingWindow(in[0], c.Extents[0], c.Extents[1], c.Extents[2], c.Extents[3])
		},
		(*generator).slidingWindow,
	},
	op.Concat: {
		func(c *Case) (op.Attrs, error) { return op.ConcatAlong(c.Extents[0]), nil },
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value { return b.Concat(c.Extents[0], in...) },
		(*generator).concat,
	},
	op.SliceAt: {
		func(c *Case) (op.Attrs, error) { return op.SliceAtOf(c.Extents[0], c.Extents[1]), nil },
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value {
			return b.SliceAt(in[0], c.Extents[0], in[1], c.Extents[1])
		},
		(*generator).sliceAt,
	},
	op.Update: {
		func(c *Case) (op.Attrs, error) { return op.UpdateOf(c.Extents[0]), nil },
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value {
			return b.Update(in[0], c.Extents[0], in[1], in[2])
		},
		(*generator).update,
	},
	op.Gather: {
		func(c *Case) (op.Attrs, error) { return op.GatherOf(c.axis()), nil },
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value {
			if c.axis() == 0 {
				return b.Gather(in[0], in[1])
			}
			return b.Gather(in[0], in[1], op.Axes(c.axis()))
		},
		(*generator).gather,
	},
	op.Scatter: {
		func(c *Case) (op.Attrs, error) {
			return op.ScatterOf(c.Extents[0], op.ScatterReduce(c.Extents[1])), nil
		},
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value {
			return b.Scatter(in[0], in[1], in[2], op.ScatterOpts{Reduce: op.ScatterReduce(c.Extents[1]), Along: op.Axes(c.Extents[0])})
		},
		(*generator).scatter,
	},
	op.Iota: {
		func(c *Case) (op.Attrs, error) { return op.IotaOf(c.Extents[0]), nil },
		func(b *batch.Batch, c *Case, in []batch.Value) batch.Value { return b.Iota(in[0], c.Extents[0]) },
		(*generator).iota,
	},
}

// listed returns a case of one operand.
func (g *generator) listed(o *op.Operation, d op.DType, s op.Shape, extents ...int) Case {
	return Case{Op: o, Extents: extents, In: []Tensor{g.tensor(d, s, g.wild)}}
}

func (g *generator) reshape(d op.DType) []Case {
	var cases []Case
	for _, c := range []struct {
		s  op.Shape
		to []int
	}{{op.Shape{6}, []int{2, 3}}, {op.Shape{2, 3, 4}, []int{4, -1}}, {op.Shape{1}, []int{1, 1, 1}}, {op.Shape{0, 3}, []int{2, 0}}, {op.Shape{5, 13}, []int{65}}} {
		cases = append(cases, g.listed(op.Reshape, d, c.s, c.to...))
	}
	return cases
}

func (g *generator) permute(d op.DType) []Case {
	var cases []Case
	for _, c := range []struct {
		s     op.Shape
		order []int
	}{
		{op.Shape{5}, []int{0}}, {op.Shape{3, 4}, []int{0, 1}}, {op.Shape{3, 4}, []int{1, 0}}, {op.Shape{33, 70}, []int{-1, 0}},
		{op.Shape{3, 5, 7}, []int{1, 0, 2}}, {op.Shape{3, 5, 7}, []int{2, 0, 1}}, {op.Shape{5, 4, 64}, []int{1, 0, 2}}, {op.Shape{8, 12, 16}, []int{2, 1, 0}},
		{op.Shape{2, 3, 4, 5}, []int{3, 1, 2, 0}}, {op.Shape{2, 40, 3, 36}, []int{0, 2, 3, 1}}, {op.Shape{4, 0, 3}, []int{2, 0, 1}}, {op.Shape{1, 300, 1, 9}, []int{2, 3, 0, 1}},
		{op.Shape{5, 4, 6, 3, 7}, []int{4, 3, 2, 1, 0}}, {op.Shape{2, 3, 4, 3, 2, 3, 2, 4}, []int{7, 1, 5, 3, 4, 2, 6, 0}},
	} {
		cases = append(cases, g.listed(op.Permute, d, c.s, c.order...))
	}
	return cases
}

func (g *generator) slice(d op.DType) []Case {
	var cases []Case
	for _, s := range []op.Shape{{7}, {300}, {5, 64}, {65, 9}, {3, 6, 8}, {0, 4}} {
		for axis := range s {
			for _, r := range [][3]int{{0, op.End, 1}, {1, -1, 1}, {0, 4, 1}, {-4, 100, 1}, {0, op.End, 2}, {1, op.End, 3}, {-1, op.End, -1}, {5, 0, -2}, {4, 4, 1}, {100, -100, -3}} {
				cases = append(cases, g.listed(op.Slice, d, s, axis-g.IntN(2)*len(s), r[0], r[1], r[2]))
			}
		}
	}
	return cases
}

func (g *generator) flip(d op.DType) []Case {
	return []Case{g.listed(op.Flip, d, op.Shape{9}), g.listed(op.Flip, d, op.Shape{3, 70}, 1), g.listed(op.Flip, d, op.Shape{5, 8, 4}, 0, -1),
		g.listed(op.Flip, d, op.Shape{5, 8, 4}), g.listed(op.Flip, d, op.Shape{0, 3}, 0), g.listed(op.Flip, d, op.Shape{})}
}

func (g *generator) expand(d op.DType) []Case {
	return []Case{g.listed(op.Expand, d, op.Shape{}, 4), g.listed(op.Expand, d, op.Shape{3, 1}, 3, 5), g.listed(op.Expand, d, op.Shape{1, 8}, 70, -1),
		g.listed(op.Expand, d, op.Shape{2, 1, 8}, 2, 3, 8), g.listed(op.Expand, d, op.Shape{4, 1, 5, 1}, 2, 4, 3, 5, 6), g.listed(op.Expand, d, op.Shape{1, 3}, 0, 3),
		g.listed(op.Expand, d, op.Shape{2, 3}, 2, 3), g.listed(op.Expand, d, op.Shape{1}, 1, 1)}
}

func (g *generator) pad(d op.DType) []Case {
	var cases []Case
	values := []float32{0, 1, -2.5, float32(math.Inf(1))}
	if !d.Float() {
		values = []float32{0, 1}
	}
	for i, c := range [][]int{{7, 0, 2, 3}, {300, 0, 0, 1}, {8, -1, 4, 8}, {1, 0, 1, 1}, {0, 0, 2, 70}} {
		k := g.listed(op.Pad, d, op.Shape{c[0]}, c[1:]...)
		k.Params = values[i%len(values) : i%len(values)+1]
		cases = append(cases, k)
	}
	for axis, s := range []op.Shape{{3, 4, 5}, {6, 64, 8}, {2, 0, 3}, {2, 3, 4, 5}} {
		k := g.listed(op.Pad, d, s, axis-len(s)*(axis%2), g.IntN(5), g.IntN(9))
		if k.Extents[0] >= len(s) {
			k.Extents[0] = 0
		}
		k.Params = values[:1]
		cases = append(cases, k)
	}
	return cases
}

func (g *generator) diagonal(d op.DType) []Case {
	var cases []Case
	for _, c := range []struct {
		s     op.Shape
		axes  [2]int
		tries []int
	}{
		{op.Shape{5, 5}, [2]int{0, 1}, []int{0, 1, -4, 5, -100}}, {op.Shape{33, 70}, [2]int{-1, 0}, []int{0, 40, -12}}, {op.Shape{3, 6, 8}, [2]int{-2, -1}, []int{0, 3, -2}},
		{op.Shape{6, 3, 7}, [2]int{0, 2}, []int{0, 6}}, {op.Shape{0, 3}, [2]int{0, 1}, []int{0, 1}}, {op.Shape{1, 9}, [2]int{0, 1}, []int{0, 8}},
	} {
		for _, offset := range c.tries {
			cases = append(cases, g.listed(op.Diagonal, d, c.s, offset, c.axes[0], c.axes[1]))
		}
	}
	return cases
}

func (g *generator) slidingWindow(d op.DType) []Case {
	var cases []Case
	for _, c := range []struct {
		s       op.Shape
		extents []int
	}{
		{op.Shape{9}, []int{0, 3, 1, 1}}, {op.Shape{9}, []int{0, 9, 5, 1}}, {op.Shape{300}, []int{-1, 7, 3, 2}}, {op.Shape{5, 64}, []int{1, 4, 1, 1}},
		{op.Shape{12, 5, 4}, []int{0, 3, 2, 4}}, {op.Shape{3, 8, 2}, []int{-2, 1, 1, 1}}, {op.Shape{0, 4}, []int{1, 2, 1, 1}}, {op.Shape{1, 1}, []int{0, 1, 1, 100}},
	} {
		cases = append(cases, g.listed(op.SlidingWindow, d, c.s, c.extents...))
	}
	return cases
}

func (g *generator) concat(d op.DType) []Case {
	var cases []Case
	for _, c := range []struct {
		axis   int
		shapes []op.Shape
	}{
		{0, []op.Shape{{5}}}, {0, []op.Shape{{5}, {3}}}, {0, []op.Shape{{2, 3}, {4, 3}, {1, 3}}}, {1, []op.Shape{{2, 3}, {2, 64}}}, {-1, []op.Shape{{33, 4}, {33, 8}, {33, 12}}},
		{1, []op.Shape{{2, 3, 4}, {2, 5, 4}, {2, 0, 4}, {2, 1, 4}}}, {0, []op.Shape{{0, 3}, {2, 3}}}, {1, []op.Shape{{0, 3}, {0, 5}}},
		{2, []op.Shape{{1, 2, 3}, {1, 2, 1}, {1, 2, 2}, {1, 2, 3}, {1, 2, 5}, {1, 2, 1}, {1, 2, 7}, {1, 2, 4}}},
	} {
		k := Case{Op: op.Concat, Extents: []int{c.axis}}
		for _, s := range c.shapes {
			k.In = append(k.In, g.tensor(d, s, g.wild))
		}
		cases = append(cases, k)
	}
	return cases
}

// place returns an i32.
func (g *generator) place(v int) Tensor {
	t := g.tensor(op.I32, op.Shape{1}, g.tame)
	t.Data[0] = float64(v)
	return t
}

func (g *generator) sliceAt(d op.DType) []Case {
	var cases []Case
	for _, c := range []struct {
		s       op.Shape
		axis, n int
	}{{op.Shape{9}, 0, 3}, {op.Shape{12, 64}, 0, 5}, {op.Shape{5, 20, 8}, 1, 7}, {op.Shape{3, 70}, -1, 1}, {op.Shape{4, 5}, 0, 4}, {op.Shape{4, 5}, 1, 0}, {op.Shape{0, 5}, 1, 2}} {
		for _, at := range []int{0, 1, 3, -2, 1000, math.MinInt32} {
			k := g.listed(op.SliceAt, d, c.s, c.axis, c.n)
			k.In = append(k.In, g.place(at))
			cases = append(cases, k)
		}
	}
	return cases
}

func (g *generator) update(d op.DType) []Case {
	var cases []Case
	for _, c := range []struct {
		s       op.Shape
		axis, n int
	}{{op.Shape{9}, 0, 3}, {op.Shape{12, 64}, 0, 5}, {op.Shape{5, 20, 8}, 1, 7}, {op.Shape{3, 70}, -1, 1}, {op.Shape{4, 5}, 0, 6}, {op.Shape{4, 5}, 1, 0}, {op.Shape{2, 0, 3}, 0, 1}} {
		for _, at := range []int{0, 1, 3, -2, 8, 1000, math.MinInt32, math.MaxInt32} {
			k := g.listed(op.Update, d, c.s, c.axis)
			v := append(op.Shape{}, c.s...)
			v[(c.axis+len(v))%len(v)] = c.n
			k.In = append(k.In, g.place(at), g.tensor(d, v, g.wild))
			cases = append(cases, k)
		}
	}
	return cases
}

func (g *generator) iota(d op.DType) []Case {
	var cases []Case
	for _, n := range []int{0, 1, 7, 257, 1031, 40_000} {
		for _, start := range []float64{0, 5, 1<<32 - 3} {
			k := g.listed(op.Iota, d, op.Shape{1}, n)
			k.In[0].Data[0] = start
			cases = append(cases, k)
		}
	}
	return cases
}
