package ptxkernels

import (
	"fmt"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// weight declares operand i of the kernel. It returns a function that loads the weights of part p
// of a row, or nil if the operand is absent.
func (s *rowSpec) weight(k *ptx.Kernel, i int) func(r *residentRow, p int) []ptx.F32 {
	if s.Weights>>i&1 == 0 {
		return nil
	}
	w := ptx.GlobalParam[ptx.B32](k, fmt.Sprintf("w%d", i))
	return func(r *residentRow, p int) []ptx.F32 {
		switch {
		case s.Width > 1 && (s.AlignedWeights || !s.Misaligned):
			return unpackRow(s.Type, r.aligned(w, p))
		case s.Width > 1 && p < s.Whole:
			return unpackRow(s.Type, r.shiftedWeights(w, p))
		}
		v := make([]ptx.F32, s.Width)
		var load func(offset int) ptx.F32
		for e := range v {
			x, valid, at := ptx.NewVar(k, ptx.F(0)), r.valid(p, e), e
			switch {
			case p == 0: // the vector may begin before the row
				load, at = rowElement(w, s.Type, ptx.Select(valid, r.column(p).Add(ptx.N(e)), ptx.U(0)), ptx.ReadOnly), 0
			case e == 0:
				load = rowElement(w, s.Type, r.column(p), ptx.ReadOnly)
			}
			k.When(valid, func() { x.Set(load(at)) })
			v[e] = x.Get()
		}
		return v
	}
}

// choosesWeights reports whether the kernel has separate code for each alignment of a row. Then the
// selection of weights is known at compile time and costs nothing. 16-bit elements would have too
// many alignments.
func (s *rowSpec) choosesWeights() bool {
	return s.Weights != 0 && s.Misaligned && !s.AlignedWeights && s.Width > 1 && s.Type == op.F32
}

// eachShift runs f for the row. If s.choosesWeights, it runs f once for each alignment, with r.skip
// as a constant.
func (r *residentRow) eachShift(f func(r *residentRow)) {
	s := r.s
	if !s.choosesWeights() {
		f(r)
		return
	}
	for n := range s.Width {
		r.k.If(r.skip.Eq(ptx.N(n)), func() {
			q := *r
			q.skip, q.parts = ptx.N(n), append([]rowPart(nil), r.parts...)
			f(&q)
		})
	}
}

// aligned loads the words of weights that have the alignment of the row.
func (r *residentRow) aligned(w ptx.Global[ptx.B32], p int) []ptx.B32 {
	words := r.s.words()
	at := r.place
	if r.s.AlignedWeights {
		at = at.Add(r.skip.Mul(r.layStride()))
	}
	from := w.At(at.Mul(ptx.N(words))).Offset(words * p * r.s.Lanes).Hint(ptx.ReadOnly)
	if p < r.s.Whole { // the weights exist even if the row does not
		return loadWords(from, words)
	}
	vars := make([]ptx.Var[ptx.B32], words)
	for j := range vars {
		vars[j] = ptx.NewVar(r.k, ptx.B(0))
	}
	r.k.When(r.in(p), func() {
		for j, v := range loadWords(from, words) {
			vars[j].Set(v)
		}
	})
	raw := make([]ptx.B32, words)
	for j := range vars {
		raw[j] = vars[j].Get()
	}
	return raw
}

// shiftedWeights loads the words of weights for a whole part of a misaligned row. The weights are
// aligned, so the weights of the part are in two vectors, from which they are selected. The shift
// is the same in the whole row.
func (r *residentRow) shiftedWeights(w ptx.Global[ptx.B32], p int) []ptx.B32 {
	if r.s.words() == 1 {
		return r.shiftedWeightPair(w, p)
	}
	// The weights exist even if the row does not.
	mine := w.At(r.place.Mul(ptx.U(4))).Offset(4 * p * r.s.Lanes).Hint(ptx.ReadOnly)
	before := mine.Offset(-4)
	if p == 0 { // no element uses the vector before vector 0: load vector 0 instead
		before = w.At(r.place.Max(ptx.U(1)).Sub(ptx.U(1)).Mul(ptx.U(4))).Hint(ptx.ReadOnly)
	}
	var c [9]ptx.B32
	for j, v := range before.Load4() {
		c[j] = v
	}
	for j, v := range mine.Load4() {
		c[4+j] = v
	}
	// Select words from word 4-skip on. For 16-bit elements, select from word 4-skip/2 on, and if
	// skip is odd, half a word earlier.
	words := r.skip
	if r.s.Type != op.F32 {
		words = r.skip.Add(ptx.U(1)).Div(ptx.U(2))
	}
	from := ptx.U(4).Sub(words) // 0 to 4
	two, one, four := from.And(ptx.U(2)).Ne(ptx.U(0)), from.And(ptx.U(1)).Ne(ptx.U(0)), from.Eq(ptx.U(4))
	var d [7]ptx.B32
	for j := range d {
		d[j] = ptx.Select(two, c[j+2], c[j])
	}
	v := make([]ptx.B32, 5)
	for j := range v {
		v[j] = ptx.Select(one, d[j+1], d[j])
		if j < 4 {
			v[j] = ptx.Select(four, c[4+j], v[j])
		}
	}
	if r.s.Type == op.F32 {
		return v[:4]
	}
	odd := r.skip.And(ptx.U(1)).Ne(ptx.U(0))
	for j := range 4 {
		v[j] = ptx.Select(odd, v[j].FunnelRight(v[j+1], ptx.U(16)), v[j])
	}
	return v[:4]
}

// shiftedWeightPair is shiftedWeights for vectors of two 16-bit elements. A row begins with the
// first or the second element of a vector.
func (r *residentRow) shiftedWeightPair(w ptx.Global[ptx.B32], p int) []ptx.B32 {
	mine := w.At(r.place).Offset(p * r.s.Lanes).Hint(ptx.ReadOnly)
	before := mine.Offset(-1)
	if p == 0 { // no element uses the vector before vector 0: load vector 0 instead
		before = w.At(r.place.Max(ptx.U(1)).Sub(ptx.U(1))).Hint(ptx.ReadOnly)
	}
	second := mine.Load()
	return []ptx.B32{ptx.Select(r.skip.Ne(ptx.U(0)), before.Load().FunnelRight(second, ptx.U(16)), second)}
}
