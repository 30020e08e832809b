package ptxkernels

import "github.com/rayo-go/rayo/ptx"

// registerOperand reads an A of float32 that is not K-major to registers. A line of a stage holds
// 32 rows of A at one position along K. A lane reads two or four adjacent elements at once, so the
// rows of a product are a permutation of the rows of A.
type registerOperand struct {
	g    *wgmmaCode
	high int // products of 64 rows in a warpgroup
	// from holds the lane's addresses in stage 0: at position l%4 along K, and at l%4 + 4.
	from [2]ptx.Shared[ptx.B32]
	row  ptx.U32 // the lane's first row in the block
}

func (g *wgmmaCode) newRegisterOperand(group ptx.U32) *registerOperand {
	h := &registerOperand{g: g, high: g.Rows / g.Groups / 64}
	lane, warp := g.k.Special(ptx.LaneID), g.tid.Shr(ptx.U(5)).And(ptx.U(3))
	z, r := lane.And(ptx.U(3)), lane.Shr(ptx.U(2))
	// The lanes of one access read the 16-byte pieces c and c xor 4 in four lines. After the
	// swizzle, these pieces cover all banks.
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
		// A line has 32 floats; there is one line for each position along K.
		at := line.MulAdd(ptx.U(32), z.Add(ptx.N(4*e)))
		h.from[e] = as.At(at.MulAdd(ptx.U(32), piece.Xor(z).Xor(ptx.N(4*e)).MulAdd(ptx.U(4), half)))
	}
	return h
}

// product multiplies the d-th 8 positions along K of a stage.
func (h *registerOperand) product(acc [][]ptx.Var[ptx.F32], stage ptx.U32, d int, b ptx.Tile, w ptx.Wgmma) {
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

// releases is the number of threads that release a stage: one of each warpgroup, or one of each
// warp if warps read A to registers.
func (s *wgmmaSpec) releases() int {
	if s.aInRegisters() {
		return s.Groups * 4
	}
	return s.Groups
}

// A warp stores pieces of 16 rows by singleCols columns through shared memory; singlePitch is the
// row stride in floats. The lanes of one access write four columns of each of four rows, and have
// no bank conflict.
const (
	singleCols  = 32
	singlePitch = singleCols + 8
)

// singles stores float32 results.
type singles struct {
	g    *wgmmaCode
	held bool // A is in registers
	acc  [][]ptx.Var[ptx.F32]
	lane ptx.U32
	// warp and row are the first row of the warp and of the lane, in the block.
	warp, row ptx.U32
	mine      ptx.Shared[ptx.F32] // of the warp
}

func (g *wgmmaCode) newSingles(group ptx.U32, resident *registerOperand, acc [][]ptx.Var[ptx.F32]) *singles {
	warp := g.tid.Shr(ptx.U(5)).And(ptx.U(3))
	o := &singles{g: g, held: resident != nil, acc: acc, lane: g.k.Special(ptx.LaneID)}
	o.mine = ptx.CastShared[ptx.F32](g.cs).At(group.MulAdd(ptx.U(4), warp).Mul(ptx.N(storeRows * singlePitch)))
	o.warp = group.MulAdd(ptx.N(64*len(acc)), warp.Mul(ptx.U(16)))
	o.row = o.warp.Add(o.lane.Shr(ptx.U(2)))
	if o.held {
		o.row = resident.row
	}
	return o
}

// store stores a tile that begins at row, col of matrix n.
func (o *singles) store(row, col, n ptx.S32) {
	g := o.g
	row0, col0, n0 := row.U32(), col.U32(), n.U32()
	mine, left := row0.Add(o.row), col0.Add(o.lane.And(ptx.U(3)).Mul(ptx.U(2)))
	value := func(c, j, h, e int) ptx.F32 { return o.acc[j][c/2+2*h+e].Get() }
	step := 8
	scatter := g.Loose && !g.Split && !o.held
	if scatter {
		step = singleCols
	}
	for c := 0; c < g.Cols; c += step {
		if g.Turned { // adjacent elements of a column are adjacent in a row of the result
			for e := range 2 {
				r := left.Add(ptx.N(c + e))
				if len(o.acc) == 2 && !g.Split && !g.Direct {
					g.finish.storeFour(g.loose, n0, r, mine, [4]ptx.F32{value(c, 0, 0, e), value(c, 0, 1, e), value(c, 1, 0, e), value(c, 1, 1, e)})
					continue
				}
				for j := range o.acc {
					o.put(n0, r, mine.Add(ptx.N(2*j)), value(c, j, 0, e), value(c, j, 1, e))
				}
			}
			continue
		}
		for j := range o.acc {
			if scatter {
				o.scatter(j, row0, col0.Add(ptx.N(c)), n0, func(b, h int) (x, y ptx.F32) { return value(c+8*b, j, h, 0), value(c+8*b, j, h, 1) })
				continue
			}
			for h := range 2 {
				r := 64*j + 8*h
				if o.held {
					r = 2*j + h
				}
				o.put(n0, mine.Add(ptx.N(r)), left.Add(ptx.N(c)), value(c, j, h, 0), value(c, j, h, 1))
			}
		}
	}
	g.k.SyncWarp(ptx.AllLanes) // wgmma needs converged lanes
}

// put stores two adjacent elements of a row.
func (o *singles) put(n, row, col ptx.U32, a, b ptx.F32) {
	g := o.g
	switch {
	case g.Split:
		g.keep(n, row, col, a, b)
	case g.Direct:
		g.finish.put(n, row, col, a, b)
	default:
		g.finish.store(g.loose, n, row, col, a, b)
	}
}

// scatter stores columns of product j; sums returns the lane's sums in the b-th group of eight
// columns. It stores through shared memory, so that the lanes get adjacent elements of a row with
// any alignment. Direct stores of two floats take three times as long for unaligned rows.
func (o *singles) scatter(j int, row, col, n ptx.U32, sums func(b, h int) (x, y ptx.F32)) {
	g, k := o.g, o.g.k
	row = row.Add(o.warp).Add(ptx.N(64 * j))
	down, left := o.lane.Shr(ptx.U(2)), o.lane.And(ptx.U(3)).Mul(ptx.U(2))
	to := o.mine.At(down.MulAdd(ptx.N(singlePitch), left))
	for b := range singleCols / 8 {
		for h := range 2 {
			x, y := sums(b, h)
			x, y = g.finish.value(n, row.Add(down).Add(ptx.N(8*h)), col.Add(ptx.N(8*b)).Add(left), x, y)
			to.Offset(8*h*singlePitch + 8*b).Store2([2]ptx.F32{x, y})
		}
	}
	k.SyncWarp(ptx.AllLanes)
	at := col.Add(o.lane)
	out := ptx.Cast[ptx.F32](g.loose).At64(n.MulWide(g.rows.Mul(g.cols))).At(at)
	k.If(at.Lt(g.cols), func() {
		// A loop, because ptxas would spill the addresses of the unrolled code.
		const once = 4
		k.Count(ptx.N(storeRows/once), func(i ptx.U32) {
			row := i.MulAdd(ptx.U(once), row)
			from, to := o.mine.At(i.MulAdd(ptx.U(once*singlePitch), o.lane)), out.At64(row.MulWide(g.cols))
			for r := range once {
				k.When(row.Add(ptx.N(r)).Lt(g.rows), func() { to.Store(from.Offset(r * singlePitch).Load()) })
				to = to.At(g.cols)
			}
		})
	})
	k.SyncWarp(ptx.AllLanes)
}
