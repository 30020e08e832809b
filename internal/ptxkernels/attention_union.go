package ptxkernels

import "github.com/rayo-go/rayo/ptx"

// attentionUnion holds the partials of a warp that multiplied only the keys of a split or of a
// side.
type attentionUnion struct {
	*attentionWarps
	limit [2]ptx.F32 // greatest score of each row, times scale, to base 2
	split ptx.U32    // offset of the head's rows in the partials
}

// direct stores the partials of a split.
func (u *attentionUnion) direct() {
	k, a, lane := u.k, u.a, u.k.Special(ptx.LaneID)
	for i := range 2 {
		k.If(u.row[i].Lt(a.rows), func() {
			at := u.split.Add(u.row[i])
			for j := range u.sums {
				c := lane.And(ptx.U(3)).Add(ptx.N(4 * j))
				k.If(c.Lt(a.d2), func() {
					u.parts.At(at.MulAdd(a.d2, c).Mul(ptx.U(2))).Store2([2]ptx.F32{u.sums[j][2*i].Get(), u.sums[j][2*i+1].Get()})
				})
			}
			k.If(lane.And(ptx.U(3)).Eq(ptx.U(0)), func() {
				u.shares.At(at.Mul(ptx.U(2))).Store2([2]ptx.F32{u.limit[i], u.total[i].Get()})
			})
		})
	}
}

// merge merges the partials of the sides and stores the result, or the partial of a split. Sides
// exchange sums through wide, and limits and sums of weights through notes. The words of each 32 in
// wide are permuted by the row modulo 4, so that stores have no bank conflicts.
func (u *attentionUnion) merge(wide, notes ptx.Shared[ptx.F32]) {
	s, k, a, lane := u.s, u.k, u.a, u.k.Special(ptx.LaneID)
	n := 16 * s.Rows
	mine := u.side.MulAdd(ptx.N(n), u.slice.MulAdd(ptx.U(16), lane.Shr(ptx.U(2))))
	turn := func(row ptx.U32) ptx.U32 { return row.And(ptx.U(3)).Mul(ptx.U(8)) }
	for i := range 2 {
		row := mine.Add(ptx.N(8 * i))
		var at [4]ptx.Shared[ptx.F32]
		for j := range at {
			at[j] = wide.At(row.MulAdd(ptx.N(s.Head), turn(row).Xor(ptx.N(8*j)).Add(lane.And(ptx.U(3)).Mul(ptx.U(2)))))
		}
		for j := range u.sums {
			at[j%4].Offset(j / 4 * 32).Store2([2]ptx.F32{u.sums[j][2*i].Get(), u.sums[j][2*i+1].Get()})
		}
		k.If(lane.And(ptx.U(3)).Eq(ptx.U(0)), func() {
			notes.At(row.Mul(ptx.U(2))).Store2([2]ptx.F32{u.limit[i], u.total[i].Get()})
		})
	}
	k.Sync()
	k.For(u.warp, ptx.N(n), ptx.N(s.Rows*s.Sides), func(i ptx.U32) {
		row := u.first.Add(i)
		k.If(row.Lt(a.rows), func() {
			e := mergeRows(k, ptx.N(s.Sides), max(s.Head/64, 1), a.d2, func(part ptx.U32) [2]ptx.F32 {
				return notes.At(part.MulAdd(ptx.N(n), i).Mul(ptx.U(2))).Load2()
			}, func(part, c ptx.U32) [2]ptx.F32 {
				return wide.At(part.MulAdd(ptx.N(n), i).MulAdd(ptx.N(s.Head), c.Mul(ptx.U(2)).Xor(turn(i)))).Load2()
			})
			if s.Split {
				e.each(k, func(c ptx.U32, v [2]ptx.F32) { u.parts.At(u.split.Add(row).MulAdd(a.d2, c).Mul(ptx.U(2))).Store2(v) })
				k.If(lane.Eq(ptx.U(0)), func() { u.shares.At(u.split.Add(row).Mul(ptx.U(2))).Store2([2]ptx.F32{e.limit, e.total}) })
				return
			}
			finishRow(k, s.Head, s.Causal, a, e, u.of, row, a.seen(row, s.Causal, s.Packed), u.hidden)
		})
	})
}
