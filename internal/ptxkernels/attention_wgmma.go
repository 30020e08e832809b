package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// attentionWgmma is attention with the wgmma instruction, for sm_90a (Shah et al.:
// FlashAttention-3). Blocks are persistent: each processes one query tile after the other. One
// warpgroup copies queries, keys and values through tensor maps; each of the other warpgroups
// multiplies 64 queries. The tensor cores compute the scores of the next tile of keys and the
// weighted values of the previous tile while the threads compute the weights of the tile in
// between. If Turns is set, the warpgroups start their products in turn, so that one computes
// weights while another multiplies.
type attentionWgmma struct {
	Type    op.DType
	Causal  bool
	Head    int  // elements of a row in shared memory, a multiple of 64; elements from d on are 0
	Groups  int  // warpgroups that multiply
	Keys    int  // of a tile
	Stages  int  // tiles of keys, and of values, that shared memory holds
	Turns   bool // warpgroups start their products in turn
	Strided attentionStrided
}

func (s attentionWgmma) threads() int { return 128 * (s.Groups + 1) }

// queries returns the number of rows in a query tile.
func (s attentionWgmma) queries() int { return 64 * s.Groups }

// A row of a tile has 64 elements: the 128 bytes that ptx.Swizzle128 permutes. A head of 128
// elements is two tiles.
const (
	attentionSlice = 64
	sliceWords     = attentionSlice / 2
)

// shared returns the bytes of shared memory.
func (s attentionWgmma) shared() int {
	return 2*s.Head*(s.queries()+2*s.Stages*s.Keys) + 8*(7+4*s.Stages) + 1024
}

// registers returns the number of registers that a thread which copies keeps, and that a thread
// which multiplies gets.
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
	n, full     ptx.U32 // tiles of keys that some row sees, and tiles that all rows see completely
}

func (s attentionWgmma) build(k *ptx.Kernel, to *epilogue) {
	k.Block(s.threads(), 1, 1)
	k.MinBlocks(1)
	k.Align(1024)
	p := &attentionPipe{s: s, k: k}
	p.declare(to)
	t := k.Special(ptx.TidX)
	k.If(t.Eq(ptx.U(0)), p.init)
	k.Sync()
	p.total = p.tiles.Mul(p.heads)
	copying, multiplying := s.registers()
	group := t.Shr(ptx.U(7))
	k.IfElse(group.Eq(ptx.U(0)), func() {
		k.DropRegisters(copying)
		// One warp copies queries and keys, another warp copies values, so that neither waits for
		// the other's free stage.
		k.If(t.Eq(ptx.U(0)), p.bringKeys)
		k.If(t.Eq(ptx.U(32)), p.bringValues)
	}, func() {
		k.RaiseRegisters(multiplying)
		p.mine = group.Sub(ptx.U(1))
		p.consume()
	})
}

// declare declares parameters and shared memory.
func (p *attentionPipe) declare(to *epilogue) {
	s, k := p.s, p.k
	p.a = &attentionArgs{typ: s.Type, strided: s.Strided}
	p.mq, p.mk, p.mv = ptx.TensorMapParam(k, "mq"), ptx.TensorMapParam(k, "mk"), ptx.TensorMapParam(k, "mv")
	p.a.q, p.a.keys, p.a.values = ptx.GlobalParam[ptx.B32](k, "q"), ptx.GlobalParam[ptx.B32](k, "k"), ptx.GlobalParam[ptx.B32](k, "v")
	p.counter = ptx.GlobalParam[ptx.U32](k, "counter")
	p.a.declare(k)
	param := func(name string) ptx.U32 { return ptx.Param[ptx.U32](k, name) }
	p.tiles, p.heads, p.together = param("tiles"), param("heads"), param("together")
	p.a.to = to.sink(k)

	p.qs = ptx.DynamicShared[ptx.B32](k, s.queries()*s.Head/2)
	p.ks = ptx.DynamicShared[ptx.B32](k, s.Stages*s.Keys*s.Head/2)
	p.vs = ptx.DynamicShared[ptx.B32](k, s.Stages*s.Keys*s.Head/2)
	k.Align(16)
	barriers := func(n int) ptx.MBarrier { return ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, n)) }
	p.fullQ, p.emptyQ, p.fullW, p.emptyW = barriers(1), barriers(1), barriers(2), barriers(2)
	p.work = ptx.DynamicShared[ptx.U32](k, 2)
	p.fullK, p.emptyK, p.fullV, p.emptyV = barriers(s.Stages), barriers(s.Stages), barriers(s.Stages), barriers(s.Stages)
}

// init fetches the tensor maps and initialises the barriers.
func (p *attentionPipe) init() {
	p.mq.Prefetch()
	p.mk.Prefetch()
	p.mv.Prefetch()
	warps := ptx.N(4 * p.s.Groups)
	p.fullQ.Init(ptx.U(1))
	p.emptyQ.Init(warps)
	for i := range 2 {
		p.fullW.At(ptx.N(i)).Init(ptx.U(1))
		p.emptyW.At(ptx.N(i)).Init(ptx.N(4*p.s.Groups + 1))
	}
	for i := range p.s.Stages {
		p.fullK.At(ptx.N(i)).Init(ptx.U(1))
		p.fullV.At(ptx.N(i)).Init(ptx.U(1))
		p.emptyK.At(ptx.N(i)).Init(warps)
		p.emptyV.At(ptx.N(i)).Init(warps)
	}
	p.k.FenceMBarrierInit()
}

// each runs body for the query tiles of this block; next returns their indices. Consecutive indices
// go through a group of heads whose keys and values fit into the L2 cache together. In a group, the
// tiles that see the most keys come first, so that the last tiles are short.
func (p *attentionPipe) each(next func() ptx.U32, body func(w *attentionWork)) {
	k, s, a := p.k, p.s, p.a
	k.Loop(func() {
		i := next()
		k.BreakIf(i.Ge(p.total))
		all := p.together.Mul(p.tiles)
		start := i.Div(all).Mul(p.together)
		n := p.together.Min(p.heads.Sub(start))
		i = i.Sub(start.Mul(p.tiles))
		w := &attentionWork{head: start.Add(i.Rem(n)), first: p.tiles.Sub(ptx.U(1)).Sub(i.Div(n)).Mul(ptx.N(s.queries()))}
		end, whole := a.tk, a.tk
		if s.Causal {
			end = a.seen(w.first.Add(ptx.N(s.queries()-1)).Min(a.rows.Sub(ptx.U(1))), true, false)
			whole = a.seen(w.first, true, false)
		}
		w.n, w.full = end.Add(ptx.N(s.Keys-1)).Div(ptx.N(s.Keys)), whole.Div(ptx.N(s.Keys))
		body(w)
	})
}

// bring starts to copy a tile of rows of a head.
func (p *attentionPipe) bring(to ptx.Shared[ptx.B32], m ptx.TensorMap, bar ptx.MBarrier, rows int, row, head, heads ptx.U32) {
	bar.ArriveExpect(ptx.N(2 * rows * p.s.Head))
	for i := range p.s.Head / attentionSlice {
		at := []ptx.S32{ptx.S(int32(i * attentionSlice)), row.S32(), head.S32()}
		if p.s.Strided.Operands {
			at = append(at[:2], head.Rem(heads).S32(), head.Div(heads).S32())
		}
		ptx.TensorLoad(to.Offset(i*rows*sliceWords), m, bar, at...)
	}
}

// bringKeys is the code of the thread that copies queries and keys. It sends the index of each
// query tile to the other threads.
func (p *attentionPipe) bringKeys() {
	k, s := p.k, p.s
	turn, round := ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0))
	grid := k.Special(ptx.NctaidX)
	work := ptx.NewVar(k, k.Special(ptx.CtaidX))
	p.each(func() ptx.U32 {
		// The index of the first tile is that of the block. If all tiles take the same time (not
		// causal), each block adds the number of blocks to get its next tile. Otherwise a counter
		// assigns the next tile to the block that asks first.
		k.If(round.Get().Gt(ptx.U(0)), func() {
			if !s.Causal {
				ptx.AddTo(work, grid)
				return
			}
			work.Set(p.total)
			k.If(grid.Lt(p.total), func() { work.Set(ptx.AtomicAdd(p.counter, ptx.U(1)).Add(grid)) })
		})
		p.tell(round, work.Get())
		return work.Get()
	}, func(w *attentionWork) {
		p.emptyQ.Wait(round.Get().And(ptx.U(1)))
		p.bring(p.qs, p.mq, p.fullQ, s.queries(), w.first, w.head, p.a.heads)
		p.bringTiles(p.ks, p.mk, p.fullK, p.emptyK, w, turn)
	})
}

// bringValues is the code of the thread that copies values.
func (p *attentionPipe) bringValues() {
	turn, round := ptx.NewVar(p.k, ptx.U(0)), ptx.NewVar(p.k, ptx.U(0))
	p.each(func() ptx.U32 { return p.told(round, false) }, func(w *attentionWork) {
		p.bringTiles(p.vs, p.mv, p.fullV, p.emptyV, w, turn)
	})
}

// bringTiles copies the tiles of keys, or of values, that a query tile sees, from the last one to
// the first. turn counts the tiles of all query tiles.
func (p *attentionPipe) bringTiles(to ptx.Shared[ptx.B32], m ptx.TensorMap, full, empty ptx.MBarrier, w *attentionWork, turn ptx.Var[ptx.U32]) {
	k, s := p.k, p.s
	kv := w.head.Div(p.a.group)
	left := ptx.NewVar(k, w.n)
	k.While(func() ptx.Pred { return left.Get().Gt(ptx.U(0)) }, func() {
		left.Set(left.Get().Sub(ptx.U(1)))
		st, phase := p.stage(turn.Get())
		empty.At(st).Wait(phase.Xor(ptx.U(1)))
		p.bring(to.At(st.Mul(ptx.N(s.Keys*s.Head/2))), m, full.At(st), s.Keys, left.Get().Mul(ptx.N(s.Keys)), kv, p.a.kvHeads)
		ptx.AddTo(turn, ptx.U(1))
	})
}
