package main

import (
	"fmt"
	"strings"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// makeAxisCases returns the group axes.
func makeAxisCases() (all []axisCase) {
	all = append(all, broadcastCases()...)
	all = append(all, reduceCases()...)
	all = append(all, scanCases()...)
	all = append(all, indexCases()...)
	all = append(all, joinCases()...)
	all = append(all, permuteCases()...)
	all = append(all, einsumCases()...)
	for i := range all {
		all[i].exact = all[i].in[0].Type == "i32" || strings.HasPrefix(all[i].name, "arg")
	}
	return all
}

func broadcastCases() (all []axisCase) {
	for _, s := range [][2]op.Shape{
		{{100, 1, 100}, {100, 1}}, {{4, 1, 1000}, {250, 1}}, {{1000, 1, 10}, {100, 1}}, {{37, 1, 97}, {251, 1}}, {{8, 1, 64}, {128, 1}},
		{{251, 1, 3}, {1301, 1}}, {{3, 1, 33333}, {10, 1}}, {{64, 3, 3000}, {3, 1}}, {{37, 251, 1}, {97}}, {{1000, 1}, {1, 1000}},
		{{1, 251, 97}, {37, 1, 97}}, {{10000, 3, 33}, {10000, 1, 33}}, {{5, 7, 11, 13, 17}, {7, 1, 13, 1}}, {{100003, 7}, {7}},
	} {
		all = append(all, axisCase{
			name:   fmt.Sprintf("broadcast of %v and %v, added", s[0], s[1]),
			in:     []operand{f32s(s[0]...), f32s(s[1]...)},
			record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Add(x[0], x[1]) },
			numpy:  []string{"np.add(x, y, out=out)"},
			torch:  []string{"torch.add(x, y, out=out)"},
		})
	}
	return all
}

// reduceCases has sums along one axis, and other reductions and softmax along some axes.
func reduceCases() (all []axisCase) {
	type reduce = func(b *batch.Batch, x batch.Value, axis op.Along) batch.Value
	add := func(name string, in operand, axis int, record reduce, numpy, torch string) {
		form := func(f string) []string {
			if f == "" {
				return nil
			}
			return []string{strings.ReplaceAll(f, "AXIS", fmt.Sprint(axis))}
		}
		all = append(all, axisCase{
			name:   fmt.Sprintf("%s of %s %v, axis %d", name, in.Type, in.Shape, axis),
			in:     []operand{in},
			record: func(b *batch.Batch, x []batch.Value) batch.Value { return record(b, x[0], op.Axes(axis)) },
			numpy:  form(numpy),
			torch:  form(torch),
		})
	}
	sum := func(b *batch.Batch, x batch.Value, axis op.Along) batch.Value { return b.Sum(x, axis) }
	for _, c := range []struct {
		shape []int
		axes  []int
	}{{[]int{1000, 1000}, []int{0, 1}}, {[]int{37, 251, 97}, []int{0, 1, 2}}, {[]int{10000, 3, 33}, []int{0, 1, 2}}, {[]int{64, 3, 3000}, []int{1}}, {[]int{100003, 7}, []int{0, 1}}} {
		for _, axis := range c.axes {
			add("sum", f32s(c.shape...), axis, sum, "np.sum(x, axis=AXIS, out=out)", "torch.sum(x, AXIS, out=out)")
			add("sum", i32s(c.shape...), axis, sum, "np.sum(x, axis=AXIS, dtype=np.int32, out=out)", "torch.sum(x, AXIS, dtype=torch.int32, out=out)")
		}
	}
	rest := []struct {
		name         string
		record       reduce
		numpy, torch string
	}{
		{"mean", func(b *batch.Batch, x batch.Value, a op.Along) batch.Value { return b.Mean(x, a) }, "np.mean(x, axis=AXIS, out=out)", "torch.mean(x, AXIS, out=out)"},
		{"max", func(b *batch.Batch, x batch.Value, a op.Along) batch.Value { return b.Max(x, a) }, "np.max(x, axis=AXIS, out=out)", "torch.amax(x, AXIS, out=out)"},
		{"argmax", func(b *batch.Batch, x batch.Value, a op.Along) batch.Value { return b.ArgMax(x, a) }, "np.argmax(x, axis=AXIS, out=out)", "torch.argmax(x, AXIS, out=out)"},
		{"logsumexp", func(b *batch.Batch, x batch.Value, a op.Along) batch.Value { return b.LogSumExp(x, a) }, "", "torch.logsumexp(x, AXIS, out=out)"},
		{"softmax", func(b *batch.Batch, x batch.Value, a op.Along) batch.Value { return b.Softmax(x, a) }, "", "torch.softmax(x, AXIS, out=out)"},
	}
	for _, c := range rest {
		for _, s := range [][]int{{1000, 1000}, {37, 251, 97}, {64, 3, 3000}} {
			add(c.name, f32s(s...), len(s)-2, c.record, c.numpy, c.torch)
		}
	}
	return all
}

// scanCases has sorts and cumulative sums.
func scanCases() (all []axisCase) {
	sorts := []operand{f32s(1_000_000), i32s(1_000_000), f32s(1000, 1000), f32s(10000, 100)}
	for _, in := range sorts {
		all = append(all, axisCase{
			name:   fmt.Sprintf("sort of %s %v", in.Type, in.Shape),
			in:     []operand{in},
			record: func(b *batch.Batch, x []batch.Value) batch.Value { y, _ := b.Sort(x[0]); return y },
			numpy:  []string{"np.sort(x)", "np.sort(x, kind='stable')"},
			torch:  []string{"torch.sort(x, out=out)"},
		})
	}
	all = append(all, axisCase{
		name:   "argsort of f32 [1000000]",
		in:     []operand{f32s(1_000_000)},
		record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.ArgSort(x[0]) },
		numpy:  []string{"np.argsort(x, kind='stable')", "np.argsort(x)"},
		torch:  []string{"torch.argsort(x, stable=True)"},
	})
	for _, c := range []struct {
		in   operand
		axis int
	}{
		{f32s(1_000_000), 0}, {i32s(1_000_000), 0}, {f32s(1000, 1000), 0}, {f32s(1000, 1000), 1}, {i32s(1000, 1000), 1},
		{f32s(10000, 3, 33), 1}, {f32s(37, 251, 97), 0}, {f32s(100003, 7), 1}, {i32s(100003, 7), 1},
	} {
		t := map[string]string{"f32": "float32", "i32": "int32"}[c.in.Type]
		all = append(all, axisCase{
			name: fmt.Sprintf("cumsum of %s %v, axis %d", c.in.Type, c.in.Shape, c.axis),
			in:   []operand{c.in},
			record: func(b *batch.Batch, x []batch.Value) batch.Value {
				return b.Cumsum(x[0], op.ScanOpts{Along: op.Axes(c.axis)})
			},
			numpy: []string{fmt.Sprintf("np.cumsum(x, axis=%d, dtype=np.%s, out=out)", c.axis, t)},
			torch: []string{fmt.Sprintf("torch.cumsum(x, %d, dtype=torch.%s, out=out)", c.axis, t)},
			// The rounding errors of all sums add up: sums of 1M float32 numbers differ by a hundredth.
			tolerance: 1e-2,
		})
	}
	return all
}

// indexCases gathers rows and adds rows by index: 1M elements in rows of several lengths.
func indexCases() (all []axisCase) {
	for _, cols := range []int{1, 3, 10, 64, 333} {
		rows := 1_000_000 / cols
		all = append(all, axisCase{
			name:   fmt.Sprintf("gather of rows of %d", cols),
			in:     []operand{f32s(rows, cols), ids(rows, rows)},
			record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Gather(x[0], x[1]) },
			numpy:  []string{"np.take(x, y, axis=0, out=out)", "x[y]"},
			torch:  []string{"torch.index_select(x, 0, y, out=out)"},
		}, axisCase{
			name: fmt.Sprintf("scatter-add of rows of %d", cols),
			in:   []operand{f32s(rows, cols), ids(rows, rows), f32s(rows, cols)},
			record: func(b *batch.Batch, x []batch.Value) batch.Value {
				return b.Scatter(x[0], x[1], x[2], op.ScatterOpts{Reduce: op.ScatterAdd})
			},
			numpy: []string{"(t := x.copy(), np.add.at(t, y, z))[0]"},
			torch: []string{"torch.index_add(x, 0, y, z, out=out)", "torch.scatter_add(x, 0, y[:, None].expand(z.shape), z)"},
		})
	}
	return append(all, axisCase{
		name:   "take along the last axis of f32 [1000 1000]",
		in:     []operand{f32s(1000, 1000), ids(1000, 1000, 1000)},
		record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.TakeAlong(x[0], x[1], 1) },
		numpy:  []string{"np.take_along_axis(x, y, 1)"},
		torch:  []string{"torch.gather(x, 1, y, out=out)"},
	})
}

func joinCases() (all []axisCase) {
	three := []operand{f32s(100, 100, 33), f32s(100, 100, 33), f32s(100, 100, 33)}
	for axis := range 3 {
		all = append(all, axisCase{
			name:   fmt.Sprintf("concat of three [100 100 33], axis %d", axis),
			in:     three,
			record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Concat(axis, x...) },
			numpy:  []string{fmt.Sprintf("np.concatenate((x, y, z), %d, out=out)", axis)},
			torch:  []string{fmt.Sprintf("torch.cat((x, y, z), %d, out=out)", axis)},
		}, axisCase{
			name:   fmt.Sprintf("stack of three [100 100 33], axis %d", axis),
			in:     three,
			record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Stack(axis, x...) },
			numpy:  []string{fmt.Sprintf("np.stack((x, y, z), %d, out=out)", axis)},
			torch:  []string{fmt.Sprintf("torch.stack((x, y, z), %d, out=out)", axis)},
		})
	}
	return append(all, axisCase{
		name:   "concat of two [1000 500], axis 1",
		in:     []operand{f32s(1000, 500), f32s(1000, 500)},
		record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Concat(1, x...) },
		numpy:  []string{"np.concatenate((x, y), 1, out=out)"},
		torch:  []string{"torch.cat((x, y), 1, out=out)"},
	})
}

func permuteCases() (all []axisCase) {
	for _, c := range []struct{ shape, order []int }{
		{[]int{1000, 1000}, []int{1, 0}}, {[]int{300, 301}, []int{1, 0}}, {[]int{4096, 4096}, []int{1, 0}}, {[]int{100, 101, 103}, []int{2, 1, 0}},
		{[]int{8, 128, 12, 64}, []int{0, 2, 1, 3}}, {[]int{64, 3, 224, 224}, []int{0, 2, 3, 1}}, {[]int{32, 33, 31, 30}, []int{3, 2, 1, 0}},
	} {
		order := strings.Trim(strings.ReplaceAll(fmt.Sprint(c.order), " ", ", "), "[]")
		all = append(all, axisCase{
			name:   fmt.Sprintf("copy of %v, axes %s", c.shape, order),
			in:     []operand{f32s(c.shape...)},
			record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Permute(x[0], c.order...) },
			numpy:  []string{fmt.Sprintf("np.positive(x.transpose(%s), out=out)", order), fmt.Sprintf("np.copyto(out, x.transpose(%s)) or out", order)},
			torch:  []string{fmt.Sprintf("x.permute(%s).contiguous()", order)},
		})
	}
	return all
}

func einsumCases() (all []axisCase) {
	for _, c := range []struct {
		spec string
		in   []op.Shape
	}{
		{"bqhd,bkhd->bhqk", []op.Shape{{8, 128, 12, 64}, {8, 128, 12, 64}}},
		{"bhqk,bkhd->bqhd", []op.Shape{{8, 12, 128, 128}, {8, 128, 12, 64}}},
		{"bqhd,bkhd->bhqk", []op.Shape{{3, 77, 5, 33}, {3, 77, 5, 33}}},
		{"bi,oij,bj->bo", []op.Shape{{128, 100}, {90, 100, 80}, {128, 80}}},
		{"bi,oij,bj->bo", []op.Shape{{17, 33}, {5, 33, 77}, {17, 77}}},
		{"ij,ij->j", []op.Shape{{1000, 1000}, {1000, 1000}}},
		{"ij,ij->i", []op.Shape{{1000, 1000}, {1000, 1000}}},
		{"i,j->ij", []op.Shape{{1000}, {1000}}},
		{"bij,bjk->bik", []op.Shape{{64, 100, 50}, {64, 50, 70}}},
	} {
		var in []operand
		var shapes string
		for _, s := range c.in {
			in, shapes = append(in, f32s(s...)), shapes+" "+fmt.Sprint(s)
		}
		args := strings.Join([]string{"x", "y", "z"}[:len(in)], ", ")
		all = append(all, axisCase{
			name:   "einsum " + c.spec + " of" + shapes,
			in:     in,
			record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Einsum(c.spec, x...) },
			numpy:  []string{fmt.Sprintf("np.einsum('%s', %s, optimize=True)", c.spec, args), fmt.Sprintf("np.einsum('%s', %s)", c.spec, args)},
			torch:  []string{fmt.Sprintf("torch.einsum('%s', %s)", c.spec, args)},
		})
	}
	return append(all, axisCase{
		name:   "kron of [33 31] and [30 29]",
		in:     []operand{f32s(33, 31), f32s(30, 29)},
		record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Kron(x[0], x[1]) },
		numpy:  []string{"np.kron(x, y)"},
		torch:  []string{"torch.kron(x, y)"},
	})
}

// makeLinalgCases returns the group linalg: factorisations of one matrix, and of batches of 1,000.
func makeLinalgCases() (all []axisCase) {
	for _, shape := range []op.Shape{{64, 64}, {256, 256}, {1000, 1000}, {1000, 32, 32}} {
		n := shape[len(shape)-1]
		general, right := f32s(shape...), append(shape[:len(shape)-1:len(shape)-1], 1)
		general.Diagonal = 4
		definite := general
		definite.Diagonal, definite.Symmetric = float32(16*n), true
		for _, c := range []struct {
			name         string
			in           []operand
			record       func(b *batch.Batch, x []batch.Value) batch.Value
			numpy, torch string
			unsigned     bool
		}{
			{"solve", []operand{definite, f32s(right...)}, func(b *batch.Batch, x []batch.Value) batch.Value { return b.Solve(x[0], x[1]) },
				"np.linalg.solve(x, y)", "torch.linalg.solve(x, y)", false},
			{"inverse", []operand{definite}, func(b *batch.Batch, x []batch.Value) batch.Value { return b.Inv(x[0]) },
				"np.linalg.inv(x)", "torch.linalg.inv(x)", false},
			{"cholesky", []operand{definite}, func(b *batch.Batch, x []batch.Value) batch.Value { return b.Cholesky(x[0]) },
				"np.linalg.cholesky(x)", "torch.linalg.cholesky(x)", false},
			{"qr", []operand{general}, func(b *batch.Batch, x []batch.Value) batch.Value { q, r := b.QR(x[0]); b.Keep(q); return r },
				"np.linalg.qr(x)[1]", "torch.linalg.qr(x)[1]", true},
			{"eigh", []operand{definite}, func(b *batch.Batch, x []batch.Value) batch.Value { w, v := b.Eigh(x[0]); b.Keep(v); return w },
				"np.linalg.eigh(x)[0]", "torch.linalg.eigh(x)[0]", false},
			{"svd", []operand{general}, func(b *batch.Batch, x []batch.Value) batch.Value {
				u, s, vt := b.SVD(x[0])
				b.Keep(u)
				b.Keep(vt)
				return s
			}, "np.linalg.svd(x, full_matrices=False)[1]", "torch.linalg.svd(x, full_matrices=False)[1]", false},
		} {
			all = append(all, axisCase{name: fmt.Sprintf("%s of %v", c.name, shape), in: c.in, record: c.record,
				numpy: []string{c.numpy}, torch: []string{c.torch}, unsigned: c.unsigned})
		}
	}
	return all
}
