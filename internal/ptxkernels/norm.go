package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// norm computes layer_norm and rms_norm.
func (s rowSpec) norm(k *ptx.Kernel, fin *epilogue) {
	x := ptx.GlobalParam[ptx.B32](k, "x")
	gamma, beta := s.weight(k, 1), s.weight(k, 2)
	y := fin.sink(k)
	rows, cols := ptx.Param[ptx.U32](k, "rows"), ptx.Param[ptx.U32](k, "cols")
	eps := ptx.Param[ptx.F32](k, "eps")
	t := s.newRowGroup(k, rows, cols)
	t.run(x, y, 0, func(resident []*residentRow) { t.norm(resident, y, eps, gamma, beta) })
}

// norm is the computation of a team on register-resident rows.
func (t *rowGroup) norm(resident []*residentRow, y *sink, eps ptx.F32, gamma, beta func(r *residentRow, p int) []ptx.F32) {
	s := t.s
	var mean, squares []ptx.F32
	if s.Parts != secondOfParts {
		mean, squares = t.moments(resident)
	} else {
		mean, squares = make([]ptx.F32, 1), make([]ptx.F32, 1)
	}
	if s.Parts != wholeRows {
		all, ok := t.exchange([]ptx.B32{t.size(resident[0]).F32().Bits(), mean[0].Bits(), squares[0].Bits()}, mergeMoments, 3)
		if !ok {
			return
		}
		mean[0], squares[0] = all[1].Float(), all[2].Float()
	}
	for u, r := range resident {
		var variance ptx.F32
		if s.fenced() {
			variance = squares[u].Div(t.cols.F32())
		} else {
			variance = squares[u].Mul(reciprocalOf(t.cols))
		}
		scale := variance.Add(eps).RsqrtApprox()
		r.eachShift(func(r *residentRow) { r.normalise(y, mean[u], scale, gamma, beta) })
	}
}

// fenced reports whether loads of weights must stay after an exact quotient, which has a branch.
// Otherwise the assembler moves some of them before it, which helps if there are enough registers.
func (s *rowSpec) fenced() bool {
	return s.choosesWeights() || s.Weights != 0 && !s.Misaligned && (s.Type != op.F32 || s.Lanes <= 32)
}

// normalise stores a row with known mean and scale.
func (r *residentRow) normalise(y *sink, mean, scale ptx.F32, gamma, beta func(r *residentRow, p int) []ptx.F32) {
	r.each(0, func(p int, v []ptx.F32) []ptx.F32 {
		var g, b []ptx.F32
		if gamma != nil {
			g = gamma(r, p)
		}
		if beta != nil {
			b = beta(r, p)
		}
		w := make([]ptx.F32, len(v))
		for e := range v {
			w[e] = v[e].Sub(mean).Mul(scale)
			switch {
			case g != nil && b != nil:
				w[e] = w[e].Fma(g[e], b[e])
			case g != nil:
				w[e] = w[e].Mul(g[e])
			case b != nil:
				w[e] = w[e].Add(b[e])
			}
		}
		r.store(y, p, w)
		return nil
	})
}

// moments returns the means of the resident elements of rows, and the sums of the squares of the
// distances from them; for rms_norm, of the distances from 0.
func (t *rowGroup) moments(resident []*residentRow) (mean, squares []ptx.F32) {
	s := t.s
	mean, squares = make([]ptx.F32, len(resident)), make([]ptx.F32, len(resident))
	if s.Op != "rms_norm" {
		for u, r := range resident {
			r.each(0, func(_ int, v []ptx.F32) []ptx.F32 {
				mean[u] = mean[u].Add(foldRow(v, ptx.F32.Add))
				return nil
			})
		}
		mean = t.reduce(mean, ptx.F32.Add)
		for u, r := range resident {
			mean[u] = mean[u].Mul(reciprocalOf(t.size(r).Max(ptx.U(1)))) // a partial may be empty
		}
	}
	for u, r := range resident {
		r.each(0, func(p int, v []ptx.F32) []ptx.F32 {
			d := make([]ptx.F32, len(v))
			for e := range v {
				d[e] = v[e].Sub(mean[u])
				if s.Op != "rms_norm" && (p >= s.Whole || r.ragged(p)) {
					d[e] = ptx.Select(r.valid(p, e), d[e], ptx.F(0))
				}
			}
			squares[u] = squares[u].Add(foldSquares(d))
			return nil
		})
	}
	return mean, t.reduce(squares, ptx.F32.Add)
}

// foldSquares returns the sum of squares in four independent chains.
func foldSquares(v []ptx.F32) ptx.F32 {
	if len(v) > 4 {
		return foldSquares(v[:len(v)/2]).Add(foldSquares(v[len(v)/2:]))
	}
	sum := v[0].Mul(v[0])
	for _, d := range v[1:] {
		sum = d.Fma(d, sum)
	}
	return sum
}

// reciprocalOf returns 1/n with an error of 1 ulp, which the tolerance of a sum allows. The exact
// reciprocal has a branch, like exact quotients and roots.
func reciprocalOf(n ptx.U32) ptx.F32 { return n.F32().RcpApproxFlush() }

// variance computes the variances of resident rows from distances to the final mean: a running mean
// would be less exact for rows with a mean far from 0.
func (s rowSpec) variance(k *ptx.Kernel, fin *epilogue) {
	x, y := ptx.GlobalParam[ptx.B32](k, "x"), fin.sink(k)
	rows, cols := ptx.Param[ptx.U32](k, "rows"), ptx.Param[ptx.U32](k, "cols")
	free := ptx.Param[ptx.F32](k, "free")
	t := s.newRowGroup(k, rows, cols)
	t.run(x, y, 0, func(resident []*residentRow) {
		_, squares := t.moments(resident)
		for u, r := range resident {
			k.If(r.is.And(t.lane.Eq(ptx.U(0))), func() { y.set(r.number, squares[u].Div(free)) })
		}
	})
}
