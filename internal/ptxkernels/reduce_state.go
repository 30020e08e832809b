package ptxkernels

import (
	"math"

	"github.com/rayo-go/rayo/ptx"
)

// The state of a reduction is the partial of some elements. It is a number (a sum or an extreme);
// or the greatest element and its index; or the number of elements, their mean and the sum of their
// squared distances from the mean.

// reduceState is the state of a thread.
type reduceState struct{ words []ptx.Var[ptx.B32] }

// places reports whether the result is the index of an element.
func (s *reduceSpec) places() bool { return s.Op == "argmin" || s.Op == "argmax" }

// words returns the number of words in the state.
func (s *reduceSpec) words() int {
	switch {
	case s.Op == "var":
		return 3
	case s.places():
		return 2
	}
	return 1
}

// nowhereYet is the index in the state of no elements.
const nowhereYet = math.MaxInt32

// newState returns the state of no elements.
func (s *reduceSpec) newState(k *ptx.Kernel) *reduceState {
	r := &reduceState{}
	for i := range s.words() {
		v := ptx.B(0)
		switch {
		case s.places() && i == 1:
			v = ptx.B(nowhereYet)
		case s.Op != "var":
			v = ptx.B(math.Float32bits(s.start()))
		}
		r.words = append(r.words, ptx.NewVar(k, v))
	}
	return r
}

func (r *reduceState) get() []ptx.B32 {
	var v []ptx.B32
	for _, w := range r.words {
		v = append(v, w.Get())
	}
	return v
}

func (r *reduceState) set(v []ptx.B32) {
	for i, w := range r.words {
		w.Set(v[i])
	}
}

// neutral returns the element that does not change the result.
func (s *reduceSpec) neutral() float32 {
	switch s.Op {
	case "max", "argmax":
		return float32(math.Inf(-1))
	case "min", "argmin":
		return float32(math.Inf(1))
	}
	return 0
}

// start returns the state of no elements; for argmin, of the negated elements.
func (s *reduceSpec) start() float32 {
	if s.Op == "argmin" {
		return -s.neutral()
	}
	return s.neutral()
}

// merge returns the state of the elements of both.
func (s *reduceSpec) merge(a, b []ptx.B32) []ptx.B32 {
	x, y := a[0].Float(), b[0].Float()
	switch {
	case s.Op == "var":
		return mergeMoments(a, b)
	case s.places():
		// Choose the greater element; if they are equal, the earlier one. NaN is the greatest.
		same := x.Eq(y).Or(x.IsNaN(x).And(y.IsNaN(y)))
		better := y.Gt(x).Or(y.IsNaN(y).And(x.IsNaN(x).Not())).Or(same.And(b[1].U32().Lt(a[1].U32())))
		return []ptx.B32{ptx.Select(better, b[0], a[0]), ptx.Select(better, b[1], a[1])}
	}
	return []ptx.B32{s.combine(x, y).Bits()}
}

// combine is merge for states of one number.
func (s *reduceSpec) combine(x, y ptx.F32) ptx.F32 {
	switch s.Op {
	case "max", "norm_linf":
		return x.MaxNaN(y)
	case "min":
		return x.MinNaN(y)
	}
	return x.Add(y)
}

// mergeMoments is merge for counts, means and sums of squares. The sum of squares about the common
// mean is the two sums about their own means, plus a term for the distance of the means (Chan,
// Golub and LeVeque).
func mergeMoments(a, b []ptx.B32) []ptx.B32 {
	na, nb := a[0].Float(), b[0].Float()
	n := na.Add(nb)
	share := nb.Mul(n.RcpApprox())
	share = ptx.Select(n.Eq(ptx.F(0)), ptx.F(0), share)
	d := b[1].Float().Sub(a[1].Float())
	mean := d.Fma(share, a[1].Float())
	squares := d.Mul(d).Fma(na.Mul(share), a[2].Float().Add(b[2].Float()))
	return []ptx.B32{n.Bits(), mean.Bits(), squares.Bits()}
}

// add adds vectors of elements of each operand to acc. A vector is skipped unless its predicate in
// in holds; the first vector always exists. The index of the first vector is at, and the next
// indices are stride apart.
func (s *reduceSpec) add(acc *reduceState, operands [][][]ptx.F32, in []ptx.Pred, at ptx.U32, stride int) {
	var x, y []ptx.F32 // the elements of all vectors
	for b := range in {
		x = append(x, operands[0][b]...)
		if len(operands) > 1 {
			y = append(y, operands[1][b]...)
		}
	}
	word := acc.words[0]
	switch s.Op {
	case "var":
		s.addMoments(acc, operands[0], in)
	case "argmin", "argmax":
		s.addPlaces(acc, operands[0], at, stride)
	case "dot":
		word.Set(word.Get().Float().Add(dotRow(x, y)).Bits())
	case "norm_l2":
		word.Set(word.Get().Float().Add(dotRow(x, x)).Bits())
	default:
		if s.Op == "norm_l1" || s.Op == "norm_linf" {
			for i := range x {
				x[i] = x[i].Abs()
			}
		}
		word.Set(s.combine(word.Get().Float(), foldRow(x, s.combine)).Bits())
	}
}

// dotRow returns the sum of the products of elements.
func dotRow(x, y []ptx.F32) ptx.F32 {
	if len(x) == 1 {
		return x[0].Mul(y[0])
	}
	p := make([]ptx.F32, len(x)/2)
	for i := range p {
		p[i] = x[i].Fma(y[i], x[i+len(p)].Mul(y[i+len(p)]))
	}
	if last := 2 * len(p); last < len(x) {
		p[0] = x[last].Fma(y[last], p[0])
	}
	return foldRow(p, ptx.F32.Add)
}

// addMoments is add for counts, means and sums of squares. The first vector always exists.
func (s *reduceSpec) addMoments(acc *reduceState, v [][]ptx.F32, in []ptx.Pred) {
	width := float32(len(v[0]))
	count, sum := ptx.F(width), foldRow(v[0], ptx.F32.Add)
	for b := 1; b < len(in); b++ {
		count = count.Add(ptx.Select(in[b], ptx.F(width), ptx.F(0)))
		sum = sum.Add(foldRow(v[b], ptx.F32.Add)) // missing elements are 0
	}
	share := ptx.F(1 / width)
	if len(in) > 1 {
		share = count.RcpApprox()
	}
	mean := sum.Mul(share)
	var squares ptx.F32
	for b := range in {
		d := make([]ptx.F32, len(v[b]))
		for e := range d {
			d[e] = v[b][e].Sub(mean)
			d[e] = d[e].Mul(d[e])
		}
		squares = squares.Add(ptx.Select(in[b], foldRow(d, ptx.F32.Add), ptx.F(0)))
	}
	acc.set(mergeMoments(acc.get(), []ptx.B32{count.Bits(), mean.Bits(), squares.Bits()}))
}

// addPlaces is add for argmin and argmax. It stores only the index of the vector that contains the
// greatest element.
func (s *reduceSpec) addPlaces(acc *reduceState, v [][]ptx.F32, at ptx.U32, stride int) {
	best, place := acc.words[0].Get(), acc.words[1].Get()
	for b := range v {
		if s.Op == "argmin" {
			for e := range v[b] {
				v[b][e] = v[b][e].Neg()
			}
		}
		// The addition maps -0 to 0 and all NaN to the same bits, so equal elements have equal bits.
		largest := foldRow(v[b], ptx.F32.MaxNaN).Add(ptx.F(0))
		next := best.Float().MaxNaN(largest).Bits()
		place = ptx.Select(next.U32().Eq(best.U32()), place, at.Add(ptx.N(b*stride)).B32())
		best = next
	}
	acc.set([]ptx.B32{best, place})
}

// place returns the index in a row of the greatest element of a state. The index in the state is
// that of the vector that contains it, or of the element itself.
func (s *reduceSpec) place(k *ptx.Kernel, v []ptx.B32, x ptx.Global[ptx.B32], row, cols ptx.U32) ptx.U32 {
	// If no element is greater than -Inf, the first one is the maximum.
	from := v[1].U32()
	from = ptx.Select(from.Eq(ptx.U(nowhereYet)), ptx.U(0), from)
	best, place := v[0].Float(), ptx.NewVar(k, from)
	found := ptx.NewVar(k, ptx.U(0))
	start := row.Mul(cols)
	for e := range s.Width {
		j := from.Add(ptx.N(e))
		k.If(j.Lt(cols).And(found.Get().Eq(ptx.U(0))), func() {
			y := rowElement(x, s.Type, start.Add(j), ptx.Cached)(0)
			if s.Op == "argmin" {
				y = y.Neg()
			}
			k.When(y.Eq(best).Or(y.IsNaN(y)), func() {
				place.Set(j)
				found.Set(ptx.U(1))
			})
		})
	}
	return place.Get()
}

// result returns the result of a state. count is the number of elements, and free the divisor of
// the variance.
func (s *reduceSpec) result(v []ptx.B32, count, free ptx.F32) ptx.F32 {
	switch s.Op {
	case "mean":
		return v[0].Float().Div(count)
	case "norm_l2":
		return v[0].Float().Sqrt()
	case "var":
		return v[2].Float().Div(free)
	}
	return v[0].Float()
}
