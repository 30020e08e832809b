package ptxkernels

import (
	"math"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// softmax computes softmax and log_softmax. NaN, +Inf, and -Inf where there is
// nothing else, give NaN as greatest or in the sum, and so in the whole row.
func (s rowSpec) softmax(k *ptx.Kernel, fin *epilogue) {
	x, y := ptx.GlobalParam[ptx.B32](k, "x"), fin.sink(k)
	rows, cols := ptx.Param[ptx.U32](k, "rows"), ptx.Param[ptx.U32](k, "cols")
	t := s.newRowGroup(k, rows, cols)
	t.run(x, y, float32(math.Inf(-1)), func(resident []*residentRow) { t.softmax(resident, y) })
}

// softmax is what a team does with rows that it holds.
func (t *rowGroup) softmax(resident []*residentRow, y *sink) {
	s, ninf := t.s, float32(math.Inf(-1))
	largest := make([]ptx.F32, len(resident))
	sum := make([]ptx.F32, len(resident))
	scale := make([]ptx.F32, len(resident)) // of what is kept
	if s.Parts != secondOfParts {
		largest, sum = t.exponentials(resident)
	}
	if s.Parts != wholeRows {
		all, ok := t.exchange([]ptx.B32{largest[0].Bits(), sum[0].Bits()}, mergeExponentials, 2)
		if !ok {
			return
		}
		// What is kept was divided by the greatest of the part.
		scale[0] = expRow(op.F32, partMax(largest[0]).Sub(all[0].Float())).Div(all[1].Float())
		largest[0], sum[0] = all[0].Float(), all[1].Float()
	} else {
		for u := range resident {
			scale[u] = reciprocal(sum[u])
		}
	}
	for u, r := range resident {
		log := sum[u].Lg2Approx().Mul(ptx.F(math.Ln2))
		whole := reciprocal(sum[u])
		r.each(ninf, func(p int, v []ptx.F32) []ptx.F32 {
			w := make([]ptx.F32, len(v))
			for i := range v {
				switch {
				case s.Op == "log_softmax":
					w[i] = v[i].Sub(largest[u]).Sub(log)
				case r.keeps(p) && s.Parts != secondOfParts:
					w[i] = v[i].Mul(scale[u])
				default:
					w[i] = expRow(s.Type, v[i].Sub(largest[u])).Mul(whole)
				}
			}
			r.store(y, p, w)
			return nil
		})
	}
}

// reciprocal returns 1/sum of the exponentials of a row: 1 or more, or NaN, of
// which the fast instruction is within an ulp. The exact one has a branch.
func reciprocal(sum ptx.F32) ptx.F32 { return sum.RcpApproxFlush() }

// exponentials returns the greatest elements of what is held of rows and the sums
// of the exponentials of the differences from them, which softmax keeps.
func (t *rowGroup) exponentials(resident []*residentRow) (largest, sum []ptx.F32) {
	s, ninf := t.s, float32(math.Inf(-1))
	largest, sum = make([]ptx.F32, len(resident)), make([]ptx.F32, len(resident))
	for u, r := range resident {
		largest[u] = r.max()
	}
	largest = t.reduce(largest, ptx.F32.MaxNaN)
	for u, r := range resident {
		top := largest[u]
		if s.Parts != wholeRows {
			top = partMax(top)
		}
		r.each(ninf, func(p int, v []ptx.F32) []ptx.F32 {
			e := make([]ptx.F32, len(v))
			kept := s.Op == "softmax" && r.keeps(p)
			for i := range v {
				d := v[i].Sub(top)
				if kept || s.Type == op.F32 {
					e[i] = expRow(s.Type, d)
				} else {
					e[i] = expTerm(d)
				}
			}
			sum[u] = sum[u].Add(foldRow(e, ptx.F32.Add))
			if kept {
				return e
			}
			return nil
		})
	}
	return largest, t.reduce(sum, ptx.F32.Add)
}

// max returns the greatest element of what the thread holds.
func (r *residentRow) max() ptx.F32 {
	ninf := float32(math.Inf(-1))
	largest := ptx.F(ninf)
	var packed []ptx.B32
	for p, c := range r.parts {
		if c.packed != nil {
			packed = append(packed, c.packed...)
			continue
		}
		r.one(p, ninf, func(v []ptx.F32) []ptx.F32 {
			largest = largest.MaxNaN(foldRow(v, ptx.F32.MaxNaN))
			return nil
		})
	}
	if packed == nil {
		return largest
	}
	two := foldRow(packed, func(a, b ptx.B32) ptx.B32 {
		if r.s.Type == op.F16 {
			return a.F16x2().MaxNaN(b.F16x2()).B32()
		}
		return a.BF16x2().MaxNaN(b.BF16x2()).B32()
	})
	return largest.MaxNaN(foldRow(unpackRow(r.s.Type, []ptx.B32{two}), ptx.F32.MaxNaN))
}

// partMax returns what is subtracted of a part whose greatest element is most. A
// part of -Inf alone has a sum of 0: it is not said that the row is such.
func partMax(largest ptx.F32) ptx.F32 {
	return ptx.Select(largest.Eq(ptx.F(float32(math.Inf(-1)))), ptx.F(0), largest)
}

// mergeExponentials combines greatest elements and sums of two parts.
func mergeExponentials(a, b []ptx.B32) []ptx.B32 {
	largest := a[0].Float().MaxNaN(b[0].Float())
	top := partMax(largest)
	sum := func(x []ptx.B32) ptx.F32 { return x[1].Float().Mul(expRow(op.F32, x[0].Float().Sub(top))) }
	return []ptx.B32{largest.Bits(), sum(a).Add(sum(b)).Bits()}
}

// foldRow combines elements pairwise.
func foldRow[T any](v []T, f func(a, b T) T) T {
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
// room for one of the two: so the rest is found and multiplied in. What flushes
// subnormal results is one instruction, without it is four: of float16 they are 0
// anyway, of bfloat16 the root of the result is none.
func expRow(t op.DType, d ptx.F32) ptx.F32 {
	switch t {
	case op.F16:
		return d.Fma(ptx.F(log2e), d.Mul(ptx.F(log2eLow))).Ex2ApproxFlush()
	case op.BF16:
		root := d.Fma(ptx.F(log2e/2), d.Mul(ptx.F(log2eLow/2))).Ex2ApproxFlush()
		return root.Mul(root)
	}
	d = d.MaxNaN(ptx.F(-256)) // so that -Inf has a rest
	p := d.Mul(ptx.F(log2e))
	rest := d.Fma(ptx.F(log2eLow), d.Fma(ptx.F(log2e), p.Neg()))
	e := p.Ex2Approx()
	return e.Fma(rest.Mul(ptx.F(math.Ln2)), e)
}

// expTerm is expRow for a term of a sum of elements of 16 bits: what it is off by where
// d is large is less than what the greatest term, 1, is off by.
func expTerm(d ptx.F32) ptx.F32 { return d.Mul(ptx.F(log2e)).Ex2ApproxFlush() }
