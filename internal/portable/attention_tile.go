//go:build !js || !nowebgpu

package portable

import "github.com/rayo-go/rayo/kernel"

// tiledAttentions is [attentions] for tiles of many queries: a lane computes several queries and
// four keys of each run of 4·Side, so that each vector that it reads from workgroup memory is used
// in many products.
var tiledAttentions = maker[attentionParams, attentionSpec]{name: "attention", build: func(b *kernel.Builder, p *attentionParams, s attentionSpec, e *epilogue) {
	down := s.Rows / s.Each // lanes along y
	b.LocalSize(s.Side, down, 1)
	q, keys, values := inputUnits(b, "q", s.Type, s.Unit), inputUnits(b, "k", s.Type, s.Unit), inputUnits(b, "v", s.Type, s.Unit)
	length := lengthsInput(b, s)
	put := e.units(b, s.Type, s.Unit)
	u := func(n int) kernel.U32 { return kernel.U(uint32(n)) }
	// Vectors in a row of each array. pitch and across have one more than necessary, so that rows
	// begin in different banks.
	wide, pitch, across := s.Slice/4, s.Slice/4+1, s.Keys/4+1
	qs := kernel.Shared[kernel.Vec4F](b, "queries", s.Rows*pitch)
	ks := kernel.Shared[kernel.Vec4F](b, "slice", s.Keys*pitch) // a slice of the keys, later of the values
	weights := kernel.Shared[kernel.Vec4F](b, "weights", s.Rows*across)
	var greatest kernel.Array[kernel.U32]
	if !s.Shuffle {
		greatest = kernel.Shared[kernel.U32](b, "greatest", s.Rows*s.Side)
	}

	share, tq, tk, d := b.U32(&p.Heads), b.U32(&p.Tq), b.U32(&p.Tk), b.U32(&p.D)
	tiles, parts := b.U32(&p.Tiles), b.U32(&p.Parts)
	part, g := b.Group().Mod(parts), b.Group().Div(parts)
	number, head := g.Mod(tiles), g.Div(tiles) // head counts the heads of keys of the whole batch
	b.If(head.Lt(b.U32(&p.KVHeads)), func() {  // a folded grid has more workgroups than heads
		rows := share.Mul(tq)
		first := number.Mul(u(s.Rows))
		last := first.Add(u(s.Rows - 1)).Min(rows.Sub(u(1)))
		lx, ly := b.LocalX(), b.LocalY()
		place := func(i int) kernel.U32 { return ly.Add(u(i * down)) } // position in the tile of query i of the lane
		v := visibility(s.Causal, first, last, tq, length(head, tk))
		seen := make([]kernel.U32, s.Each)
		for i := range seen {
			seen[i] = v.of(first.Add(place(i)).Min(last))
		}
		units := d.Div(u(s.Unit)) // units of a row
		lie := s.rows(head, rows, first, tq, tk, units, s.Unit)
		// load copies columns from column at on into workgroup memory: row source(r) of the operand
		// becomes row r. Missing elements become zeros.
		load := func(to kernel.Array[kernel.Vec4F], n int, x units4, source func(r kernel.U32) kernel.U32, row rowStart, left, at kernel.U32) {
			for k := 0; k < n*wide; k += b.Lanes() {
				i := b.Lane().Add(u(k))
				move := func() {
					r, c := i.Div(u(wide)), i.Mod(u(wide))
					from := r
					if source != nil {
						from = source(r)
					}
					to.Set(r.Mul(u(pitch)).Add(c), x(row(from), at.Add(c.Mul(u(4))), from.Lt(left)))
				}
				if k+b.Lanes() <= n*wide {
					move()
				} else {
					b.If(i.Lt(u(n*wide)), move)
				}
			}
		}
		// spread reorders the keys, so that lanes that work on neighbouring keys read consecutive
		// rows of workgroup memory: in each run of 4·Side keys, it stores the first of every four
		// keys before the second of every four, and so on.
		run := 4 * s.Side
		spread := func(r kernel.U32) kernel.U32 {
			in := r.Mod(u(run))
			return r.Sub(in).Add(in.Mod(u(s.Side)).Mul(u(4))).Add(in.Div(u(s.Side)))
		}
		q4, k4, v4 := vectors(b, q, d, s.Unit), vectors(b, keys, d, s.Unit), vectors(b, values, d, s.Unit)
		runs, columns := s.Keys/run, wide/s.Side
		sums := kernel.NewVars(b, "sum", s.Parts*columns*s.Each, kernel.F(0).Splat4())
		sum := func(i, c, m int) kernel.Var[kernel.Vec4F] { return sums[(i*s.Parts+c)*columns+m] }
		limit := kernel.NewVars(b, "most", s.Each, kernel.U(lowestKey))
		total := kernel.NewVars(b, "total", s.Each, kernel.F(0))
		if s.Once {
			load(qs, s.Rows, q4, nil, lie.query, rows.Sub(first), kernel.U(0))
		}
		b.ForStep(kernel.U(0), v.end, u(s.Keys), func(at kernel.U32) {
			scores := kernel.NewVars(b, "score", s.Each*runs*4, kernel.F(0))
			key4, value4 := lie.keys(at)
			slice := func(c kernel.U32) {
				b.Barrier() // no lane reads the previous slice any more
				if !s.Once {
					load(qs, s.Rows, q4, nil, lie.query, rows.Sub(first), c)
				}
				load(ks, s.Keys, k4, spread, key4, tk.Sub(at), c)
				b.Barrier()
				b.For(kernel.U(0), u(wide), func(j kernel.U32) {
					var xs []kernel.Vec4F
					for i := range s.Each {
						xs = append(xs, qs.At(place(i).Mul(u(pitch)).Add(j)))
					}
					for n := range runs * 4 {
						y := ks.At(lx.Add(u(n * s.Side)).Mul(u(pitch)).Add(j))
						for i, x := range xs {
							score := scores[i*runs*4+n]
							v := score.Get()
							for k := range 4 {
								v = x.At(k).MulAdd(y.At(k), v)
							}
							score.Set(v)
						}
					}
				})
			}
			if s.Once {
				slice(kernel.U(0))
			} else {
				b.ForStep(kernel.U(0), d, u(s.Slice), slice)
			}
			// The maximum of the scores so far, over all lanes of a query.
			key := func(n int) kernel.U32 { // the key of score n
				return at.Add(lx.Mul(u(4))).Add(u(n/4*run + n%4))
			}
			bests := make([]kernel.U32, s.Each)
			for i := range s.Each {
				best := kernel.U(0)
				for n := range runs * 4 {
					score := scores[i*runs*4+n]
					score.Set(score.Get().Mul(b.F32(&p.Scale)))
					best = best.Max(kernel.Select(key(n).Lt(seen[i]), orderOf(score.Get().AsU32()), kernel.U(0)))
				}
				bests[i] = best
				if s.Shuffle {
					bests[i] = shuffle(b, best, s.Side, kernel.U32.Max)
				} else {
					greatest.Set(place(i).Mul(u(s.Side)).Add(lx), best)
				}
			}
			if !s.Shuffle {
				b.Barrier()
			}
			for i := range s.Each {
				best := bests[i]
				if !s.Shuffle {
					best = chain(s.Side, kernel.U32.Max, func(k int) kernel.U32 { return greatest.At(place(i).Mul(u(s.Side)).Add(u(k))) })
				}
				best = best.Max(limit[i].Get())
				now := numberOf(best)
				less := numberOf(limit[i].Get()).Sub(now).Exp()
				limit[i].Set(best)
				var ws []kernel.F32
				for n := range runs * 4 {
					w := scores[i*runs*4+n].Get().Sub(now).Exp()
					ws = append(ws, kernel.Select(key(n).Lt(seen[i]), w, kernel.F(0)))
				}
				total[i].Set(total[i].Get().Mul(less).Add(tree(ws)))
				for c := range s.Parts {
					for m := range columns {
						v := sum(i, c, m)
						v.Set(v.Get().Scale(less))
					}
				}
				for r := range runs {
					w := ws[4*r:]
					weights.Set(place(i).Mul(u(across)).Add(lx).Add(u(r*s.Side)), b.Vec4F(w[0], w[1], w[2], w[3]))
				}
			}
			for c := range s.Parts {
				b.Barrier()
				load(ks, s.Keys, v4, nil, value4, tk.Sub(at), part.Mul(u(s.Parts)).Add(u(c)).Mul(u(s.Slice)))
				b.Barrier()
				add := func(visible func(i, k int, j kernel.U32, f func())) {
					b.For(kernel.U(0), u(s.Keys/4), func(j kernel.U32) {
						var ws []kernel.Vec4F
						for i := range s.Each {
							ws = append(ws, weights.At(place(i).Mul(u(across)).Add(j)))
						}
						for k := range 4 {
							for m := range columns {
								y := ks.At(j.Mul(u(4)).Add(u(k)).Mul(u(pitch)).Add(lx).Add(u(m * s.Side)))
								for i, w := range ws {
									visible(i, k, j, func() {
										v := sum(i, c, m)
										v.Set(w.At(k).Splat4().MulAdd(y, v.Get()))
									})
								}
							}
						}
					})
				}
				// A value that a query does not see may be NaN, so its product is skipped.
				b.If(at.Add(u(s.Keys)).Le(v.all), func() {
					add(func(_, _ int, _ kernel.U32, f func()) { f() })
				}).Else(func() {
					add(func(i, k int, j kernel.U32, f func()) {
						b.If(at.Add(j.Mul(u(4))).Add(u(k)).Lt(seen[i]), f)
					})
				})
			}
		})
		for i := range s.Each {
			whole := total[i].Get()
			if s.Shuffle {
				whole = shuffle(b, whole, s.Side, kernel.F32.Add)
			} else {
				b.Barrier()
				greatest.Set(place(i).Mul(u(s.Side)).Add(lx), whole.AsU32())
				b.Barrier()
				whole = chain(s.Side, kernel.F32.Add, func(k int) kernel.F32 { return greatest.At(place(i).Mul(u(s.Side)).Add(u(k))).AsF32() })
			}
			b.If(first.Add(place(i)).Lt(rows), func() {
				for c := range s.Parts {
					for m := range columns {
						at := part.Mul(u(s.Parts)).Add(u(c)).Mul(u(s.Slice)).Add(lx.Add(u(m * s.Side)).Mul(u(4)))
						result := kernel.Select(seen[i].Eq(kernel.U(0)), kernel.F(0).Splat4(), sum(i, c, m).Get().Div(whole.Splat4()))
						to := lie.result(place(i))
						for k := 0; k < 4; k += s.Unit {
							var vs []kernel.F32
							for n := range s.Unit {
								vs = append(vs, result.At(k+n))
							}
							b.If(at.Add(u(k)).Lt(d), func() { put(to.Add(at.Div(u(s.Unit))).Add(u(k/s.Unit)), vs) })
						}
					}
				}
			})
		}
	})
}}

// units4 reads four columns of a row that begins at unit row. Columns beyond the end of the row are
// zeros, and so are all columns if is does not hold.
type units4 func(row, column kernel.U32, is kernel.Bool) kernel.Vec4F

// vectors returns a reader of vectors of four from rows of d elements. x reads units of them.
func vectors(b *kernel.Builder, x units, d kernel.U32, unit int) units4 {
	return func(row, column kernel.U32, is kernel.Bool) kernel.Vec4F {
		var vs []kernel.F32
		for k := 0; k < 4; k += unit {
			at := column.Add(kernel.U(uint32(k)))
			there := is.And(at.Lt(d))
			for _, v := range x(kernel.Select(there, row.Add(at.Div(kernel.U(uint32(unit)))), kernel.U(0))) {
				vs = append(vs, kernel.Select(there, v, kernel.F(0)))
			}
		}
		return b.Vec4F(vs[0], vs[1], vs[2], vs[3])
	}
}

// sight describes which keys the queries of a tile see. A query sees all keys before a limit.
type sight struct {
	of  func(row kernel.U32) kernel.U32 // the limit of query row
	end kernel.U32                      // the maximum of the limits
	all kernel.U32                      // at most the minimum of the limits
}

// visibility returns which keys the queries first to last see. Each head has tq queries and tk
// keys.
func visibility(causal bool, first, last, tq, tk kernel.U32) sight {
	if !causal {
		return sight{func(kernel.U32) kernel.U32 { return tk }, tk, tk}
	}
	// The limit of query i of a head is i+1+tk-tq, and 0 if this number is negative.
	of := func(row kernel.U32) kernel.U32 {
		i := row.Mod(tq).Add(kernel.U(1)).Add(tk)
		return kernel.Select(i.Gt(tq), i.Sub(tq.Min(i)), kernel.U(0))
	}
	one := first.Div(tq).Eq(last.Div(tq))
	return sight{of, kernel.Select(one, of(last), tk), kernel.Select(one, of(first), of(kernel.U(0)))}
}
