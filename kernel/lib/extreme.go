package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

func init() {
	register(reduceFamily(1, 0, extremes), op.Min, op.Max, op.NormLinf)
	register(reduceFamily(2, 0, places), op.ArgMin, op.ArgMax)
}

// extremes reduces to the greatest of keys: see [keyOf].
var extremes = newMaker("reduce_extreme", func(b *kernel.Builder, p *reduceParams, s reduceSpec, e *epilogue) {
	t := newTeam(b, s.crew)
	key := keys(b, &s)
	out := op.F32
	if s.Split {
		out = op.U32
	}
	put := s.result(b, out, e)
	c := pieceOf(b, p, t, s.Split)
	best := kernel.NewVar(b, "best", kernel.U(0))
	c.each(t, s.vector(), func(i kernel.U32) {
		for _, k := range key(i) {
			best.Set(best.Get().Max(k))
		}
	})
	k := t.most(best.Get())
	b.If(c.Is.And(t.lane.Eq(kernel.U(0))), func() {
		if s.Split {
			put(c.Number, kernel.Dyn(k))
			return
		}
		var v kernel.F32
		switch s.Op {
		case "min":
			v = numberOf(reverseKey(k))
		case "max":
			v = numberOf(k)
		case "norm_linf":
			v = k.AsF32()
		}
		put(c.Number, kernel.Dyn(v))
	})
})

// places reduces to the place of the greatest key, the first of equal ones.
var places = newMaker("reduce_place", func(b *kernel.Builder, p *reduceParams, s reduceSpec, e *epilogue) {
	t := newTeam(b, s.crew)
	key := keys(b, &s)
	var places kernel.Buffer[kernel.U32]
	if s.Pieces {
		places = kernel.Input[kernel.U32](b, "places")
	}
	put := func(i kernel.U32, k, at kernel.U32) {}
	if s.Split {
		ks, ps := kernel.Output[kernel.U32](b, "part_keys"), kernel.Output[kernel.U32](b, "part_places")
		put = func(i, k, at kernel.U32) { ks.Set(i, k); ps.Set(i, at) }
	} else {
		result := e.result(b, op.I32)
		put = func(i, _, at kernel.U32) { result(i, kernel.Dyn(at.I32())) }
	}
	c := pieceOf(b, p, t, s.Split)
	best := kernel.NewVar(b, "best", kernel.U(0))
	at := kernel.NewVar(b, "at", kernel.U(1<<31-1))
	c.each(t, s.vector(), func(i kernel.U32) {
		for n, k := range key(i) {
			b.If(k.Gt(best.Get()), func() {
				best.Set(k)
				if s.Pieces {
					at.Set(places.At(i))
				} else {
					at.Set(i.Mul(kernel.U(uint32(s.vector()))).Add(kernel.U(uint32(n))).Sub(c.Row))
				}
			})
		}
	})
	k := t.most(best.Get())
	first := t.least(kernel.Select(best.Get().Eq(k), at.Get(), kernel.U(1<<31-1)))
	b.If(c.Is.And(t.lane.Eq(kernel.U(0))), func() { put(c.Number, k, first) })
})

// keys declares the operand of which the greatest key is sought and returns
// what reads the keys of vector i. No key is 0 but of norm_linf, where that is
// the number 0.
func keys(b *kernel.Builder, s *reduceSpec) func(i kernel.U32) []kernel.U32 {
	if s.Pieces {
		x := kernel.Input[kernel.U32](b, "keys")
		return func(i kernel.U32) []kernel.U32 { return []kernel.U32{x.At(i)} }
	}
	x := components(b, "x", s)
	return func(i kernel.U32) []kernel.U32 {
		var ks []kernel.U32
		for _, v := range x(i) {
			switch u := v.AsU32(); s.Op {
			case "min", "argmin":
				ks = append(ks, reverseKey(keyOf(u)))
			case "norm_linf":
				ks = append(ks, u.And(kernel.U(0x7fffffff)))
			default:
				ks = append(ks, keyOf(u))
			}
		}
		return ks
	}
}
