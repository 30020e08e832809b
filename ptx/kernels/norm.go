package kernels

import "github.com/rayo-go/rayo/ptx"

// norm computes layer_norm and rms_norm.
func (s rowSpec) norm(k *ptx.Kernel) {
	x := ptx.GlobalParam[ptx.B32](k, "x")
	gamma, beta := s.weight(k, 1), s.weight(k, 2)
	y := ptx.GlobalParam[ptx.B32](k, "y")
	rows, cols := ptx.Param[ptx.U32](k, "rows"), ptx.Param[ptx.U32](k, "cols")
	eps := ptx.Param[ptx.F32](k, "eps")
	t := s.newTeam(k, rows, cols)
	held := t.rows(rows, cols)
	t.load(held, x, 0)
	count := cols.F32()
	mean := make([]ptx.F32, len(held))
	if s.Op == "layer_norm" {
		for u, r := range held {
			r.each(0, func(_ int, v []ptx.F32) []ptx.F32 {
				mean[u] = mean[u].Add(foldRow(v, ptx.F32.Add))
				return nil
			})
		}
		mean = t.reduce(mean, ptx.F32.Add)
		for u := range mean {
			mean[u] = mean[u].Div(count)
		}
	}
	squares := make([]ptx.F32, len(held))
	for u, r := range held {
		r.each(0, func(p int, v []ptx.F32) []ptx.F32 {
			d := make([]ptx.F32, len(v))
			for e := range v {
				d[e] = v[e].Sub(mean[u])
				if s.Op == "layer_norm" && (p >= s.Whole || r.ragged(p)) {
					d[e] = ptx.Select(r.valid(p, e), d[e], ptx.F(0))
				}
				d[e] = d[e].Mul(d[e])
			}
			squares[u] = squares[u].Add(foldRow(d, ptx.F32.Add))
			return nil
		})
	}
	squares = t.reduce(squares, ptx.F32.Add)
	for u, r := range held {
		scale := squares[u].Div(count).Add(eps).Sqrt().Rcp()
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
				w[e] = v[e].Sub(mean[u]).Mul(scale)
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
}
