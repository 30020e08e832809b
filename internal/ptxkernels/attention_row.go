package ptxkernels

import (
	"math"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// attentionArgs holds the first parameters of all attention kernels. [attentionCut] describes how
// queries become rows of matrices.
type attentionArgs struct {
	typ                     op.DType
	strided                 attentionStrided
	packed                  bool // rows of several heads in one matrix
	q, keys, values         ptx.Global[ptx.B32]
	rows, tq, tk, group, d2 ptx.U32 // d2 is the number of pairs of elements in a head
	scale                   ptx.F32 // of scores, times log2(e)
	to                      *sink   // stores results; nil in kernels that store partials
	heads, kvHeads          ptx.U32 // of one batch entry, if strided: matrices and heads of keys
	steps                   [4]attentionSteps
}

// declare declares the parameters after the arrays.
func (a *attentionArgs) declare(k *ptx.Kernel) {
	param := func(name string) ptx.U32 { return ptx.Param[ptx.U32](k, name) }
	a.rows, a.tq, a.tk, a.group, a.d2 = param("rows"), param("tq"), param("tk"), param("group"), param("d2")
	a.scale = ptx.Param[ptx.F32](k, "scale")
	a.declareSteps(k)
}

// words converts an offset in pairs of elements to words.
func (a *attentionArgs) words(pair ptx.U32) ptx.U32 {
	if a.typ == op.F32 {
		return pair.Mul(ptx.U(2))
	}
	return pair
}

// load returns a pair of elements of a row of operand i.
func (a *attentionArgs) load(i int, row attentionLine, pair ptx.U32) [2]ptx.F32 {
	at := a.operand(i).At(a.words(a.pair(i, row, pair)))
	if a.typ == op.F32 {
		return ptx.Cast[ptx.F32](at).Load2()
	}
	v := at.Load()
	if a.typ == op.BF16 {
		return [2]ptx.F32{v.Shl(ptx.U(16)).Float(), v.And(ptx.B(0xffff0000)).Float()}
	}
	low, high := v.F16x2().Halves()
	return [2]ptx.F32{low.F32(), high.F32()}
}

// attentionPlace locates a pair of elements in the result.
type attentionPlace struct {
	row, pair, i ptx.U32 // i is the number of the element
	at           ptx.Global[ptx.B32]
}

func (a *attentionArgs) place(row attentionLine, pair ptx.U32) attentionPlace {
	i := a.pair(attentionResult, row, pair)
	return attentionPlace{ptx.U32(row), pair, i.Mul(ptx.U(2)), ptx.Cast[ptx.B32](a.to.to[0]).At(a.words(i))}
}

// store stores two values, pair pairs after at.
func (a *attentionArgs) store(at attentionPlace, pair int, v [2]ptx.F32) {
	switch {
	case a.to.exprs != nil:
		a.to.setRow(at.row, at.pair.Add(ptx.N(pair)).Mul(ptx.U(2)), at.i.Add(ptx.N(2*pair)), v[0], v[1])
	case a.typ == op.F32:
		ptx.Cast[ptx.F32](at.at).Offset(2 * pair).Store2(v)
	default:
		at.at.Offset(pair).Store(half(a.typ).pack(v[0], v[1]))
	}
}

var minusInf = ptx.F(float32(math.Inf(-1)))

// seen returns the number of keys that a row sees. A row sees the first keys.
func (a *attentionArgs) seen(row ptx.U32, causal, packed bool) ptx.U32 {
	if !causal {
		return a.tk
	}
	if packed {
		row = row.Rem(a.tq)
	}
	i := row.Add(ptx.U(1)).Add(a.tk) // seen = max(0, i-tq), at most tk for a row that exists
	return i.Sub(a.tq.Min(i)).Min(a.tk)
}

// attentionRow reads whole rows with a warp: each lane has some pairs of a row.
type attentionRow struct {
	a  *attentionArgs
	k  *ptx.Kernel
	in []ptx.Pred
	at []ptx.U32
}

func (a *attentionArgs) byRows(k *ptx.Kernel, head int) *attentionRow {
	w := &attentionRow{a: a, k: k}
	for i := range max(head/64, 1) {
		n := k.Special(ptx.LaneID).Add(ptx.N(32 * i))
		w.in = append(w.in, n.Lt(a.d2))
		w.at = append(w.at, ptx.Select(n.Lt(a.d2), n, ptx.U(0)))
	}
	return w
}

// load returns the lane's elements of a row of operand n.
func (w *attentionRow) load(n int, row attentionLine) [][2]ptx.F32 {
	x := make([][2]ptx.F32, len(w.at))
	for i := range x {
		v := w.a.load(n, row, w.at[i])
		x[i] = [2]ptx.F32{ptx.Select(w.in[i], v[0], ptx.F(0)), ptx.Select(w.in[i], v[1], ptx.F(0))}
	}
	return x
}

// broken reports whether a NaN in a row may come from hidden keys. Tensor cores multiply the values
// of hidden keys by a weight of 0, and the product is NaN if the value is not finite. The hidden
// keys that were multiplied are those from seen to hidden.
func (w *attentionRow) broken(of *attentionHead, seen, hidden ptx.U32) ptx.Pred {
	bad := ptx.NewVar(w.k, ptx.F(0)) // NaN if a value is not finite
	w.k.For(seen, hidden, ptx.U(1), func(key ptx.U32) {
		for _, x := range w.load(op.AttentionV, w.a.line(op.AttentionV, of, key)) {
			ptx.MulAddTo(bad, x[0], ptx.F(0))
			ptx.MulAddTo(bad, x[1], ptx.F(0))
		}
	})
	return bad.Get().IsNaN(bad.Get()).Any(ptx.AllLanes)
}

// repair computes a row again, without the hidden keys, and stores it. It is slow, but only rows
// with values that are not finite need it.
func (w *attentionRow) repair(of *attentionHead, row, seen ptx.U32) {
	k, a := w.k, w.a
	x := w.load(op.AttentionQ, a.line(op.AttentionQ, of, row))
	largest, total := ptx.NewVar(k, minusInf), ptx.NewVar(k, ptx.F(0))
	sums := make([][2]ptx.Var[ptx.F32], len(x))
	for i := range sums {
		sums[i] = [2]ptx.Var[ptx.F32]{ptx.NewVar(k, ptx.F(0)), ptx.NewVar(k, ptx.F(0))}
	}
	k.For(ptx.U(0), seen, ptx.U(1), func(key ptx.U32) {
		s := ptx.F(0)
		for i, y := range w.load(op.AttentionK, a.line(op.AttentionK, of, key)) {
			s = x[i][0].Fma(y[0], x[i][1].Fma(y[1], s))
		}
		for n := 16; n > 0; n /= 2 {
			s = s.Add(ptx.ShuffleXor(s, ptx.N(n)))
		}
		s = s.Mul(a.scale)
		now := largest.Get().Max(s)
		base := ptx.Select(now.Eq(minusInf), ptx.F(0), now)
		down, weight := largest.Get().Sub(base).Ex2Approx(), s.Sub(base).Ex2Approx()
		largest.Set(now)
		total.Set(total.Get().Fma(down, weight))
		for i, y := range w.load(op.AttentionV, a.line(op.AttentionV, of, key)) {
			for e := range y {
				sums[i][e].Set(weight.Fma(y[e], sums[i][e].Get().Mul(down)))
			}
		}
		t := total.Get()
		k.BreakIf(t.IsNaN(t).Any(ptx.AllLanes))
	})
	factor := ptx.Select(seen.Eq(ptx.U(0)), ptx.F(0), total.Get().Rcp())
	for i := range x {
		k.If(w.in[i], func() {
			a.store(a.place(a.line(attentionResult, of, row), w.at[i]), 0, [2]ptx.F32{sums[i][0].Get().Mul(factor), sums[i][1].Get().Mul(factor)})
		})
	}
}

// attentionStore stores the 16 rows of a warp, from first on. A lane holds the rows lane/4 and
// lane/4 + 8; in these rows it holds pair lane%4 and every fourth pair after it. A broken row is
// not stored but repaired: the operand of an epilogue may be the array that it writes, so a row can
// be stored only once.
type attentionStore struct {
	head           int
	causal, packed bool
	of             *attentionHead
	first          ptx.U32
	end            ptx.U32 // the keys below end were multiplied
}

func (s *attentionStore) do(k *ptx.Kernel, a *attentionArgs, sums []ptx.Var[ptx.F32], factor [2]ptx.F32) {
	lane := k.Special(ptx.LaneID)
	row := [2]ptx.U32{s.first.Add(lane.Shr(ptx.U(2)))}
	row[1] = row[0].Add(ptx.U(8))
	here := [2]ptx.Pred{row[0].Lt(a.rows), row[1].Lt(a.rows)}
	for i, v := range sums {
		v.Set(v.Get().Mul(factor[i/2%2]))
	}
	broken := ptx.NewVar(k, ptx.U(0)) // a bit for each row
	if s.causal {
		var nan [2]ptx.U32
		for i := range nan {
			check := ptx.F(0)
			for j := range s.head / 8 {
				check = sums[4*j+2*i].Get().Fma(ptx.F(0), sums[4*j+2*i+1].Get().Fma(ptx.F(0), check))
			}
			nan[i] = here[i].And(check.IsNaN(check)).Ballot(ptx.AllLanes)
		}
		k.If(nan[0].Or(nan[1]).Ne(ptx.U(0)), func() {
			rows := a.byRows(k, s.head)
			k.Count(ptx.U(16), func(i ptx.U32) {
				mask := ptx.Select(i.Lt(ptx.U(8)), nan[0], nan[1]).Shr(i.And(ptx.U(7)).Mul(ptx.U(4))).And(ptx.U(15))
				k.If(mask.Ne(ptx.U(0)), func() {
					bad := rows.broken(s.of, a.seen(s.first.Add(i), true, s.packed), s.end)
					broken.Set(broken.Get().Or(ptx.Select(bad, ptx.U(1).Shl(i), ptx.U(0))))
				})
			})
		})
	}
	for i := range row {
		whole := here[i].And(broken.Get().Shr(lane.Shr(ptx.U(2)).Add(ptx.N(8 * i))).And(ptx.U(1)).Eq(ptx.U(0)))
		at := a.place(a.line(attentionResult, s.of, row[i]), lane.And(ptx.U(3)))
		for j := range s.head / 8 {
			k.If(whole.And(lane.And(ptx.U(3)).Add(ptx.N(4*j)).Lt(a.d2)), func() {
				a.store(at, 4*j, [2]ptx.F32{sums[4*j+2*i].Get(), sums[4*j+2*i+1].Get()})
			})
		}
	}
	if s.causal {
		k.If(broken.Get().Ne(ptx.U(0)), func() {
			rows := a.byRows(k, s.head)
			k.Count(ptx.U(16), func(i ptx.U32) {
				k.If(broken.Get().Shr(i).And(ptx.U(1)).Ne(ptx.U(0)), func() {
					row := s.first.Add(i)
					rows.repair(s.of, row, a.seen(row, true, s.packed))
				})
			})
		})
	}
}
