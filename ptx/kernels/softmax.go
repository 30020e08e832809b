package kernels

import (
	"math"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// softmax computes softmax and log_softmax. NaN, +Inf, and -Inf where there is
// nothing else, give NaN as greatest or in the sum, and so in the whole row.
func (s rowSpec) softmax(k *ptx.Kernel) {
	x, y := ptx.GlobalParam[ptx.B32](k, "x"), ptx.GlobalParam[ptx.B32](k, "y")
	rows, cols := ptx.Param[ptx.U32](k, "rows"), ptx.Param[ptx.U32](k, "cols")
	t := s.newTeam(k, rows, cols)
	held := t.rows(rows, cols)
	ninf := float32(math.Inf(-1))
	t.load(held, x, ninf)
	most := make([]ptx.F32, len(held))
	for u, r := range held {
		most[u] = ptx.F(ninf)
		r.each(ninf, func(_ int, v []ptx.F32) []ptx.F32 {
			most[u] = most[u].MaxNaN(foldRow(v, ptx.F32.MaxNaN))
			return nil
		})
	}
	most = t.reduce(most, ptx.F32.MaxNaN)
	sum := make([]ptx.F32, len(held))
	for u, r := range held {
		r.each(ninf, func(p int, v []ptx.F32) []ptx.F32 {
			e := make([]ptx.F32, len(v))
			for i := range v {
				e[i] = expRow(s.Type, v[i].Sub(most[u]))
			}
			sum[u] = sum[u].Add(foldRow(e, ptx.F32.Add))
			if s.Op == "softmax" && r.keeps(p) {
				return e
			}
			return nil
		})
	}
	sum = t.reduce(sum, ptx.F32.Add)
	for u, r := range held {
		scale := sum[u].Rcp()
		log := sum[u].Lg2Approx().Mul(ptx.F(math.Ln2))
		r.each(ninf, func(p int, v []ptx.F32) []ptx.F32 {
			w := make([]ptx.F32, len(v))
			for i := range v {
				switch {
				case s.Op == "log_softmax":
					w[i] = v[i].Sub(most[u]).Sub(log)
				case r.keeps(p):
					w[i] = v[i].Mul(scale)
				default:
					w[i] = expRow(s.Type, v[i].Sub(most[u])).Mul(scale)
				}
			}
			r.store(y, p, w)
			return nil
		})
	}
}

// foldRow combines elements pairwise.
func foldRow(v []ptx.F32, f func(a, b ptx.F32) ptx.F32) ptx.F32 {
	if len(v) == 1 {
		return v[0]
	}
	return f(foldRow(v[:len(v)/2], f), foldRow(v[len(v)/2:], f))
}

// log2e is the logarithm of e, and what float32 loses of it.
const (
	log2e    = float32(math.Log2E)
	log2eLow = float32(math.Log2E - float64(log2e))
)

// expRow returns e**d, d at most 0 or NaN, of a difference of elements of a type.
// The exponent of 2 is rounded, which for a large one is much of the result; where
// elements are float32, the difference was rounded as well, and the tolerance has
// room for one of the two: so the rest is found and multiplied in.
func expRow(t op.DType, d ptx.F32) ptx.F32 {
	if t != op.F32 {
		return d.Fma(ptx.F(log2e), d.Mul(ptx.F(log2eLow))).Ex2Approx()
	}
	d = d.MaxNaN(ptx.F(-256)) // so that -Inf has a rest
	p := d.Mul(ptx.F(log2e))
	rest := d.Fma(ptx.F(log2eLow), d.Fma(ptx.F(log2e), p.Neg()))
	e := p.Ex2Approx()
	return e.Fma(rest.Mul(ptx.F(math.Ln2)), e)
}
