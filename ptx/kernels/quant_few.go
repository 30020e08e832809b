package kernels

import (
	"fmt"

	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// quantFewSpec is a product of a few rows with a quantised matrix, which it reads
// once: a persistent grid, in which a warp multiplies 16 rows of the matrix at a
// time. Each warp has a ring of stages in shared memory that it alone fills and
// reads; the activations lie there as bf16, three for each.
type quantFewSpec struct {
	Type, Blocks op.DType
	M            int  // rows of activations
	Room         int  // activations of a row that there is room for
	Short        bool // of a ring: the last group of a row has not all its blocks
	Whole        bool // rows of the matrix are multiples of 256
	Warps        int
	SharingWarps int // warps that share 16 rows, each a part along them: 1 or all
	Groups       int // of blocks, see blockGroup, that a stage has of each row
	Stages       int
	Tensor       bool // stages are tiles of a tensor map, which wants rows of multiples of 16 bytes
	Digits       int  // of an activation, see digitDecoder; of a ring and for one row, else 0
	Full         bool // all stages have Groups of a row
	RowStride    int  // rows from one of 16 to the next: 2 for all of a block to begin in words alike, else 1
	Ring         bool // all warps of a block share the stages; each has up to Groups of one
	Width        int  // of a ring: groups of a row that a stage has
	Fill         int  // warps that fill these
	Tall         int  // times 16 rows that a stage of a ring has: more than 1 where rows are short, with a warp for each group of all
	Solid        bool // of a ring: rows of a stage lie behind each other as in the matrix, and are copied at once
	Bulk         bool // rows of stages are copied one by one, from multiples of 16 bytes on; unless Tensor
	Split        int  // blocks that share rows, each a part along them that there is room for; of a ring and for one row, else 1
	Claim        int  // rows that a block of a ring claims
	Bias         bool
	Key          string // of the epilogue
}

const (
	fewRows   = 16 // of the matrix, that a warp multiplies
	pieces    = 3  // bf16 that a float is the sum of
	tileCols  = 8  // pieces of activations that one mma takes
	partPitch = 20 // floats from one column of a part to the next: no bank twice
	maxFew    = 8
	fewEvery  = 4 // times 16 rows after which a team adds up its parts, if they are small
)

func (s *quantFewSpec) String() string {
	how := "rows"
	if s.Tensor {
		how = "tiles"
	}
	if s.Bulk {
		how = "bulk"
	}
	if s.Digits > 0 {
		how = fmt.Sprintf("%s_d%d", how, s.Digits)
	}
	if s.Split > 1 {
		how = fmt.Sprintf("%s_p%d", how, s.Split)
	}
	if s.Ring {
		how = fmt.Sprintf("ring%d%s", s.Width, how[4:])
		if s.Tall > 1 {
			how = fmt.Sprintf("%s_x%d", how, s.Tall)
		}
		if s.Solid {
			how += "_solid"
		}
	}
	return fmt.Sprintf("few_m%d_w%d_t%d_g%d_s%d_%s", s.M, s.Warps, s.SharingWarps, s.Groups, s.Stages, how)
}

// tiles is how many mma take all pieces of all rows of activations.
func (s *quantFewSpec) tiles() int { return ceilDiv(s.M*pieces, tileCols) }

// xPitch is the bytes from one piece of the activations to the next: an odd number
// of halves of the banks.
func (s *quantFewSpec) xPitch() int { return ceilDiv(2*s.Room, 128)*128 + 64 }

// digitPitch is likewise for digits.
func (s *quantFewSpec) digitPitch() int { return ceilDiv(s.Room, 128)*128 + 64 }

// xBytes is what the activations take.
func (s *quantFewSpec) xBytes() int {
	return s.M * max(pieces*s.xPitch(), s.Digits*s.digitPitch())
}

// unitBytes is what the scales of groups take, and that there are any that digits
// do not suffice for.
func (s *quantFewSpec) unitBytes() int {
	if s.Digits == 0 {
		return 0
	}
	return s.M*4*s.Room/digitGroup + 16
}

// sumPitch is the bytes from one piece of the sums of 32 activations to the next.
func (s *quantFewSpec) sumPitch() int { return ceilDiv(s.Room/16, 32)*32 + 16 }

// rowPitch is the bytes from one row of a stage to the next. A row begins as many
// bytes after a multiple of 16 as it does in the matrix. Rows are apart so that
// eight of them, or four with 8 bytes a lane, are in different banks.
func (s *quantFewSpec) rowPitch() int {
	_, bytes := blockGroup(s.Blocks, s.Whole)
	if s.Ring {
		bytes *= s.Width
	} else {
		bytes *= s.Groups
	}
	if s.Solid {
		return bytes
	}
	if blockDecoders[s.Blocks.Block()].aligned() {
		n := bytes / 16
		for n%4 != 2 {
			n++
		}
		return 16 * n
	}
	late := 14
	if s.Tensor { // rows begin at multiples of 16
		late = (16 - bytes&-bytes) & 15
	}
	return 16 * (ceilDiv(bytes+late, 16) | 1)
}

// stageBytes is a multiple of 128, where copies of tiles begin.
func (s *quantFewSpec) stageBytes() int {
	n := s.high() * s.rowPitch()
	if s.Solid { // which begin up to 14 bytes behind a multiple of 16
		n += 30
	}
	return ceilDiv(n, 128) * 128
}

// high is the rows of a stage.
func (s *quantFewSpec) high() int { return fewRows * max(s.Tall, 1) }

// boxRows is the rows of a copy: all begin at multiples of 128 bytes in a stage.
const boxRows = 8

// tileable reports whether a stage is no wider than a tile may be.
func (s *quantFewSpec) tileable() bool { return s.rowPitch() <= 1024 }

// partBytes is what a warp has computed of 16 rows.
func (s *quantFewSpec) partBytes() int { return 4 * partPitch * tileCols * s.tiles() }

// partsBytes is the room for these.
func (s *quantFewSpec) partsBytes() int {
	n := s.Warps * s.partBytes()
	if s.SharingWarps > 1 {
		n *= 2 // one is read while the next is written
	}
	return max(n, 2*fewEvery*s.Warps*fewRows*4)
}

// bytes is the shared memory of a block.
func (s *quantFewSpec) bytes() int {
	rings := s.Warps
	if s.Ring {
		rings = 1
	}
	n := rings*s.Stages*(s.stageBytes()+24) + s.xBytes() + s.unitBytes() + s.partsBytes()
	if blockDecoders[s.Blocks.Block()].mins {
		n += s.M * pieces * s.sumPitch()
	}
	return n + 128
}

// quantFewFor returns how a product of a few rows is made.
func quantFewFor(p op.Product, t, blocks op.DType, d *Device) (*quantFewSpec, error) {
	if p.M > maxFew {
		return nil, unsupported("%d rows", p.M)
	}
	s := &quantFewSpec{Type: t, Blocks: blocks, M: p.M, Whole: p.K%256 == 0}
	weights, bytes := blockGroup(blocks, s.Whole)
	groups := p.K / weights
	// Two groups are copied together rather than one: a row is read the better the
	// longer its pieces are.
	type size struct{ warps, groups, stages, digits int }
	sizes := []size{{8, 2, 3, digits}, {8, 2, 2, digits}, {8, 2, 2, digits - 2}, {7, 2, 2, digits - 2}}
	splits := min(maxParts, d.Multiprocessors)
	if s.M > 1 || !s.Whole {
		sizes, splits = append(sizes, size{8, 1, 4, 0}, size{8, 1, 2, 0}), 1
	}
	for s.Split = 1; s.Split <= splits; s.Split++ {
		part := s.part(groups)
		if part*(s.Split-1) >= groups {
			continue
		}
		s.Room = ceilDiv(part*weights, 1024) * 1024
		for _, z := range sizes {
			s.Warps, s.Groups, s.Stages, s.Digits = z.warps, z.groups, z.stages, z.digits
			if !s.Whole {
				s.Groups *= 8
			}
			if s.M > 1 || !s.Whole {
				s.Digits = 0
			}
			s.Tensor = d.Target >= ptx.SM90 && groups*bytes%16 == 0 && s.tileable()
			s.SharingWarps = s.Warps
			if part < s.Groups*s.Warps {
				s.SharingWarps = 1
			}
			s.Bulk = d.Target >= ptx.SM90 && !s.Tensor
			s.RowStride = 1
			if s.bytes() <= d.Shared {
				return s, nil
			}
		}
	}
	return nil, unsupported("%d rows of %d activations", p.M, p.K)
}

// maxParts is how many blocks may share rows.
const maxParts = 16

// part returns the groups of a row that a block has: the beginning of a part is at
// a multiple of 8 bytes, or of 2 where a ring takes it from any place.
func (s *quantFewSpec) part(groups int) int {
	if s.Split == 1 {
		return groups
	}
	multiple := 4
	if s.Ring {
		multiple = 1
	}
	return ceilDiv(ceilDiv(groups, s.Split), multiple) * multiple
}

// fit reports whether the kernel has enough shared memory, with fewer stages if
// need be.
func (s *quantFewSpec) fit(d *Device) bool {
	for s.Stages > 2 && s.bytes() > d.Shared {
		s.Stages--
	}
	return s.bytes() <= d.Shared
}

var quantFewKernels kernelCache[quantFewSpec]

// plan returns the launch of the kernel.
func (s *quantFewSpec) plan(r *lib.Request, p op.Product, d *Device) (*Plan, error) {
	e, err := finish(r, p.N)
	if err != nil {
		return nil, err
	}
	spec := *s
	spec.Key = e.key
	spec.Bias = len(r.In) > 2 && r.In[2].Shape != nil
	if spec.Split > 1 {
		spec.Key = ""
	}
	total, err := spec.Blocks.Bytes(r.In[1].Shape)
	if err != nil {
		return nil, err
	}
	weights, _ := blockGroup(spec.Blocks, spec.Whole)
	groups := ceilDiv(p.K, weights)
	spec.Full = groups%spec.Groups == 0 && spec.part(groups)%spec.Groups == 0
	// All teams have 16 rows at a time, next to each other, and at the end an equal
	// share of the others.
	blocks := d.Multiprocessors / spec.Split / spec.RowStride * spec.RowStride
	teams := blocks * spec.Warps / spec.SharingWarps
	full := p.N / (fewRows * teams) * fewRows * teams
	share := ceilDiv(ceilDiv(p.N-full, teams), boxRows) * boxRows
	if spec.Ring {
		spec.Claim = spec.claimed(spec.part(groups) * s.groupBytes())
		full, share = spec.tiled(p.N, blocks/spec.RowStride)
		blocks = min(blocks, ceilDiv(p.N, spec.RowStride*share)*spec.RowStride)
	} else if full == 0 {
		blocks = ceilDiv(ceilDiv(p.N, share), spec.Warps/spec.SharingWarps)
	}
	row := int(total) / p.N
	target := ptx.SM80
	if spec.Tensor || spec.Bulk || spec.Ring {
		target = ptx.SM90
	}
	k := quantFewKernels.of(spec, func() *Kernel {
		return &Kernel{Name: fmt.Sprintf("matmul_q_%v_%v", spec.Blocks, &spec), Target: target,
			Block: [3]uint32{uint32(spec.threads()), 1, 1}, Build: func(k *ptx.Kernel) { spec.build(k, e) }}
	})
	args := []Arg{input(0), input(1)}
	if spec.Tensor {
		args[1] = Arg{Kind: Map, Array: lib.Ref{Kind: lib.InputRef, Index: 1}, Tiles: &Tiles{Type: op.U32,
			Size: []int{row / 4, p.N}, Stride: []int{row}, Tile: []int{spec.rowPitch() / 4, boxRows}, Lines: true}}
	}
	plan := &Plan{Variant: spec.String()}
	var after []Stage
	results := e.args()
	if spec.Split > 1 {
		plan.Scratch = []int64{4 * int64(spec.Split) * int64(p.M) * int64(p.N)}
		after = append(after, sumParts(spec.Type, p.M*p.N, p.N, spec.Split, spec.Bias, scratch(0), e))
		results = []Arg{word(uint32(spec.part(groups))), scratch(0)}
	} else if spec.Bias {
		args = append(args, input(2))
	}
	args = append(args, word(uint32(p.N)), word(uint32(groups)), word(uint32(total)), word(uint32(full)), word(uint32(share)))
	if spec.Ring {
		plan.Zeros = []int64{4 * int64(spec.Split*spec.RowStride)}
		args = append(args, scratch(len(plan.Scratch)))
		if spec.Short {
			args = append(args, word(uint32(p.K/spec.Blocks.Block().Elements())))
		}
	}
	first := Stage{Kernel: k, Grid: [3]uint32{uint32(blocks * spec.Split), 1, 1}, Zero: -1, Args: append(args, results...)}
	plan.Stages = append([]Stage{first}, after...)
	return plan, nil
}

// quantFewCode is what the parts of the kernel share while it is built.
type quantFewCode struct {
	*quantFewSpec
	k                *ptx.Kernel
	a                ptx.Global[ptx.U32]
	w                ptx.Global[ptx.U8]
	tensor           ptx.TensorMap // or w
	rows, groups     ptx.U32       // of the matrix; of a row that the block has
	before           ptx.U32       // groups of a row that the block does not have
	rowBytes, total  ptx.U32
	across           ptx.U32  // activations of a row
	blocks           ptx.U32  // of a row, where groups are not whole
	chunks           ptx.U32  // stages along a row
	full             ptx.U32  // rows of which all teams have 16 at a time
	step             ptx.U32  // from 16 rows of a team to the next
	rest, restEnd    ptx.U32  // the rows behind these that the team has; nowhere if there are none
	late             ptx.Pred // rows of the block begin 2 bytes behind a multiple of 4, if some do: see shifted
	lane             ptx.U32
	ring             ptx.Shared[ptx.U8] // of this warp
	filled           ptx.MBarrier       // likewise
	xs, sums         ptx.Shared[ptx.U8]
	units            ptx.Shared[ptx.F32] // of groups, in digits
	inexact          ptx.Shared[ptx.U32]
	weights, bytes   int // of a group
	stage            ptx.Var[ptx.U32]
	phase            ptx.Var[ptx.U32]
	loading, reading walk
	once             ptx.U64             // of a ring: what L2 does with the matrix
	counter          ptx.Global[ptx.U32] // of a ring: tiles that blocks with the same part of rows claimed
	put              func(row, m ptx.U32, v ptx.F32)
}

// walk is where a warp is on its way through the stages of 16 rows after the other.
type walk struct{ row, chunk ptx.Var[ptx.U32] }

// next goes on by the warps of a team; there may be fewer stages in
// 16 rows.
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

// nowhere is a row that no matrix has.
const nowhere = 1<<32 - 1

// after returns where the next 16 rows of the team begin.
func (c *quantFewCode) after(row ptx.U32) ptx.U32 {
	next := row.Add(c.step)
	return ptx.Select(row.Lt(c.full), ptx.Select(next.Lt(c.full), next, c.rest), ptx.U(nowhere))
}

// end returns the end of the rows that may be among 16.
func (c *quantFewCode) end(row ptx.U32) ptx.U32 { return ptx.Select(row.Lt(c.full), c.full, c.restEnd) }

// parameters reads what all these kernels are given. It returns which block this
// is of how many that have the same part of rows, and how many rows are left for each
// in the end.
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

// threads is those of a block.
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

func (s *quantFewSpec) build(k *ptx.Kernel, e *epilogue) {
	c := &quantFewCode{quantFewSpec: s, k: k}
	if s.Ring {
		(&ringCode{quantFewCode: c}).build(e)
		return
	}
	k.Block(s.threads(), 1, 1)
	k.MinBlocks(1)
	block, blocks, share := c.parameters(e)
	k.Align(128)
	ring := ptx.DynamicShared[ptx.U8](k, s.Warps*s.Stages*s.stageBytes())
	c.xs = ptx.DynamicShared[ptx.U8](k, s.xBytes())
	k.Align(16)
	if s.Digits > 0 {
		c.units = ptx.DynamicShared[ptx.F32](k, s.M*s.Room/digitGroup)
		c.inexact = ptx.DynamicShared[ptx.U32](k, 4)
	}
	if blockDecoders[s.Blocks.Block()].mins {
		c.sums = ptx.DynamicShared[ptx.U8](k, s.M*pieces*s.sumPitch())
	}
	parts := ptx.DynamicShared[ptx.F32](k, s.partsBytes()/4)
	bars := ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, s.Warps*s.Stages))

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
	k.SyncWarp(ptx.AllLanes)
	for i := range s.Stages {
		c.load(ptx.N(i))
	}
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
		c.inexact.Offset(1).Store(ptx.U(topBits)) // see digitLane.flip
	})
	k.Sync()
	c.prepareDigits(warp)
	k.Sync()
	k.IfElse(c.inexact.Load().Eq(ptx.U(0)), func() { c.multiply(true, warp, first, parts) }, func() {
		k.Sync() // all have seen it
		pieces()
	})
}

// place returns where in the matrix a line of 16 has a stage. Lines behind the last
// are the first again.
func (c *quantFewCode) place(line ptx.U32, w *walk) ptx.U32 {
	row := w.row.Get().Add(line.Mul(ptx.N(c.RowStride)))
	return ptx.Select(row.Lt(c.end(w.row.Get())), row, w.row.Get()).MulAdd(c.rowBytes, c.along(w))
}

// along returns the bytes of a row before a stage.
func (c *quantFewCode) along(w *walk) ptx.U32 {
	return w.chunk.Get().MulAdd(ptx.N(c.bytes*c.Groups), c.before.Mul(ptx.N(c.bytes)))
}

// load starts the copies of the next stage, if there is one.
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
		k.CopyCommit() // of nothing too: stages are counted
	}
}

// loadTiles copies tiles, which begin at multiples of 16 bytes.
func (c *quantFewCode) loadTiles(stage ptx.U32) {
	k, w := c.k, &c.loading
	k.If(c.lane.Lt(ptx.N(fewRows/boxRows)), func() {
		row := w.row.Get().Add(c.lane.Mul(ptx.N(boxRows)))
		bar, box := c.filled.At(stage), boxRows*c.rowPitch()
		bar.ArriveExpect(ptx.N(box))
		// Rows behind the matrix are zeros that are not read.
		ptx.TensorLoad(c.ring.At(stage.MulAdd(ptx.N(c.stageBytes()), c.lane.Mul(ptx.N(box)))), c.tensor, bar,
			c.along(w).And(ptx.U(^uint32(15))).Shr(ptx.U(2)).S32(), ptx.Select(row.Lt(c.end(w.row.Get())), row, c.rows).S32())
	})
}

// loadRows copies 16 bytes at multiples of 16, two lanes each row in turn. What is
// copied before a row's stage and behind it is not read; nothing is copied from
// behind the matrix.
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

// loadBulk copies a row each lane: see copyRow.
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

// prepare splits the activations, and their sums if there are minima.
func (c *quantFewCode) prepare(tid ptx.U32) {
	k, code := c.k, blockDecoders[c.Blocks.Block()]
	depth := c.groups.Mul(ptx.N(c.weights))
	quads := depth.Shr(ptx.U(2))
	threads := ptx.N(32 * c.Warps)
	for m := range c.M {
		k.For(ptx.U(0), quads, threads, func(base ptx.U32) {
			i := base.Add(tid)
			in := i.Lt(quads)
			var v [4]ptx.Var[ptx.F32]
			for e := range v {
				v[e] = ptx.NewVar(k, ptx.F(0))
			}
			there := in
			if c.Short { // what is behind the row is 0
				there = c.before.MulAdd(ptx.N(c.weights/4), i).Lt(c.blocks.Shl(ptx.U(3)))
			}
			k.If(there, func() {
				for e, x := range loadElements(c.Type, c.a, c.across.MulAdd(ptx.N(m), c.before.Mul(ptx.N(c.weights)).Add(i.Shl(ptx.U(2)))), 4) {
					v[e].Set(ptx.F32(x))
				}
			})
			var x [4]ptx.F32
			for e := range x {
				x[e] = v[e].Get()
			}
			// 32 activations are 64 bytes; four of them are at the lane's place.
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

// prepareDigits makes digits of the activations, and pieces of their sums if there
// are minima: a warp of each 256.
func (c *quantFewCode) prepareDigits(warp ptx.U32) {
	k := c.k
	code := c.digitCode()
	var m, a ptx.U32 // the row of activations, and where it begins
	// read reads neighbours, zeros behind the row.
	read := func(at ptx.U32, n int) []ptx.U32 {
		if !c.Short {
			return loadElements(c.Type, c.a, at.Add(a), n)
		}
		end := c.blocks.Shl(ptx.U(5))
		x := loadElements(c.Type, c.a, at.Min(end.Sub(ptx.N(n))).Add(a), n)
		for i := range x {
			x[i] = ptx.Select(at.Lt(end), x[i], ptx.U(0))
		}
		return x
	}
	load := func(group ptx.U32) (x [2][4]ptx.F32) { // eight neighbours for each lane
		if code.misaligned != nil {
			late := code.misaligned(group, c.lane.Shr(ptx.U(2)))
			if c.misaligned() {
				late = late.Xor(c.late)
			}
			for i := range x {
				for half, at := range misalignedPlaces(c.lane.Shl(ptx.U(1)).Add(ptx.N(i)), late) {
					for e, v := range read(group.Add(c.before).MulAdd(ptx.N(digitGroup), at), 2) {
						x[i][2*half+e] = ptx.F32(v)
					}
				}
			}
			return x
		}
		for i := range x {
			at := group.Add(c.before).MulAdd(ptx.N(digitGroup), c.lane.Shl(ptx.U(3)).Add(ptx.N(4*i)))
			for e, v := range read(at, 4) {
				x[i][e] = ptx.F32(v)
			}
		}
		return x
	}
	one := func(group ptx.U32, x *[2][4]ptx.F32) {
		largest := ptx.U(0)
		for i := range x {
			for e := range x[i] {
				largest = largest.Max(x[i][e].Abs().Bits().U32())
			}
		}
		exponent := largest.ReduceMax(ptx.AllLanes).Shr(ptx.U(23))
		finite := exponent.Lt(ptx.U(255))
		// Below 2**-95 all floats are multiples of the last digit anyway.
		exponent = exponent.Max(ptx.U(32))
		up := ptx.U(283).Sub(exponent).Shl(ptx.U(23)).B32().Float()
		exact := finite
		for i := range x {
			columns, is := splitDigits(x[i], up, c.Digits)
			exact = exact.And(is)
			to := c.xs.At(m.MulAdd(ptx.N(c.Digits*c.digitPitch()), group.MulAdd(ptx.N(digitGroup), digitPlace(c.lane.Shl(ptx.U(1)).Add(ptx.N(i)), code.split))))
			for n, v := range columns {
				ptx.CastShared[ptx.B32](to).Offset(n * c.digitPitch() / 4).Store(v)
			}
		}
		k.If(exact.Not(), func() { ptx.ReduceOr(c.inexact, ptx.U(1)) })
		k.If(c.lane.Eq(ptx.U(0)), func() {
			// The first digit is worth 2**24 / 2**(283-127-exponent).
			c.units.At(m.MulAdd(ptx.N(c.Room/digitGroup), group)).Store(exponent.Sub(ptx.U(5)).Shl(ptx.U(23)).B32().Float())
		})
		if !blockDecoders[c.Blocks.Block()].mins {
			return
		}
		sum := ptx.F(0)
		for i := range x {
			sum = sum.Add(x[i][0].Add(x[i][1]).Add(x[i][2].Add(x[i][3])))
		}
		for d := 1; d < 4; d *= 2 {
			sum = sum.Add(ptx.ShuffleXor(sum, ptx.N(d)))
		}
		k.If(c.lane.And(ptx.U(3)).Eq(ptx.U(0)), func() {
			at := m.MulAdd(ptx.N(pieces*c.sumPitch()/2), group.MulAdd(ptx.N(digitGroup/32), c.lane.Shr(ptx.U(2))))
			for p, b := range pieceBits(sum, pieces) {
				ptx.CastShared[ptx.U16](c.sums).Offset(p * c.sumPitch() / 2).At(at).Store(b.Shr(ptx.U(16)).U32().U16())
			}
		})
	}
	// Loads of several groups are under way at once.
	several := 2
	if c.Ring {
		several = 4
	}
	all := func(group ptx.U32) {
		x := make([][2][4]ptx.F32, several)
		at := make([]ptx.U32, several)
		for i := range x {
			at[i] = group.Add(ptx.N(i * c.Warps)).Min(c.groups.Sub(ptx.U(1)))
			x[i] = load(at[i])
		}
		for i := range x {
			one := func() { one(at[i], &x[i]) }
			if i == 0 {
				one()
			} else {
				k.If(group.Add(ptx.N(i*c.Warps)).Lt(c.groups), one)
			}
		}
	}
	if c.M == 1 {
		m, a = ptx.U(0), ptx.U(0)
		k.For(warp, c.groups, ptx.N(several*c.Warps), all)
		return
	}
	k.For(ptx.U(0), ptx.N(c.M), ptx.U(1), func(i ptx.U32) {
		m, a = i, i.Mul(c.across)
		k.For(warp, c.groups, ptx.N(several*c.Warps), all)
	})
}

// pieceBits returns n floats with the bits of a bf16 each whose sum is x, where it
// is normal and has no more bits: 24 in three.
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

// activationPlace returns which 8 of 64 bytes are four activations from place 4*i
// of 32 on.
func activationPlace(i ptx.U32, split bool) ptx.U32 {
	if split {
		return i.And(ptx.U(3)).Shl(ptx.U(1)).Or(i.Shr(ptx.U(2)))
	}
	return i
}

// multiply goes through the tiles of this warp's team.
func (c *quantFewCode) multiply(inDigits bool, warp, first ptx.U32, at ptx.Shared[ptx.F32]) {
	k := c.k
	g, quad := c.lane.Shr(ptx.U(2)), c.lane.And(ptx.U(3))
	b := &blockLane{k: k, weights: c.weights, quad: quad, row: make([]ptx.Shared[ptx.U8], 2), mine: make([]ptx.Shared[ptx.U8], 2)}
	tiles := c.quantFewSpec.tiles()
	group := func(ptx.U32, int) { blockDecoders[c.Blocks.Block()].build(b) }
	var less [][][4]ptx.Var[ptx.F32] // minima, if they are summed for themselves
	if inDigits {
		if blockDecoders[c.Blocks.Block()].mins {
			less = newTotals(k, 1, 1)
		}
		flip := c.inexact.Offset(1).Load().B32()
		code := c.digitCode()
		late, sel := lateWords(quad)
		group = func(from ptx.U32, i int) {
			l := &digitLane{blockLane: b, units: []ptx.F32{c.units.At(from).Offset(i).Load()}, less: less, flip: flip}
			if code.misaligned != nil {
				l.misaligned = &misalignedLane{sel: sel, off: i * c.bytes, had: map[[2]int]ptx.B32{}}
				for r := range b.row {
					l.misaligned.at = append(l.misaligned.at, b.row[r].At(late))
				}
			}
			code.build(l)
		}
	}
	var x, sums []ptx.Shared[ptx.U8]
	for i := range tiles {
		// Columns beyond the last are the last again, and not looked at.
		col := g.Min(ptx.N(min(tileCols, c.M*pieces-i*tileCols) - 1)).Add(ptx.N(i * tileCols))
		if inDigits {
			x = append(x, c.xs.At(g.Min(ptx.N(c.Digits-1)).MulAdd(ptx.N(c.digitPitch()), quad.Shl(ptx.U(4)))))
		} else {
			x = append(x, c.xs.At(col.MulAdd(ptx.N(c.xPitch()), quad.Shl(ptx.U(4)))))
		}
		if blockDecoders[c.Blocks.Block()].mins {
			sums = append(sums, c.sums.At(col.MulAdd(ptx.N(c.sumPitch()), quad.Shl(ptx.U(2)))))
		}
	}
	b.total = newTotals(k, 1, tiles)
	mine := quad.Shl(ptx.U(3))
	if blockDecoders[c.Blocks.Block()].split {
		mine = quad.Shl(ptx.U(2))
	}
	tile := ptx.NewVar(k, first)
	p := c.newParts(inDigits, warp, first, at)
	k.While(func() ptx.Pred { return tile.Get().Lt(c.rows) }, func() {
		clearTotals(b.total)
		clearTotals(less)
		w := &c.reading
		k.While(func() ptx.Pred { return w.row.Get().Eq(tile.Get()) }, func() {
			c.wait()
			var row [2]ptx.Shared[ptx.U8]
			for r := range row {
				line := g.Add(ptx.N(8 * r))
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
			// one multiplies the group that is static groups behind the one at i.
			one := func(i ptx.U32, static int) {
				for r := range row {
					at := row[r].At(i.Mul(ptx.N(c.bytes)))
					b.row[r], b.mine[r] = at.Offset(static*c.bytes), at.At(mine).Offset(static*c.bytes)
				}
				b.x, b.sums = nil, nil
				n, bytes := from.Add(i), 2*c.weights
				if inDigits {
					bytes = c.weights
				}
				for t := range x {
					b.x = append(b.x, []ptx.Shared[ptx.B32]{ptx.CastShared[ptx.B32](x[t].At(n.Mul(ptx.N(bytes))).Offset(static * bytes))})
					if sums != nil {
						b.sums = append(b.sums, []ptx.Shared[ptx.B32]{ptx.CastShared[ptx.B32](sums[t].At(n.Mul(ptx.N(c.weights / 16))).Offset(static * c.weights / 16))})
					}
				}
				group(n, static)
			}
			if inDigits && c.Full {
				// The groups of a stage together: what one waits for is hidden behind the
				// other.
				for i := range c.Groups {
					one(ptx.U(0), i)
				}
			} else {
				k.For(ptx.U(0), count, ptx.U(1), func(i ptx.U32) { one(i, 0) })
			}
			k.SyncWarp(ptx.AllLanes)
			c.load(c.stage.Get())
			n := c.stage.Get().Add(ptx.U(1))
			last := n.Eq(ptx.N(c.Stages))
			c.stage.Set(ptx.Select(last, ptx.U(0), n))
			c.phase.Set(c.phase.Get().Xor(ptx.Select(last, ptx.U(1), ptx.U(0))))
			c.next(w)
		})
		if inDigits {
			c.weigh(b.total, less)
		}
		p.gather(b, tile.Get(), c.end(tile.Get()))
		tile.Set(c.after(tile.Get()))
	})
	p.finish()
}

// newTotals returns sums for tiles of rows and of columns.
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

// weigh multiplies sums in digits by what the columns are worth, and adds what
// minima take away: columns 2t and 2t+1 are those of lane t.
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

// fewParts is what the warps of a team have of the same rows, and their columns, and
// adds it up. Those of a team do that in turn, each for several times 16 rows: none
// waits for the others more often.
type fewParts struct {
	*quantFewCode
	at      ptx.Shared[ptx.F32] // parts of this turn: times 16 rows, warps, columns, rows
	all     ptx.Shared[ptx.F32]
	warp    ptx.U32
	columns int
	words   int // of a part
	every   int // times 16 rows of a turn
	turn    ptx.Var[ptx.U32]
	first   ptx.Var[ptx.U32]    // row of the turn
	count   ptx.Var[ptx.U32]    // times 16 rows that are there
	begin   ptx.Shared[ptx.U32] // of a ring: where the 16 rows begin and end, of two turns
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

// gather has a part of 16 rows, from tile on and before end.
func (p *fewParts) gather(b *blockLane, tile, end ptx.U32) {
	k := p.k
	g, quad := p.lane.Shr(ptx.U(2)), p.lane.And(ptx.U(3))
	p.at = p.all
	if p.SharingWarps > 1 { // one half is read while the other is written
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

// share ends a turn: one warp adds up what all have.
func (p *fewParts) share() {
	k := p.k
	if p.Ring { // other warps may know less of the next tile
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

// add adds up parts of 16 rows, from tile on and before end.
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
			for i := p.columns - 2; i >= 0; i-- { // the greatest last
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
