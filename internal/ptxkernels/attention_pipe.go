package ptxkernels

import "github.com/rayo-go/rayo/ptx"

// attentionPipe holds the values that the code of an attentionWgmma uses: first the values that all
// warps use, then the values of the warps that multiply.
type attentionPipe struct {
	s                                           attentionWgmma
	k                                           *ptx.Kernel
	a                                           *attentionArgs
	mq, mk, mv                                  ptx.TensorMap
	counter                                     ptx.Global[ptx.U32] // number of query tiles that blocks have taken, if causal
	tiles, heads, total                         ptx.U32             // tiles: query tiles of a head; total: query tiles of all heads
	together                                    ptx.U32             // heads whose keys and values blocks use at the same time
	qs, ks, vs                                  ptx.Shared[ptx.B32]
	fullQ, emptyQ, fullK, emptyK, fullV, emptyV ptx.MBarrier
	fullW, emptyW                               ptx.MBarrier
	work                                        ptx.Shared[ptx.U32] // indices of the current and the next query tile

	mine          ptx.U32 // number of the warpgroup
	lane          ptx.U32
	scores, sums  []ptx.Var[ptx.F32]
	weights       []ptx.Var[ptx.B32]  // each of two columns
	limit, weight [2]ptx.Var[ptx.F32] // greatest score and sum of weights of each row
	turn          ptx.Var[ptx.U32]    // tiles of keys so far
	sees          [2]ptx.U32
}

// stage returns the stage of tile i and the parity of the phase of its barrier.
func (p *attentionPipe) stage(i ptx.U32) (stage, phase ptx.U32) {
	n := ptx.N(p.s.Stages)
	return i.Rem(n), i.Div(n).And(ptx.U(1))
}

// tell sends the index of a query tile from one thread to all other threads, and increments round.
func (p *attentionPipe) tell(round ptx.Var[ptx.U32], work ptx.U32) {
	slot, phase := round.Get().And(ptx.U(1)), round.Get().Shr(ptx.U(1)).And(ptx.U(1))
	p.emptyW.At(slot).Wait(phase.Xor(ptx.U(1)))
	p.work.At(slot).Store(work)
	p.fullW.At(slot).Arrive()
	ptx.AddTo(round, ptx.U(1))
}

// told waits for the index that tell sends. All lanes of a warp call it (warp is true), or a single thread.
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

// release signals to the warp that copies that this warp no longer needs a tile.
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

// multiplyValues starts sums += weights x values. The rows of values run along the head and not
// along the dimension of the sum, so the operand is transposed.
func (p *attentionPipe) multiplyValues(weights [][4]ptx.B32, stage ptx.U32) {
	s := p.s
	b := ptx.NewTile(p.vs.At(stage.Mul(ptx.N(s.Keys*s.Head/2))), ptx.Swizzle128, s.Keys*128, 1024)
	for c, x := range weights {
		half(s.Type).wgmmaRegs(p.k, p.sums, x, b.Advance(ptx.N(c*16*128)), ptx.Wgmma{Add: ptx.Is(true), TransB: true})
	}
	p.k.WgmmaCommit()
}

// registerWeights returns the weights as register operands. It moves no data: the accumulator
// layout of two products of 64 by 8 is the operand layout of a matrix of 64 by 16.
func (p *attentionPipe) registerWeights() [][4]ptx.B32 {
	x := make([][4]ptx.B32, p.s.Keys/16)
	for c := range x {
		for i := range 4 {
			x[c][i] = p.weights[4*c+i].Get()
		}
	}
	return x
}

// mask sets the scores of keys that a row does not see to -Inf. The tile begins at key from.
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

// weigh replaces the scores by their weights. It returns, for each row, the factor by which the
// caller must multiply the sums of the earlier tiles.
func (p *attentionPipe) weigh() (down [2]ptx.F32) {
	s, scale := p.s, p.a.scale
	var base [2]ptx.F32
	for i := range 2 {
		// Two independent chains hide the latency of max.
		top := [2]ptx.F32{p.limit[i].Get(), p.scores[2*i+1].Get()}
		for j := range s.Keys / 8 {
			for e := range 2 {
				top[e] = top[e].Max(p.scores[4*j+2*i+e].Get())
			}
		}
		now := quad(top[0].Max(top[1]), ptx.F32.Max)
		base[i] = ptx.Select(now.Eq(minusInf), ptx.F(0), now.Mul(scale)).Neg()
		down[i] = p.limit[i].Get().Fma(scale, base[i]).Ex2ApproxFlush()
		p.limit[i].Set(now)
	}
	for i := range 2 {
		sum := [2]ptx.F32{p.weight[i].Get().Mul(down[i])}
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
		p.weight[i].Set(sum[0].Add(sum[1]))
	}
	return down
}

// keep rounds the weights to s.Type and stores them in p.weights.
func (p *attentionPipe) keep() {
	for i := range p.weights {
		p.weights[i].Set(half(p.s.Type).pack(p.scores[2*i].Get(), p.scores[2*i+1].Get()))
	}
}

// consume is the code of a warpgroup that multiplies.
func (p *attentionPipe) consume() {
	k, s := p.k, p.s
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
		p.limit[i], p.weight[i] = ptx.NewVar(k, minusInf), ptx.NewVar(k, ptx.F(0))
	}
	p.turn = ptx.NewVar(k, ptx.U(0))
	round := ptx.NewVar(k, ptx.U(0))
	warp := t.Shr(ptx.U(5)).And(ptx.U(3))
	if s.Turns {
		k.If(p.mine.Eq(ptx.N(s.Groups-1)), func() { k.Arrive(1, 256) }) // the first warpgroup begins
	}
	p.each(func() ptx.U32 { return p.told(round, true) }, func(w *attentionWork) {
		of := p.a.head(w.head)
		first := w.first.Add(p.mine.Mul(ptx.U(64))).Add(warp.Mul(ptx.U(16))) // first row of the warp
		p.clear(first)
		p.fullQ.Wait(round.Get().Add(ptx.U(1)).And(ptx.U(1)))
		p.multiplyTiles(w)
		out := &attentionStore{head: s.Head, causal: s.Causal, of: of, first: first}
		p.finishTile(w, out)
	})
}

// clear resets the sums and limits for a new query tile, in which the rows of the warp begin at first.
func (p *attentionPipe) clear(first ptx.U32) {
	row := [2]ptx.U32{first.Add(p.lane.Shr(ptx.U(2)))}
	row[1] = row[0].Add(ptx.U(8))
	for i := range 2 {
		p.sees[i] = p.a.seen(row[i], p.s.Causal, false)
		p.limit[i].Set(minusInf)
		p.weight[i].Set(ptx.F(0))
	}
	for _, v := range p.sums {
		v.Set(ptx.F(0))
	}
}

// multiplyTiles loops over the tiles of keys from the last one to the first. It leaves the values
// of the first tile to finishTile.
func (p *attentionPipe) multiplyTiles(w *attentionWork) {
	k, s := p.k, p.s
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
	if s.Causal {
		k.While(func() ptx.Pred { return left.Get().Gt(w.full) }, func() { p.multiplyTile(left, true) })
	}
	k.While(func() ptx.Pred { return left.Get().Gt(ptx.U(0)) }, func() { p.multiplyTile(left, false) })
}

// multiplyTile multiplies the next tile of keys and the values of the previous tile. It decrements
// left, the index of the tile.
func (p *attentionPipe) multiplyTile(left ptx.Var[ptx.U32], masked bool) {
	k := p.k
	left.Set(left.Get().Sub(ptx.U(1)))
	last, lastPhase := p.stage(p.turn.Get())
	ptx.AddTo(p.turn, ptx.U(1))
	st, phase := p.stage(p.turn.Get())
	resident := p.registerWeights()
	p.fullK.At(st).Wait(phase)
	p.begin()
	k.WgmmaFence()
	p.multiplyKeys(st)
	p.fullV.At(last).Wait(lastPhase)
	k.WgmmaFence() // a second fence for the registers of the weights: fullV.Wait branches
	p.multiplyValues(resident, last)
	p.end()
	k.WgmmaWait(1)
	p.release(p.emptyK.At(st))
	if masked {
		p.mask(left.Get().Mul(ptx.N(p.s.Keys)))
	}
	down := p.weigh()
	k.WgmmaWait(0)
	p.release(p.emptyV.At(last))
	p.keep()
	for i, v := range p.sums {
		v.Set(v.Get().Mul(down[i/2%2]))
	}
}

// finishTile multiplies the last values, and stores the rows.
func (p *attentionPipe) finishTile(w *attentionWork, out *attentionStore) {
	k := p.k
	p.release(p.emptyQ)
	last, lastPhase := p.stage(p.turn.Get())
	ptx.AddTo(p.turn, ptx.U(1))
	resident := p.registerWeights()
	p.fullV.At(last).Wait(lastPhase)
	k.WgmmaFence()
	p.multiplyValues(resident, last)
	var factor [2]ptx.F32
	for i := range 2 {
		factor[i] = quad(p.weight[i].Get(), ptx.F32.Add).Rcp()
	}
	k.WgmmaWait(0)
	p.release(p.emptyV.At(last))
	out.end = w.n.Mul(ptx.N(p.s.Keys)).Min(p.a.tk)
	out.do(k, p.a, p.sums, factor)
}

// begin waits until it is the warpgroup's turn to start products; end passes the turn to the next
// warpgroup. The number of the barrier is in a register, so that there is no branch between
// products.
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
