package kernels

import "github.com/rayo-go/rayo/ptx"

// wgmmaHeld reads A of floats, which does not go along the sum, to registers. A
// line of a stage is 32 rows of A at one place along the sum; a lane reads two or
// four neighbours at once, so the rows of a product are not in the order of A.
type wgmmaHeld struct {
	g    *wgmmaCode
	high int // products of 64 rows side by side
	// from is what the lane reads of stage 0: places l%4 along the sum, and 4 more.
	from [2]ptx.Shared[ptx.B32]
	row  ptx.U32 // of the block's, the lane's first
}

func (g *wgmmaCode) newHeld(group ptx.U32) *wgmmaHeld {
	h := &wgmmaHeld{g: g, high: g.Rows / g.Groups / 64}
	lane, warp := g.k.Special(ptx.LaneID), g.tid.Shr(ptx.U(5)).And(ptx.U(3))
	z, r := lane.And(ptx.U(3)), lane.Shr(ptx.U(2))
	// The lanes that read together have pieces of 16 bytes c and c xor 4 in four
	// lines: where the swizzle has them, they fill all banks.
	var line, piece, half ptx.U32
	if h.high == 2 {
		line = group.MulAdd(ptx.U(4), warp)
		piece, half = r.Shr(ptx.U(1)).Or(r.And(ptx.U(1)).Shl(ptx.U(2))), ptx.U(0)
	} else {
		line = group.MulAdd(ptx.U(2), warp.Shr(ptx.U(1)))
		piece = r.Shr(ptx.U(2)).Or(r.And(ptx.U(2)).Shl(ptx.U(1))).Or(warp.And(ptx.U(1)).Shl(ptx.U(1)))
		half = r.And(ptx.U(1)).Shl(ptx.U(1))
	}
	h.row = line.MulAdd(ptx.U(32), piece.MulAdd(ptx.U(4), half))
	as := ptx.CastShared[ptx.B32](g.as)
	for e := range h.from {
		// 32 floats are a line, and there is one for each place along the sum.
		at := line.MulAdd(ptx.U(32), z.Add(ptx.N(4*e)))
		h.from[e] = as.At(at.MulAdd(ptx.U(32), piece.Xor(z).Xor(ptx.N(4*e)).MulAdd(ptx.U(4), half)))
	}
	return h
}

// product multiplies 8 places along the sum, the d-th of a stage.
func (h *wgmmaHeld) product(acc [][]ptx.Var[ptx.F32], stage ptx.U32, d int, b ptx.Tile, w ptx.Wgmma) {
	var a [2][4]ptx.B32
	at := stage.Mul(ptx.N(h.g.Rows * wgmmaLine / 2))
	for e, from := range h.from {
		from = from.At(at).Offset(8 * 32 * d)
		var v [4]ptx.B32
		if h.high == 2 {
			v = from.Load4()
		} else {
			two := from.Load2()
			v[0], v[1] = two[0], two[1]
		}
		for j := range h.high {
			a[j][2*e], a[j][2*e+1] = v[2*j], v[2*j+1]
		}
	}
	h.g.k.WgmmaFence()
	for j := range acc {
		h.g.k.WgmmaTF32Regs(acc[j], a[j], b, w)
	}
}

// releases is how many threads say that a stage may be brought again: one of each
// warpgroup, or of each warp if warps read A for themselves.
func (s *wgmmaSpec) releases() int {
	if s.held() {
		return s.Groups * 4
	}
	return s.Groups
}

// newSingles returns what stores the floats of a tile that begins at row, col of
// matrix n.
func (g *wgmmaCode) newSingles(group ptx.U32, held *wgmmaHeld, acc [][]ptx.Var[ptx.F32]) func(row, col, n ptx.S32) {
	k, high := g.k, len(acc)
	lane, warp := k.Special(ptx.LaneID), g.tid.Shr(ptx.U(5)).And(ptx.U(3))
	left := lane.And(ptx.U(3)).Mul(ptx.U(2))
	put := func(n, row, col ptx.U32, a, b ptx.F32) {
		switch {
		case g.Split:
			g.keep(n, row, col, a, b)
		case g.Direct:
			g.finish.put(n, row, col, a, b)
		default:
			g.finish.store(g.loose, n, row, col, a, b)
		}
	}
	return func(row, col, n ptx.S32) {
		row0, col0, n0 := row.U32(), col.U32().Add(left), n.U32()
		for c := 0; c < g.Cols; c += 8 {
			// value returns what the lane has of column c+e and its h-th row.
			value := func(j, h, e int) ptx.F32 { return acc[j][c/2+2*h+e].Get() }
			switch {
			case held == nil:
				for j := range high {
					for h := range 2 {
						r := group.MulAdd(ptx.N(64*high), warp.MulAdd(ptx.U(16), lane.Shr(ptx.U(2)))).Add(row0)
						put(n0, r.Add(ptx.N(64*j+8*h)), col0.Add(ptx.N(c)), value(j, h, 0), value(j, h, 1))
					}
				}
			case !g.Turned:
				for j := range high {
					for h := range 2 {
						put(n0, row0.Add(held.row).Add(ptx.N(2*j+h)), col0.Add(ptx.N(c)), value(j, h, 0), value(j, h, 1))
					}
				}
			default: // neighbours in a column are so in a row of the result
				for e := range 2 {
					r, to := col0.Add(ptx.N(c+e)), row0.Add(held.row)
					if high == 2 && !g.Split && !g.Direct && !g.Loose {
						g.finish.storeFour(g.loose, n0, r, to, [4]ptx.F32{value(0, 0, e), value(0, 1, e), value(1, 0, e), value(1, 1, e)})
						continue
					}
					for j := range high {
						put(n0, r, to.Add(ptx.N(2*j)), value(j, 0, e), value(j, 1, e))
					}
				}
			}
		}
		k.SyncWarp(ptx.AllLanes) // products need all lanes together
	}
}
