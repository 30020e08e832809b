package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// ringCode has the values that the parts of the kernel share while it is built.
type ringCode struct {
	*quantFewCode
	free        ptx.MBarrier        // one for each stage: all warps have read it
	rowOf       ptx.Shared[ptx.U32] // for each stage: first row and end of the rows of its tile
	told, taken ptx.MBarrier        // for the claimed tile: next is written, next is read
	next        ptx.Shared[ptx.U32] // the claimed tile, as in rowOf
	some, tiles ptx.U32             // some: blocks that have the same part of rows; tiles: tiles for these blocks
	share, odd  ptx.U32             // share: rows of the last tiles; odd: parity of the rows of the block
}

// memory declares the shared memory of a block. It returns that for the sums of the warps, and for the
// rows of the tiles.
func (c *ringCode) memory() (parts ptx.Shared[ptx.F32], tileRows ptx.Shared[ptx.U32]) {
	k, s := c.k, c.quantFewSpec
	k.Align(128)
	c.ring = ptx.DynamicShared[ptx.U8](k, s.Stages*s.stageBytes())
	c.xs = ptx.DynamicShared[ptx.U8](k, s.xBytes())
	k.Align(16)
	c.units = ptx.DynamicShared[ptx.F32](k, s.M*s.Room/digitGroup)
	c.inexact = ptx.DynamicShared[ptx.U32](k, 8)
	if blockDecoders[s.Blocks.Block()].mins {
		c.sums = ptx.DynamicShared[ptx.U8](k, s.M*pieces*s.sumPitch())
	}
	parts = ptx.DynamicShared[ptx.F32](k, s.partsBytes()/4)
	tileRows = ptx.DynamicShared[ptx.U32](k, 2*2*fewEvery)
	c.filled = ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, s.Stages))
	c.free = ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, s.Stages))
	c.told = ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, 1))
	c.taken = ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, 1))
	c.rowOf = ptx.DynamicShared[ptx.U32](k, 2*s.Stages)
	c.next = ptx.DynamicShared[ptx.U32](k, 2)
	return parts, tileRows
}

// initBarriers initialises the barriers, and the memory that all warps share.
func (c *ringCode) initBarriers() {
	k, s := c.k, c.quantFewSpec
	for i := range s.Stages {
		c.filled.At(ptx.N(i)).Init(ptx.N(s.Fill))
		c.free.At(ptx.N(i)).Init(ptx.N(s.Warps))
	}
	c.told.Init(ptx.U(1))
	c.taken.Init(ptx.N(s.Fill))
	k.FenceMBarrierInit()
	c.inexact.Store(ptx.U(0))
	c.storeConstants()
}

// build writes the kernel.
func (c *ringCode) build(e *epilogue) {
	k, s := c.k, c.quantFewSpec
	k.Block(s.threads(), 1, 1)
	k.MinBlocks(1)
	block, blocks, share := c.parameters(e)
	c.share, c.odd, c.some = share, ptx.U(0), blocks
	rows := c.rows // rows of the blocks with the same odd
	if s.RowStride > 1 {
		c.odd = block.And(ptx.U(1))
		c.counter = c.counter.At(c.odd)
		block, c.some = block.Shr(ptx.U(1)), blocks.Shr(ptx.U(1))
		rows = rows.Add(ptx.U(1)).Sub(c.odd).Shr(ptx.U(1))
	}
	if s.misaligned() {
		late := c.odd
		if s.Split > 1 && s.Blocks == op.Q6_K {
			late = late.Xor(c.before.And(ptx.U(1)))
		}
		c.late = late.Ne(ptx.U(0))
	}
	c.tiles = c.full.Div(ptx.N(c.Claim)).Add(rows.Sub(c.full).Add(share).Sub(ptx.U(1)).Div(share))
	parts, tileRows := c.memory()

	tid := k.Special(ptx.TidX)
	warp := tid.Shr(ptx.U(5))
	c.lane = tid.And(ptx.U(31))
	c.chunks = c.groups.Add(ptx.N(s.Width - 1)).Div(ptx.N(s.Width))
	c.stage, c.phase = ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0))
	c.table = blockDecoders[s.Blocks.Block()].levels.share(k, tid, s.threads(), s.smallTable())
	k.If(tid.Eq(ptx.U(0)), c.initBarriers)
	k.Sync()
	k.IfElse(warp.Ge(ptx.N(s.Warps)), func() {
		for i := range s.Fill {
			k.If(warp.Eq(ptx.N(s.Warps+i)), func() { c.fill(block, i) })
		}
		k.If(tid.Eq(ptx.N(32*(s.Warps+s.Fill))), c.claim)
	}, func() {
		together := func() { k.SyncSome(1, 32*s.Warps) }
		c.prepareDigits(warp)
		together()
		k.IfElse(c.inexact.Load().Eq(ptx.U(0)), func() { c.multiply(true, warp, parts, tileRows) }, func() {
			together() // all threads have read the flag
			c.prepare(tid)
			together()
			c.multiply(false, warp, parts, tileRows)
		})
	})
}

// misaligned reports whether the block's first group of a row may begin 2 bytes after a multiple of
// 4: because of the row stride, or because a part of Q6_K may begin at any group.
func (s *quantFewSpec) misaligned() bool {
	return s.RowStride > 1 || s.Ring && s.Split > 1 && s.Blocks == op.Q6_K
}

// tile returns the first row of a tile and the end of its rows.
func (c *ringCode) tile(n ptx.U32) (row, end ptx.U32) {
	whole := c.full.Div(ptx.N(c.Claim))
	in := n.Lt(whole)
	row = ptx.Select(in, n.Mul(ptx.N(c.Claim)), n.Sub(whole).MulAdd(c.share, c.full))
	end = row.Add(ptx.Select(in, ptx.N(c.Claim), c.share))
	spread := ptx.N(c.RowStride)
	return row.MulAdd(spread, c.odd), end.MulAdd(spread, c.odd).Min(c.rows)
}

// claim is the loop of the thread that claims tiles. It claims the next tile when the warps that
// fill stages have taken the previous one.
func (c *ringCode) claim() {
	k, phase := c.k, ptx.NewVar(c.k, ptx.U(1))
	k.Loop(func() {
		c.taken.Wait(phase.Get())
		n := ptx.NewVar(k, ptx.U(nowhere))
		k.If(c.tiles.Gt(c.some), func() {
			n.Set(ptx.AtomicInc(c.counter, c.tiles.Sub(ptx.U(1))).Add(c.some))
		})
		row, end := c.tile(n.Get())
		last := n.Get().Ge(c.tiles)
		c.next.Store(ptx.Select(last, ptx.U(nowhere), row))
		c.next.Offset(1).Store(end)
		c.told.Arrive()
		k.BreakIf(last)
		phase.Set(phase.Get().Xor(ptx.U(1)))
	})
}

// step advances to the next stage.
func (c *ringCode) step() {
	n := c.stage.Get().Add(ptx.U(1))
	last := n.Eq(ptx.N(c.Stages))
	c.phase.Set(c.phase.Get().Xor(ptx.Select(last, ptx.U(1), ptx.U(0))))
	c.stage.Set(ptx.Select(last, ptx.U(0), n))
}

// copyStage starts the copies of a warp that fill a stage: whole rows from row up to end, or the lines
// from line first on, which begin at begin and exist if there is set.
func (c *ringCode) copyStage(row ptx.Var[ptx.U32], end, group ptx.U32, begin []ptx.U32, there []ptx.Pred, first int) {
	off, bytes := group.Mul(ptx.N(c.bytes)), c.groups.Sub(group).Min(ptx.N(c.Width)).Mul(ptx.N(c.bytes))
	if c.Short {
		bytes = bytes.Min(c.rowBytes.Sub(c.before.MulAdd(ptx.N(c.bytes), off)))
	}
	bar := c.filled.At(c.stage.Get())
	to := c.ring.At(c.stage.Get().Mul(ptx.N(c.stageBytes())))
	var copies []func()
	all := ptx.U(0)
	if c.Solid {
		from := row.Get().Mul(c.rowBytes)
		n, start := c.copyRow(bar, to, from, end.Sub(row.Get()).Min(ptx.N(c.high())).Mul(c.rowBytes))
		all, copies = n, append(copies, start)
	}
	for i, at := range begin {
		n, start := c.copyRow(bar, to.Offset((first+i)*c.rowPitch()), at.Add(off), ptx.Select(there[i], bytes, ptx.U(16)))
		all = all.Add(n)
		copies = append(copies, start)
	}
	bar.ArriveExpect(all)
	for _, start := range copies {
		start()
	}
}

// fill is the loop of the warps that fill the stages; each warp copies some of the lines. One lane
// starts the copies. The code does not depend on the lane, so that the addresses are uniform and a
// copy is cheap to start.
func (c *ringCode) fill(first ptx.U32, member int) {
	k, lines := c.k, c.high()/c.Fill
	from, to := c.tile(first)
	row, last := ptx.NewVar(k, ptx.Select(first.Lt(c.tiles), from, ptx.U(nowhere))), ptx.NewVar(k, to)
	told := ptx.NewVar(k, ptx.U(0))
	c.once = k.EvictFirst()
	one := c.lane.Eq(ptx.U(0))
	free := func() {
		c.free.At(c.stage.Get()).Wait(c.phase.Get().Xor(ptx.U(1)))
		if member == 0 {
			k.If(one, func() {
				of := c.rowOf.At(c.stage.Get().Shl(ptx.U(1)))
				of.Store(row.Get())
				of.Offset(1).Store(last.Get())
			})
		}
	}
	k.While(func() ptx.Pred { return row.Get().Lt(c.rows) }, func() {
		end := last.Get()
		begin, there := make([]ptx.U32, lines), make([]ptx.Pred, lines)
		if c.Solid {
			begin = nil
		}
		for i := range begin {
			// For a line after the last one, copy a few bytes of the first line, because a branch
			// would be slower.
			line := row.Get().Add(ptx.N((member*lines + i) * c.RowStride))
			there[i] = line.Lt(end)
			begin[i] = ptx.Select(there[i], line, row.Get()).MulAdd(c.rowBytes, c.before.Mul(ptx.N(c.bytes)))
		}
		k.For(ptx.U(0), c.groups, ptx.N(c.Width), func(group ptx.U32) {
			free()
			k.If(one, func() { c.copyStage(row, end, group, begin, there, member*lines) })
			c.step()
		})
		again := row.Get().Add(ptx.N(c.high() * c.RowStride))
		k.IfElse(again.Lt(end), func() { row.Set(again) }, func() {
			c.told.Wait(told.Get())
			told.Set(told.Get().Xor(ptx.U(1)))
			row.Set(c.next.Load())
			last.Set(c.next.Offset(1).Load())
			k.SyncWarp(ptx.AllLanes)
			k.If(one, func() { c.taken.Arrive() })
		})
	})
	free()
	k.If(one, func() { c.filled.At(c.stage.Get()).Arrive() })
}

// copyRow copies length bytes of the matrix, from position from on, extended to multiples of 16. It
// returns the number of bytes that the barrier counts, and a function that starts the copy. No
// bytes after the matrix are copied: if it ends within 16 bytes, these are copied separately.
func (c *quantFewCode) copyRow(bar ptx.MBarrier, dst ptx.Shared[ptx.U8], from, length ptx.U32) (bytes ptx.U32, start func()) {
	if c.bytes%16 == 0 && !c.Short { // then the beginning is a multiple of 16 too
		return length, func() { ptx.BulkLoadHint(c.once, dst, c.w.At(from), length, bar) }
	}
	to := from.Add(length)
	first := from.And(ptx.U(^uint32(15)))
	end := to.Add(ptx.U(15)).Min(c.total).And(ptx.U(^uint32(15)))
	c.k.If(to.Gt(end), func() {
		to := func(i ptx.U32) ptx.Shared[ptx.U16] { return ptx.CastShared[ptx.U16](dst.At(i.Sub(first))) }
		c.k.For(end, c.total, ptx.U(2), func(i ptx.U32) { to(i).Store(ptx.Cast[ptx.U16](c.w.At(i)).Load()) })
		if c.Short { // lanes read whole words
			to(c.total).Store(ptx.U(0).U16())
		}
	})
	bytes = end.Sub(first)
	return bytes, func() { ptx.BulkLoadHint(c.once, dst, c.w.At(first), bytes, bar) }
}

// lateGroup reports whether group from+i of a row begins two bytes after a multiple of four.
func (c *ringCode) lateGroup(from, i ptx.U32) ptx.Pred {
	if c.Blocks != op.Q6_K {
		return c.late
	}
	late := from.Add(i).And(ptx.U(1)).Ne(ptx.U(0))
	if c.misaligned() {
		late = late.Xor(c.late)
	}
	return late
}

// multiply is the loop of a warp that multiplies.
func (c *ringCode) multiply(inDigits bool, warp ptx.U32, parts ptx.Shared[ptx.F32], tileRows ptx.Shared[ptx.U32]) {
	k := c.k
	l := c.newLanes(inDigits)
	p := c.newParts(inDigits, warp, ptx.U(0), parts)
	p.begin = tileRows
	tall, in := ptx.U(0), warp
	if c.Tall > 1 {
		tall = warp.Div(ptx.N(c.Width))
		in = warp.Sub(tall.Mul(ptx.N(c.Width)))
		tall = tall.Mul(ptx.U(fewRows))
	}
	chunk, shift := ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, in)
	k.Loop(func() {
		c.filled.At(c.stage.Get()).Wait(c.phase.Get())
		of := c.rowOf.At(c.stage.Get().Shl(ptx.U(1)))
		row := of.Load()
		k.BreakIf(row.Eq(ptx.U(nowhere)))
		from, end := chunk.Get().Mul(ptx.N(c.Width)), of.Offset(1).Load()
		along := from.Add(c.before).Mul(ptx.N(c.bytes))
		begin := c.beginRows(l.g, tall, row, end, along)
		count := c.groups.Sub(from).Min(ptx.N(c.Width))
		for i := range c.Groups {
			mine := shift.Get().Add(ptx.N(i * c.Warps))
			k.If(mine.Lt(count), func() {
				lines := begin
				for r := range lines {
					lines[r] = mine.MulAdd(ptx.N(c.bytes), lines[r])
				}
				one := func(before int) { l.group(lines, from.Add(mine), before) }
				if inDigits && (c.Blocks == op.Q6_K || c.RowStride > 1) {
					k.IfElse(c.lateGroup(from, mine), func() { one(2) }, func() { one(0) })
				} else {
					one(0)
				}
			})
		}
		k.SyncWarp(ptx.AllLanes)
		k.If(c.lane.Eq(ptx.U(0)), func() { c.free.At(c.stage.Get()).Arrive() })
		c.step()
		// Assign groups to warps round-robin, from the warp where the last stage ended, so that
		// warps multiply equally many groups. The first warp changes with each stage or, if all
		// stages of a tile but the last have the same number of groups for each warp, with each
		// tile.
		next := func(groups ptx.U32) { shift.Set(shift.Get().Add(groups).Rem(ptx.N(c.Warps))) }
		if c.Width%c.Warps != 0 && c.Tall == 1 {
			next(count)
		}
		chunk.Set(chunk.Get().Add(ptx.U(1)))
		k.If(chunk.Get().Eq(c.chunks), func() {
			chunk.Set(ptx.U(0))
			if c.Width%c.Warps == 0 {
				next(c.groups)
			}
			if inDigits {
				c.weigh(l.total, l.less)
			}
			p.gather(l.blockLane, row, end)
			clearTotals(l.total)
			clearTotals(l.less)
		})
	})
	p.finish()
}

// beginRows returns the positions of the two rows of a lane in the current stage: rows g and g+8 of
// the 16 from tall on. The stage holds the rows from row on and below end; along is the offset of
// the stage in a row, in bytes.
func (c *ringCode) beginRows(g, tall, row, end, along ptx.U32) (begin [2]ptx.U32) {
	aligned := blockDecoders[c.Blocks.Block()].aligned()
	for r := range begin {
		line := g.Add(tall).Add(ptx.N(8 * r))
		line = ptx.Select(line.MulAdd(ptx.N(c.RowStride), row).Lt(end), line, ptx.U(0)) // see fill
		begin[r] = line.MulAdd(ptx.N(c.rowPitch()), c.stage.Get().Mul(ptx.N(c.stageBytes())))
		switch {
		case aligned:
		case c.Solid:
			begin[r] = begin[r].Add(row.Mul(c.rowBytes).And(ptx.U(15)))
		default:
			begin[r] = begin[r].Add(line.MulAdd(ptx.N(c.RowStride), row).MulAdd(c.rowBytes, along).And(ptx.U(15)))
		}
	}
	return begin
}

// ringLanes holds the state of a lane at the groups of a stage.
type ringLanes struct {
	*blockLane
	c        *ringCode
	g        ptx.U32
	inDigits bool
	less     [][][4]ptx.Var[ptx.F32] // products of the minima, if they have separate sums
	constants
	place     ptx.U32 // offset of the lane's part in 16 bytes, or 32
	late, sel ptx.U32 // see misalignedLane
	xs, ss    []ptx.Shared[ptx.U8]
}

func (c *ringCode) newLanes(inDigits bool) *ringLanes {
	k, code := c.k, blockDecoders[c.Blocks.Block()]
	quad := c.lane.And(ptx.U(3))
	l := &ringLanes{c: c, inDigits: inDigits, g: c.lane.Shr(ptx.U(2)),
		blockLane: &blockLane{k: k, weights: c.weights, quad: quad, row: make([]ptx.Shared[ptx.U8], 2), mine: make([]ptx.Shared[ptx.U8], 2), table: c.table}}
	tiles := c.quantFewSpec.tiles()
	if inDigits {
		tiles = c.M
	}
	l.total = newTotals(k, 1, tiles)
	l.late, l.sel = lateWords(quad)
	l.place = quad.Shl(ptx.U(3))
	if code.split {
		l.place = quad.Shl(ptx.U(2))
	}
	pitch := c.xPitch()
	if inDigits {
		pitch = c.digitPitch()
		l.constants = c.loadConstants()
		if code.mins {
			l.less = newTotals(k, 1, c.M)
		}
	}
	// Columns after the last one repeat it; their results are ignored.
	for i := range tiles {
		column := func(columns, first int) ptx.U32 { return l.g.Min(ptx.N(columns - 1)).Add(ptx.N(first)) }
		var col, sum ptx.U32
		if inDigits { // a tile has one row of activations and the pieces of its sums
			col, sum = column(c.Digits, i*c.Digits), column(pieces, i*pieces)
		} else {
			col = column(min(tileCols, c.M*pieces-i*tileCols), i*tileCols)
			sum = col
		}
		l.xs = append(l.xs, c.xs.At(col.MulAdd(ptx.N(pitch), quad.Shl(ptx.U(4)))))
		if code.mins {
			l.ss = append(l.ss, c.sums.At(sum.MulAdd(ptx.N(c.sumPitch()), quad.Shl(ptx.U(2)))))
		}
	}
	return l
}

// group multiplies the block's group n, in lines of the ring that begin before bytes before a
// multiple of 4.
func (l *ringLanes) group(lines [2]ptx.U32, n ptx.U32, before int) {
	c, k := l.c, l.k
	if !c.Short {
		l.blocks(lines, n, ptx.U(0), before, nil)
		return
	}
	// In the last group of a row, multiply the remaining blocks two at a time.
	count := c.blocks.Sub(c.before.Add(n).Shl(ptx.U(3))).Min(ptx.U(8))
	k.IfElse(count.Eq(ptx.U(8)), func() { l.blocks(lines, n, ptx.U(0), before, nil) }, func() {
		k.For(ptx.U(0), count, ptx.U(2), func(from ptx.U32) {
			l.blocks(lines, n, from, before, []int{0})
			k.If(from.Add(ptx.U(1)).Lt(count), func() { l.blocks(lines, n, from, before, []int{1}) })
		})
	})
}

// blocks multiplies blocks of a group: all, or only those at a given distance after an even one.
func (l *ringLanes) blocks(lines [2]ptx.U32, n, from ptx.U32, before int, only []int) {
	c := l.c
	for r := range lines {
		if only != nil {
			lines[r] = from.MulAdd(ptx.N(c.bytes/8), lines[r])
		}
		at := lines[r]
		l.row[r] = c.ring.At(at.Add(ptx.N(before))).Offset(-before)
		l.mine[r] = c.ring.At(at.Add(ptx.N(before)).Add(l.place)).Offset(-before)
	}
	bytes := 2 * c.weights
	if l.inDigits {
		bytes = c.weights
	}
	l.x, l.sums, l.only = nil, nil, only
	for t := range l.xs {
		x := l.xs[t].At(n.Mul(ptx.N(bytes)))
		if only != nil {
			x = x.At(from.Mul(ptx.N(bytes / 8)))
		}
		l.x = append(l.x, []ptx.Shared[ptx.B32]{ptx.CastShared[ptx.B32](x)})
	}
	for t := range l.ss {
		l.sums = append(l.sums, []ptx.Shared[ptx.B32]{ptx.CastShared[ptx.B32](l.ss[t].At(n.Mul(ptx.N(c.weights / 16))))})
	}
	if !l.inDigits {
		blockDecoders[c.Blocks.Block()].build(l.blockLane)
		return
	}
	code := c.digitCode()
	d := &digitLane{blockLane: l.blockLane, less: l.less, constants: l.constants}
	for m := range c.M {
		d.units = append(d.units, c.units.At(n).Offset(m*c.Room/digitGroup).Load())
	}
	if code.misaligned != nil {
		d.misaligned = &misalignedLane{sel: l.sel, off: -before, had: map[[2]int]ptx.B32{}}
		if only == nil {
			d.misaligned.end = c.bytes
		}
		for _, at := range lines {
			first := c.ring.At(at.Add(ptx.N(before)).Add(l.late))
			d.misaligned.at = append(d.misaligned.at, first.Offset(-before))
			if c.Short {
				d.misaligned.far = append(d.misaligned.far, first.At(ptx.Select(l.quad.Eq(ptx.U(3)), ptx.U(16), ptx.U(0))).Offset(-before))
			}
		}
	}
	code.build(d)
}
