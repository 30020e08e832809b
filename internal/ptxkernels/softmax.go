package ptxkernels

import (
	"math"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// softmax computes softmax and log_softmax. A row that contains NaN or +Inf, or only -Inf, becomes
// NaN: the greatest element or the sum is NaN then.
func (s rowSpec) softmax(k *ptx.Kernel, fin *epilogue) {
	x, y := ptx.GlobalParam[ptx.B32](k, "x"), fin.sink(k)
	rows, cols := ptx.Param[ptx.U32](k, "rows"), ptx.Param[ptx.U32](k, "cols")
	t := s.newRowGroup(k, rows, cols)
	t.run(x, y, float32(math.Inf(-1)), func(resident []*residentRow) { t.softmax(resident, y) })
}

// softmax computes the resident rows of a group.
func (t *rowGroup) softmax(resident []*residentRow, y *sink) {
	s, ninf := t.s, float32(math.Inf(-1))
	largest := make([]ptx.F32, len(resident))
	sum := make([]ptx.F32, len(resident))
	scale := make([]ptx.F32, len(resident)) // factors of the kept exponentials
	if s.Parts != secondOfParts {
		largest, sum = t.exponentials(resident)
	}
	if s.Parts != wholeRows {
		all, ok := t.exchange([]ptx.B32{largest[0].Bits(), sum[0].Bits()}, mergeExponentials, 2)
		if !ok {
			return
		}
		// The kept exponentials are relative to the greatest element of the part.
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

// reciprocal returns 1/sum. The sum of the exponentials of a row is at least 1, or NaN, so the
// error of the approximate instruction is at most 1 ulp. The exact reciprocal has a branch.
func reciprocal(sum ptx.F32) ptx.F32 { return sum.RcpApproxFlush() }

// exponentials returns the greatest resident element of each row, and the sum of the exponentials
// of the differences from it. For softmax it keeps the exponentials in place of the elements.
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

// max returns the greatest element of the row that the thread holds.
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

// partMax returns the number to subtract from the elements of a part whose greatest element is
// largest. For a part of only -Inf it is 0, so that the sum is 0 and not NaN: other parts of the
// row may have finite elements.
func partMax(largest ptx.F32) ptx.F32 {
	return ptx.Select(largest.Eq(ptx.F(float32(math.Inf(-1)))), ptx.F(0), largest)
}

// mergeExponentials merges the greatest elements and the sums of two parts.
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

// log2e is the logarithm of e to base 2, and log2eLow its rounding error in float32.
const (
	log2e    = float32(math.Log2E)
	log2eLow = float32(math.Log2E - float64(log2e))
)

// expRow returns e**d, where d is a difference of elements of type t, at most 0 or NaN. It computes
// 2**(d*log2e). Rounding a large exponent causes a large relative error of the result. For float32
// elements, the difference d was rounded too, and the tolerance allows only one of the two errors;
// so expRow computes the rounding error of the exponent and corrects the result. An ex2 that
// flushes subnormal results is one instruction, otherwise ex2 takes four. The flush is harmless for
// float16, where such results round to 0, and for bfloat16, where the square root of the result is
// computed first and is not subnormal.
func expRow(t op.DType, d ptx.F32) ptx.F32 {
	switch t {
	case op.F16:
		return d.Fma(ptx.F(log2e), d.Mul(ptx.F(log2eLow))).Ex2ApproxFlush()
	case op.BF16:
		root := d.Fma(ptx.F(log2e/2), d.Mul(ptx.F(log2eLow/2))).Ex2ApproxFlush()
		return root.Mul(root)
	}
	d = d.MaxNaN(ptx.F(-256)) // so that the rest of -Inf is not NaN
	p := d.Mul(ptx.F(log2e))
	rest := d.Fma(ptx.F(log2eLow), d.Fma(ptx.F(log2e), p.Neg()))
	e := p.Ex2Approx()
	return e.Fma(rest.Mul(ptx.F(math.Ln2)), e)
}

// expTerm is expRow for a term of a sum of 16-bit elements. Its error for large |d| is less than
// the error of the greatest term, which is 1.
func expTerm(d ptx.F32) ptx.F32 { return d.Mul(ptx.F(log2e)).Ex2ApproxFlush() }
