//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
)

var layerNorms = maker[rowParams, rowSpec]{name: "layer_norm", build: func(b *kernel.Builder, p *rowParams, s rowSpec, e *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	x := s.input(b, "x")
	ws := s.weights(b, p, "gamma", "beta")
	ps := s.partials(b, p)
	if s.Split {
		b.PreferRegisters() // for a part that stays in registers until the combined partials are known
	}
	put := s.output(b, e)
	ps.lookBack(t, p, &s, x, func() { layerNormed(b, t, p, &s, x, ws, ps, put) })
}}

// layerNormed computes the layer norm of the row of a lane group, or of a part of a row.
func layerNormed(b *kernel.Builder, t *laneGroup, p *rowParams, s *rowSpec, x raggedInput, ws []*raggedInput, ps *partials, put func(i kernel.U32, vs []kernel.F32)) {
	r, w := weighted(b, t, p, s, x, ws)
	count := b.F32(&p.Count)
	var mean, squares kernel.F32
	switch {
	case s.Rest:
		mean, squares = r.moments(count)
	case s.InRegisters:
		mean = t.sum(tree(r.only(r.resident))).Div(count)
		for i, x := range r.resident {
			r.resident[i] = x.Sub(mean)
		}
		ds := r.only(r.resident)
		squares = t.sum(products(ds, ds))
	case s.Split:
		f := ps.ofRow(r)
		mean, squares = f.numbers[0], f.numbers[1]
	default:
		mean, squares = r.readMoments(b.U32(&p.Cols), count)
	}
	scale := squares.Div(count).Add(b.F32(&p.Eps)).Sqrt().Recip()
	r.write(put, func(k int, j kernel.U32, xs []kernel.F32) []kernel.F32 {
		return w.affine(xs, k, j, func(x kernel.F32) kernel.F32 {
			if !s.InRegisters || s.Rest {
				x = x.Sub(mean)
			}
			return x.Mul(scale)
		})
	})
}

// moments returns the mean of a row of count elements, or of a part of a row, and the sum of the
// squared distances from the mean. All or some of the elements are register-resident. A lane
// computes distances from the mean of its own resident elements, so that it need not wait for other
// lanes before all elements are read.
func (r *row) moments(count kernel.F32) (mean, squares kernel.F32) {
	unit := kernel.U(uint32(r.unit))
	share, held, taken := count.Recip(), r.resident[:len(r.at)*r.unit], kernel.U(0)
	for _, is := range r.there[:len(r.at)] {
		taken = taken.Add(kernel.Select(is, unit, kernel.U(0)))
	}
	there := func(vs []kernel.F32) []kernel.F32 { return only(vs, r.there[:len(r.at)], kernel.F(0)) }
	each := taken.Max(kernel.U(1)).F32().Recip()
	scaled := make([]kernel.F32, len(held))
	for i, v := range held {
		scaled[i] = v.Mul(each)
	}
	centre := tree(there(scaled))
	if e := r.ragged; e != nil && r.isPart() {
		// In a short part, this may be the lane's only element. If the centre were far from it, its
		// square would hide all smaller numbers.
		centre = kernel.Select(taken.Eq(kernel.U(0)).And(e.is), r.resident[len(held)], centre)
	}
	all := func(vs []kernel.F32) []kernel.F32 { return vs }
	about := func(vs []kernel.F32, there func(vs []kernel.F32) []kernel.F32) []kernel.F32 {
		ds, shares := make([]kernel.F32, len(vs)), make([]kernel.F32, len(vs))
		for i, v := range vs {
			ds[i], shares[i] = v.Sub(centre), share
		}
		ds = there(ds)
		return []kernel.F32{products(ds, ds), products(ds, shares)}
	}
	sums := []kernel.F32{kernel.F(0), kernel.F(0)}
	if r.rest != nil {
		sums = r.rest.sums(r.unit, 2, func(at []kernel.U32, _ []kernel.Bool) []kernel.F32 {
			return about(r.units.read(at), all)
		})
		taken = taken.Add(r.rest.taken().Mul(unit))
	}
	// These values come after the resident elements, because registers are scarce while those are
	// in use.
	for i, v := range about(held, there) {
		sums[i] = sums[i].Add(v)
	}
	if e := r.ragged; e != nil {
		for i, v := range about(r.resident[len(held):], all) {
			sums[i] = sums[i].Add(kernel.Select(e.is, v, kernel.F(0)))
		}
		taken = taken.Add(kernel.Select(e.is, kernel.U(1), kernel.U(0)))
	}
	// Weight of the lane's elements in the mean of the row.
	mine := taken.F32().Mul(share)
	if r.isPart() {
		off := sums[1].Div(mine.Max(share))
		return r.t.addMoments(taken.F32(), centre.Add(off), sums[0].Sub(off.Mul(off.Mul(taken.F32()))))
	}
	mean = r.t.sum(centre.Fma(mine, sums[1]))
	d := centre.Sub(mean)
	squares = r.t.sum(d.Mul(d.Fma(mine, sums[1].Mul(kernel.F(2)))).Fma(count, sums[0]))
	return mean, squares
}

// readMoments is moments for rows without resident elements.
func (r *row) readMoments(n kernel.U32, count kernel.F32) (mean, squares kernel.F32) {
	centre, squares, off := momentsOf(&r.stridedRange, r.unit, r.units, n.Mul(kernel.U(uint32(r.unit))))
	return centre.Add(off), squares.Sub(off.Mul(off.Mul(count)))
}

// addMoments combines the means and the sums of squared distances of all lanes.
func (t *laneGroup) addMoments(count, mean, squares kernel.F32) (m, q kernel.F32) {
	all := t.merge([]kernel.U32{count.AsU32(), mean.AsU32(), squares.AsU32()}, func(g group, words []kernel.U32) []kernel.U32 {
		n, x := words[0].AsF32(), words[1].AsF32()
		count := g.sum(n)
		mean := g.sum(x.Mul(n.Div(count.Max(kernel.F(1)))))
		d := x.Sub(mean)
		squares := g.sum(d.Mul(d.Mul(n)).Add(words[2].AsF32()))
		return []kernel.U32{count.AsU32(), mean.AsU32(), squares.AsU32()}
	})
	return all[1].AsF32(), all[2].AsF32()
}

var rmsNorms = maker[rowParams, rowSpec]{name: "rms_norm", build: func(b *kernel.Builder, p *rowParams, s rowSpec, e *epilogue) {
	t := newLaneGroup(b, s.groupLayout)
	x := s.input(b, "x")
	ws := s.weights(b, p, "gamma")
	ps := s.partials(b, p)
	put := s.output(b, e)
	ps.lookBack(t, p, &s, x, func() { rmsNormed(b, t, p, &s, x, ws, ps, put) })
}}

// rmsNormed computes the RMS norm of the row of a lane group, or of a part of a row.
func rmsNormed(b *kernel.Builder, t *laneGroup, p *rowParams, s *rowSpec, x raggedInput, ws []*raggedInput, ps *partials, put func(i kernel.U32, vs []kernel.F32)) {
	r, w := weighted(b, t, p, s, x, ws)
	var squares kernel.F32
	if s.Split {
		squares = ps.ofRow(r).numbers[0]
	} else {
		squares = t.sum(r.squares())
	}
	scale := squares.Div(b.F32(&p.Count)).Add(b.F32(&p.Eps)).Sqrt().Recip()
	r.write(put, func(k int, j kernel.U32, xs []kernel.F32) []kernel.F32 {
		return w.affine(xs, k, j, func(x kernel.F32) kernel.F32 { return x.Mul(scale) })
	})
}

// squares returns the lane's part of the sum of the squares of a row or of a part of a row.
func (r *row) squares() kernel.F32 {
	of := func(at []kernel.U32, _ []kernel.Bool) []kernel.F32 {
		xs := r.units.read(at)
		return []kernel.F32{products(xs, xs)}
	}
	if r.Each == 0 {
		return r.sums(r.unit, 1, of)[0]
	}
	xs := r.only(r.resident)
	sum := products(xs, xs)
	if r.rest != nil {
		sum = sum.Add(r.rest.sums(r.unit, 1, of)[0])
	}
	return sum
}

// weights reads the weights of a row, one function for each operand. A function returns unit j of
// the weights for the lane's resident unit k; k is -1 for a unit that is not resident. The lane's
// element of a ragged end follows the resident units.
type weights []func(k int, j kernel.U32) []kernel.F32

// weights declares the weights with the given names, operands 1 and 2. The entry of an absent
// operand is nil.
func (s *rowSpec) weights(b *kernel.Builder, p *rowParams, names ...string) []*raggedInput {
	var laid units
	var n int // number of operands with shifted copies
	ws := make([]*raggedInput, len(names))
	for i, name := range names {
		switch {
		case s.Weights>>(i+1)&1 == 0:
		case s.Shifted:
			nth := n
			n++
			ws[i] = &raggedInput{single: input(b, name, s.Type), shifted: func(by kernel.U32) units {
				return laid.shiftedBy(by, b.U32(&p.Cols), nth)
			}}
		case s.Ragged && s.Split:
			x := inputUnits(b, name, s.Type, s.Unit)
			ws[i] = &raggedInput{units: x, shifted: x.shifted}
		default:
			w := s.input(b, name)
			ws[i] = &w
		}
	}
	if n > 0 {
		laid = inputUnits(b, "shifted", s.Type, s.Unit)
	}
	return ws
}

// weighted returns the row of a lane group and its weights. If the weights are read early, weighted
// reads them before the row, because their positions depend on the row only at its ragged ends. The
// weights of a part of a row are read after the part.
func weighted(b *kernel.Builder, t *laneGroup, p *rowParams, s *rowSpec, x raggedInput, ws []*raggedInput) (r *row, w weights) {
	switch {
	case s.Split:
		r = newRow(b, t, p, s, x)
		w = s.read(b, t, p, r, ws)
	case s.Ragged:
		r = placeRow(b, t, p, s, x)
		w = s.read(b, t, p, r, ws)
		r.load()
	default:
		w = s.read(b, t, p, nil, ws)
		r = newRow(b, t, p, s, x)
	}
	return r, w
}

// read returns the weights of a row. If they are read early, their loads are here.
func (s *rowSpec) read(b *kernel.Builder, t *laneGroup, p *rowParams, r *row, in []*raggedInput) (ws weights) {
	var at []kernel.U32
	switch {
	case !s.Early || s.Each == 0:
	case s.Split:
		for _, i := range r.at {
			at = append(at, i.Sub(r.begin))
		}
	default:
		st := &stridedRange{t: t, first: kernel.U(0), last: b.U32(&p.Cols), Each: s.Each, filled: s.filled}
		if s.Ragged {
			st.last = r.last.Sub(r.first)
		}
		st.each(s.Unit, func(places []kernel.U32, _ []kernel.Bool) { at = places })
	}
	for _, w := range in {
		if w == nil {
			ws = append(ws, nil)
			continue
		}
		x := w.units
		if s.Ragged {
			x = w.shifted(r.begin.Mul(kernel.U(4)).Sub(r.start))
		}
		// Variables keep the values, because the compiler would move plain loads to their uses.
		var kept []kernel.Var[kernel.F32]
		for _, v := range x.read(at) {
			kept = append(kept, kernel.NewVar(b, "weight", v))
		}
		if s.Ragged && s.Early && !s.Split {
			kept = append(kept, kernel.NewVar(b, "weight", w.single(r.ragged.at.Sub(r.start))))
		}
		ws = append(ws, func(k int, j kernel.U32) []kernel.F32 {
			switch {
			case s.Ragged && s.Split && k == s.Each: // storeRagged applies these weights
				return nil
			case s.Ragged && k == s.Each && len(kept) == 0:
				return []kernel.F32{w.single(j)}
			case s.Ragged && k == s.Each:
				return values(kept[len(kept)-1:])
			case k < 0 || len(kept) == 0:
				return x(j)
			}
			return values(kept[k*s.Unit:][:s.Unit])
		})
	}
	return ws
}

// affine returns f(x)·gamma + beta for each x of xs, without the weights that are absent. xs is
// unit j of a row and the lane's resident unit k.
func (w weights) affine(xs []kernel.F32, k int, j kernel.U32, f func(x kernel.F32) kernel.F32) []kernel.F32 {
	ys := make([]kernel.F32, len(xs))
	for i, x := range xs {
		ys[i] = f(x)
	}
	for n, apply := range []func(y, v kernel.F32) kernel.F32{kernel.F32.Mul, kernel.F32.Add}[:len(w)] {
		if w[n] == nil {
			continue
		}
		for i, v := range w[n](k, j) {
			ys[i] = apply(ys[i], v)
		}
	}
	return ys
}
