package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// attentionMMA is attention by the products of warps, for sm_80 and later. It goes through the keys
// once (Dao: FlashAttention-2): a block has the queries of 16 rows for each of Rows warps, in
// registers, and a tile of keys and values in shared memory while the next tile is copied. A
// greater score scales the sums down (online softmax).
//
// Sides warps share the rows and divide the keys of a tile, if there are too few rows to divide.
type attentionMMA struct {
	Type           op.DType
	Causal         bool
	Packed         bool // rows of several heads in one matrix
	Split          bool // the keys are divided among blocks: results are parts, in float32
	Head           int  // elements of a row in shared memory: those beyond d are 0
	Rows, Sides    int
	Keys           int // of a tile
	AlignedWeights attentionStrided
}

func (s attentionMMA) threads() int { return 32 * s.Rows * s.Sides }

// shared returns the bytes of shared memory.
func (s attentionMMA) shared() int { return 4 * s.pitch() * (16*s.Rows + 4*s.Keys) }

// products returns what multiplies matrices of the type.
func (s attentionMMA) products(k *ptx.Kernel, qs ptx.Shared[ptx.B32], slice ptx.U32) attentionProducts {
	if s.Type == op.F32 {
		return newSingleProducts(s, k, qs, slice)
	}
	return newHalfProducts(s, k, qs, slice)
}

// attentionProducts multiplies matrices in shared memory for a warp.
type attentionProducts interface {
	// keys adds to scores the products of the queries of the warp and keys, from
	// row on.
	keys(tile ptx.Shared[ptx.B32], row ptx.U32, scores [][4]ptx.Var[ptx.F32])
	// values adds to sums the products of weights, which a lane has where scores
	// were, and values, from row on.
	values(tile ptx.Shared[ptx.B32], row ptx.U32, weights [][4]ptx.F32, sums [][4]ptx.Var[ptx.F32])
}

// build writes the kernel. The layouts are those of mma.m16n8k16 in the PTX manual: of a product of
// 16 by 8, a lane has the rows lane/4 and lane/4 + 8, and the columns 2(lane%4) and the next.
func (s attentionMMA) build(k *ptx.Kernel, to *epilogue) {
	threads := s.threads()
	k.Block(threads, 1, 1)
	a := &attentionArgs{typ: s.Type, strided: s.AlignedWeights, packed: s.Packed}
	a.q, a.keys, a.values = ptx.GlobalParam[ptx.B32](k, "q"), ptx.GlobalParam[ptx.B32](k, "k"), ptx.GlobalParam[ptx.B32](k, "v")
	var parts, shares ptx.Global[ptx.F32]
	var per ptx.U32
	if s.Split {
		parts, shares = ptx.GlobalParam[ptx.F32](k, "parts"), ptx.GlobalParam[ptx.F32](k, "shares")
	}
	a.declare(k)
	tiles := ptx.Param[ptx.U32](k, "tiles")
	if s.Split {
		per = ptx.Param[ptx.U32](k, "per")
	} else {
		a.to = to.sink(k)
	}
	pitch := s.pitch()
	qs := ptx.DynamicShared[ptx.B32](k, 16*s.Rows*pitch)
	ks := ptx.DynamicShared[ptx.B32](k, 2*s.Keys*pitch)
	vs := ptx.DynamicShared[ptx.B32](k, 2*s.Keys*pitch)

	t, lane := k.Special(ptx.TidX), k.Special(ptx.LaneID)
	warp := t.Shr(ptx.U(5))
	side, slice := ptx.U(0), warp
	if s.Sides > 1 {
		side, slice = warp.Div(ptx.N(s.Rows)), warp.Rem(ptx.N(s.Rows))
	}
	// The last tiles, which see most, go first.
	block := k.Special(ptx.CtaidX)
	head := block.Div(tiles)
	first := tiles.Sub(ptx.U(1)).Sub(block.Rem(tiles)).Mul(ptx.N(16 * s.Rows))
	of := a.head(head)

	// The rows of the tile see keys up to end; all of them see those below whole.
	lo, end, whole := ptx.U(0), a.tk, a.tk
	if s.Causal {
		last := first.Add(ptx.N(16*s.Rows - 1)).Min(a.rows.Sub(ptx.U(1)))
		end, whole = a.seen(last, true, s.Packed), a.seen(first, true, s.Packed)
		if s.Packed {
			together := first.Div(a.tq).Eq(last.Div(a.tq))
			end = ptx.Select(together, end, a.tk)
			whole = ptx.Select(together, whole, a.seen(ptx.U(0), true, false))
		}
	}
	hidden := end
	if s.Split {
		lo = k.Special(ptx.CtaidY).Mul(per)
		end = end.Min(lo.Add(per))
	}

	// load starts to copy n rows from row on into tile; rows from limit on are 0.
	pieces := s.Head * s.Type.Size() / 16
	load := func(tile ptx.Shared[ptx.B32], x int, row, limit ptx.U32, n int) {
		copyRow := func(r, c ptx.U32) {
			from := row.Add(r)
			ok := from.Lt(limit).And(c.Mul(ptx.U(4)).Lt(a.words(a.d2)))
			at := a.piece(x, a.line(x, of, from), c)
			ptx.CopyAsyncZero(tile.At(r.MulAdd(ptx.N(pitch), s.piece(c, r.And(ptx.U(7))))), a.operand(x).At(ptx.Select(ok, at, ptx.U(0))), 16, ptx.Select(ok, ptx.U(16), ptx.U(0)))
		}
		each := threads / pieces // rows that the block copies at once
		if each == 0 || threads%pieces > 0 || n%each > 0 {
			for i := 0; i < n*pieces; i += threads {
				at := t.Add(ptx.N(i))
				copyPiece := func() { copyRow(at.Div(ptx.N(pieces)), at.Rem(ptx.N(pieces))) }
				if i+threads <= n*pieces {
					copyPiece()
				} else {
					k.If(at.Lt(ptx.N(n*pieces)), copyPiece)
				}
			}
			return
		}
		r, c := t.Div(ptx.N(pieces)), t.Rem(ptx.N(pieces))
		if together := 8 * each; n > 2*together && n%together == 0 {
			k.For(r, ptx.N(n), ptx.N(together), func(r ptx.U32) {
				for i := range 8 {
					copyRow(r.Add(ptx.N(i*each)), c)
				}
			})
			return
		}
		for i := 0; i < n; i += each {
			copyRow(r.Add(ptx.N(i)), c)
		}
	}
	stage := func(i, at ptx.U32) {
		off := i.Mul(ptx.N(s.Keys * pitch))
		load(ks.At(off), op.AttentionK, at, end, s.Keys)
		load(vs.At(off), op.AttentionV, at, end, s.Keys)
		k.CopyCommit()
	}
	load(qs, op.AttentionQ, first, a.rows, 16*s.Rows)
	k.CopyCommit()
	k.If(lo.Lt(end), func() { stage(ptx.U(0), lo) })
	k.CopyWaitAll()
	k.Sync()

	w := s.products(k, qs, slice)
	keys := s.Keys / s.Sides // of a warp
	row := [2]ptx.U32{first.Add(slice.MulAdd(ptx.U(16), lane.Shr(ptx.U(2))))}
	row[1] = row[0].Add(ptx.U(8))
	sees := [2]ptx.U32{a.seen(row[0], s.Causal, s.Packed), a.seen(row[1], s.Causal, s.Packed)}
	var largest, total [2]ptx.Var[ptx.F32]
	for i := range largest {
		largest[i], total[i] = ptx.NewVar(k, minusInf), ptx.NewVar(k, ptx.F(0))
	}
	fragments := func(n int) [][4]ptx.Var[ptx.F32] {
		f := make([][4]ptx.Var[ptx.F32], n)
		for i := range f {
			for j := range f[i] {
				f[i][j] = ptx.NewVar(k, ptx.F(0))
			}
		}
		return f
	}
	sums := fragments(s.Head / 8)
	turn := ptx.NewVar(k, ptx.U(0))
	k.For(lo, end, ptx.N(s.Keys), func(at ptx.U32) {
		k.CopyWaitAll()
		k.Sync()
		now := turn.Get()
		turn.Set(now.Xor(ptx.U(1)))
		next := at.Add(ptx.N(s.Keys))
		k.If(next.Lt(end), func() { stage(now.Xor(ptx.U(1)), next) })
		off := now.Mul(ptx.N(s.Keys * pitch))
		mine := side.Mul(ptx.N(keys))
		scores := fragments(keys / 8)
		w.keys(ks.At(off), mine, scores)
		k.If(next.Gt(whole), func() {
			key := at.Add(mine).Add(lane.And(ptx.U(3)).Mul(ptx.U(2)))
			for j := range scores {
				for e := range scores[j] {
					ok := key.Add(ptx.N(8*j + e%2)).Lt(sees[e/2])
					scores[j][e].Set(ptx.Select(ok, scores[j][e].Get(), minusInf))
				}
			}
		})
		weights := make([][4]ptx.F32, len(scores))
		var base, down [2]ptx.F32
		for i := range 2 {
			top := largest[i].Get()
			for j := range scores {
				top = top.Max(scores[j][2*i].Get()).Max(scores[j][2*i+1].Get())
			}
			top = quad(top, ptx.F32.Max)
			base[i] = ptx.Select(top.Eq(minusInf), ptx.F(0), top.Mul(a.scale)).Neg()
			down[i] = largest[i].Get().Fma(a.scale, base[i]).Ex2ApproxFlush()
			largest[i].Set(top)
			total[i].Set(total[i].Get().Mul(down[i]))
		}
		for j := range scores {
			for e := range scores[j] {
				weights[j][e] = scores[j][e].Get().Fma(a.scale, base[e/2]).Ex2ApproxFlush()
				ptx.AddTo(total[e/2], weights[j][e])
			}
		}
		for j := range sums {
			for e := range sums[j] {
				sums[j][e].Set(sums[j][e].Get().Mul(down[e/2]))
			}
		}
		w.values(vs.At(off), mine, weights, sums)
	})
	for i := range total {
		total[i].Set(quad(total[i].Get(), ptx.F32.Add))
	}

	if s.Sides == 1 && !s.Split {
		var factor [2]ptx.F32
		for i := range factor {
			factor[i] = ptx.Select(sees[i].Eq(ptx.U(0)), ptx.F(0), total[i].Get().Rcp())
		}
		var flat []ptx.Var[ptx.F32]
		for i := range sums {
			flat = append(flat, sums[i][:]...)
		}
		out := &attentionStore{head: s.Head, causal: s.Causal, packed: s.Packed, of: of, first: first.Add(slice.Mul(ptx.U(16))), end: hidden}
		out.do(k, a, flat, factor)
		return
	}
	u := &attentionUnion{s: s, k: k, a: a, sums: sums, total: total, parts: parts, shares: shares, row: row, of: of, first: first, hidden: hidden}
	for i := range largest {
		u.limit[i] = largest[i].Get().Mul(a.scale)
	}
	u.split = k.Special(ptx.CtaidY).Mul(k.Special(ptx.NctaidX).Div(tiles).Mul(a.rows)).Add(of.q)
	if s.Sides == 1 {
		u.direct()
		return
	}
	k.Sync() // the tiles are not needed any more
	u.merge(ptx.CastShared[ptx.F32](ks), ptx.CastShared[ptx.F32](vs), warp, side, slice)
}

// quad combines x of the four lanes that share a row.
func quad(x ptx.F32, f func(x, y ptx.F32) ptx.F32) ptx.F32 {
	for n := 1; n < 4; n *= 2 {
		x = f(x, ptx.ShuffleXor(x, ptx.N(n)))
	}
	return x
}
