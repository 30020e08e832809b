package kernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// attentionWgmma is attention by the products of warpgroups, for sm_90a (Shah et
// al.: FlashAttention-3). Blocks stay and take one tile of queries after the
// other. One warp brings queries, keys and values by tensor maps; each of the
// other warpgroups has 64 queries. While the tensor cores multiply the scores of
// the next tile of keys and the values of the last one, the threads compute the
// weights between the two; and two warpgroups take turns, so that one computes
// weights while the other multiplies.
type attentionWgmma struct {
	Type   op.DType
	Causal bool
	Head   int  // elements of a row in shared memory, 64 or 128: those beyond d are 0
	Groups int  // warpgroups that multiply
	Keys   int  // of a tile
	Stages int  // tiles of keys, and of values, that shared memory holds
	Turns  bool // warpgroups start products one after the other
}

func (s attentionWgmma) threads() int { return 128 * (s.Groups + 1) }

// queries is how many rows a tile has.
func (s attentionWgmma) queries() int { return 64 * s.Groups }

// Rows of tiles have 64 elements, the bytes that a swizzle permutes: a head of
// 128 is two tiles.
const (
	attentionSlice = 64
	sliceWords     = attentionSlice / 2
)

// shared returns the bytes of shared memory.
func (s attentionWgmma) shared() int {
	return 2*s.Head*(s.queries()+2*s.Stages*s.Keys) + 8*(7+4*s.Stages) + 1024
}

// registers returns what threads that copy and threads that multiply keep of the
// registers.
func (s attentionWgmma) registers() (copying, multiplying int) {
	switch s.Groups {
	case 1:
		return 56, 256
	case 2:
		return 24, 240
	}
	return 32, 160
}

// attentionWork is a tile of queries.
type attentionWork struct {
	head, first ptx.U32
	n, full     ptx.U32 // tiles of keys that it sees, and those that all its rows see whole
}

func (s attentionWgmma) build(k *ptx.Kernel, to *epilogue) {
	k.Block(s.threads(), 1, 1)
	k.MinBlocks(1)
	k.Align(1024)
	a := &attentionArgs{typ: s.Type}
	mq, mk, mv := ptx.TensorMapParam(k, "mq"), ptx.TensorMapParam(k, "mk"), ptx.TensorMapParam(k, "mv")
	a.q, a.keys, a.values = ptx.GlobalParam[ptx.B32](k, "q"), ptx.GlobalParam[ptx.B32](k, "k"), ptx.GlobalParam[ptx.B32](k, "v")
	counter := ptx.GlobalParam[ptx.U32](k, "counter")
	a.declare(k)
	param := func(name string) ptx.U32 { return ptx.Param[ptx.U32](k, name) }
	tiles, heads, together := param("tiles"), param("heads"), param("together")
	a.to = to.sink(k)

	slices := s.Head / attentionSlice
	qs := ptx.DynamicShared[ptx.B32](k, s.queries()*s.Head/2)
	ks := ptx.DynamicShared[ptx.B32](k, s.Stages*s.Keys*s.Head/2)
	vs := ptx.DynamicShared[ptx.B32](k, s.Stages*s.Keys*s.Head/2)
	k.Align(16)
	barriers := func(n int) ptx.MBarrier { return ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, n)) }
	p := &attentionPipe{s: s, k: k, a: a, qs: qs, ks: ks, vs: vs}
	p.fullQ, p.emptyQ, p.fullW, p.emptyW = barriers(1), barriers(1), barriers(2), barriers(2)
	p.work = ptx.DynamicShared[ptx.U32](k, 2)
	p.fullK, p.emptyK, p.fullV, p.emptyV = barriers(s.Stages), barriers(s.Stages), barriers(s.Stages), barriers(s.Stages)

	t := k.Special(ptx.TidX)
	k.If(t.Eq(ptx.U(0)), func() {
		mq.Prefetch()
		mk.Prefetch()
		mv.Prefetch()
		warps := ptx.N(4 * s.Groups)
		p.fullQ.Init(ptx.U(1))
		p.emptyQ.Init(warps)
		for i := range 2 {
			p.fullW.At(ptx.N(i)).Init(ptx.U(1))
			p.emptyW.At(ptx.N(i)).Init(ptx.N(4*s.Groups + 1))
		}
		for i := range s.Stages {
			p.fullK.At(ptx.N(i)).Init(ptx.U(1))
			p.fullV.At(ptx.N(i)).Init(ptx.U(1))
			p.emptyK.At(ptx.N(i)).Init(warps)
			p.emptyV.At(ptx.N(i)).Init(warps)
		}
		k.FenceMBarrierInit()
	})
	k.Sync()

	// Each runs body for the tiles of this block, whose numbers next returns. Heads
	// are taken together whose keys and values fit into L2, and of these first the
	// tiles that see most, so that the last ones are small.
	total := tiles.Mul(heads)
	p.each = func(next func() ptx.U32, body func(w *attentionWork)) {
		k.Loop(func() {
			i := next()
			k.BreakIf(i.Ge(total))
			all := together.Mul(tiles)
			start := i.Div(all).Mul(together)
			n := together.Min(heads.Sub(start))
			i = i.Sub(start.Mul(tiles))
			w := &attentionWork{head: start.Add(i.Rem(n)), first: tiles.Sub(ptx.U(1)).Sub(i.Div(n)).Mul(ptx.N(s.queries()))}
			end, whole := a.tk, a.tk
			if s.Causal {
				end = a.seen(w.first.Add(ptx.N(s.queries()-1)).Min(a.rows.Sub(ptx.U(1))), true, false)
				whole = a.seen(w.first, true, false)
			}
			w.n, w.full = end.Add(ptx.N(s.Keys-1)).Div(ptx.N(s.Keys)), whole.Div(ptx.N(s.Keys))
			body(w)
		})
	}
	copying, multiplying := s.registers()
	group := t.Shr(ptx.U(7))
	k.IfElse(group.Eq(ptx.U(0)), func() {
		k.DropRegisters(copying)
		bring := func(to ptx.Shared[ptx.B32], m ptx.TensorMap, bar ptx.MBarrier, rows int, row, head ptx.U32) {
			bar.ArriveExpect(ptx.N(2 * rows * s.Head))
			for i := range slices {
				ptx.TensorLoad(to.Offset(i*rows*sliceWords), m, bar, ptx.S(int32(i*attentionSlice)), row.S32(), head.S32())
			}
		}
		// One warp brings queries and keys, another values, so that neither waits
		// for room for the other.
		for i, m := range []ptx.TensorMap{mk, mv} {
			k.If(t.Eq(ptx.N(32*i)), func() {
				to, full, empty := ks, p.fullK, p.emptyK
				if i == 1 {
					to, full, empty = vs, p.fullV, p.emptyV
				}
				turn, round := ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0))
				next := func() ptx.U32 { return p.told(round, false) }
				if i == 0 {
					grid := k.Special(ptx.NctaidX)
					work := ptx.NewVar(k, k.Special(ptx.CtaidX))
					next = func() ptx.U32 {
						// The first tile is that of the block's number, the others whoever
						// asks first gets.
						k.If(round.Get().Gt(ptx.U(0)), func() {
							work.Set(total)
							k.If(grid.Lt(total), func() { work.Set(ptx.AtomicAdd(counter, ptx.U(1)).Add(grid)) })
						})
						p.tell(round, work.Get())
						return work.Get()
					}
				}
				p.each(next, func(w *attentionWork) {
					if i == 0 {
						p.emptyQ.Wait(round.Get().And(ptx.U(1)))
						bring(qs, mq, p.fullQ, s.queries(), w.first, w.head)
					}
					kv := w.head.Div(a.group)
					left := ptx.NewVar(k, w.n)
					k.While(func() ptx.Pred { return left.Get().Gt(ptx.U(0)) }, func() {
						left.Set(left.Get().Sub(ptx.U(1)))
						st, phase := p.stage(turn.Get())
						empty.At(st).Wait(phase.Xor(ptx.U(1)))
						bring(to.At(st.Mul(ptx.N(s.Keys*s.Head/2))), m, full.At(st), s.Keys, left.Get().Mul(ptx.N(s.Keys)), kv)
						ptx.AddTo(turn, ptx.U(1))
					})
				})
			})
		}
	}, func() {
		k.RaiseRegisters(multiplying)
		p.mine = group.Sub(ptx.U(1))
		p.consume()
	})
}

// attentionPipe is what the warpgroups that multiply work with.
type attentionPipe struct {
	s                                           attentionWgmma
	k                                           *ptx.Kernel
	a                                           *attentionArgs
	qs, ks, vs                                  ptx.Shared[ptx.B32]
	fullQ, emptyQ, fullK, emptyK, fullV, emptyV ptx.MBarrier
	fullW, emptyW                               ptx.MBarrier
	work                                        ptx.Shared[ptx.U32] // numbers of tiles of queries, one ahead
	each                                        func(next func() ptx.U32, body func(w *attentionWork))
	mine                                        ptx.U32 // number of the warpgroup
	lane                                        ptx.U32
	scores, sums                                []ptx.Var[ptx.F32]
	weights                                     []ptx.Var[ptx.B32] // of two columns each
	most, total                                 [2]ptx.Var[ptx.F32]
	turn                                        ptx.Var[ptx.U32] // tiles of keys so far
	sees                                        [2]ptx.U32
}

// stage returns where tile i is, and the parity of its phase.
func (p *attentionPipe) stage(i ptx.U32) (stage, phase ptx.U32) {
	n := ptx.N(p.s.Stages)
	return i.Rem(n), i.Div(n).And(ptx.U(1))
}

// tell is how one thread gives the number of a tile of queries to all others, and
// counts the round.
func (p *attentionPipe) tell(round ptx.Var[ptx.U32], work ptx.U32) {
	slot, phase := round.Get().And(ptx.U(1)), round.Get().Shr(ptx.U(1)).And(ptx.U(1))
	p.emptyW.At(slot).Wait(phase.Xor(ptx.U(1)))
	p.work.At(slot).Store(work)
	p.fullW.At(slot).Arrive()
	ptx.AddTo(round, ptx.U(1))
}

// told is how a warp, or one thread of one, is told the number.
func (p *attentionPipe) told(round ptx.Var[ptx.U32], warp bool) ptx.U32 {
	slot, phase := round.Get().And(ptx.U(1)), round.Get().Shr(ptx.U(1)).And(ptx.U(1))
	p.fullW.At(slot).Wait(phase)
	work := p.work.At(slot).Load()
	if warp {
		p.k.SyncWarp(ptx.AllLanes)
		p.release(p.emptyW.At(slot))
	} else {
		p.emptyW.At(slot).Arrive()
	}
	ptx.AddTo(round, ptx.U(1))
	return work
}

// release tells the warp that copies that this warp does not need a tile any more.
func (p *attentionPipe) release(bar ptx.MBarrier) {
	p.k.If(p.lane.Eq(ptx.U(0)), func() { bar.Arrive() })
}

// multiplyKeys starts scores = queries x keys.
func (p *attentionPipe) multiplyKeys(stage ptx.U32) {
	s := p.s
	q := ptx.NewTile(p.qs.At(p.mine.Mul(ptx.N(64*sliceWords))), ptx.Swizzle128, 16, 1024)
	b := ptx.NewTile(p.ks.At(stage.Mul(ptx.N(s.Keys*s.Head/2))), ptx.Swizzle128, 16, 1024)
	for c := range s.Head / 16 {
		x := q.Advance(ptx.N(c/4*s.queries()*128 + c%4*32))
		y := b.Advance(ptx.N(c/4*s.Keys*128 + c%4*32))
		half(s.Type).wgmma(p.k, p.scores, x, y, ptx.Wgmma{Add: ptx.Is(c > 0)})
	}
	p.k.WgmmaCommit()
}

// multiplyValues starts sums += weights x values. The values lie along the head,
// not along the sum.
func (p *attentionPipe) multiplyValues(weights [][4]ptx.B32, stage ptx.U32) {
	s := p.s
	b := ptx.NewTile(p.vs.At(stage.Mul(ptx.N(s.Keys*s.Head/2))), ptx.Swizzle128, s.Keys*128, 1024)
	for c, x := range weights {
		half(s.Type).wgmmaRegs(p.k, p.sums, x, b.Advance(ptx.N(c*16*128)), ptx.Wgmma{Add: ptx.Is(true), TransB: true})
	}
	p.k.WgmmaCommit()
}

// heldWeights returns the weights as operands: what a product of 64 by 16 has in
// a lane is in the order of what that of 64 by 8 columns has left there.
func (p *attentionPipe) heldWeights() [][4]ptx.B32 {
	x := make([][4]ptx.B32, p.s.Keys/16)
	for c := range x {
		for i := range 4 {
			x[c][i] = p.weights[4*c+i].Get()
		}
	}
	return x
}

// mask hides those of the scores of the tile at key from on that rows do not see.
func (p *attentionPipe) mask(from ptx.U32) {
	first := from.Add(p.lane.And(ptx.U(3)).Mul(ptx.U(2)))
	for i := range 2 {
		limit := p.sees[i].S32().Sub(first.S32())
		for j := range p.s.Keys / 8 {
			for e := range 2 {
				v := p.scores[4*j+2*i+e]
				v.Set(ptx.Select(limit.Gt(ptx.S(int32(8*j+e))), v.Get(), minusInf))
			}
		}
	}
}

// weigh makes weights of the scores, in place, and returns what all that was
// summed up before is to be multiplied by.
func (p *attentionPipe) weigh() (down [2]ptx.F32) {
	s, scale := p.s, p.a.scale
	var base [2]ptx.F32
	for i := range 2 {
		// Two chains, for the latency.
		top := [2]ptx.F32{p.most[i].Get(), p.scores[2*i+1].Get()}
		for j := range s.Keys / 8 {
			for e := range 2 {
				top[e] = top[e].Max(p.scores[4*j+2*i+e].Get())
			}
		}
		now := quad(top[0].Max(top[1]), ptx.F32.Max)
		base[i] = ptx.Select(now.Eq(minusInf), ptx.F(0), now.Mul(scale)).Neg()
		down[i] = p.most[i].Get().Fma(scale, base[i]).Ex2ApproxFlush()
		p.most[i].Set(now)
	}
	for i := range 2 {
		sum := [2]ptx.F32{p.total[i].Get().Mul(down[i])}
		for j := range s.Keys / 8 {
			for e := range 2 {
				v := p.scores[4*j+2*i+e]
				w := v.Get().Fma(scale, base[i]).Ex2ApproxFlush()
				v.Set(w)
				if j == 0 && e == 1 {
					sum[1] = w
					continue
				}
				sum[e] = sum[e].Add(w)
			}
		}
		p.total[i].Set(sum[0].Add(sum[1]))
	}
	return down
}

// keep rounds the weights.
func (p *attentionPipe) keep() {
	for i := range p.weights {
		p.weights[i].Set(half(p.s.Type).pack(p.scores[2*i].Get(), p.scores[2*i+1].Get()))
	}
}

func (p *attentionPipe) consume() {
	k, s, a := p.k, p.s, p.a
	t := k.Special(ptx.TidX)
	p.lane = k.Special(ptx.LaneID)
	for range s.Keys / 2 {
		p.scores = append(p.scores, ptx.NewVar(k, ptx.F(0)))
	}
	for range s.Keys / 4 {
		p.weights = append(p.weights, ptx.NewVar(k, ptx.B(0)))
	}
	for range s.Head / 2 {
		p.sums = append(p.sums, ptx.NewVar(k, ptx.F(0)))
	}
	for i := range 2 {
		p.most[i], p.total[i] = ptx.NewVar(k, minusInf), ptx.NewVar(k, ptx.F(0))
	}
	p.turn = ptx.NewVar(k, ptx.U(0))
	round := ptx.NewVar(k, ptx.U(0))
	warp := t.Shr(ptx.U(5)).And(ptx.U(3))
	if s.Turns {
		k.If(p.mine.Eq(ptx.N(s.Groups-1)), func() { k.Arrive(1, 256) }) // the first warpgroup begins
	}
	p.each(func() ptx.U32 { return p.told(round, true) }, func(w *attentionWork) {
		q, kv := w.head.Mul(a.rows), w.head.Div(a.group).Mul(a.tk)
		first := w.first.Add(p.mine.Mul(ptx.U(64))).Add(warp.Mul(ptx.U(16))) // of the rows of the warp
		row := [2]ptx.U32{first.Add(p.lane.Shr(ptx.U(2)))}
		row[1] = row[0].Add(ptx.U(8))
		for i := range 2 {
			p.sees[i] = a.seen(row[i], s.Causal, false)
			p.most[i].Set(minusInf)
			p.total[i].Set(ptx.F(0))
		}
		for _, v := range p.sums {
			v.Set(ptx.F(0))
		}
		p.fullQ.Wait(round.Get().Add(ptx.U(1)).And(ptx.U(1)))

		left := ptx.NewVar(k, w.n.Sub(ptx.U(1)))
		st, phase := p.stage(p.turn.Get())
		p.fullK.At(st).Wait(phase)
		k.WgmmaFence()
		p.multiplyKeys(st)
		k.WgmmaWait(0)
		p.release(p.emptyK.At(st))
		k.If(w.n.Gt(w.full), func() { p.mask(left.Get().Mul(ptx.N(s.Keys))) })
		p.weigh()
		p.keep()
		body := func(masked bool) func() {
			return func() {
				left.Set(left.Get().Sub(ptx.U(1)))
				last, lastPhase := p.stage(p.turn.Get())
				ptx.AddTo(p.turn, ptx.U(1))
				st, phase := p.stage(p.turn.Get())
				held := p.heldWeights()
				p.fullK.At(st).Wait(phase)
				p.begin()
				k.WgmmaFence()
				p.multiplyKeys(st)
				p.fullV.At(last).Wait(lastPhase)
				k.WgmmaFence() // again, for the weights: after a branch
				p.multiplyValues(held, last)
				p.end()
				k.WgmmaWait(1)
				p.release(p.emptyK.At(st))
				if masked {
					p.mask(left.Get().Mul(ptx.N(s.Keys)))
				}
				down := p.weigh()
				k.WgmmaWait(0)
				p.release(p.emptyV.At(last))
				p.keep()
				for i, v := range p.sums {
					v.Set(v.Get().Mul(down[i/2%2]))
				}
			}
		}
		if s.Causal {
			k.While(func() ptx.Pred { return left.Get().Gt(w.full) }, body(true))
		}
		k.While(func() ptx.Pred { return left.Get().Gt(ptx.U(0)) }, body(false))
		p.release(p.emptyQ)
		last, lastPhase := p.stage(p.turn.Get())
		ptx.AddTo(p.turn, ptx.U(1))
		held := p.heldWeights()
		p.fullV.At(last).Wait(lastPhase)
		k.WgmmaFence()
		p.multiplyValues(held, last)
		var factor [2]ptx.F32
		for i := range 2 {
			factor[i] = quad(p.total[i].Get(), ptx.F32.Add).Rcp()
		}
		k.WgmmaWait(0)
		p.release(p.emptyV.At(last))
		out := &attentionStore{head: s.Head, causal: s.Causal, q: q, kv: kv, first: first, end: w.n.Mul(ptx.N(s.Keys)).Min(a.tk)}
		out.do(k, a, p.sums, factor)
	})
}

// begin waits for the turn of the warpgroup to start products, and end gives it to
// the next one. A register has the number of the barrier, so that no branch stands
// between products.
func (p *attentionPipe) begin() {
	if p.s.Turns {
		p.k.Raw("bar.sync $$, 256", p.mine.Add(ptx.U(1)))
	}
}

func (p *attentionPipe) end() {
	if p.s.Turns {
		last := p.mine.Eq(ptx.N(p.s.Groups - 1))
		p.k.Raw("bar.arrive $$, 256", ptx.Select(last, ptx.U(1), p.mine.Add(ptx.U(2))))
	}
}
