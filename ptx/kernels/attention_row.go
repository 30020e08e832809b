package kernels

import (
	"math"

	"github.com/rayo-go/rayo/ptx"
)

// attentionArgs are the parameters that all kernels of attention begin with. The
// queries of a head, or of all heads that share a head of keys, are the rows of
// one matrix: see [attentionCut].
type attentionArgs struct {
	q, keys, values, out    ptx.Global[ptx.B32] // two elements each
	rows, tq, tk, group, d2 ptx.U32             // d2 is how many pairs a head has
	scale                   ptx.F32             // of scores, times log2(e)
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
func (a *attentionArgs) repair(k *ptx.Kernel, h half, head int, q, kv, row, seen, hidden ptx.U32) {
	lane := k.Special(ptx.LaneID)
	words := max(head/64, 1) // of a row, a lane
	in := make([]ptx.Pred, words)
	at := make([]ptx.U32, words)
	for i := range words {
		w := lane.Add(ptx.N(32 * i))
		in[i] = w.Lt(a.d2)
		at[i] = ptx.Select(in[i], w, ptx.U(0))
	}
	load := func(p ptx.Global[ptx.B32], row ptx.U32) []ptx.B32 {
		x := make([]ptx.B32, words)
		for i := range x {
			x[i] = ptx.Select(in[i], p.At(row.MulAdd(a.d2, at[i])).Load(), ptx.B(0))
		}
		return x
	}
	bad := ptx.NewVar(k, ptx.U(0))
	e := h.exponents()
	k.For(seen, hidden, ptx.U(1), func(key ptx.U32) {
		for _, x := range load(a.values, kv.Add(key)) {
			for _, m := range []uint32{e, e << 16} {
				y := x.And(ptx.B(m)).U32()
				bad.Set(ptx.Select(y.Eq(ptx.U(m)), ptx.U(1), bad.Get()))
			}
		}
	})
	k.If(bad.Get().Ne(ptx.U(0)).Any(ptx.AllLanes), func() {
		x := load(a.q, q.Add(row))
		most, total := ptx.NewVar(k, minusInf), ptx.NewVar(k, ptx.F(0))
		sums := make([]ptx.Var[ptx.F32], 2*words)
		for i := range sums {
			sums[i] = ptx.NewVar(k, ptx.F(0))
		}
		k.For(ptx.U(0), seen, ptx.U(1), func(key ptx.U32) {
			s := ptx.F(0)
			for i, y := range load(a.keys, kv.Add(key)) {
				x0, x1 := h.unpack(x[i])
				y0, y1 := h.unpack(y)
				s = x0.Fma(y0, x1.Fma(y1, s))
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
				y0, y1 := h.unpack(y)
				sums[2*i].Set(weight.Fma(y0, sums[2*i].Get().Mul(down)))
				sums[2*i+1].Set(weight.Fma(y1, sums[2*i+1].Get().Mul(down)))
			}
			t := total.Get()
			k.BreakIf(t.IsNaN(t).Any(ptx.AllLanes))
		})
		t := total.Get()
		for i := range words {
			k.If(in[i], func() {
				v := h.pack(sums[2*i].Get().Div(t), sums[2*i+1].Get().Div(t))
				a.out.At(q.Add(row).MulAdd(a.d2, at[i])).Store(ptx.Select(seen.Eq(ptx.U(0)), ptx.B(0), v))
			})
		}
	})
}

// repairRows repairs those of the 16 rows of a warp that have a NaN: nan has bit i
// set in the lanes of row lane/4 + 8i. The keys below end were multiplied.
func (a *attentionArgs) repairRows(k *ptx.Kernel, h half, head int, packed bool, nan, q, kv, first, end ptx.U32) {
	k.If(nan.Ne(ptx.U(0)).Any(ptx.AllLanes), func() {
		k.SyncWarp(ptx.AllLanes) // what the lanes have stored is stored again
		k.Count(ptx.U(16), func(i ptx.U32) {
			bit := ptx.U(1).Shl(i.Shr(ptx.U(3)))
			mine := nan.And(bit).Ne(ptx.U(0)).And(k.Special(ptx.LaneID).Shr(ptx.U(2)).Eq(i.And(ptx.U(7))))
			k.If(mine.Any(ptx.AllLanes), func() {
				row := first.Add(i)
				a.repair(k, h, head, q, kv, row, a.seen(row, true, packed), end)
			})
		})
	})
}
