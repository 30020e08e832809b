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

// reduction has the properties in which reductions differ.
type reduction struct {
	words      int                                            // words of the state
	neutral    float32                                        // the element that does not change the result
	combine    func(x, y ptx.F32) ptx.F32                     // the state of the elements of two states of one word
	magnitudes bool                                           // the elements are replaced by their magnitudes
	squares    bool                                           // the elements are multiplied by the second operand, or by themselves
	places     bool                                           // the result is the index of an element
	negated    bool                                           // with places: the state has negated elements
	result     func(v []ptx.B32, count, free ptx.F32) ptx.F32 // the result of a state; nil: its first word
}

var reductions = map[string]reduction{
	"sum":       {words: 1, combine: ptx.F32.Add},
	"mean":      {words: 1, combine: ptx.F32.Add, result: func(v []ptx.B32, count, _ ptx.F32) ptx.F32 { return v[0].Float().Div(count) }},
	"max":       {words: 1, neutral: lowest, combine: ptx.F32.MaxNaN},
	"min":       {words: 1, neutral: -lowest, combine: ptx.F32.MinNaN},
	"norm_l1":   {words: 1, combine: ptx.F32.Add, magnitudes: true},
	"norm_linf": {words: 1, combine: ptx.F32.MaxNaN, magnitudes: true},
	"norm_l2":   {words: 1, combine: ptx.F32.Add, squares: true, result: func(v []ptx.B32, _, _ ptx.F32) ptx.F32 { return v[0].Float().Sqrt() }},
	"dot":       {words: 1, combine: ptx.F32.Add, squares: true},
	"argmax":    {words: 2, neutral: lowest, places: true},
	"argmin":    {words: 2, neutral: -lowest, places: true, negated: true},
	"var":       {words: 3, result: func(v []ptx.B32, _, free ptx.F32) ptx.F32 { return v[2].Float().Div(free) }},
}

var lowest = float32(math.Inf(-1))

func (s *reduceSpec) of() reduction { return reductions[s.Op] }

// words returns the number of words in the state.
func (s *reduceSpec) words() int { return s.of().words }

// nowhereYet is the index in the state of no elements.
const nowhereYet = math.MaxInt32

// newState returns the state of no elements.
func (s *reduceSpec) newState(k *ptx.Kernel) *reduceState {
	r := &reduceState{}
	o := s.of()
	start := o.neutral
	if o.negated {
		start = -start
	}
	for i := range o.words {
		v := ptx.B(math.Float32bits(start))
		if o.places && i == 1 {
			v = ptx.B(nowhereYet)
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

// merge returns the state of the elements of both.
func (s *reduceSpec) merge(a, b []ptx.B32) []ptx.B32 {
	x, y := a[0].Float(), b[0].Float()
	switch o := s.of(); {
	case o.words == 3:
		return mergeMoments(a, b)
	case o.places:
		// Choose the greater element; if they are equal, the earlier one. NaN is the greatest.
		same := x.Eq(y).Or(x.IsNaN(x).And(y.IsNaN(y)))
		better := y.Gt(x).Or(y.IsNaN(y).And(x.IsNaN(x).Not())).Or(same.And(b[1].U32().Lt(a[1].U32())))
		return []ptx.B32{ptx.Select(better, b[0], a[0]), ptx.Select(better, b[1], a[1])}
	default:
		return []ptx.B32{o.combine(x, y).Bits()}
	}
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
	o := s.of()
	switch {
	case o.words == 3:
		s.addMoments(acc, operands[0], in)
		return
	case o.places:
		s.addPlaces(acc, operands[0], at, stride)
		return
	}
	all := make([][]ptx.F32, len(operands)) // the elements of all vectors
	for i := range all {
		for b := range in {
			all[i] = append(all[i], operands[i][b]...)
		}
	}
	x := all[0]
	if o.magnitudes {
		for i := range x {
			x[i] = x[i].Abs()
		}
	}
	word := acc.words[0]
	v := word.Get().Float()
	if o.squares {
		v = o.combine(v, dotRow(x, all[len(all)-1]))
	} else {
		v = o.combine(v, foldRow(x, o.combine))
	}
	word.Set(v.Bits())
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
		if s.of().negated {
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
			if s.of().negated {
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
	if f := s.of().result; f != nil {
		return f(v, count, free)
	}
	return v[0].Float()
}
