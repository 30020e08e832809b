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

// The tiles of [GemmTensor]. The words that 8 lanes write, or read by ldmatrix, are in different
// banks: rows of b are padded; rows of a are too short for padding, so the order of their four runs
// of 16 bytes changes with each pair of rows.
const (
	blockRows = 32
	blockCols = 64
	step      = 32            // of k
	strideB   = blockCols + 8 // elements from one row of b to the next
	beginB    = blockRows * step
	stage     = beginB + step*strideB
)

// GemmTensor is c = a b of half floats, a m by k and b k by n, summed and stored in float32. A
// block of four warps has 32 by 64 elements, a warp 16 by 32. While it multiplies one pair of
// tiles, the next is copied to shared memory. k and n must be multiples of 8; elements beyond the
// edges are zeros.
func GemmTensor(k *ptx.Kernel) {
	k.Block(128, 1, 1)
	a, b, c := ptx.GlobalParam[ptx.F16](k, "a"), ptx.GlobalParam[ptx.F16](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
	m, n, depth := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
	tiles := ptx.SharedArray[ptx.F16](k, "tiles", 2*stage)
	t := k.Special(ptx.TidX)
	top, left := k.Special(ptx.CtaidY).Mul(ptx.U(blockRows)), k.Special(ptx.CtaidX).Mul(ptx.U(blockCols))

	// A thread copies 16 bytes of a, and 16 bytes of two rows of b. For rows and columns that do
	// not exist, k is 0.
	ax, ay := t.And(ptx.U(3)).Mul(ptx.U(8)), t.Shr(ptx.U(2))
	bx, by := t.And(ptx.U(7)).Mul(ptx.U(8)), t.Shr(ptx.U(3))
	rowA, colB := top.Add(ay), left.Add(bx)
	limitA := ptx.Select(rowA.Lt(m), depth, ptx.U(0))
	limitB := ptx.Select(colB.Lt(n), depth, ptx.U(0))
	fromA, fromB := a.At(rowA.MulAdd(depth, ax)), b.At(by.MulAdd(n, colB))
	order := func(row ptx.U32) ptx.U32 { return row.Shl(ptx.U(2)).And(ptx.U(24)) } // pair of rows & 3, times 8
	toA, toB := tiles.At(ay.MulAdd(ptx.U(step), ax.Xor(order(ay)))), tiles.Offset(beginB).At(by.MulAdd(ptx.U(strideB), bx))
	half := n.Mul(ptx.U(step / 2)) // elements of b that a thread skips

	// What ldmatrix reads: a lane names 16 bytes of a row.
	lane, wide := t.And(ptx.U(15)), t.Shr(ptx.U(4)).And(ptx.U(1)).Mul(ptx.U(8))
	row, col := t.Shr(ptx.U(1)).And(ptx.U(16)), t.Shr(ptx.U(6)).Mul(ptx.U(32)) // of the warp
	readB := tiles.Offset(beginB).At(lane.MulAdd(ptx.U(strideB), col.Add(wide)))
	var readA [2]ptx.Shared[ptx.F16] // of the first half of step, and the second
	x := wide.Xor(order(lane))
	for i := range readA {
		readA[i] = tiles.At(row.Add(lane).MulAdd(ptx.U(step), x.Xor(ptx.U(uint32(16*i)))))
	}
	var acc [4][4]ptx.Var[ptx.F32]
	for j := range acc {
		for l := range acc[j] {
			acc[j][l] = ptx.NewVar(k, ptx.F(0))
		}
	}
	// Each turn copies the tiles of i and multiplies those before.
	i, rows, now := ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0))
	k.Repeat(func() ptx.Pred {
		other := ptx.U(stage).Sub(now.Live())
		some := func(at, limit ptx.U32) ptx.U32 { return ptx.Select(at.Lt(limit), ptx.U(16), ptx.U(0)) }
		ptx.CopyAsyncZero(toA.At(now.Live()), fromA.At(i.Live()), 16, some(i.Live().Add(ax), limitA))
		to := toB.At(now.Live())
		for h := range 2 {
			from := fromB.At(rows.Live())
			y := i.Live().Add(by)
			if h > 0 {
				y = y.Add(ptx.U(step / 2))
			}
			ptx.CopyAsyncZero(to.Offset(step/2*strideB*h), from, 16, some(y, limitB))
			ptx.AddTo(rows, half)
		}
		k.CopyCommit()
		k.If(i.Live().Ne(ptx.U(0)), func() {
			k.CopyWait(1)
			k.Sync()
			pb := readB.At(other)
			for s := range readA {
				x := ptx.LoadMatrix4(ptx.CastShared[ptx.F16x2](readA[s].At(other)), false)
				for j := 0; j < 4; j += 2 {
					v := ptx.LoadMatrix4(ptx.CastShared[ptx.F16x2](pb.Offset(16*s*strideB+8*j)), true)
					k.MmaF16(&acc[j], x, [2]ptx.F16x2{v[0], v[1]})
					k.MmaF16(&acc[j+1], x, [2]ptx.F16x2{v[2], v[3]})
				}
			}
			k.Sync()
		})
		now.Set(other)
		more := i.Live().Lt(depth)
		ptx.AddTo(i, ptx.U(step))
		return more
	})
	k.CopyWaitAll()

	row = top.Add(row).Add(t.Shr(ptx.U(2)).And(ptx.U(7)))
	col = left.Add(col).Add(t.And(ptx.U(3)).Mul(ptx.U(2)))
	to := c.At(row.MulAdd(n, col))
	var in [4]ptx.Pred
	for j := range in {
		in[j] = col.Add(ptx.U(uint32(8 * j))).Lt(n)
	}
	for h := range 2 {
		k.If(row.Add(ptx.U(uint32(8*h))).Lt(m), func() {
			to := to.At(n.Mul(ptx.U(uint32(8 * h))))
			for j := range acc {
				k.When(in[j], func() { to.Offset(8 * j).Store2([2]ptx.F32{acc[j][2*h].Live(), acc[j][2*h+1].Live()}) })
			}
		})
	}
}
