//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
)

// softmaxes computes softmax and log_softmax.
var softmaxes = maker[rowParams, rowSpec]{name: "softmax", build: func(b *kernel.Builder, p *rowParams, s rowSpec, e *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	x := s.input(b, "x")
	ps := s.partials(b, p)
	put := s.output(b, e)
	ps.lookBack(t, p, &s, x, func() { softmaxed(b, t, p, &s, x, ps, put) })
}}

// softmaxed computes the softmax, or its logarithm, of the row of a lane group or of a part of a
// row.
func softmaxed(b *kernel.Builder, t *laneGroup, p *rowParams, s *rowSpec, x raggedInput, ps *partials, put func(i kernel.U32, vs []kernel.F32)) {
	r := newRow(b, t, p, s, x)
	var key kernel.U32
	var sum kernel.F32
	if s.Split {
		f := ps.ofRow(r)
		key, sum = f.key, f.numbers[0]
	} else {
		key, sum = r.exponentials(s.Op == "softmax")
	}
	greatest := numberOf(key)
	// If the greatest element is NaN or +Inf, or if all elements are -Inf, the result is NaN in all
	// elements. The factor or summand of all elements is NaN in this case.
	undefined := key.Ge(kernel.U(infKey)).Or(key.Le(kernel.U(ninfKey)))
	var f func(k int, x kernel.F32) kernel.F32
	if s.Op == "log_softmax" {
		log := kernel.Select(undefined, nan(), sum.Log())
		f = func(_ int, x kernel.F32) kernel.F32 { return x.Sub(greatest).Sub(log) }
	} else {
		scale := kernel.Select(undefined, nan(), sum.Recip())
		f = func(k int, x kernel.F32) kernel.F32 {
			if s.Split || k < 0 { // otherwise x is already the exponential
				x = x.Sub(greatest).Exp()
			}
			return x.Mul(scale)
		}
	}
	r.write(put, func(k int, _ kernel.U32, xs []kernel.F32) []kernel.F32 {
		ys := make([]kernel.F32, len(xs))
		for i, x := range xs {
			ys[i] = f(k, x)
		}
		return ys
	})
}

// addExponentials returns the greatest key of the lane group and the sum of e**(x-greatest),
// from the keys and sums of lanes.
func (t *laneGroup) addExponentials(key kernel.U32, sum kernel.F32) (kernel.U32, kernel.F32) {
	all := t.merge([]kernel.U32{key, sum.AsU32()}, func(g group, words []kernel.U32) []kernel.U32 {
		k := g.max(words[0])
		// A lane that has only -Inf adds nothing to the sum of other lanes.
		greatest := numberOf(k.Max(kernel.U(lowestKey)))
		sum := g.sum(words[1].AsF32().Mul(numberOf(words[0]).Sub(greatest).Exp()))
		return []kernel.U32{k, sum.AsU32()}
	})
	return all[0], all[1].AsF32()
}

// lowestKey is the key of the least finite number.
const lowestKey = ninfKey + 1

const signBit = 1 << 31

// exponentials returns the key of the greatest element of the row and the sum of e**(x-greatest),
// in each lane of the lane group. If keep is set and the row is resident, the exponentials replace
// the resident elements.
func (r *row) exponentials(keep bool) (k kernel.U32, sum kernel.F32) {
	t, b := r.t, r.t.b
	if r.Each > 0 && r.isPart() {
		k = greatestKey(r.resident)
		return t.addExponentials(k, tree(r.only(exponentialsOf(r.resident, numberOf(k.Max(kernel.U(lowestKey)))))))
	}
	if r.Each > 0 && r.rest == nil {
		k = t.max(greatestKey(r.resident))
		greatest := numberOf(k.Max(kernel.U(lowestKey))) // see below
		es := exponentialsOf(r.resident, greatest)
		if sum = t.sum(tree(r.only(es))); keep {
			r.resident = es
		}
		return k, sum
	}
	// best is the running maximum: a greater element scales the sum down. It begins with a finite
	// number instead of -Inf, so that the difference is defined.
	best := kernel.NewVar(b, "best", kernel.U(lowestKey))
	total := kernel.NewVar(b, "total", kernel.F(0))
	all := &r.stridedRange
	if r.rest != nil {
		all = r.rest
	}
	all.each(r.unit, func(at []kernel.U32, _ []kernel.Bool) {
		xs := r.units.read(at)
		now := best.Get().Max(greatestKey(xs))
		greatest := numberOf(now)
		down := numberOf(best.Get()).Sub(greatest).Exp()
		total.Set(total.Get().Mul(down).Add(tree(exponentialsOf(xs, greatest))))
		best.Set(now)
	})
	limit := best.Get()
	if r.rest != nil {
		limit = limit.Max(greatestKey(r.resident))
	}
	k = t.max(limit)
	greatest := numberOf(k)
	mine := total.Get().Mul(numberOf(best.Get()).Sub(greatest).Exp())
	if r.rest != nil {
		es := exponentialsOf(r.resident, greatest)
		mine = mine.Add(tree(r.only(es)))
		if keep {
			r.resident = es
		}
	}
	sum = t.sum(mine)
	// The exponential of -Inf is 0. If the sum is 0, all elements are -Inf, and so is the maximum.
	return kernel.Select(sum.Eq(kernel.F(0)), kernel.U(ninfKey), k), sum
}

// exponentialsOf returns e**(x-greatest) of each x.
func exponentialsOf(xs []kernel.F32, greatest kernel.F32) []kernel.F32 {
	es := make([]kernel.F32, len(xs))
	for i, x := range xs {
		es[i] = x.Sub(greatest).Exp()
	}
	return es
}

// greatestKey returns the greatest key of some numbers. Of non-negative numbers the greatest has
// the greatest bits, and of negative numbers the least. The bits of a negative NaN exceed all
// others.
func greatestKey(xs []kernel.F32) kernel.U32 {
	us := make([]kernel.U32, len(xs))
	for i, x := range xs {
		us[i] = x.AsU32()
	}
	signed := chain(len(us), kernel.I32.Max, func(i int) kernel.I32 { return us[i].I32() }).U32()
	minimum := chain(len(us), kernel.U32.Min, func(i int) kernel.U32 { return us[i] })
	limit := chain(len(us), kernel.U32.Max, func(i int) kernel.U32 { return us[i] })
	negative := signed.Ge(kernel.U(signBit))
	k := kernel.Select(negative, minimum.Not(), signed.Or(kernel.U(signBit)))
	no := limit.Gt(kernel.U(signBit | infBits)).Or(signed.Gt(kernel.U(infBits)).And(negative.Not()))
	return kernel.Select(no, kernel.U(nanKey), k)
}
