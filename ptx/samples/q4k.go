package samples

import "github.com/rayo-go/rayo/ptx"

// Q4K computes c = a wᵀ. a is m by k in float32, and a row of w consists of k/256 blocks of Q4_K. A
// block has 144 bytes: two half floats d and dmin, eight pairs of a scale and a minimum of six bits
// each, and 256 weights of four bits. Weight i is d·scale·q - dmin·minimum, with the pair of its
// group of 32. c is m by n in float32. A block of one warp computes one element of c, so the grid
// has n by m blocks. k is a multiple of 256.
//
// A lane takes eight weights of a block, the low and the high halves of four bytes: bytes 4l to
// 4l+3 of the 128 belong to the groups 2(l/8) and 2(l/8) + 1, at the same positions of both.
func Q4K(k *ptx.Kernel) {
	a, w, c := ptx.GlobalParam[ptx.F32](k, "a"), ptx.GlobalParam[ptx.U32](k, "w"), ptx.GlobalParam[ptx.F32](k, "c")
	n, depth := ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
	const words = 144 / 4
	lane, row, col := k.Special(ptx.TidX), k.Special(ptx.CtaidY), k.Special(ptx.CtaidX)
	pair := lane.Shr(ptx.U(3)) // pair of groups: 64 weights
	x := a.At(row.MulAdd(depth, pair.MulAdd(ptx.U(64), lane.And(ptx.U(7)).Mul(ptx.U(4)))))
	block := w.At(col.Mul(depth.Shr(ptx.U(8))).Mul(ptx.U(words)))
	mine := block.Offset(4).At(lane)
	// The twelve bytes of scales hold the scales of groups 0 to 3, the minima of these groups, and
	// four bytes with the low bits of the scale and the minimum of each of groups 4 to 7. The two
	// highest bits of the latter are the highest bits of the first eight bytes. Both groups of a
	// pair are in the same half.
	shift := pair.And(ptx.U(1)).Mul(ptx.U(16))
	low := pair.Lt(ptx.U(2))
	sum := ptx.NewVar(k, ptx.F(0))
	at := ptx.NewVar(k, ptx.U(0))
	k.For(ptx.U(0), depth, ptx.U(256), func(i ptx.U32) {
		head := block.At(at.Live()).Load4()
		q := mine.At(at.Live()).Load()
		first, second, third := head[1].Shr(shift), head[2].Shr(shift), head[3].Shr(shift)
		six := ptx.U(0x3f3f3f3f)
		scales := ptx.Select(low, first.And(six), third.And(ptx.U(0x0f0f0f0f)).Or(first.Shr(ptx.U(2)).And(ptx.U(0x30303030))))
		minima := ptx.Select(low, second.And(six), third.Shr(ptx.U(4)).And(ptx.U(0x0f0f0f0f)).Or(second.Shr(ptx.U(2)).And(ptx.U(0x30303030))))
		d, dmin := head[0].B32().F16x2().Halves()
		for g := range 2 {
			dot, all := ptx.F(0), ptx.F(0)
			for j, v := range x.At(i).Offset(32 * g).Load4() {
				e := q.Field(ptx.U(uint32(8*j+4*g)), ptx.U(4)).F32()
				if j == 0 {
					dot, all = e.Mul(v), v
					continue
				}
				dot, all = e.Fma(v, dot), all.Add(v)
			}
			at := ptx.U(uint32(8 * g))
			ptx.MulAddTo(sum, dot, d.F32().Mul(scales.Field(at, ptx.U(8)).F32()))
			ptx.MulAddTo(sum, all.Neg(), dmin.F32().Mul(minima.Field(at, ptx.U(8)).F32()))
		}
		ptx.AddTo(at, ptx.U(words))
	})
	total := sum.Live()
	for d := uint32(16); d > 0; d /= 2 {
		total = total.Add(ptx.ShuffleXor(total, ptx.U(d)))
	}
	k.When(lane.Eq(ptx.U(0)), func() { c.At(row.MulAdd(n, col)).Store(total) })
}
