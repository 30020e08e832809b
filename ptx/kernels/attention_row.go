package kernels

import (
	"math"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// attentionArgs are the parameters that all kernels of attention begin with. The
// queries of a head, or of all heads that share a head of keys, are the rows of
// one matrix: see [attentionCut].
type attentionArgs struct {
	typ                     op.DType
	q, keys, values, out    ptx.Global[ptx.B32]
	rows, tq, tk, group, d2 ptx.U32 // d2 is how many pairs of elements a head has
	scale                   ptx.F32 // of scores, times log2(e)
}

// words returns how many words are before a pair.
func (a *attentionArgs) words(pair ptx.U32) ptx.U32 {
	if a.typ == op.F32 {
		return pair.Mul(ptx.U(2))
	}
	return pair
}

// load returns a pair of elements of a row of x.
func (a *attentionArgs) load(x ptx.Global[ptx.B32], row, pair ptx.U32) [2]ptx.F32 {
	at := x.At(a.words(row.MulAdd(a.d2, pair)))
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

// place returns where a pair of the result is, and store writes pairs after it.
func (a *attentionArgs) place(row, pair ptx.U32) ptx.Global[ptx.B32] {
	return a.out.At(a.words(row.MulAdd(a.d2, pair)))
}

func (a *attentionArgs) store(at ptx.Global[ptx.B32], pair int, v [2]ptx.F32) {
	if a.typ == op.F32 {
		ptx.Cast[ptx.F32](at).Offset(2 * pair).Store2(v)
		return
	}
	at.Offset(pair).Store(half(a.typ).pack(v[0], v[1]))
}

var minusInf = ptx.F(float32(math.Inf(-1)))

// seen returns how many keys a row sees, the first ones.
func (a *attentionArgs) seen(row ptx.U32, causal, packed bool) ptx.U32 {
	if !causal {
		return a.tk
	}
	if packed {
		row = row.Rem(a.tq)
	}
	i := row.Add(ptx.U(1)).Add(a.tk) // seen = max(0, i-tq), at most tk for a row that there is
	return i.Sub(a.tq.Min(i)).Min(a.tk)
}

// repair computes a result anew where it may be wrong: tensor cores multiply the
// values that a row does not see by a weight of 0, which is NaN where the value is
// not finite. A warp does it for a row that has a NaN, if any of the keys from
// seen to hidden has such a value. It is slow, and never needed for numbers.
func (a *attentionArgs) repair(k *ptx.Kernel, head int, q, kv, row, seen, hidden ptx.U32) {
	lane := k.Special(ptx.LaneID)
	pairs := max(head/64, 1) // of a row, a lane
	in := make([]ptx.Pred, pairs)
	at := make([]ptx.U32, pairs)
	for i := range pairs {
		w := lane.Add(ptx.N(32 * i))
		in[i] = w.Lt(a.d2)
		at[i] = ptx.Select(in[i], w, ptx.U(0))
	}
	load := func(p ptx.Global[ptx.B32], row ptx.U32) [][2]ptx.F32 {
		x := make([][2]ptx.F32, pairs)
		for i := range x {
			v := a.load(p, row, at[i])
			x[i] = [2]ptx.F32{ptx.Select(in[i], v[0], ptx.F(0)), ptx.Select(in[i], v[1], ptx.F(0))}
		}
		return x
	}
	bad := ptx.NewVar(k, ptx.F(0)) // NaN if there is something that is not finite
	k.For(seen, hidden, ptx.U(1), func(key ptx.U32) {
		for _, x := range load(a.values, kv.Add(key)) {
			ptx.MulAddTo(bad, x[0], ptx.F(0))
			ptx.MulAddTo(bad, x[1], ptx.F(0))
		}
	})
	k.If(bad.Get().IsNaN(bad.Get()).Any(ptx.AllLanes), func() {
		x := load(a.q, q.Add(row))
		most, total := ptx.NewVar(k, minusInf), ptx.NewVar(k, ptx.F(0))
		sums := make([][2]ptx.Var[ptx.F32], pairs)
		for i := range sums {
			sums[i] = [2]ptx.Var[ptx.F32]{ptx.NewVar(k, ptx.F(0)), ptx.NewVar(k, ptx.F(0))}
		}
		k.For(ptx.U(0), seen, ptx.U(1), func(key ptx.U32) {
			s := ptx.F(0)
			for i, y := range load(a.keys, kv.Add(key)) {
				s = x[i][0].Fma(y[0], x[i][1].Fma(y[1], s))
			}
			for n := 16; n > 0; n /= 2 {
				s = s.Add(ptx.ShuffleXor(s, ptx.N(n)))
			}
			s = s.Mul(a.scale)
			now := most.Get().Max(s)
			base := ptx.Select(now.Eq(minusInf), ptx.F(0), now)
			down, weight := most.Get().Sub(base).Ex2Approx(), s.Sub(base).Ex2Approx()
			most.Set(now)
			total.Set(total.Get().Fma(down, weight))
			for i, y := range load(a.values, kv.Add(key)) {
				for e := range y {
					sums[i][e].Set(weight.Fma(y[e], sums[i][e].Get().Mul(down)))
				}
			}
			t := total.Get()
			k.BreakIf(t.IsNaN(t).Any(ptx.AllLanes))
		})
		factor := ptx.Select(seen.Eq(ptx.U(0)), ptx.F(0), total.Get().Rcp())
		for i := range pairs {
			k.If(in[i], func() {
				a.store(a.place(q.Add(row), at[i]), 0, [2]ptx.F32{sums[i][0].Get().Mul(factor), sums[i][1].Get().Mul(factor)})
			})
		}
	})
}

// repairRows repairs those of the 16 rows of a warp that have a NaN: nan has bit i
// set in the lanes of row lane/4 + 8i. The keys below end were multiplied.
func (a *attentionArgs) repairRows(k *ptx.Kernel, head int, packed bool, nan, q, kv, first, end ptx.U32) {
	k.If(nan.Ne(ptx.U(0)).Any(ptx.AllLanes), func() {
		k.SyncWarp(ptx.AllLanes) // what the lanes have stored is stored again
		k.Count(ptx.U(16), func(i ptx.U32) {
			bit := ptx.U(1).Shl(i.Shr(ptx.U(3)))
			mine := nan.And(bit).Ne(ptx.U(0)).And(k.Special(ptx.LaneID).Shr(ptx.U(2)).Eq(i.And(ptx.U(7))))
			k.If(mine.Any(ptx.AllLanes), func() {
				row := first.Add(i)
				a.repair(k, head, q, kv, row, a.seen(row, true, packed), end)
			})
		})
	})
}
