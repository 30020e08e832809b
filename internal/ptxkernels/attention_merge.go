package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// mergedRow is a row of results in the registers of a warp, before the division by the sum of
// weights.
type mergedRow struct {
	limit, total ptx.F32 // the greatest score (times scale, to base 2), the sum of weights
	sums         [][2]ptx.Var[ptx.F32]
	at           []ptx.U32  // indices of the lane's pairs
	in           []ptx.Pred // whether the row has these pairs
}

// each calls f for each pair that the lane has.
func (e *mergedRow) each(k *ptx.Kernel, f func(at ptx.U32, v [2]ptx.F32)) {
	for i := range e.sums {
		k.If(e.in[i], func() { f(e.at[i], [2]ptx.F32{e.sums[i][0].Get(), e.sums[i][1].Get()}) })
	}
}

// mergeRows merges the partials of a row, which were summed over different keys. Each partial is
// relative to its own greatest score. note returns the greatest score and the sum of weights of a
// partial; load returns a pair of its sums.
func mergeRows(k *ptx.Kernel, parts ptx.U32, words int, d2 ptx.U32, note func(part ptx.U32) [2]ptx.F32, load func(part, at ptx.U32) [2]ptx.F32) *mergedRow {
	largest, total := ptx.NewVar(k, minusInf), ptx.NewVar(k, ptx.F(0))
	k.Count(parts, func(i ptx.U32) { ptx.MaxTo(largest, note(i)[0]) })
	base := ptx.Select(largest.Get().Eq(minusInf), ptx.F(0), largest.Get())
	e := &mergedRow{}
	for i := range words {
		w := k.Special(ptx.LaneID).Add(ptx.N(32 * i))
		e.in = append(e.in, w.Lt(d2))
		e.at = append(e.at, ptx.Select(w.Lt(d2), w, ptx.U(0)))
		e.sums = append(e.sums, [2]ptx.Var[ptx.F32]{ptx.NewVar(k, ptx.F(0)), ptx.NewVar(k, ptx.F(0))})
	}
	k.Count(parts, func(i ptx.U32) {
		n := note(i)
		weight := n[0].Sub(base).Ex2ApproxFlush()
		ptx.MulAddTo(total, n[1], weight)
		for j := range e.sums {
			v := load(i, e.at[j])
			ptx.MulAddTo(e.sums[j][0], v[0], weight)
			ptx.MulAddTo(e.sums[j][1], v[1], weight)
		}
	})
	e.limit, e.total = largest.Get(), total.Get()
	return e
}

// finishRow divides a merged row by the sum of weights and stores it, or repairs it if hidden keys made it NaN.
func finishRow(k *ptx.Kernel, head int, causal bool, a *attentionArgs, e *mergedRow, of *attentionHead, row, seen, hidden ptx.U32) {
	factor := ptx.Select(seen.Eq(ptx.U(0)), ptx.F(0), e.total.Rcp())
	store := func() {
		e.each(k, func(at ptx.U32, v [2]ptx.F32) {
			a.store(a.place(a.line(attentionResult, of, row), at), 0, [2]ptx.F32{v[0].Mul(factor), v[1].Mul(factor)})
		})
	}
	if !causal {
		store()
		return
	}
	check := ptx.NewVar(k, ptx.F(0))
	e.each(k, func(_ ptx.U32, v [2]ptx.F32) {
		check.Set(v[0].Mul(factor).Fma(ptx.F(0), v[1].Mul(factor).Fma(ptx.F(0), check.Get())))
	})
	broken := ptx.NewVar(k, ptx.U(0))
	w := a.byRows(k, head)
	k.If(check.Get().IsNaN(check.Get()).Any(ptx.AllLanes), func() {
		broken.Set(ptx.Select(w.broken(of, seen, hidden), ptx.U(1), ptx.U(0)))
	})
	k.IfElse(broken.Get().Eq(ptx.U(0)), store, func() { w.repair(of, row, seen) })
}

// attentionMerge is the second stage of split-K attention: one warp merges the partials of one row.
type attentionMerge struct {
	Type           op.DType
	Causal, Packed bool
	Head           int
	Strided        attentionStrided
}

const mergeThreads = 128

func (s attentionMerge) build(k *ptx.Kernel, to *epilogue) {
	k.Block(mergeThreads, 1, 1)
	a := &attentionArgs{typ: s.Type, strided: s.Strided, packed: s.Packed}
	a.q, a.keys, a.values = ptx.GlobalParam[ptx.B32](k, "q"), ptx.GlobalParam[ptx.B32](k, "k"), ptx.GlobalParam[ptx.B32](k, "v")
	parts, shares := ptx.GlobalParam[ptx.F32](k, "parts"), ptx.GlobalParam[ptx.F32](k, "shares")
	a.declare(k)
	all, splits := ptx.Param[ptx.U32](k, "all"), ptx.Param[ptx.U32](k, "splits")
	a.to = to.sink(k)
	at := k.Special(ptx.CtaidX).MulAdd(ptx.U(mergeThreads/32), k.Special(ptx.TidX).Shr(ptx.U(5)))
	k.If(at.Lt(all), func() {
		e := mergeRows(k, splits, max(s.Head/64, 1), a.d2, func(part ptx.U32) [2]ptx.F32 {
			return shares.At(part.MulAdd(all, at).Mul(ptx.U(2))).Load2()
		}, func(part, c ptx.U32) [2]ptx.F32 {
			return parts.At(part.MulAdd(all, at).MulAdd(a.d2, c).Mul(ptx.U(2))).Load2()
		})
		head, row := at.Div(a.rows), at.Rem(a.rows)
		finishRow(k, s.Head, s.Causal, a, e, a.head(head), row, a.seen(row, s.Causal, s.Packed), a.tk)
	})
}
