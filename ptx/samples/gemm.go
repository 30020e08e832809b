package samples

import "github.com/rayo-go/rayo/ptx"

// GemmNaive computes c = a b for float32 matrices m by k and k by n. A thread computes one element.
func GemmNaive(k *ptx.Kernel) {
	a, b, c := ptx.GlobalParam[ptx.F32](k, "a"), ptx.GlobalParam[ptx.F32](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
	m, n, depth := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
	row := k.Special(ptx.CtaidY).MulAdd(k.Special(ptx.NtidY), k.Special(ptx.TidY))
	col := k.Special(ptx.CtaidX).MulAdd(k.Special(ptx.NtidX), k.Special(ptx.TidX))
	k.ReturnIf(row.Ge(m).Or(col.Ge(n)))
	sum := ptx.NewVar(k, ptx.F(0))
	left := ptx.NewVar(k, row.Mul(depth)) // left moves along a row of a, right down a column of b
	right := ptx.NewVar(k, col)
	end := left.Live().Add(depth)
	k.While(func() ptx.Pred { return left.Live().Lt(end) }, func() {
		ptx.MulAddTo(sum, a.At(left.Live()).Load(), b.At(right.Live()).Load())
		ptx.AddTo(left, ptx.U(1))
		ptx.AddTo(right, n)
	})
	c.At(row.MulAdd(n, col)).Store(sum.Live())
}

// Tile is the number of rows and of columns of the tiles of [GemmTiled].
const Tile = 16

// GemmTiled computes c = a b for float32 matrices m by k and k by n. A thread computes one element.
// The block loads tiles into shared memory, with zeros beyond the edges of the matrices.
func GemmTiled(k *ptx.Kernel) {
	side := ptx.U(Tile)
	a, b, c := ptx.GlobalParam[ptx.F32](k, "a"), ptx.GlobalParam[ptx.F32](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
	m, n, depth := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
	tiles := ptx.SharedArray[ptx.F32](k, "tiles", 2*Tile*Tile) // a tile of a, then a tile of b
	x, y := k.Special(ptx.TidX), k.Special(ptx.TidY)
	row, col := k.Special(ptx.CtaidY).MulAdd(side, y), k.Special(ptx.CtaidX).MulAdd(side, x)
	rowIn, colIn := row.Lt(m), col.Lt(n)
	left, right := a.At(row.MulAdd(depth, x)), b.At(y.MulAdd(n, col))
	// The limit is 0 for rows and columns that do not exist, so that their tiles are zeros.
	limitA, limitB := ptx.Select(rowIn, depth, ptx.U(0)), ptx.Select(colIn, depth, ptx.U(0))
	fromA, fromB := tiles.At(y.Mul(side)), tiles.Offset(Tile*Tile).At(x)
	to := fromA.At(x)
	sum, i := ptx.NewVar(k, ptx.F(0)), ptx.NewVar(k, ptx.U(0))
	k.Repeat(func() ptx.Pred {
		va, vb := ptx.NewVar(k, ptx.F(0)), ptx.NewVar(k, ptx.F(0))
		k.When(i.Live().Add(x).Lt(limitA), func() { left.At(i.Live()).LoadTo(va) })
		k.When(i.Live().Add(y).Lt(limitB), func() { right.At(i.Live().Mul(n)).LoadTo(vb) })
		to.Store(va.Live())
		to.Offset(Tile * Tile).Store(vb.Live())
		k.Sync()
		k.Count(side, func(j ptx.U32) { // ptxas unrolls it
			ptx.MulAddTo(sum, fromA.At(j).Load(), fromB.At(j.Mul(side)).Load())
		})
		k.Sync()
		ptx.AddTo(i, side)
		return i.Live().Lt(depth)
	})
	k.When(rowIn.And(colIn), func() { c.At(row.MulAdd(n, col)).Store(sum.Live()) })
}
