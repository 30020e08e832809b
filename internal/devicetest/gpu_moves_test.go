//go:build !js

package devicetest

import (
	"fmt"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// moveCells are operations along any axes, views that are copied, broadcasts, and products named by
// an equation. Each shape is stated where the cell is, because the name of the cell shows it.
func moveCells() (all cellList) {
	type value = batch.Value
	type rec = batch.Batch
	add := all.add
	one := func(name, peer string, s, out []int, build func(r *rec, x value) value) {
		add(fmt.Sprintf("%s %v", name, op.Shape(s)), peer, [][]int{s}, out, func(r *rec, x []value) value { return build(r, x[0]) })
	}
	for _, s := range [][4]int{{64, 1, 1000, 1000}, {300, 1, 97, 251}, {7, 1, 4096, 513}} {
		add(fmt.Sprintf("broadcast [%d 1 %d]+[%d 1]", s[0], s[2], s[3]), "x[0]+x[1]", [][]int{{s[0], 1, s[2]}, {s[3], 1}}, []int{s[0], s[3], s[2]},
			func(r *rec, x []value) value { return r.Add(x[0], x[1]) })
	}
	for _, s := range []op.Shape{{64, 512, 512}, {333, 97, 251}, {4096, 16, 60}, {5, 3000, 700}} {
		for axis := range 3 {
			left := append(append([]int{}, s[:axis]...), s[axis+1:]...)
			along := op.Axes(axis)
			one(fmt.Sprintf("sum axis %d", axis), fmt.Sprintf("x[0].sum(%d)", axis), s, left, func(r *rec, x value) value { return r.Sum(x, along) })
			if axis == 2 {
				continue
			}
			one(fmt.Sprintf("argmax axis %d", axis), fmt.Sprintf("x[0].argmax(%d).float()", axis), s, left, func(r *rec, x value) value { return r.Cast(r.ArgMax(x, along), op.F32) })
			one(fmt.Sprintf("var axis %d", axis), fmt.Sprintf("x[0].var(%d)", axis), s, left, func(r *rec, x value) value { return r.Var(x, op.VarOpts{Along: along, DDOF: 1}) })
			one(fmt.Sprintf("softmax axis %d", axis), fmt.Sprintf("torch.softmax(x[0],%d)", axis), s, s, func(r *rec, x value) value { return r.Softmax(x, along) })
			one(fmt.Sprintf("cumsum axis %d", axis), fmt.Sprintf("x[0].cumsum(%d)", axis), s, s, func(r *rec, x value) value { return r.Cumsum(x, op.ScanOpts{Along: along}) })
		}
		one("sum axes 0 2", "x[0].sum((0,2))", s, []int{s[1]}, func(r *rec, x value) value { return r.Sum(x, op.Axes(0, 2)) })
		one("logsumexp axis 1", "x[0].logsumexp(1)", s, []int{s[0], s[2]}, func(r *rec, x value) value { return r.LogSumExp(x, op.Axes(1)) })
	}
	for _, s := range [][]int{{1_000_000}, {16 << 20}, {3000, 777}, {100_000, 33}} {
		axis := len(s) - 1
		one("cumsum", fmt.Sprintf("x[0].cumsum(%d)", axis), s, s, func(r *rec, x value) value { return r.Cumsum(x) })
		one("cummax", fmt.Sprintf("x[0].cummax(%d)[0]", axis), s, s, func(r *rec, x value) value { return r.Cummax(x) })
	}
	for _, p := range permutes {
		out := permutedShape(p.s, p.order)
		one(fmt.Sprintf("copy permute %v", p.order), fmt.Sprintf("x[0].permute(%s).contiguous()", commas(p.order)), p.s, out, func(r *rec, x value) value { return r.Permute(x, p.order...) })
		one("copy as it is", "x[0].clone()", p.s, p.s, func(r *rec, x value) value { return r.Reshape(x, p.s...) })
	}
	square := [][]int{{2000, 1500}, {2000, 1500}}
	add("concat axis 0", "torch.cat(x,0)", square, []int{4000, 1500}, func(r *rec, x []value) value { return r.Concat(0, x...) })
	add("concat axis 1", "torch.cat(x,1)", square, []int{2000, 3000}, func(r *rec, x []value) value { return r.Concat(1, x...) })
	add("stack axis 2", "torch.stack(x,2)", square, []int{2000, 1500, 2}, func(r *rec, x []value) value { return r.Stack(2, x...) })
	one("roll", "torch.roll(x[0],77,1)", []int{2000, 1500}, []int{2000, 1500}, func(r *rec, x value) value { return r.Roll(x, 1, 77) })
	one("pad", "F.pad(x[0],(1,1,1,1))", []int{3000, 30, 30}, []int{3000, 32, 32}, func(r *rec, x value) value { return r.Pad(r.Pad(x, 1, 1, 1, 0), 2, 1, 1, 0) })
	one("slice step", "x[0][:,::3].contiguous()", []int{2000, 1500}, []int{2000, 500}, func(r *rec, x value) value { return r.Slice(x, 1, 0, 1500, 3) })
	one("tril", "torch.tril(x[0])", []int{2000, 1500}, []int{2000, 1500}, func(r *rec, x value) value { return r.Tril(x, 0) })
	for _, e := range []struct {
		spec   string
		shapes [][]int
		out    []int
	}{
		{"bqhd,bkhd->bhqk", [][]int{{8, 512, 16, 64}, {8, 512, 16, 64}}, []int{8, 16, 512, 512}},
		{"bhqk,bkhd->bqhd", [][]int{{8, 16, 512, 512}, {8, 512, 16, 64}}, []int{8, 512, 16, 64}},
		{"bi,oij,bj->bo", [][]int{{256, 100}, {50, 100, 120}, {256, 120}}, []int{256, 50}},
		{"bij,bjk->bik", [][]int{{100, 97, 130}, {100, 130, 61}}, []int{100, 97, 61}},
		{"ijk,jl->ilk", [][]int{{64, 200, 130}, {200, 150}}, []int{64, 150, 130}},
		{"ij,kj->ik", [][]int{{1000, 700}, {900, 700}}, []int{1000, 900}},
		{"i,j->ij", [][]int{{3000}, {2000}}, []int{3000, 2000}},
		{"bi,bi->b", [][]int{{5000, 700}, {5000, 700}}, []int{5000}},
	} {
		add("einsum "+e.spec, fmt.Sprintf("torch.einsum('%s',*x)", e.spec), e.shapes, e.out, func(r *rec, x []value) value { return r.Einsum(e.spec, x...) })
	}
	return append(all, searchCells()...)
}

// searchCells find, count and gather elements by values that are known at run time.
func searchCells() (all cellList) {
	type value = batch.Value
	type rec = batch.Batch
	add := all.add
	ids := func(r *rec, x value, rows int) value {
		return r.Cast(r.Clip(r.Scale(r.Abs(x), float32(rows)/4), 0, float32(rows-1)), op.I32)
	}
	their := func(x string, rows int) string {
		return fmt.Sprintf("(%s.abs()*%g).long().clamp(max=%d)", x, float64(rows)/4, rows-1)
	}
	m := []int{1_000_000}
	for _, s := range [][]int{{10_000, 256}, {100_000, 33}, {50_000, 1024}} {
		add(fmt.Sprintf("gather rows %v", op.Shape(s)), fmt.Sprintf("x[0][%s]", their("x[1]", s[0])), [][]int{s, {20_000}}, []int{20_000, s[1]},
			func(r *rec, x []value) value { return r.Gather(x[0], ids(r, x[1], s[0])) })
	}
	add("gather axis 1 [2000 3000]", fmt.Sprintf("x[0].index_select(1,%s)", their("x[1]", 3000)), [][]int{{2000, 3000}, {1000}}, []int{2000, 1000},
		func(r *rec, x []value) value { return r.Gather(x[0], ids(r, x[1], 3000), op.Axes(1)) })
	add("take along axis 1 [2000 1500]", fmt.Sprintf("torch.gather(x[0],1,%s)", their("x[1]", 1500)), [][]int{{2000, 1500}, {2000, 1500}}, []int{2000, 1500},
		func(r *rec, x []value) value { return r.TakeAlong(x[0], ids(r, x[1], 1500), 1) })
	add("take along axis 0 [2000 1500]", fmt.Sprintf("torch.gather(x[0],0,%s)", their("x[1]", 2000)), [][]int{{2000, 1500}, {2000, 1500}}, []int{2000, 1500},
		func(r *rec, x []value) value { return r.TakeAlong(x[0], ids(r, x[1], 2000), 0) })
	for _, reduce := range []struct {
		as   op.ScatterReduce
		name string
	}{{op.ScatterMul, "prod"}, {op.ScatterMin, "amin"}, {op.ScatterMax, "amax"}} {
		for _, rows := range []int{1000, 1_000_000} {
			add(fmt.Sprintf("scatter %s 1M into %d", reduce.name, rows), fmt.Sprintf("x[0].index_reduce(0,%s,x[1],'%s')", their("x[1]", rows), reduce.name), [][]int{{rows}, m}, []int{rows},
				func(r *rec, x []value) value {
					return r.Scatter(x[0], ids(r, x[1], rows), x[1], op.ScatterOpts{Reduce: reduce.as})
				})
		}
	}
	add("scatter add rows of 64", fmt.Sprintf("x[0].index_add(0,%s,x[2])", their("x[1]", 5000)), [][]int{{5000, 64}, {100_000}, {100_000, 64}}, []int{5000, 64},
		func(r *rec, x []value) value {
			return r.Scatter(x[0], ids(r, x[1], 5000), x[2], op.ScatterOpts{Reduce: op.ScatterAdd})
		})
	add("argsort 1M", "torch.argsort(x[0],stable=True).float()", [][]int{m}, m, func(r *rec, x []value) value { return r.Cast(r.ArgSort(x[0]), op.F32) })
	add("argsort 5000 rows of 300", "torch.argsort(x[0],stable=True).float()", [][]int{{5000, 300}}, []int{5000, 300}, func(r *rec, x []value) value { return r.Cast(r.ArgSort(x[0]), op.F32) })
	add("sort 100000 rows of 20", "torch.sort(x[0])[0]", [][]int{{100_000, 20}}, []int{100_000, 20}, func(r *rec, x []value) value { v, _ := r.Sort(x[0]); return v })
	add("sort axis 0 [3000 500]", "torch.sort(x[0],0)[0]", [][]int{{3000, 500}}, []int{3000, 500}, func(r *rec, x []value) value {
		v, _ := r.Sort(x[0], op.SortOpts{Along: op.Axes(0)})
		return v
	})
	add("topk 10 of 1000 rows of 1000", "torch.topk(x[0],10)[0]", [][]int{{1000, 1000}}, []int{1000, 10}, func(r *rec, x []value) value { v, _ := r.TopK(x[0], 10); return v })
	add("topk 50 of 8 rows of 128000", "torch.topk(x[0],50)[0]", [][]int{{8, 128_000}}, []int{8, 50}, func(r *rec, x []value) value { v, _ := r.TopK(x[0], 50); return v })
	add("unique 1M", "torch.unique(x[0])", [][]int{m}, m, func(r *rec, x []value) value { return r.Unique(x[0]).Values })
	add("unique 1M few", "torch.unique((x[0]*20).round())", [][]int{m}, m, func(r *rec, x []value) value { return r.Unique(r.Round(r.Scale(x[0], 20))).Values })
	for _, bins := range []int{10, 100, 5000} {
		add(fmt.Sprintf("histogram 1M in %d", bins), fmt.Sprintf("torch.histc(x[0],%d,-3,3)", bins), [][]int{m}, []int{bins}, func(r *rec, x []value) value {
			n, _ := r.Histogram(x[0], bins, -3, 3)
			return r.Cast(n, op.F32)
		})
		add(fmt.Sprintf("bincount 1M in %d", bins), fmt.Sprintf("torch.bincount(%s,minlength=%d).float()", their("x[0]", bins), bins), [][]int{m}, []int{bins},
			func(r *rec, x []value) value { return r.Cast(r.Bincount(ids(r, x[0], bins), bins), op.F32) })
	}
	for _, n := range []int{100, 100_000} {
		add(fmt.Sprintf("searchsorted 1M in %d", n), "torch.searchsorted(x[0].cumsum(0).abs().cummax(0)[0],x[1]).float()", [][]int{{n}, m}, m,
			func(r *rec, x []value) value {
				return r.Cast(r.SearchSorted(r.Cummax(r.Abs(r.Cumsum(x[0]))), x[1]), op.F32)
			})
	}
	add("isin 1M of 100", "torch.isin(x[0].round(),x[1].round()).float()", [][]int{m, {100}}, m, func(r *rec, x []value) value { return r.Cast(r.IsIn(r.Round(x[0]), r.Round(x[1])), op.F32) })
	add("compress 1M", "x[0][x[0]>0]", [][]int{m}, m, func(r *rec, x []value) value { v, _ := r.Compress(x[0], r.Greater(x[0], r.Const(0, 1))); return v })
	add("nonzero 1M", "torch.nonzero(x[0]>1).float()", [][]int{m}, []int{1_000_000, 1}, func(r *rec, x []value) value {
		v, _ := r.NonZero(r.Greater(x[0], r.Const(1, 1)))
		return r.Cast(v, op.F32)
	})
	add("quantile .3 of 1000 rows of 1000", "torch.quantile(x[0],.3,1)", [][]int{{1000, 1000}}, []int{1000}, func(r *rec, x []value) value { return r.Quantile(x[0], .3, op.Axes(1)) })
	add("quantile .5 of 1000 rows of 1000", "torch.quantile(x[0],.5,1)", [][]int{{1000, 1000}}, []int{1000}, func(r *rec, x []value) value { return r.Quantile(x[0], .5, op.Axes(1)) })
	add("normal 4M", "torch.randn(4000000,device='cuda')", [][]int{}, []int{4_000_000}, func(r *rec, x []value) value {
		key := op.Key(7)
		return r.Normal(batch.Upload(r, key[:]), 4_000_000)
	})
	for _, s := range [][]int{{1000, 1024}, {1000, 1000}, {64, 65536}} {
		add(fmt.Sprintf("rfft %v", op.Shape(s)), "torch.view_as_real(torch.fft.rfft(x[0]))", [][]int{s}, []int{s[0], s[1]/2 + 1, 2}, func(r *rec, x []value) value { return r.RFFT(x[0]) })
	}
	return all
}

// commas returns numbers as Python writes the arguments of a call.
func commas(n []int) (s string) {
	for i, v := range n {
		if i > 0 {
			s += ","
		}
		s += fmt.Sprint(v)
	}
	return s
}
