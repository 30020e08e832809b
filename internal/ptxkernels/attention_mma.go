package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// attentionMMA is attention with the mma instruction, for sm_80 and later. It reads the keys once
// (Dao: FlashAttention-2). Each of the Rows warps of a block keeps 16 rows of queries in registers.
// The block multiplies a tile of keys and values in shared memory while it copies the next tile.
// When a greater score appears, the sums are scaled down (online softmax).
//
// If there are too few rows to occupy the warps, Sides warps share the same rows and divide the keys of a tile.
type attentionMMA struct {
	Type        op.DType
	Causal      bool
	Packed      bool // rows of several heads in one matrix
	Split       bool // blocks divide the keys and store float32 partials
	Head        int  // elements of a row in shared memory; elements from d on are 0
	Rows, Sides int
	Keys        int // of a tile
	Strided     attentionStrided
}

func (s attentionMMA) threads() int { return 32 * s.Rows * s.Sides }

// shared returns the bytes of shared memory.
func (s attentionMMA) shared() int { return 4 * s.pitch() * (16*s.Rows + 4*s.Keys) }

// products returns the code that multiplies matrices of type s.Type.
func (s attentionMMA) products(k *ptx.Kernel, qs ptx.Shared[ptx.B32], slice ptx.U32) attentionProducts {
	if s.Type == op.F32 {
		return newSingleProducts(s, k, qs, slice)
	}
	return newHalfProducts(s, k, qs, slice)
}

// attentionProducts multiplies matrices in shared memory for a warp.
type attentionProducts interface {
	// keys computes scores += queries x keys, for the queries of the warp and the keys of tile from
	// row on.
	keys(tile ptx.Shared[ptx.B32], row ptx.U32, scores [][4]ptx.Var[ptx.F32])
	// values computes sums += weights x values, for the values of tile from row on. The weights
	// have the register layout of the scores.
	values(tile ptx.Shared[ptx.B32], row ptx.U32, weights [][4]ptx.F32, sums [][4]ptx.Var[ptx.F32])
}

// build writes the kernel. It uses the fragment layout of mma.m16n8k16 in the PTX manual: in a
// product of 16 by 8, a lane holds the rows lane/4 and lane/4 + 8 of the columns 2(lane%4) and
// 2(lane%4) + 1.
func (s attentionMMA) build(k *ptx.Kernel, to *epilogue) {
	k.Block(s.threads(), 1, 1)
	c := &attentionWarps{s: s, k: k}
	c.declare(to)
	c.find()
	c.load(c.qs, op.AttentionQ, c.first, c.a.rows, 16*s.Rows)
	k.CopyCommit()
	k.If(c.lo.Lt(c.end), func() { c.stage(ptx.U(0), c.lo) })
	k.CopyWaitAll()
	k.Sync()
	c.multiply()
	c.store()
}

// attentionWarps holds the values that the code of an attentionMMA uses.
type attentionWarps struct {
	s             attentionMMA
	k             *ptx.Kernel
	a             *attentionArgs
	parts, shares ptx.Global[ptx.F32] // of splits: sums before the division; the greatest score and the sum of weights
	per           ptx.U32             // keys of a split
	tiles         ptx.U32             // of a head
	qs, ks, vs    ptx.Shared[ptx.B32]

	t, lane, warp  ptx.U32
	side, slice    ptx.U32 // which part of the keys the warp multiplies, and which rows
	of             *attentionHead
	first          ptx.U32 // row of the tile
	lo, end        ptx.U32 // range of keys that the block multiplies
	whole          ptx.U32 // all rows see the keys below whole
	hidden         ptx.U32 // no row sees the keys from hidden on
	row, sees      [2]ptx.U32
	largest, total [2]ptx.Var[ptx.F32]
	sums           [][4]ptx.Var[ptx.F32]
}

// declare declares parameters and shared memory.
func (c *attentionWarps) declare(to *epilogue) {
	s, k := c.s, c.k
	a := &attentionArgs{typ: s.Type, strided: s.Strided, packed: s.Packed}
	c.a = a
	a.q, a.keys, a.values = ptx.GlobalParam[ptx.B32](k, "q"), ptx.GlobalParam[ptx.B32](k, "k"), ptx.GlobalParam[ptx.B32](k, "v")
	if s.Split {
		c.parts, c.shares = ptx.GlobalParam[ptx.F32](k, "parts"), ptx.GlobalParam[ptx.F32](k, "shares")
	}
	a.declare(k)
	c.tiles = ptx.Param[ptx.U32](k, "tiles")
	if s.Split {
		c.per = ptx.Param[ptx.U32](k, "per")
	} else {
		a.to = to.sink(k)
	}
	pitch := s.pitch()
	c.qs = ptx.DynamicShared[ptx.B32](k, 16*s.Rows*pitch)
	c.ks = ptx.DynamicShared[ptx.B32](k, 2*s.Keys*pitch)
	c.vs = ptx.DynamicShared[ptx.B32](k, 2*s.Keys*pitch)
}

// find computes the rows of the block and the keys that these rows see.
func (c *attentionWarps) find() {
	s, k, a := c.s, c.k, c.a
	c.t, c.lane = k.Special(ptx.TidX), k.Special(ptx.LaneID)
	c.warp = c.t.Shr(ptx.U(5))
	c.side, c.slice = ptx.U(0), c.warp
	if s.Sides > 1 {
		c.side, c.slice = c.warp.Div(ptx.N(s.Rows)), c.warp.Rem(ptx.N(s.Rows))
	}
	// Start with the last tiles: they see the most keys.
	block := k.Special(ptx.CtaidX)
	head := block.Div(c.tiles)
	first := c.tiles.Sub(ptx.U(1)).Sub(block.Rem(c.tiles)).Mul(ptx.N(16 * s.Rows))
	c.of, c.first = a.head(head), first

	// Some row of the tile sees the keys below end; all rows see the keys below whole.
	c.lo, c.end, c.whole = ptx.U(0), a.tk, a.tk
	if s.Causal {
		last := first.Add(ptx.N(16*s.Rows - 1)).Min(a.rows.Sub(ptx.U(1)))
		c.end, c.whole = a.seen(last, true, s.Packed), a.seen(first, true, s.Packed)
		if s.Packed {
			together := first.Div(a.tq).Eq(last.Div(a.tq))
			c.end = ptx.Select(together, c.end, a.tk)
			c.whole = ptx.Select(together, c.whole, a.seen(ptx.U(0), true, false))
		}
	}
	c.hidden = c.end
	if s.Split {
		c.lo = k.Special(ptx.CtaidY).Mul(c.per)
		c.end = c.end.Min(c.lo.Add(c.per))
	}
}

// load starts to copy n rows of operand x, from row on, to tile. Rows from limit on become 0.
func (c *attentionWarps) load(tile ptx.Shared[ptx.B32], x int, row, limit ptx.U32, n int) {
	s, k, a, threads := c.s, c.k, c.a, c.s.threads()
	pieces := s.Head * s.Type.Size() / 16
	copyRow := func(r, piece ptx.U32) {
		from := row.Add(r)
		ok := from.Lt(limit).And(piece.Mul(ptx.U(4)).Lt(a.words(a.d2)))
		at := a.piece(x, a.line(x, c.of, from), piece)
		ptx.CopyAsyncZero(tile.At(r.MulAdd(ptx.N(s.pitch()), s.piece(piece, r.And(ptx.U(7))))), a.operand(x).At(ptx.Select(ok, at, ptx.U(0))), 16, ptx.Select(ok, ptx.U(16), ptx.U(0)))
	}
	each := threads / pieces // rows that the block copies at once
	if each == 0 || threads%pieces > 0 || n%each > 0 {
		for i := 0; i < n*pieces; i += threads {
			at := c.t.Add(ptx.N(i))
			copyPiece := func() { copyRow(at.Div(ptx.N(pieces)), at.Rem(ptx.N(pieces))) }
			if i+threads <= n*pieces {
				copyPiece()
			} else {
				k.If(at.Lt(ptx.N(n*pieces)), copyPiece)
			}
		}
		return
	}
	r, piece := c.t.Div(ptx.N(pieces)), c.t.Rem(ptx.N(pieces))
	if together := 8 * each; n > 2*together && n%together == 0 {
		k.For(r, ptx.N(n), ptx.N(together), func(r ptx.U32) {
			for i := range 8 {
				copyRow(r.Add(ptx.N(i*each)), piece)
			}
		})
		return
	}
	for i := 0; i < n; i += each {
		copyRow(r.Add(ptx.N(i)), piece)
	}
}

// stage starts to copy the keys and values from at on to buffer i of the two buffers for tiles.
func (c *attentionWarps) stage(i, at ptx.U32) {
	off := i.Mul(ptx.N(c.s.Keys * c.s.pitch()))
	c.load(c.ks.At(off), op.AttentionK, at, c.end, c.s.Keys)
	c.load(c.vs.At(off), op.AttentionV, at, c.end, c.s.Keys)
	c.k.CopyCommit()
}

// fragments returns accumulators for n products of 16 by 8, set to 0.
func (c *attentionWarps) fragments(n int) [][4]ptx.Var[ptx.F32] {
	f := make([][4]ptx.Var[ptx.F32], n)
	for i := range f {
		for j := range f[i] {
			f[i][j] = ptx.NewVar(c.k, ptx.F(0))
		}
	}
	return f
}

// multiply loops over the tiles of keys and values, and multiplies the warp's part of each.
func (c *attentionWarps) multiply() {
	s, k, a := c.s, c.k, c.a
	w := s.products(k, c.qs, c.slice)
	keys := s.Keys / s.Sides // of a warp
	c.row[0] = c.first.Add(c.slice.MulAdd(ptx.U(16), c.lane.Shr(ptx.U(2))))
	c.row[1] = c.row[0].Add(ptx.U(8))
	c.sees = [2]ptx.U32{a.seen(c.row[0], s.Causal, s.Packed), a.seen(c.row[1], s.Causal, s.Packed)}
	for i := range c.largest {
		c.largest[i], c.total[i] = ptx.NewVar(k, minusInf), ptx.NewVar(k, ptx.F(0))
	}
	c.sums = c.fragments(s.Head / 8)
	turn := ptx.NewVar(k, ptx.U(0))
	k.For(c.lo, c.end, ptx.N(s.Keys), func(at ptx.U32) {
		k.CopyWaitAll()
		k.Sync()
		now := turn.Get()
		turn.Set(now.Xor(ptx.U(1)))
		next := at.Add(ptx.N(s.Keys))
		k.If(next.Lt(c.end), func() { c.stage(now.Xor(ptx.U(1)), next) })
		off := now.Mul(ptx.N(s.Keys * s.pitch()))
		mine := c.side.Mul(ptx.N(keys))
		scores := c.fragments(keys / 8)
		w.keys(c.ks.At(off), mine, scores)
		k.If(next.Gt(c.whole), func() { c.mask(scores, at.Add(mine)) })
		weights := c.weigh(scores)
		w.values(c.vs.At(off), mine, weights, c.sums)
	})
	for i := range c.total {
		c.total[i].Set(quad(c.total[i].Get(), ptx.F32.Add))
	}
}

// mask sets the scores of keys that a row does not see to -Inf. The first score belongs to key from.
func (c *attentionWarps) mask(scores [][4]ptx.Var[ptx.F32], from ptx.U32) {
	key := from.Add(c.lane.And(ptx.U(3)).Mul(ptx.U(2)))
	for j := range scores {
		for e := range scores[j] {
			ok := key.Add(ptx.N(8*j + e%2)).Lt(c.sees[e/2])
			scores[j][e].Set(ptx.Select(ok, scores[j][e].Get(), minusInf))
		}
	}
}

// weigh returns the weights of the scores, and rescales the sums to the greatest score so far.
func (c *attentionWarps) weigh(scores [][4]ptx.Var[ptx.F32]) [][4]ptx.F32 {
	weights := make([][4]ptx.F32, len(scores))
	var base, down [2]ptx.F32
	for i := range 2 {
		top := c.largest[i].Get()
		for j := range scores {
			top = top.Max(scores[j][2*i].Get()).Max(scores[j][2*i+1].Get())
		}
		top = quad(top, ptx.F32.Max)
		base[i] = ptx.Select(top.Eq(minusInf), ptx.F(0), top.Mul(c.a.scale)).Neg()
		down[i] = c.largest[i].Get().Fma(c.a.scale, base[i]).Ex2ApproxFlush()
		c.largest[i].Set(top)
		c.total[i].Set(c.total[i].Get().Mul(down[i]))
	}
	for j := range scores {
		for e := range scores[j] {
			weights[j][e] = scores[j][e].Get().Fma(c.a.scale, base[e/2]).Ex2ApproxFlush()
			ptx.AddTo(c.total[e/2], weights[j][e])
		}
	}
	for j := range c.sums {
		for e := range c.sums[j] {
			c.sums[j][e].Set(c.sums[j][e].Get().Mul(down[e/2]))
		}
	}
	return weights
}

// store stores the rows of the warp. If the keys were divided among sides or splits, it merges or
// stores the partials.
func (c *attentionWarps) store() {
	s, k, a := c.s, c.k, c.a
	if s.Sides == 1 && !s.Split {
		var factor [2]ptx.F32
		for i := range factor {
			factor[i] = ptx.Select(c.sees[i].Eq(ptx.U(0)), ptx.F(0), c.total[i].Get().Rcp())
		}
		var flat []ptx.Var[ptx.F32]
		for i := range c.sums {
			flat = append(flat, c.sums[i][:]...)
		}
		out := &attentionStore{head: s.Head, causal: s.Causal, packed: s.Packed, of: c.of, first: c.first.Add(c.slice.Mul(ptx.U(16))), end: c.hidden}
		out.do(k, a, flat, factor)
		return
	}
	u := &attentionUnion{attentionWarps: c}
	for i := range c.largest {
		u.limit[i] = c.largest[i].Get().Mul(a.scale)
	}
	u.split = k.Special(ptx.CtaidY).Mul(k.Special(ptx.NctaidX).Div(c.tiles).Mul(a.rows)).Add(c.of.q)
	if s.Sides == 1 {
		u.direct()
		return
	}
	k.Sync() // all warps have read the tiles
	u.merge(ptx.CastShared[ptx.F32](c.ks), ptx.CastShared[ptx.F32](c.vs))
}

// quad reduces x over the four lanes that share a row, by f.
func quad(x ptx.F32, f func(x, y ptx.F32) ptx.F32) ptx.F32 {
	for n := 1; n < 4; n *= 2 {
		x = f(x, ptx.ShuffleXor(x, ptx.N(n)))
	}
	return x
}
