package samples

import "github.com/rayo-go/rayo/ptx"

// GemmWarp is c = a bᵀ of half floats, a m by k and b n by k as the weights of a
// linear layer are, summed and stored in float32. A block of one warp has 16 by 16
// elements. k is a multiple of 16; rows beyond the edges are read again and not
// stored.
//
// Lane i of mma.m16n8k16 holds of a the rows i/4 and i/4 + 8 and the columns
// 2(i%4) and 2(i%4) + 8, two neighbours each; of bᵀ column i/4, the same places;
// and of c rows as of a and two columns from 2(i%4) on.
func GemmWarp(k *ptx.Kernel) {
	a, b, c := ptx.GlobalParam[ptx.F16x2](k, "a"), ptx.GlobalParam[ptx.F16x2](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
	m, n, depth := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
	lane := k.Special(ptx.TidX)
	group, pair := lane.Shr(ptx.U(2)), lane.And(ptx.U(3))
	half := depth.Shr(ptx.U(1)) // words of a row
	row, col := k.Special(ptx.CtaidY).MulAdd(ptx.U(16), group), k.Special(ptx.CtaidX).MulAdd(ptx.U(16), group)
	var left, right [2]ptx.Global[ptx.F16x2]
	lastRow, lastCol := m.Sub(ptx.U(1)), n.Sub(ptx.U(1))
	for i := range left {
		left[i] = a.At(row.Add(ptx.U(uint32(8*i))).Min(lastRow).MulAdd(half, pair))
		right[i] = b.At(col.Add(ptx.U(uint32(8*i))).Min(lastCol).MulAdd(half, pair))
	}
	var acc [2][4]ptx.Var[ptx.F32]
	for i := range acc {
		for j := range acc[i] {
			acc[i][j] = ptx.NewVar(k, ptx.F(0))
		}
	}
	k.For(ptx.U(0), half, ptx.U(8), func(i ptx.U32) {
		p, q := left[0].At(i), left[1].At(i)
		x := [4]ptx.F16x2{p.Load(), q.Load(), p.Offset(4).Load(), q.Offset(4).Load()}
		for j := range acc {
			r := right[j].At(i)
			k.MmaF16(&acc[j], x, [2]ptx.F16x2{r.Load(), r.Offset(4).Load()})
		}
	})
	col = k.Special(ptx.CtaidX).MulAdd(ptx.U(16), pair.Mul(ptx.U(2)))
	for i := range 2 {
		row := row.Add(ptx.U(uint32(8 * i)))
		to := c.At(row.MulAdd(n, col))
		in := row.Lt(m)
		for j := range acc {
			for l := range 2 {
				d := 8*j + l
				k.When(in.And(col.Add(ptx.U(uint32(d))).Lt(n)), func() { to.Offset(d).Store(acc[j][2*i+l].Live()) })
			}
		}
	}
}

// The tiles of [GemmTensor]. What 8 lanes write, and what 8 read by ldmatrix, lies in
// different banks: rows of b are padded; those of a are too short for that, and
// have their four runs of 16 bytes in another order in each pair of rows.
const (
	blockSide = 64
	step      = 32            // of k
	strideA   = step          // elements from one row of a to the next
	strideB   = blockSide + 8 // and of b
	beginB    = blockSide * strideA
	stage     = beginB + step*strideB
)

// GemmTensor is c = a b of half floats, a m by k and b k by n, summed and stored in
// float32. A block of four warps has 64 by 64 elements, a warp 32 by 32. While it
// multiplies one pair of tiles the next is copied to shared memory. k and n are
// multiples of 8; what is beyond the edges arrives as zeros.
func GemmTensor(k *ptx.Kernel) {
	k.Block(128, 1, 1)
	a, b, c := ptx.GlobalParam[ptx.F16](k, "a"), ptx.GlobalParam[ptx.F16](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
	m, n, depth := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
	tiles := ptx.SharedArray[ptx.F16](k, "tiles", 2*stage)
	t := k.Special(ptx.TidX)
	top, left := k.Special(ptx.CtaidY).Mul(ptx.U(blockSide)), k.Special(ptx.CtaidX).Mul(ptx.U(blockSide))

	// What a thread copies: 16 bytes at column x of rows y and y+32 of a, and of
	// rows y and y+16 of b.
	ax, ay := t.And(ptx.U(3)).Mul(ptx.U(8)), t.Shr(ptx.U(2))
	bx, by := t.And(ptx.U(7)).Mul(ptx.U(8)), t.Shr(ptx.U(3))
	var fromA, fromB [2]ptx.Global[ptx.F16]
	var limitA [2]ptx.U32 // copies end before this element of k
	for i := range fromA {
		row := top.Add(ay.Add(ptx.U(uint32(32 * i))))
		fromA[i] = a.At(row.MulAdd(depth, ax))
		limitA[i] = ptx.Select(row.Lt(m), depth, ptx.U(0))
		fromB[i] = b.At(by.Add(ptx.U(uint32(16*i))).MulAdd(n, left.Add(bx)))
	}
	limitB := ptx.Select(left.Add(bx).Lt(n), depth, ptx.U(0))
	order := func(row ptx.U32) ptx.U32 { return row.Shl(ptx.U(2)).And(ptx.U(24)) } // pair of rows & 3, times 8
	toA, toB := tiles.At(ay.MulAdd(ptx.U(strideA), ax.Xor(order(ay)))), tiles.Offset(beginB).At(by.MulAdd(ptx.U(strideB), bx))
	load := func(at, rows, stage ptx.U32) {
		some := func(p ptx.Pred) ptx.U32 { return ptx.Select(p, ptx.U(16), ptx.U(0)) }
		for i := range fromA {
			ptx.CopyAsyncZero(toA.At(stage).Offset(32*strideA*i), fromA[i].At(at), 16, some(at.Add(ax).Lt(limitA[i])))
			row := at.Add(by.Add(ptx.U(uint32(16 * i))))
			ptx.CopyAsyncZero(toB.At(stage).Offset(16*strideB*i), fromB[i].At(rows), 16, some(row.Lt(limitB)))
		}
		k.CopyCommit()
	}

	lane, wide := t.And(ptx.U(15)), t.Shr(ptx.U(4)).And(ptx.U(1)).Mul(ptx.U(8))
	row, col := t.Shr(ptx.U(5)).And(ptx.U(1)).Mul(ptx.U(32)), t.Shr(ptx.U(6)).Mul(ptx.U(32)) // of the warp
	var readA [2]ptx.Shared[ptx.F16]                                                         // of the first half of step, and the second
	for i := range readA {
		x := wide.Xor(order(lane)).Xor(ptx.U(uint32(16 * i)))
		readA[i] = tiles.At(row.Add(lane).MulAdd(ptx.U(strideA), x))
	}
	readB := tiles.Offset(beginB).At(lane.MulAdd(ptx.U(strideB), col.Add(wide)))
	var acc [2][4][4]ptx.Var[ptx.F32]
	for i := range acc {
		for j := range acc[i] {
			for l := range acc[i][j] {
				acc[i][j][l] = ptx.NewVar(k, ptx.F(0))
			}
		}
	}
	load(ptx.U(0), ptx.U(0), ptx.U(0))
	rows, now := ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0))
	down := n.Mul(ptx.U(step))
	k.For(ptx.U(0), depth, ptx.U(step), func(i ptx.U32) {
		ptx.AddTo(rows, down)
		load(i.Add(ptx.U(step)), rows.Live(), ptx.U(stage).Sub(now.Live()))
		k.CopyWait(1)
		k.Sync()
		pb := readB.At(now.Live())
		for s := range readA {
			pa, pb := readA[s].At(now.Live()), pb.Offset(16*s*strideB)
			var y [4][2]ptx.F16x2
			for j := 0; j < 4; j += 2 {
				v := ptx.LoadMatrix4(ptx.CastShared[ptx.F16x2](pb.Offset(8*j)), true)
				y[j], y[j+1] = [2]ptx.F16x2{v[0], v[1]}, [2]ptx.F16x2{v[2], v[3]}
			}
			for i := range acc {
				x := ptx.LoadMatrix4(ptx.CastShared[ptx.F16x2](pa.Offset(16*strideA*i)), false)
				for j := range acc[i] {
					k.MmaF16(&acc[i][j], x, y[j])
				}
			}
		}
		k.Sync()
		now.Set(ptx.U(stage).Sub(now.Live()))
	})
	k.CopyWaitAll()

	row = top.Add(row).Add(t.Shr(ptx.U(2)).And(ptx.U(7)))
	col = left.Add(col).Add(t.And(ptx.U(3)).Mul(ptx.U(2)))
	for i := range acc {
		for h := range 2 {
			row := row.Add(ptx.U(uint32(16*i + 8*h)))
			to, in := c.At(row.MulAdd(n, col)), row.Lt(m)
			for j := range acc[i] {
				k.When(in.And(col.Add(ptx.U(uint32(8*j))).Lt(n)), func() {
					to.Offset(8 * j).Store2([2]ptx.F32{acc[i][j][2*h].Live(), acc[i][j][2*h+1].Live()})
				})
			}
		}
	}
}
