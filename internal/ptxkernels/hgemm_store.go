package ptxkernels

import "github.com/rayo-go/rayo/ptx"

// storeRows and storeCols are the size of the piece of the result that one warp stores at once.
const (
	storeRows = 16
	storeCols = 64
	storing   = 2 // pieces in a warp's shared memory
)

// storer stores results. Each warp writes pieces to shared memory; asynchronous copies of whole
// lines then write them to the result while the warp continues.
type storer struct {
	g     *wgmmaCode
	mine  ptx.Shared[ptx.BF16] // pieces of this warp
	lane  [storeCols / 16]ptx.Shared[ptx.BF16]
	row   ptx.S32 // first row of the warp among the 64 rows of a product
	first ptx.Pred
	turn  int
}

func (g *wgmmaCode) newStorer(group ptx.U32) *storer {
	k := g.k
	lane, warp := k.Special(ptx.LaneID), g.tid.Shr(ptx.U(5)).And(ptx.U(3))
	o := &storer{g: g, row: warp.Mul(ptx.U(16)).S32(), first: lane.Eq(ptx.U(0))}
	o.mine = g.cs.At(group.MulAdd(ptx.U(4), warp).Mul(ptx.N(storing * storeRows * storeCols)))
	// Lane i passes the address of row i%8 of matrix i/8. Matrices 0 and 1 are 8 columns of rows
	// 0-7 and 8-15; matrices 2 and 3 are the next 8 columns. The swizzle is the same as in the
	// tensor map.
	low := lane.And(ptx.U(7))
	row := lane.And(ptx.U(8)).Add(low)
	x := lane.Shr(ptx.U(4)).Xor(low)
	for i := range o.lane {
		o.lane[i] = o.mine.At(row.MulAdd(ptx.U(storeCols), x.Xor(ptx.N(2*i)).Mul(ptx.U(8))))
	}
	return o
}

// store stores 64 rows of a product.
func (o *storer) store(acc []ptx.Var[ptx.F32], row, col, n ptx.S32) {
	g, k := o.g, o.g.k
	// Lane l holds rows l/4 and l/4 + 8, columns 2(l%4) and 2(l%4) + 1.
	lane := k.Special(ptx.LaneID)
	top, left := row.Add(o.row).U32().Add(lane.Shr(ptx.U(2))), col.U32().Add(lane.And(ptx.U(3)).Mul(ptx.U(2)))
	pair := func(c, h int) (a, b ptx.F32) {
		v := acc[c/8*4+2*h:]
		return v[0].Get(), v[1].Get()
	}
	if g.Split || g.Direct {
		for c := 0; c < g.Cols; c += 8 {
			for h := range 2 {
				a, b := pair(c, h)
				if g.Split {
					g.keep(n.U32(), top.Add(ptx.N(8*h)), left.Add(ptx.N(c)), a, b)
					continue
				}
				g.finish.put(n.U32(), top.Add(ptx.N(8*h)), left.Add(ptx.N(c)), a, b)
			}
		}
		k.SyncWarp(ptx.AllLanes) // wgmma needs converged lanes
		return
	}
	ahead := storing - 1
	if g.Rows/g.Groups*g.Cols/(64*storeCols)%storing != 0 {
		ahead = 0 // each tile begins with the first piece
	}
	for c := 0; c < g.Cols; c += storeCols {
		piece := o.turn * storeRows * storeCols
		o.turn = (o.turn + 1) % storing
		if !g.Loose {
			k.If(o.first, func() { k.BulkWaitRead(ahead) })
		}
		k.SyncWarp(ptx.AllLanes)
		for i := range o.lane {
			var m [4]ptx.B32
			for h := range m {
				c := c + 16*i + h/2*8
				a, b := pair(c, h%2)
				a, b = g.finish.value(n.U32(), top.Add(ptx.N(h%2*8)), left.Add(ptx.N(c)), a, b)
				m[h] = pack(g.Type, a, b)
			}
			ptx.StoreMatrix4(ptx.CastShared[ptx.B32](o.lane[i].Offset(piece)), m, false)
		}
		if g.Loose {
			k.SyncWarp(ptx.AllLanes)
			o.scatter(piece, row.Add(o.row).U32(), col.U32().Add(ptx.N(c)), n.U32())
			k.SyncWarp(ptx.AllLanes)
			continue
		}
		k.FenceAsyncShared()
		k.SyncWarp(ptx.AllLanes)
		k.If(o.first, func() {
			ptx.TensorStore(g.c, o.mine.Offset(piece), col.Add(ptx.S(int32(c))), row.Add(o.row), n)
			k.BulkCommit()
		})
	}
}

// keep stores partial sums.
func (g *wgmmaCode) keep(n, row, col ptx.U32, a, b ptx.F32) {
	k := g.k
	to := g.partial.At64(n.MulWide(g.rows.Mul(g.cols))).At64(row.MulWide(g.cols)).At(col)
	k.If(row.Lt(g.rows).And(col.Lt(g.cols)), func() {
		if !g.Odd {
			to.Store2([2]ptx.F32{a, b})
			return
		}
		to.Store(a)
		k.If(col.Add(ptx.U(1)).Lt(g.cols), func() { to.Offset(1).Store(b) })
	})
}

// scatter stores a piece element by element. Adjacent lanes store adjacent elements of a row.
func (o *storer) scatter(piece int, row, col, n ptx.U32) {
	g, k := o.g, o.g.k
	lane := k.Special(ptx.LaneID)
	to := g.loose.At64(n.MulWide(g.rows.Mul(g.cols))).At64(row.MulWide(g.cols)).At(col.Add(lane))
	from := ptx.CastShared[ptx.U16](o.mine).Offset(piece)
	left := [2]ptx.Pred{col.Add(lane).Lt(g.cols), col.Add(lane).Add(ptx.U(32)).Lt(g.cols)}
	for r := range storeRows {
		k.If(row.Add(ptx.N(r)).Lt(g.rows), func() {
			for h := range left {
				// The swizzled position of the 16 bytes that hold column lane + 32h.
				at := lane.Shr(ptx.U(3)).Add(ptx.N(4 * h)).Xor(ptx.N(r % 8)).Mul(ptx.U(8)).Add(lane.And(ptx.U(7)))
				k.If(left[h], func() { to.Offset(32 * h).Store(from.Offset(r * storeCols).At(at).Load()) })
			}
		})
		to = to.At(g.cols)
	}
}

// done waits until the copies have read shared memory.
func (o *storer) done() {
	if o.g.copies() {
		o.g.k.If(o.first, func() { o.g.k.BulkWaitRead(0) })
	}
}
