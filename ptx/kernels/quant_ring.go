package kernels

import (
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// A product of one row is bound by how fast weights come. The second cache is read
// in lines of 128 bytes, and two pieces of a row that meet within a line read it
// twice: so the longer the pieces are, the better. Here all warps of a block share
// its stages, which are 16 rows high and as wide as all warps multiply together; more
// warps fill them.

const (
	// ringFill is the warps that fill stages: each starts a copy in about 150 cycles,
	// and a block wants one in 60.
	ringFill   = 4
	ringStages = 8 // at most
)

// ringed is the formats that this is the fastest for. The others have it to be
// tested with.
var ringed = map[block.Format]bool{block.Q4_0: true, block.Q8_0: true, block.Q4_K: true, block.Q6_K: true}

// quantRingFor returns how a product of one row is made, if by stages that all warps
// of a block share.
func quantRingFor(p op.Product, t, blocks op.DType, d *Device) (*quantFewSpec, error) {
	if !ringed[blocks.Block()] {
		return nil, unsupported("%v", blocks)
	}
	return ringFor(p, t, blocks, d)
}

func ringFor(p op.Product, t, blocks op.DType, d *Device) (*quantFewSpec, error) {
	groups := p.K / digitGroup
	s := &quantFewSpec{Type: t, Blocks: blocks, M: 1, Whole: true, Ring: true, Warps: 8, Team: 8, Fill: ringFill, Groups: 1, Spread: 1, Split: 1}
	if p.M != 1 || p.K%digitGroup != 0 || groups < s.Warps || d.Target < ptx.SM90 || d.Multiprocessors < 2 {
		return nil, unsupported("%d rows of %d activations", p.M, p.K)
	}
	_, bytes := blockGroup(blocks, true)
	if groups*bytes%4 != 0 {
		s.Spread = 2
	}
	for ; s.Split <= d.Multiprocessors/s.Spread && s.Split <= mostParts; s.Split++ {
		part := s.part(groups)
		if part*(s.Split-1) >= groups {
			continue
		}
		s.Room = ceilDiv(part*digitGroup, 1024) * 1024
		for _, s.Digits = range []int{digits, digits - 2} {
			for s.Stages = ringStages; s.Stages >= 3; s.Stages-- {
				if s.bytes() <= d.Shared {
					return s, nil
				}
			}
		}
	}
	return nil, unsupported("%d rows of %d activations", p.M, p.K)
}

// ringCode is what the parts of the kernel share while it is built.
type ringCode struct {
	*quantFewCode
	free  ptx.MBarrier        // of each stage: all warps are done with it
	rowOf ptx.Shared[ptx.U32] // of each stage: the first row
}

func (c *ringCode) build(e *epilogue) {
	k, s := c.k, c.quantFewSpec
	k.Block(32*(s.Warps+s.Fill), 1, 1)
	k.MinBlocks(1)
	block, blocks, share := c.parameters(e)
	odd := ptx.U(0) // the first row of 32 that the block has, if it has every other
	if s.Spread > 1 {
		odd = block.And(ptx.U(1))
		c.odd = odd.Ne(ptx.U(0))
		block = block.Sub(odd)
	}
	c.step = blocks.Mul(ptx.N(fewRows))
	c.rest = block.MulAdd(share, c.full)
	c.restEnd = c.rest.Add(share.Mul(ptx.N(s.Spread))).Min(c.rows)
	c.rest = c.rest.Add(odd)
	c.rest = ptx.Select(c.rest.Lt(c.rows), c.rest, ptx.U(nowhere))
	first := ptx.Select(c.full.Ne(ptx.U(0)), block.MulAdd(ptx.U(fewRows), odd), c.rest)
	k.Align(128)
	c.ring = ptx.DynamicShared[ptx.U8](k, s.Stages*s.stageBytes())
	c.xs = ptx.DynamicShared[ptx.U8](k, s.xBytes())
	k.Align(16)
	c.units = ptx.DynamicShared[ptx.F32](k, s.Room/digitGroup)
	c.inexact = ptx.DynamicShared[ptx.U32](k, 4)
	if blockCodes[s.Blocks.Block()].mins {
		c.sums = ptx.DynamicShared[ptx.U8](k, pieces*s.sumPitch())
	}
	parts := ptx.DynamicShared[ptx.F32](k, s.partsBytes()/4)
	tileRows := ptx.DynamicShared[ptx.U32](k, 2*fewEvery)
	c.filled = ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, s.Stages))
	c.free = ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, s.Stages))
	c.rowOf = ptx.DynamicShared[ptx.U32](k, s.Stages)

	tid := k.Special(ptx.TidX)
	warp := tid.Shr(ptx.U(5))
	c.lane = tid.And(ptx.U(31))
	c.chunks = c.groups.Add(ptx.N(s.Warps*s.Groups - 1)).Div(ptx.N(s.Warps * s.Groups))
	c.stage, c.phase = ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0))
	k.If(tid.Eq(ptx.U(0)), func() {
		for i := range s.Stages {
			c.filled.At(ptx.N(i)).Init(ptx.N(s.Fill))
			c.free.At(ptx.N(i)).Init(ptx.N(s.Warps))
		}
		k.FenceMBarrierInit()
		c.inexact.Store(ptx.U(0))
		c.inexact.Offset(1).Store(ptx.U(topBits)) // see digitLane.flip
	})
	k.Sync()
	k.IfElse(warp.Ge(ptx.N(s.Warps)), func() {
		for i := range s.Fill {
			k.If(warp.Eq(ptx.N(s.Warps+i)), func() { c.fill(first, i) })
		}
	}, func() {
		together := func() { k.SyncSome(1, 32*s.Warps) }
		c.prepareDigits(warp)
		together()
		k.IfElse(c.inexact.Load().Eq(ptx.U(0)), func() { c.multiply(true, warp, parts, tileRows) }, func() {
			together() // all have seen it
			c.prepare(tid)
			together()
			c.multiply(false, warp, parts, tileRows)
		})
	})
}

// next goes on to the next stage.
func (c *ringCode) next() {
	n := c.stage.Get().Add(ptx.U(1))
	last := n.Eq(ptx.N(c.Stages))
	c.phase.Set(c.phase.Get().Xor(ptx.Select(last, ptx.U(1), ptx.U(0))))
	c.stage.Set(ptx.Select(last, ptx.U(0), n))
}

// fill is what the warps do that fill the stages, each some lines of all. One lane
// does, and nothing that it does depends on which: that makes copies cheap to start.
func (c *ringCode) fill(first ptx.U32, member int) {
	k, lines := c.k, fewRows/c.Fill
	row := ptx.NewVar(k, first)
	one := c.lane.Eq(ptx.U(0))
	free := func() {
		c.free.At(c.stage.Get()).Wait(c.phase.Get().Xor(ptx.U(1)))
		if member == 0 {
			k.If(one, func() { c.rowOf.At(c.stage.Get()).Store(row.Get()) })
		}
	}
	k.While(func() ptx.Pred { return row.Get().Lt(c.rows) }, func() {
		end := c.end(row.Get())
		begin := make([]ptx.U32, lines)
		for i := range begin {
			// Lines behind the last are the first again.
			line := row.Get().Add(ptx.N((member*lines + i) * c.Spread))
			begin[i] = ptx.Select(line.Lt(end), line, row.Get()).MulAdd(c.rowBytes, c.before.Mul(ptx.N(c.bytes)))
		}
		k.For(ptx.U(0), c.groups, ptx.N(c.Warps*c.Groups), func(group ptx.U32) {
			free()
			k.If(one, func() {
				off, bytes := group.Mul(ptx.N(c.bytes)), c.groups.Sub(group).Min(ptx.N(c.Warps*c.Groups)).Mul(ptx.N(c.bytes))
				bar := c.filled.At(c.stage.Get())
				to := c.ring.At(c.stage.Get().Mul(ptx.N(c.stageBytes()))).Offset(member * lines * c.rowPitch())
				var copies []func()
				all := ptx.U(0)
				for i, at := range begin {
					n, start := c.copyRow(bar, to.Offset(i*c.rowPitch()), at.Add(off), at.Add(off).Add(bytes))
					all = all.Add(n)
					copies = append(copies, start)
				}
				bar.ArriveExpect(all)
				for _, start := range copies {
					start()
				}
			})
			c.next()
		})
		row.Set(c.after(row.Get()))
	})
	row.Set(ptx.U(nowhere))
	free()
	k.If(one, func() { c.filled.At(c.stage.Get()).Arrive() })
}

// copyRow copies what is between places in the matrix, from multiples of 16 bytes
// to multiples of 16: it returns how many bytes count at the barrier, and what starts
// the copy. Nothing is copied from behind the matrix: where it ends within 16 bytes,
// these are copied for themselves.
func (c *quantFewCode) copyRow(bar ptx.MBarrier, dst ptx.Shared[ptx.U8], from, to ptx.U32) (bytes ptx.U32, start func()) {
	first := from.And(ptx.U(^uint32(15)))
	end := to.Add(ptx.U(15)).Min(c.total).And(ptx.U(^uint32(15)))
	c.k.If(to.Gt(end), func() {
		c.k.For(end, c.total, ptx.U(2), func(i ptx.U32) {
			ptx.CastShared[ptx.U16](dst.At(i.Sub(first))).Store(ptx.Cast[ptx.U16](c.w.At(i)).Load())
		})
	})
	bytes = end.Sub(first)
	return bytes, func() { ptx.BulkLoad(dst, c.w.At(first), bytes, bar) }
}

// multiply is what a warp does that multiplies.
func (c *ringCode) multiply(inDigits bool, warp ptx.U32, parts ptx.Shared[ptx.F32], tileRows ptx.Shared[ptx.U32]) {
	k := c.k
	l := c.newLanes(inDigits)
	p := c.newParts(inDigits, warp, ptx.U(0), parts)
	p.begin = tileRows
	chunk, shift := ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, warp)
	k.Loop(func() {
		c.filled.At(c.stage.Get()).Wait(c.phase.Get())
		row := c.rowOf.At(c.stage.Get()).Load()
		k.BreakIf(row.Eq(ptx.U(nowhere)))
		// Which group of a stage a warp has changes with each tile, as the last stage of
		// one may have fewer.
		from, end := chunk.Get().Mul(ptx.N(c.Warps*c.Groups)), c.end(row)
		along := from.Add(c.before).Mul(ptx.N(c.bytes))
		var begin [2]ptx.U32
		for r := range begin {
			line := l.g.Add(ptx.N(8 * r))
			begin[r] = line.MulAdd(ptx.N(c.rowPitch()), c.stage.Get().Mul(ptx.N(c.stageBytes())))
			if !blockCodes[c.Blocks.Block()].aligned() {
				this := line.MulAdd(ptx.N(c.Spread), row)
				begin[r] = begin[r].Add(ptx.Select(this.Lt(end), this, row).MulAdd(c.rowBytes, along).And(ptx.U(15)))
			}
		}
		for i := range c.Groups {
			mine := shift.Get().Add(ptx.N(i * c.Warps))
			k.If(mine.Lt(c.groups.Sub(from)), func() {
				lines := begin
				for r := range lines {
					lines[r] = mine.MulAdd(ptx.N(c.bytes), lines[r])
				}
				one := func(before int) { l.group(lines, from.Add(mine), before) }
				if inDigits && c.Blocks == op.Q6_K {
					late := mine.And(ptx.U(1)).Ne(ptx.U(0))
					if c.Spread > 1 {
						late = late.Xor(c.odd)
					}
					k.IfElse(late, func() { one(2) }, func() { one(0) })
				} else {
					one(0)
				}
			})
		}
		k.SyncWarp(ptx.AllLanes)
		k.If(c.lane.Eq(ptx.U(0)), func() { c.free.At(c.stage.Get()).Arrive() })
		c.next()
		chunk.Set(chunk.Get().Add(ptx.U(1)))
		k.If(chunk.Get().Eq(c.chunks), func() {
			chunk.Set(ptx.U(0))
			shift.Set(shift.Get().Add(c.groups).Rem(ptx.N(c.Warps)))
			if inDigits {
				c.weigh(&l.total[0][0], l.less)
			}
			p.gather(l.blockLane, row)
			clearTotals(l.total)
			clearTotals(l.less)
		})
	})
	p.finish()
}

// ringLanes is a lane at the groups of a stage.
type ringLanes struct {
	*blockLane
	c         *ringCode
	g         ptx.U32
	inDigits  bool
	less      [][][4]ptx.Var[ptx.F32] // minima, if they are summed for themselves
	flip      ptx.B32
	place     ptx.U32 // of the lane's part of 16 bytes, or 32
	late, sel ptx.U32 // see apartLane
	xs, ss    []ptx.Shared[ptx.U8]
}

func (c *ringCode) newLanes(inDigits bool) *ringLanes {
	k, code := c.k, blockCodes[c.Blocks.Block()]
	quad := c.lane.And(ptx.U(3))
	l := &ringLanes{c: c, inDigits: inDigits, g: c.lane.Shr(ptx.U(2)),
		blockLane: &blockLane{k: k, weights: c.weights, quad: quad, row: make([]ptx.Shared[ptx.U8], 2), mine: make([]ptx.Shared[ptx.U8], 2)}}
	l.total = newTotals(k, 1, 1)
	l.late, l.sel = lateWords(quad)
	l.place = quad.Shl(ptx.U(3))
	if code.split {
		l.place = quad.Shl(ptx.U(2))
	}
	columns, pitch := pieces, c.xPitch()
	if inDigits {
		columns, pitch = c.Digits, c.digitPitch()
		l.flip = c.inexact.Offset(1).Load().B32()
		if code.mins {
			l.less = newTotals(k, 1, 1)
		}
	}
	// Columns beyond the last are the last again, and not looked at.
	l.xs = append(l.xs, c.xs.At(l.g.Min(ptx.N(columns-1)).MulAdd(ptx.N(pitch), quad.Shl(ptx.U(4)))))
	if code.mins {
		l.ss = append(l.ss, c.sums.At(l.g.Min(ptx.N(pieces-1)).MulAdd(ptx.N(c.sumPitch()), quad.Shl(ptx.U(2)))))
	}
	return l
}

// group multiplies group n of the block's, in lines of the ring that begin so many
// bytes before a multiple of 4.
func (l *ringLanes) group(lines [2]ptx.U32, n ptx.U32, before int) {
	c := l.c
	for r, at := range lines {
		l.row[r] = c.ring.At(at.Add(ptx.N(before))).Offset(-before)
		l.mine[r] = c.ring.At(at.Add(ptx.N(before)).Add(l.place)).Offset(-before)
	}
	bytes := 2 * c.weights
	if l.inDigits {
		bytes = c.weights
	}
	l.x, l.sums = nil, nil
	for t := range l.xs {
		l.x = append(l.x, []ptx.Shared[ptx.B32]{ptx.CastShared[ptx.B32](l.xs[t].At(n.Mul(ptx.N(bytes))))})
	}
	for t := range l.ss {
		l.sums = append(l.sums, []ptx.Shared[ptx.B32]{ptx.CastShared[ptx.B32](l.ss[t].At(n.Mul(ptx.N(c.weights / 16))))})
	}
	if !l.inDigits {
		blockCodes[c.Blocks.Block()].build(l.blockLane)
		return
	}
	code := c.digitCode()
	d := &digitLane{blockLane: l.blockLane, unit: c.units.At(n).Load(), less: l.less, flip: l.flip}
	if code.apart != nil {
		d.apart = &apartLane{sel: l.sel, off: -before, had: map[[2]int]ptx.B32{}}
		for _, at := range lines {
			d.apart.at = append(d.apart.at, c.ring.At(at.Add(ptx.N(before)).Add(l.late)).Offset(-before))
		}
	}
	code.build(d)
}
