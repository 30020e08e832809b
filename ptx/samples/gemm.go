package samples

import "github.com/rayo-go/rayo/ptx"

// GemmNaive is c = a b of float32 matrices m by k and k by n, an element a thread.
func GemmNaive(k *ptx.Kernel) {
	a, b, c := ptx.GlobalParam[ptx.F32](k, "a"), ptx.GlobalParam[ptx.F32](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
	m, n, depth := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
	row := k.Special(ptx.CtaidY).MulAdd(k.Special(ptx.NtidY), k.Special(ptx.TidY))
	col := k.Special(ptx.CtaidX).MulAdd(k.Special(ptx.NtidX), k.Special(ptx.TidX))
	k.ReturnIf(row.Ge(m).Or(col.Ge(n)))
	sum := ptx.NewVar(k, ptx.F(0))
	left := ptx.NewVar(k, row.Mul(depth)) // a walks along its row, b down its column
	right := ptx.NewVar(k, col)
	end := left.Live().Add(depth)
	k.While(func() ptx.Pred { return left.Live().Lt(end) }, func() {
		ptx.MulAddTo(sum, a.At(left.Live()).Load(), b.At(right.Live()).Load())
		ptx.AddTo(left, ptx.U(1))
		ptx.AddTo(right, n)
	})
	c.At(row.MulAdd(n, col)).Store(sum.Live())
}

// Tile is the rows and columns of the tiles of [GemmTiled].
const Tile = 16

// GemmTiled is c = a b of float32 matrices m by k and k by n, by tiles in shared
// memory. Threads beyond the edges load the last row or column, and store
// nothing.
func GemmTiled(k *ptx.Kernel) {
	side := ptx.U(Tile)
	a, b, c := ptx.GlobalParam[ptx.F32](k, "a"), ptx.GlobalParam[ptx.F32](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
	m, n, depth := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
	as, bs := ptx.SharedArray[ptx.F32](k, "as", Tile*Tile), ptx.SharedArray[ptx.F32](k, "bs", Tile*Tile)
	x, y := k.Special(ptx.TidX), k.Special(ptx.TidY)
	row, col := k.Special(ptx.CtaidY).MulAdd(side, y), k.Special(ptx.CtaidX).MulAdd(side, x)
	in := row.Lt(m).And(col.Lt(n))
	left := ptx.NewVar(k, row.Min(m.Sub(ptx.U(1))).MulAdd(depth, x))
	right := ptx.NewVar(k, y.MulAdd(n, col.Min(n.Sub(ptx.U(1)))))
	down := n.Mul(side) // from one tile of b to the next
	mine := y.MulAdd(side, x)
	toA, toB := as.At(mine), bs.At(mine)
	fromA, fromB := as.At(y.Mul(side)), bs.At(x)
	sum, va, vb := ptx.NewVar(k, ptx.F(0)), ptx.NewVar(k, ptx.F(0)), ptx.NewVar(k, ptx.F(0))
	k.For(ptx.U(0), depth, side, func(i ptx.U32) {
		va.Set(ptx.F(0))
		vb.Set(ptx.F(0))
		k.When(i.Add(x).Lt(depth), func() { a.At(left.Live()).LoadTo(va) })
		k.When(i.Add(y).Lt(depth), func() { b.At(right.Live()).LoadTo(vb) })
		toA.Store(va.Live())
		toB.Store(vb.Live())
		ptx.AddTo(left, side)
		ptx.AddTo(right, down)
		k.Sync()
		for j := 0; j < Tile; j += 4 {
			for d, v := range fromA.Offset(j).Load4() {
				ptx.MulAddTo(sum, v, fromB.Offset((j+d)*Tile).Load())
			}
		}
		k.Sync()
	})
	k.When(in, func() { c.At(row.MulAdd(n, col)).Store(sum.Live()) })
}
