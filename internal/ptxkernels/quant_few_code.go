package ptxkernels

import (
	"github.com/rayo-go/rayo/ptx"
)

// quantFewCode has the values that the parts of the kernel share while it is built.
type quantFewCode struct {
	*quantFewSpec
	k                *ptx.Kernel
	a                ptx.Global[ptx.U32]
	w                ptx.Global[ptx.U8]
	tensor           ptx.TensorMap // if Tensor, otherwise w
	rows, groups     ptx.U32       // rows of the matrix; groups of a row that the block multiplies
	before           ptx.U32       // groups of a row before the block's part
	rowBytes, total  ptx.U32
	across           ptx.U32  // activations of a row
	blocks           ptx.U32  // blocks of a row, if Short
	chunks           ptx.U32  // stages along a row
	full             ptx.U32  // rows that teams process 16 at a time
	step             ptx.U32  // distance between successive 16 rows of a team
	rest, restEnd    ptx.U32  // the team's share of the rows from full on; nowhere if it has none
	late             ptx.Pred // rows of the block begin 2 bytes after a multiple of 4: see misalignedLane
	lane             ptx.U32
	ring             ptx.Shared[ptx.U8] // stages of this warp
	filled           ptx.MBarrier       // barriers of this warp's stages
	xs, sums         ptx.Shared[ptx.U8]
	units            ptx.Shared[ptx.F32] // scales of groups, with digits
	inexact          ptx.Shared[ptx.U32]
	weights, bytes   int // size of a group
	stage            ptx.Var[ptx.U32]
	phase            ptx.Var[ptx.U32]
	loading, reading walk
	once             ptx.U64             // with Ring: L2 cache policy of the matrix
	counter          ptx.Global[ptx.U32] // with Ring: number of tiles that blocks with the same part of rows have claimed
	table            sharedTable
	put              func(row, m ptx.U32, v ptx.F32)
}

// walk is the position of a warp in the matrix: the first of 16 rows, and the stage along them.
type walk struct{ row, chunk ptx.Var[ptx.U32] }

// next advances w by the number of warps in a team. It may skip several times 16 rows, because 16
// rows can have fewer stages than a team has warps.
func (c *quantFewCode) next(w *walk) {
	w.chunk.Set(w.chunk.Get().Add(ptx.N(c.SharingWarps)))
	c.wrap(w)
}

func (c *quantFewCode) wrap(w *walk) {
	c.k.While(func() ptx.Pred { return w.chunk.Get().Ge(c.chunks) }, func() {
		w.chunk.Set(w.chunk.Get().Sub(c.chunks))
		w.row.Set(c.after(w.row.Get()))
	})
}

// nowhere is a row index beyond any matrix.
const nowhere = 1<<32 - 1

// after returns the first of the team's next 16 rows.
func (c *quantFewCode) after(row ptx.U32) ptx.U32 {
	next := row.Add(c.step)
	return ptx.Select(row.Lt(c.full), ptx.Select(next.Lt(c.full), next, c.rest), ptx.U(nowhere))
}

// end returns the end of the range of rows that row belongs to; 16 rows from row on may reach beyond it.
func (c *quantFewCode) end(row ptx.U32) ptx.U32 { return ptx.Select(row.Lt(c.full), c.full, c.restEnd) }

// parameters declares the parameters that these kernels have in common. It returns the index of
// this block among the blocks with the same part of rows, their number, and the number of remaining
// rows for each of them.
func (c *quantFewCode) parameters(e *epilogue) (block, blocks, share ptx.U32) {
	k := c.k
	c.weights, c.bytes = blockGroup(c.Blocks, c.Whole)
	c.a = ptx.GlobalParam[ptx.U32](k, "a").Hint(ptx.ReadOnly)
	if c.Tensor {
		c.tensor = ptx.TensorMapParam(k, "w")
	} else {
		c.w = ptx.GlobalParam[ptx.U8](k, "w")
	}
	var bias ptx.Global[ptx.U32]
	if c.Bias && c.Split == 1 {
		bias = ptx.GlobalParam[ptx.U32](k, "bias").Hint(ptx.ReadOnly)
	}
	c.rows, c.groups, c.total = ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "groups"), ptx.Param[ptx.U32](k, "total")
	c.full, share = ptx.Param[ptx.U32](k, "full"), ptx.Param[ptx.U32](k, "share")
	if c.Ring {
		c.counter = ptx.GlobalParam[ptx.U32](k, "counters")
	}
	c.before, c.rowBytes, c.across = ptx.U(0), c.groups.Mul(ptx.N(c.bytes)), c.groups.Mul(ptx.N(c.weights))
	if c.Short {
		c.blocks = ptx.Param[ptx.U32](k, "blocks")
		c.rowBytes, c.across = c.blocks.Mul(ptx.N(c.bytes/8)), c.blocks.Shl(ptx.U(5))
	}
	block, blocks = k.Special(ptx.CtaidX), k.Special(ptx.NctaidX)
	if c.Split > 1 {
		each, to := ptx.Param[ptx.U32](k, "part"), ptx.GlobalParam[ptx.F32](k, "parts")
		part := block.Rem(ptx.N(c.Split))
		if c.Ring {
			c.counter = c.counter.At(part.Mul(ptx.N(c.RowStride)))
		}
		block, blocks = block.Div(ptx.N(c.Split)), blocks.Div(ptx.N(c.Split))
		c.before = part.Mul(each)
		c.groups = c.groups.Sub(c.before).Min(each)
		to = to.At(part.Mul(c.rows.Mul(ptx.N(c.M))))
		c.put = func(row, m ptx.U32, v ptx.F32) { to.At(m.MulAdd(c.rows, row)).Store(v) }
		return block, blocks, share
	}
	out := e.sink(k)
	c.put = func(row, m ptx.U32, v ptx.F32) {
		if c.Bias {
			v = v.Add(ptx.F32(loadElements(c.Type, bias, row, 1)[0]))
		}
		out.setRow(m, row, m.MulAdd(c.rows, row), v)
	}
	return block, blocks, share
}

// threads is the number of threads of a block.
func (s *quantFewSpec) threads() int {
	if s.Ring {
		return 32 * (s.Warps + s.Fill + 1)
	}
	return 32 * s.Warps
}

func (s *quantFewSpec) groupBytes() int {
	_, n := blockGroup(s.Blocks, s.Whole)
	return n
}

// memory declares the shared memory of a block: the stages, the sums of its warps, and the barriers.
func (c *quantFewCode) memory() (ring ptx.Shared[ptx.U8], parts ptx.Shared[ptx.F32], bars ptx.MBarrier) {
	k, s := c.k, c.quantFewSpec
	k.Align(128)
	ring = ptx.DynamicShared[ptx.U8](k, s.Warps*s.Stages*s.stageBytes())
	c.xs = ptx.DynamicShared[ptx.U8](k, s.xBytes())
	k.Align(16)
	if s.Digits > 0 {
		c.units = ptx.DynamicShared[ptx.F32](k, s.M*s.Room/digitGroup)
		c.inexact = ptx.DynamicShared[ptx.U32](k, 8)
	}
	if blockDecoders[s.Blocks.Block()].mins {
		c.sums = ptx.DynamicShared[ptx.U8](k, s.M*pieces*s.sumPitch())
	}
	parts = ptx.DynamicShared[ptx.F32](k, s.partsBytes()/4)
	bars = ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, s.Warps*s.Stages))
	return ring, parts, bars
}

// initBarriers initialises the barriers of the stages of a warp.
func (c *quantFewCode) initBarriers() {
	k, s := c.k, c.quantFewSpec
	if s.Tensor || s.Bulk {
		arrivals := fewRows
		if s.Tensor {
			arrivals /= boxRows
		}
		k.If(c.lane.Eq(ptx.U(0)), func() {
			for i := range s.Stages {
				c.filled.At(ptx.N(i)).Init(ptx.N(arrivals))
			}
			k.FenceMBarrierInit()
		})
	}
}

// build writes the kernel.
func (s *quantFewSpec) build(k *ptx.Kernel, e *epilogue) {
	c := &quantFewCode{quantFewSpec: s, k: k}
	if s.Ring {
		(&ringCode{quantFewCode: c}).build(e)
		return
	}
	k.Block(s.threads(), 1, 1)
	k.MinBlocks(1)
	block, blocks, share := c.parameters(e)
	ring, parts, bars := c.memory()

	tid := k.Special(ptx.TidX)
	warp := tid.Shr(ptx.U(5))
	c.lane = tid.And(ptx.U(31))
	c.chunks = c.groups.Add(ptx.N(s.Groups - 1)).Div(ptx.N(s.Groups))
	teams := s.Warps / s.SharingWarps
	first, member := block, warp
	if teams > 1 {
		first, member = first.MulAdd(ptx.N(teams), warp), ptx.U(0)
	}
	c.step = blocks.Mul(ptx.N(teams * fewRows))
	c.rest = first.MulAdd(share, c.full)
	c.restEnd = c.rest.Add(share).Min(c.rows)
	c.rest = ptx.Select(c.rest.Lt(c.rows), c.rest, ptx.U(nowhere))
	first = ptx.Select(c.full.Ne(ptx.U(0)), first.Mul(ptx.U(fewRows)), c.rest)
	c.ring = ring.At(warp.Mul(ptx.N(s.Stages * s.stageBytes())))
	c.filled = bars.At(warp.Mul(ptx.N(s.Stages)))
	for _, w := range []*walk{&c.loading, &c.reading} {
		w.row, w.chunk = ptx.NewVar(k, first), ptx.NewVar(k, member)
		if s.SharingWarps > 1 {
			c.wrap(w)
		}
	}
	c.stage, c.phase = ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0))
	c.initBarriers()
	k.SyncWarp(ptx.AllLanes)
	for i := range s.Stages {
		c.load(ptx.N(i))
	}
	c.table = blockDecoders[s.Blocks.Block()].levels.share(k, tid, s.threads(), s.smallTable())
	pieces := func() {
		c.prepare(tid)
		k.Sync()
		c.multiply(false, warp, first, parts)
	}
	if s.Digits == 0 {
		pieces()
		return
	}
	k.If(tid.Eq(ptx.U(0)), func() {
		c.inexact.Store(ptx.U(0))
		c.storeConstants()
	})
	k.Sync()
	c.prepareDigits(warp)
	k.Sync()
	k.IfElse(c.inexact.Load().Eq(ptx.U(0)), func() { c.multiply(true, warp, first, parts) }, func() {
		k.Sync() // all threads have read the flag
		pieces()
	})
}

// place returns the position in the matrix of a stage of one of 16 lines. Lines after the last row
// are mapped to the first line.
func (c *quantFewCode) place(line ptx.U32, w *walk) ptx.U32 {
	row := w.row.Get().Add(line.Mul(ptx.N(c.RowStride)))
	return ptx.Select(row.Lt(c.end(w.row.Get())), row, w.row.Get()).MulAdd(c.rowBytes, c.along(w))
}

// along returns the offset of a stage in a row, in bytes.
func (c *quantFewCode) along(w *walk) ptx.U32 {
	return w.chunk.Get().MulAdd(ptx.N(c.bytes*c.Groups), c.before.Mul(ptx.N(c.bytes)))
}

// load starts the copies of the next stage, unless all stages are loaded.
func (c *quantFewCode) load(stage ptx.U32) {
	k, w := c.k, &c.loading
	k.If(w.row.Get().Lt(c.rows), func() {
		switch {
		case c.Tensor:
			c.loadTiles(stage)
		case c.Bulk:
			c.loadBulk(stage)
		default:
			c.loadRows(stage)
		}
		c.next(w)
	})
	if !c.Tensor && !c.Bulk {
		k.CopyCommit() // commit even if there are no copies, because wait counts stages
	}
}

// loadTiles copies tiles, which begin at multiples of 16 bytes.
func (c *quantFewCode) loadTiles(stage ptx.U32) {
	k, w := c.k, &c.loading
	k.If(c.lane.Lt(ptx.N(fewRows/boxRows)), func() {
		row := w.row.Get().Add(c.lane.Mul(ptx.N(boxRows)))
		bar, box := c.filled.At(stage), boxRows*c.rowPitch()
		bar.ArriveExpect(ptx.N(box))
		// Rows after the matrix become zeros; nothing reads them.
		ptx.TensorLoad(c.ring.At(stage.MulAdd(ptx.N(c.stageBytes()), c.lane.Mul(ptx.N(box)))), c.tensor, bar,
			c.along(w).And(ptx.U(^uint32(15))).Shr(ptx.U(2)).S32(), ptx.Select(row.Lt(c.end(w.row.Get())), row, c.rows).S32())
	})
}

// loadRows copies pieces of 16 bytes at multiples of 16; two lanes copy each row. A piece may
// contain bytes before or after the stage, which nothing reads. It copies no bytes after the
// matrix.
func (c *quantFewCode) loadRows(stage ptx.U32) {
	k, w := c.k, &c.loading
	line, half := c.lane.Shr(ptx.U(1)), c.lane.And(ptx.U(1)).Shl(ptx.U(4))
	from := c.place(line, w)
	first := from.And(ptx.U(^uint32(15))).Add(half)
	left := c.groups.Sub(w.chunk.Get().Mul(ptx.N(c.Groups))).Min(ptx.N(c.Groups))
	end := left.MulAdd(ptx.N(c.bytes), from)
	dst := c.ring.At(stage.MulAdd(ptx.N(c.stageBytes()), line.MulAdd(ptx.N(c.rowPitch()), half)))
	src := c.w.At(first)
	for off := 0; off < c.bytes*c.Groups+14; off += 32 {
		at := first.Add(ptx.N(off))
		k.If(at.Lt(end), func() {
			ptx.CopyAsyncZero(dst.Offset(off), src.Offset(off), 16, c.total.Sub(at).Min(ptx.U(16)))
		})
	}
}

// loadBulk copies rows; each lane copies one with copyRow.
func (c *quantFewCode) loadBulk(stage ptx.U32) {
	k, w := c.k, &c.loading
	k.If(c.lane.Lt(ptx.N(fewRows)), func() {
		from := c.place(c.lane, w)
		left := c.groups.Sub(w.chunk.Get().Mul(ptx.N(c.Groups))).Min(ptx.N(c.Groups))
		bar := c.filled.At(stage)
		bytes, start := c.copyRow(bar, c.ring.At(stage.MulAdd(ptx.N(c.stageBytes()), c.lane.Mul(ptx.N(c.rowPitch())))), from, left.Mul(ptx.N(c.bytes)))
		bar.ArriveExpect(bytes)
		start()
	})
}

// wait waits for a stage.
func (c *quantFewCode) wait() {
	if c.Tensor || c.Bulk {
		c.filled.At(c.stage.Get()).Wait(c.phase.Get())
		return
	}
	c.k.CopyWait(c.Stages - 1)
	c.k.SyncWarp(ptx.AllLanes)
}
