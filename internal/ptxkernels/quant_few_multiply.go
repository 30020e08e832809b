package ptxkernels

import (
	"github.com/rayo-go/rayo/ptx"
)

// fourActivations returns activations 4i to 4i+3 of row m, zeros unless in.
func (c *quantFewCode) fourActivations(i ptx.U32, in ptx.Pred, m int) (x [4]ptx.F32) {
	k, code := c.k, blockDecoders[c.Blocks.Block()]
	var v [4]ptx.Var[ptx.F32]
	for e := range v {
		v[e] = ptx.NewVar(k, ptx.F(0))
	}
	there := in
	if c.Short { // the bytes after the row are 0
		there = c.before.MulAdd(ptx.N(c.weights/4), i).Lt(c.blocks.Shl(ptx.U(3)))
	}
	k.If(there, func() {
		if code.levels.ordered() {
			group := c.across.MulAdd(ptx.N(m), c.before.Add(i.Shr(ptx.U(6))).Mul(ptx.N(c.weights)))
			for e, x := range code.levels.activations(c.Type, c.a, group, i) {
				v[e].Set(ptx.F32(x))
			}
			return
		}
		for e, x := range loadElements(c.Type, c.a, c.across.MulAdd(ptx.N(m), c.before.Mul(ptx.N(c.weights)).Add(i.Shl(ptx.U(2)))), 4) {
			v[e].Set(ptx.F32(x))
		}
	})
	for e := range x {
		x[e] = v[e].Get()
	}
	return x
}

// prepare splits the activations into bf16, and their sums if the format has minima.
func (c *quantFewCode) prepare(tid ptx.U32) {
	k, code := c.k, blockDecoders[c.Blocks.Block()]
	depth := c.groups.Mul(ptx.N(c.weights))
	quads := depth.Shr(ptx.U(2))
	threads := ptx.N(32 * c.Warps)
	for m := range c.M {
		k.For(ptx.U(0), quads, threads, func(base ptx.U32) {
			i := base.Add(tid)
			in := i.Lt(quads)
			x := c.fourActivations(i, in, m)
			// 32 activations take 64 bytes; store four of them where the lane that multiplies them reads.
			at := activationPlace(i.And(ptx.U(7)), code.split)
			to := c.xs.At(i.And(ptx.U(^uint32(7))).Or(at).Shl(ptx.U(3)))
			var words [pieces][2]ptx.B32
			for half := range 2 {
				low, high := pieceBits(x[2*half], pieces), pieceBits(x[2*half+1], pieces)
				for p := range pieces {
					words[p][half] = low[p].Permute(high[p], ptx.U(0x7632))
				}
			}
			k.If(in, func() {
				for p := range pieces {
					ptx.CastShared[ptx.B32](to).Offset((m*pieces + p) * c.xPitch() / 4).Store2(words[p])
				}
			})
			if !code.mins {
				return
			}
			sum := x[0].Add(x[1]).Add(x[2].Add(x[3]))
			for d := 1; d < 8; d *= 2 {
				sum = sum.Add(ptx.ShuffleXor(sum, ptx.N(d)))
			}
			k.If(in.And(i.And(ptx.U(7)).Eq(ptx.U(0))), func() {
				for p, b := range pieceBits(sum, pieces) {
					ptx.CastShared[ptx.U16](c.sums).Offset((m*pieces + p) * c.sumPitch() / 2).At(i.Shr(ptx.U(3))).Store(b.Shr(ptx.U(16)).U32().U16())
				}
			})
		})
	}
}

// prepareDigits splits the activations into digits, and their sums into pieces if the format has
// minima. A warp splits 256 activations at a time.
func (c *quantFewCode) prepareDigits(warp ptx.U32) {
	k := c.k
	// Load several groups at once to hide the latency.
	several := 2
	if c.Ring {
		several = 4
	}
	all := func(group ptx.U32, of *digitRow) {
		x := make([][2][4]ptx.F32, several)
		at := make([]ptx.U32, several)
		for i := range x {
			at[i] = group.Add(ptx.N(i * c.Warps)).Min(c.groups.Sub(ptx.U(1)))
			x[i] = of.load(at[i])
		}
		for i := range x {
			one := func() { of.split(at[i], &x[i]) }
			if i == 0 {
				one()
			} else {
				k.If(group.Add(ptx.N(i*c.Warps)).Lt(c.groups), one)
			}
		}
	}
	if c.M == 1 {
		of := &digitRow{quantFewCode: c, code: c.digitCode(), m: ptx.U(0), a: ptx.U(0)}
		k.For(warp, c.groups, ptx.N(several*c.Warps), func(group ptx.U32) { all(group, of) })
		return
	}
	k.For(ptx.U(0), ptx.N(c.M), ptx.U(1), func(i ptx.U32) {
		of := &digitRow{quantFewCode: c, code: c.digitCode(), m: i, a: i.Mul(c.across)}
		k.For(warp, c.groups, ptx.N(several*c.Warps), func(group ptx.U32) { all(group, of) })
	})
}

// digitRow splits a row of activations into digits.
type digitRow struct {
	*quantFewCode
	code *digitDecoder
	m, a ptx.U32 // the index of the row and the offset of its first element
}

// read reads n adjacent elements. Elements after the row are zeros.
func (c *digitRow) read(at ptx.U32, n int) []ptx.U32 {
	if !c.Short {
		return loadElements(c.Type, c.quantFewCode.a, at.Add(c.a), n)
	}
	end := c.blocks.Shl(ptx.U(5))
	x := loadElements(c.Type, c.quantFewCode.a, at.Min(end.Sub(ptx.N(n))).Add(c.a), n)
	for i := range x {
		x[i] = ptx.Select(at.Lt(end), x[i], ptx.U(0))
	}
	return x
}

// load loads the activations of a group: eight adjacent elements for each lane.
func (c *digitRow) load(group ptx.U32) (x [2][4]ptx.F32) {
	if c.code.misaligned != nil {
		late := c.code.misaligned(group, c.lane.Shr(ptx.U(2)))
		if c.quantFewCode.misaligned() {
			late = late.Xor(c.late)
		}
		for i := range x {
			for half, at := range misalignedPlaces(c.lane.Shl(ptx.U(1)).Add(ptx.N(i)), late) {
				for e, v := range c.read(group.Add(c.before).MulAdd(ptx.N(digitGroup), at), 2) {
					x[i][2*half+e] = ptx.F32(v)
				}
			}
		}
		return x
	}
	levels := blockDecoders[c.Blocks.Block()].levels
	for i := range x {
		slot := c.lane.Shl(ptx.U(1)).Add(ptx.N(i))
		at := slot.Shl(ptx.U(2))
		switch {
		case levels != nil && levels.own != nil:
			at = ownOrder(slot, levels.shifted)
		case levels.ordered():
			for e, v := range levels.activations(c.Type, c.quantFewCode.a, group.Add(c.before).MulAdd(ptx.N(digitGroup), c.a), slot) {
				x[i][e] = ptx.F32(v)
			}
			continue
		}
		for e, v := range c.read(group.Add(c.before).MulAdd(ptx.N(digitGroup), at), 4) {
			x[i][e] = ptx.F32(v)
		}
	}
	return x
}

// split stores the digits of a group, their scale and, if the format has minima, the pieces of the
// sums of 32 activations.
func (c *digitRow) split(group ptx.U32, x *[2][4]ptx.F32) {
	k := c.k
	largest := ptx.U(0)
	for i := range x {
		for e := range x[i] {
			largest = largest.Max(x[i][e].Abs().Bits().U32())
		}
	}
	exponent := largest.ReduceMax(ptx.AllLanes).Shr(ptx.U(23))
	finite := exponent.Lt(ptx.U(255))
	// The clamp loses nothing: all floats below 2**-95 are multiples of the last digit.
	exponent = exponent.Max(ptx.U(32))
	up := ptx.U(283).Sub(exponent).Shl(ptx.U(23)).B32().Float()
	exact := finite
	for i := range x {
		columns, is := splitDigits(x[i], up, c.Digits)
		exact = exact.And(is)
		to := c.xs.At(c.m.MulAdd(ptx.N(c.Digits*c.digitPitch()), group.MulAdd(ptx.N(digitGroup), digitPlace(c.lane.Shl(ptx.U(1)).Add(ptx.N(i)), c.code.split))))
		for n, v := range columns {
			ptx.CastShared[ptx.B32](to).Offset(n * c.digitPitch() / 4).Store(v)
		}
	}
	k.If(exact.Not(), func() { ptx.ReduceOr(c.inexact, ptx.U(1)) })
	k.If(c.lane.Eq(ptx.U(0)), func() {
		// The value of the first digit is 2**24 / 2**(283-127-exponent).
		c.units.At(c.m.MulAdd(ptx.N(c.Room/digitGroup), group)).Store(exponent.Sub(ptx.U(5)).Shl(ptx.U(23)).B32().Float())
	})
	if blockDecoders[c.Blocks.Block()].mins {
		c.sum(group, x)
	}
}

// sum stores pieces of the sums of 32 activations.
func (c *digitRow) sum(group ptx.U32, x *[2][4]ptx.F32) {
	sum := ptx.F(0)
	for i := range x {
		sum = sum.Add(x[i][0].Add(x[i][1]).Add(x[i][2].Add(x[i][3])))
	}
	for d := 1; d < 4; d *= 2 {
		sum = sum.Add(ptx.ShuffleXor(sum, ptx.N(d)))
	}
	c.k.If(c.lane.And(ptx.U(3)).Eq(ptx.U(0)), func() {
		at := c.m.MulAdd(ptx.N(pieces*c.sumPitch()/2), group.MulAdd(ptx.N(digitGroup/32), c.lane.Shr(ptx.U(2))))
		for p, b := range pieceBits(sum, pieces) {
			ptx.CastShared[ptx.U16](c.sums).Offset(p * c.sumPitch() / 2).At(at).Store(b.Shr(ptx.U(16)).U32().U16())
		}
	})
}

// pieceBits returns n floats that are exact in bf16. Their sum is x if x is normal and has at most
// 8n significant bits: three pieces hold any float32.
func pieceBits(x ptx.F32, n int) []ptx.B32 {
	y := make([]ptx.B32, n)
	for p := range y {
		y[p] = x.Bits().And(ptx.U(0xffff0000).B32())
		if p+1 < n {
			x = x.Sub(y[p].Float())
		}
	}
	return y
}

// activationPlace returns the index of the 8 bytes, among 64, that hold the four activations from
// position 4*i of 32 on.
func activationPlace(i ptx.U32, split bool) ptx.U32 {
	if split {
		return i.And(ptx.U(3)).Shl(ptx.U(1)).Or(i.Shr(ptx.U(2)))
	}
	return i
}

// multiply loops over the tiles of this warp's team.
func (c *quantFewCode) multiply(inDigits bool, warp, first ptx.U32, at ptx.Shared[ptx.F32]) {
	k := c.k
	f := c.newFactors(inDigits)
	tile := ptx.NewVar(k, first)
	p := c.newParts(inDigits, warp, first, at)
	k.While(func() ptx.Pred { return tile.Get().Lt(c.rows) }, func() {
		clearTotals(f.b.total)
		clearTotals(f.less)
		w := &c.reading
		k.While(func() ptx.Pred { return w.row.Get().Eq(tile.Get()) }, func() {
			c.wait()
			f.multiplyStage(w)
			k.SyncWarp(ptx.AllLanes)
			c.load(c.stage.Get())
			n := c.stage.Get().Add(ptx.U(1))
			last := n.Eq(ptx.N(c.Stages))
			c.stage.Set(ptx.Select(last, ptx.U(0), n))
			c.phase.Set(c.phase.Get().Xor(ptx.Select(last, ptx.U(1), ptx.U(0))))
			c.next(w)
		})
		if inDigits {
			c.weigh(f.b.total, f.less)
		}
		p.gather(f.b, tile.Get(), c.end(tile.Get()))
		tile.Set(c.after(tile.Get()))
	})
	p.finish()
}

// fewFactors holds the operands and sums of a warp that multiplies groups of blocks by activations.
type fewFactors struct {
	*quantFewCode
	inDigits bool
	g        ptx.U32 // row of the lane, 0 to 7
	b        *blockLane
	less     [][][4]ptx.Var[ptx.F32]      // products of the minima, if they have separate sums
	x, sums  []ptx.Shared[ptx.U8]         // activations and their sums, for each tile of columns
	mine     ptx.U32                      // offset of the lane's bytes in a group
	group    func(at ptx.U32, static int) // multiplies the group that is static groups after the group at position at
}

func (c *quantFewCode) newFactors(inDigits bool) *fewFactors {
	k, decoder := c.k, blockDecoders[c.Blocks.Block()]
	g, quad := c.lane.Shr(ptx.U(2)), c.lane.And(ptx.U(3))
	f := &fewFactors{quantFewCode: c, inDigits: inDigits, g: g}
	b := &blockLane{k: k, weights: c.weights, quad: quad, row: make([]ptx.Shared[ptx.U8], 2), mine: make([]ptx.Shared[ptx.U8], 2), table: c.table}
	f.b = b
	f.group = func(ptx.U32, int) { decoder.build(b) }
	if inDigits {
		f.multiplyDigits()
	}
	for i := range c.quantFewSpec.tiles() {
		// Columns after the last one repeat it; their results are ignored.
		col := g.Min(ptx.N(min(tileCols, c.M*pieces-i*tileCols) - 1)).Add(ptx.N(i * tileCols))
		if inDigits {
			f.x = append(f.x, c.xs.At(g.Min(ptx.N(c.Digits-1)).MulAdd(ptx.N(c.digitPitch()), quad.Shl(ptx.U(4)))))
		} else {
			f.x = append(f.x, c.xs.At(col.MulAdd(ptx.N(c.xPitch()), quad.Shl(ptx.U(4)))))
		}
		if decoder.mins {
			f.sums = append(f.sums, c.sums.At(col.MulAdd(ptx.N(c.sumPitch()), quad.Shl(ptx.U(2)))))
		}
	}
	b.total = newTotals(k, 1, c.quantFewSpec.tiles())
	f.mine = quad.Shl(ptx.U(3))
	if decoder.split {
		f.mine = quad.Shl(ptx.U(2))
	}
	return f
}

// multiplyDigits makes f multiply groups by digits of activations.
func (f *fewFactors) multiplyDigits() {
	b := f.b
	if blockDecoders[f.Blocks.Block()].mins {
		f.less = newTotals(f.k, 1, 1)
	}
	known := f.loadConstants()
	code := f.digitCode()
	late, sel := lateWords(b.quad)
	f.group = func(from ptx.U32, i int) {
		l := &digitLane{blockLane: b, units: []ptx.F32{f.units.At(from).Offset(i).Load()}, less: f.less, constants: known}
		if code.misaligned != nil {
			l.misaligned = &misalignedLane{sel: sel, off: i * f.bytes, had: map[[2]int]ptx.B32{}}
			for r := range b.row {
				l.misaligned.at = append(l.misaligned.at, b.row[r].At(late))
			}
		}
		code.build(l)
	}
}

// multiplyStage multiplies the groups of the current stage.
func (f *fewFactors) multiplyStage(w *walk) {
	c := f.quantFewCode
	var row [2]ptx.Shared[ptx.U8]
	for r := range row {
		line := f.g.Add(ptx.N(8 * r))
		at := c.stage.Get().MulAdd(ptx.N(c.stageBytes()), line.Mul(ptx.N(c.rowPitch())))
		if c.Tensor && c.bytes*c.Groups%16 != 0 {
			at = at.Add(c.along(w).And(ptx.U(15)))
		} else if !blockDecoders[c.Blocks.Block()].aligned() && !c.Tensor {
			at = at.Add(c.place(line, w).And(ptx.U(15)))
		}
		row[r] = c.ring.At(at)
	}
	from := w.chunk.Get().Mul(ptx.N(c.Groups))
	count := c.groups.Sub(from).Min(ptx.N(c.Groups))
	if f.inDigits && c.Full {
		// Multiply the groups of a stage in straight-line code, so that the instructions of one
		// hide the latency of the other.
		for i := range c.Groups {
			f.multiplyGroup(row, from, ptx.U(0), i)
		}
		return
	}
	c.k.For(ptx.U(0), count, ptx.U(1), func(i ptx.U32) { f.multiplyGroup(row, from, i, 0) })
}

// multiplyGroup multiplies the group that is static groups after group i, in the rows of a stage
// whose first group is from.
func (f *fewFactors) multiplyGroup(row [2]ptx.Shared[ptx.U8], from, i ptx.U32, static int) {
	b := f.b
	for r := range row {
		at := row[r].At(i.Mul(ptx.N(f.bytes)))
		b.row[r], b.mine[r] = at.Offset(static*f.bytes), at.At(f.mine).Offset(static*f.bytes)
	}
	if b.begin = anywhere; f.inDigits && f.Full && f.Tensor && f.bytes*f.Groups%4 == 0 {
		b.begin = atMultiple
		if static*f.bytes%4 != 0 {
			b.begin = afterTwo
		}
	}
	b.x, b.sums = nil, nil
	n, bytes := from.Add(i), 2*f.weights
	if f.inDigits {
		bytes = f.weights
	}
	for t := range f.x {
		b.x = append(b.x, []ptx.Shared[ptx.B32]{ptx.CastShared[ptx.B32](f.x[t].At(n.Mul(ptx.N(bytes))).Offset(static * bytes))})
		if f.sums != nil {
			b.sums = append(b.sums, []ptx.Shared[ptx.B32]{ptx.CastShared[ptx.B32](f.sums[t].At(n.Mul(ptx.N(f.weights / 16))).Offset(static * f.weights / 16))})
		}
	}
	f.group(n, static)
}

// newTotals returns accumulators for each tile of rows and of columns.
func newTotals(k *ptx.Kernel, rows, cols int) [][][4]ptx.Var[ptx.F32] {
	y := make([][][4]ptx.Var[ptx.F32], rows)
	for t := range y {
		for range cols {
			y[t] = append(y[t], newSum(k))
		}
	}
	return y
}

func clearTotals(total [][][4]ptx.Var[ptx.F32]) {
	for t := range total {
		for i := range total[t] {
			for _, v := range total[t][i] {
				v.Set(ptx.F(0))
			}
		}
	}
}

// weigh multiplies sums of digits by the values of the columns, and subtracts the minimums: lane t
// holds columns 2t and 2t+1.
func (c *quantFewCode) weigh(totals, less [][][4]ptx.Var[ptx.F32]) {
	quad := c.lane.And(ptx.U(3))
	// 256**-2t: exponents are in units of 2**23.
	worth := ptx.U(127).Sub(quad.Shl(ptx.U(4))).Shl(ptx.U(23)).B32().Float()
	for m, total := range totals[0] {
		for i := range total {
			v := total[i].Get().Mul(worth)
			if i%2 == 1 {
				v = v.Mul(ptx.F(1.0 / 256))
			}
			if c.Digits < tileCols {
				v = ptx.Select(quad.Lt(ptx.N(c.Digits/2)), v, ptx.F(0))
			}
			if less != nil {
				in := quad.MulAdd(ptx.U(2), ptx.N(i%2)).Lt(ptx.N(pieces))
				v = v.Add(ptx.Select(in, less[0][m][i].Get(), ptx.F(0)))
			}
			total[i].Set(v)
		}
	}
}

// fewParts adds the partials of the warps of a team, which are for the same rows and columns. The
// warps of a team take turns: in a turn, one warp adds the partials of several times 16 rows, which
// reduces the number of barriers.
type fewParts struct {
	*quantFewCode
	at      ptx.Shared[ptx.F32] // partials of this turn, indexed by 16 rows, warp, column and row
	all     ptx.Shared[ptx.F32]
	warp    ptx.U32
	columns int
	words   int // size of a partial
	every   int // number of times 16 rows in a turn
	turn    ptx.Var[ptx.U32]
	first   ptx.Var[ptx.U32]    // first row of the turn
	count   ptx.Var[ptx.U32]    // number of times 16 rows gathered so far
	begin   ptx.Shared[ptx.U32] // with Ring: first and end of each 16 rows, for two turns
}

func (c *quantFewCode) newParts(inDigits bool, warp, first ptx.U32, at ptx.Shared[ptx.F32]) *fewParts {
	p := &fewParts{quantFewCode: c, all: at, warp: warp, columns: pieces, words: c.partBytes() / 4, every: 1,
		turn: ptx.NewVar(c.k, ptx.U(0)), first: ptx.NewVar(c.k, first), count: ptx.NewVar(c.k, ptx.U(0))}
	if inDigits { // lanes add up the columns
		p.columns, p.words = 1, fewRows*c.M
		if c.SharingWarps > 1 {
			p.every = max(1, fewEvery/c.M)
		}
	}
	return p
}

// gather stores the partial of 16 rows, from tile on and below end.
func (p *fewParts) gather(b *blockLane, tile, end ptx.U32) {
	k := p.k
	g, quad := p.lane.Shr(ptx.U(2)), p.lane.And(ptx.U(3))
	p.at = p.all
	if p.SharingWarps > 1 { // double buffer: warps write one half while a warp reads the other
		p.at = p.all.At(p.turn.Get().And(ptx.U(1)).Mul(ptx.N(p.words * p.Warps * p.every)))
	}
	own := p.at.At(p.count.Get().MulAdd(ptx.N(p.Warps), p.warp).Mul(ptx.N(p.words)))
	if p.columns == 1 {
		for m, total := range b.total[0] {
			for r := range 2 {
				v := total[2*r].Get().Add(total[2*r+1].Get())
				for d := 1; d < 4; d *= 2 {
					v = v.Add(ptx.ShuffleXor(v, ptx.N(d)))
				}
				k.If(quad.Eq(ptx.U(0)), func() { own.At(g).Offset(fewRows*m + 8*r).Store(v) })
			}
		}
	} else {
		to := own.At(quad.MulAdd(ptx.N(2*partPitch), g))
		for i, v := range b.total[0] {
			for j := range 4 {
				to.Offset((i*tileCols+j%2)*partPitch + 8*(j/2)).Store(v[j].Get())
			}
		}
	}
	if p.SharingWarps == 1 {
		k.SyncWarp(ptx.AllLanes)
		p.add(own, tile, end)
		k.SyncWarp(ptx.AllLanes)
		return
	}
	if p.Ring {
		k.If(p.warp.Eq(ptx.U(0)).And(p.lane.Eq(ptx.U(0))), func() {
			at := p.begin.At(p.turn.Get().And(ptx.U(1)).MulAdd(ptx.N(fewEvery), p.count.Get()).Shl(ptx.U(1)))
			at.Store(tile)
			at.Offset(1).Store(end)
		})
	}
	p.count.Set(p.count.Get().Add(ptx.U(1)))
	k.If(p.count.Get().Eq(ptx.N(p.every)), p.share)
}

// share ends a turn: one warp adds the partials of all.
func (p *fewParts) share() {
	k := p.k
	if p.Ring { // the warps that fill stages do not take part
		k.SyncSome(1, 32*p.Warps)
	} else {
		k.Sync()
	}
	at := p.all.At(p.turn.Get().And(ptx.U(1)).Mul(ptx.N(p.words * p.Warps * p.every)))
	if p.Ring {
		k.If(p.turn.Get().Rem(ptx.N(p.Warps)).Eq(p.warp), func() {
			rows := p.begin.At(p.turn.Get().And(ptx.U(1)).Mul(ptx.U(2 * fewEvery)))
			k.For(ptx.U(0), p.count.Get(), ptx.U(1), func(i ptx.U32) {
				two := rows.At(i.Shl(ptx.U(1)))
				p.add(at.At(i.Mul(ptx.N(p.words*p.Warps))), two.Load(), two.Offset(1).Load())
			})
		})
		p.count.Set(ptx.U(0))
		p.turn.Set(p.turn.Get().Add(ptx.U(1)))
		return
	}
	k.If(p.turn.Get().Rem(ptx.N(p.Warps)).Eq(p.warp), func() {
		tile := ptx.NewVar(k, p.first.Get())
		k.For(ptx.U(0), p.count.Get(), ptx.U(1), func(i ptx.U32) {
			p.add(at.At(i.Mul(ptx.N(p.words*p.Warps))), tile.Get(), p.end(tile.Get()))
			tile.Set(p.after(tile.Get()))
		})
	})
	k.For(ptx.U(0), p.count.Get(), ptx.U(1), func(ptx.U32) { p.first.Set(p.after(p.first.Get())) })
	p.count.Set(ptx.U(0))
	p.turn.Set(p.turn.Get().Add(ptx.U(1)))
}

// finish ends the last turn.
func (p *fewParts) finish() {
	if p.SharingWarps > 1 {
		p.k.If(p.count.Get().Gt(ptx.U(0)), p.share)
	}
}

// add adds the partials of 16 rows, from tile on and below end.
func (p *fewParts) add(from ptx.Shared[ptx.F32], tile, end ptx.U32) {
	k := p.k
	group := p.SharingWarps / max(p.Tall, 1)
	k.For(p.lane, ptx.N(p.high()*p.M), ptx.U(32), func(i ptx.U32) {
		line, m := i.And(ptx.U(fewRows-1)), i.Div(ptx.N(p.high()))
		pitch := p.columns * partPitch
		if p.columns == 1 {
			pitch = fewRows
		}
		at := from.At(m.MulAdd(ptx.N(pitch), line))
		if p.Tall > 1 {
			line = i.Rem(ptx.N(p.high()))
			at = at.At(line.Div(ptx.U(fewRows)).Mul(ptx.N(group * p.words)))
		}
		var v ptx.F32
		for w := range group {
			sum := at.Offset(w*p.words + (p.columns-1)*partPitch).Load()
			for i := p.columns - 2; i >= 0; i-- { // add the largest last
				sum = sum.Add(at.Offset(w*p.words + i*partPitch).Load())
			}
			if w == 0 {
				v = sum
			} else {
				v = v.Add(sum)
			}
		}
		row := tile.Add(line.Mul(ptx.N(p.RowStride)))
		k.If(row.Lt(end), func() { p.put(row, m, v) })
	})
}
