package ptxkernels

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// quantManySpec is a product of many rows with a quantised matrix. A first launch splits the
// activations into bf16, in the order in which lanes read them. In the second launch, one warp of
// each block loads activations and blocks of the matrix; each of the other warps multiplies 32 rows
// of the matrix by Cols rows of activations. A product with few such tiles is split along K, and a
// third launch adds the partials.
type quantManySpec struct {
	Type, Blocks       op.DType
	WarpRows, WarpCols int // warps of a block along the rows of the matrix, and along the rows of activations
	Cols               int // rows of activations of a warp, a multiple of 8
	XStages, Stages    int // stages of activations, which have two parts of 32; and of the matrix
	Tensor             bool
	Parts              bool // split-K: the result is partials
	Bias               bool
	Key                string
}

const (
	manyRows  = 32 // rows of the matrix that a warp multiplies
	stepParts = 2  // parts of 32 activations in a stage
	partBytes = 64 // size of a part
)

func (s *quantManySpec) String() string {
	how := "rows"
	if s.Tensor {
		how = "tiles"
	}
	return fmt.Sprintf("many%dx%dx%d_s%d_x%d_%s", s.rows(), s.cols(), s.Cols, s.Stages, s.XStages, how)
}

func (s *quantManySpec) rows() int { return manyRows * s.WarpRows }
func (s *quantManySpec) cols() int { return s.Cols * s.WarpCols }

// pieces is the number of bf16 whose sum is an activation.
func (s *quantManySpec) pieces() int {
	switch s.Type {
	case op.BF16:
		return 1
	case op.F16:
		return 2
	}
	return pieces
}

// few returns the spec for few rows that has the same stages of the matrix.
func (s *quantManySpec) few() *quantFewSpec {
	return &quantFewSpec{Blocks: s.Blocks, Whole: true, Groups: 1, Tensor: s.Tensor}
}

func (s *quantManySpec) mins() bool { return blockDecoders[s.Blocks.Block()].mins }

// xBytes is the size of a stage of activations, sumBytes the size of the sums of 256 activations of
// each row, and stageBytes the size of a stage of the matrix with its sums.
func (s *quantManySpec) xBytes() int { return stepParts * s.pieces() * s.cols() * partBytes }

func (s *quantManySpec) sumBytes() int {
	if !s.mins() {
		return 0
	}
	return pieces * s.cols() * 16
}

func (s *quantManySpec) blockBytes() int { return ceilDiv(s.rows()*s.few().rowPitch(), 128) * 128 }
func (s *quantManySpec) stageBytes() int { return s.blockBytes() + ceilDiv(s.sumBytes(), 128)*128 }
func (s *quantManySpec) warps() int      { return s.WarpRows * s.WarpCols }

// small reports whether blocks have few warps, so that a multiprocessor runs two.
func (s *quantManySpec) small() bool { return s.warps() <= 4 }

// threads is the number of threads in a block: the warps that multiply, and one warp that loads
// stages. Unless small, a whole warpgroup loads, because registers can only be moved between
// warpgroups.
func (s *quantManySpec) threads() int {
	if s.small() {
		return 32 * (s.warps() + 1)
	}
	return 32*s.warps() + groupThreads
}

func (s *quantManySpec) bytes() int {
	return s.XStages*(s.xBytes()+16) + s.Stages*(s.stageBytes()+16) + 128 + blockDecoders[s.Blocks.Block()].tableBytes(true)
}

// quantManyTiles are the widths of the tiles by the number of rows of activations: the fastest on an H200.
// The first row that fits decides.
var quantManyTiles = []struct{ maxRows, warpCols, cols int }{
	{16, 1, 16},
	{32, 1, 32},
	{64, 2, 32},
	{math.MaxInt, 2, 64},
}

// quantManyFor returns the schedule of a product of many rows.
func quantManyFor(p op.Product, t, blocks op.DType, d *Device) (*quantManySpec, error) {
	if p.K%256 != 0 || d.Target != ptx.SM90a {
		return nil, unsupported("%d rows of %d", p.M, p.K)
	}
	s := &quantManySpec{Type: t, Blocks: blocks, WarpRows: 4}
	for _, w := range quantManyTiles {
		if p.M <= w.maxRows {
			s.WarpCols, s.Cols = w.warpCols, w.cols
			break
		}
	}
	weights, bytes := blockGroup(blocks, true)
	s.Tensor = p.K/weights*bytes%16 == 0
	room := d.Shared
	if s.small() {
		room = d.Shared/2 - 1024 // the system reserves 1024 bytes for each block
	}
	for s.Stages, s.XStages = 3, 4; s.bytes() > room; s.XStages-- {
		if s.XStages == 2 {
			return nil, unsupported("%d rows", p.M)
		}
		s.Stages = 2
	}
	return s, nil
}

var (
	quantManyKernels  kernelCache[quantManySpec]
	quantSplitKernels kernelCache[quantSplitSpec]
	quantAddKernels   kernelCache[quantAddSpec]
)

// add returns the launch that adds the parts of the sums.
func (s *quantManySpec) add(e *epilogue, bias bool, p op.Product, parts int) Stage {
	add := quantAddSpec{s.Type, bias, e.key}
	k := quantAddKernels.of(add, func() *Kernel {
		return &Kernel{Name: "matmul_q_add", Target: ptx.SM90, Block: [3]uint32{splitThreads, 1, 1}, Build: func(k *ptx.Kernel) { add.build(k, e) }}
	})
	args := []Arg{scratch(2)}
	if bias {
		args = append(args, input(2))
	}
	args = append(args, word(uint32(p.M)), word(uint32(p.N)), word(uint32(parts)))
	return Stage{Kernel: k, Grid: [3]uint32{uint32(ceilDiv(p.N, splitThreads)), uint32(min(p.M, 32768)), 1}, Zero: -1, Args: append(args, e.args()...)}
}

// plan returns the plan, with K split in parts.
func (s *quantManySpec) plan(r *portable.Request, p op.Product, d *Device) (*Plan, error) {
	e, err := finish(r, p.N)
	if err != nil {
		return nil, err
	}
	spec := *s
	bias := len(r.In) > 2 && r.In[2].Shape != nil
	total, err := spec.Blocks.Bytes(r.In[1].Shape)
	if err != nil {
		return nil, err
	}
	groups, row := p.K/256, total/p.N
	down, across := ceilDiv(p.N, spec.rows()), ceilDiv(p.M, spec.cols())
	if down > 65535 || p.K/4 > 65535*splitThreads {
		return nil, unsupported("a matrix of %d rows of %d", p.N, p.K)
	}
	slots := d.Multiprocessors
	if spec.small() {
		slots *= 2
	}
	parts := max(1, min(slots/(down*across), groups/4))
	each := ceilDiv(groups, parts)
	parts = ceilDiv(groups, each)
	if spec.Parts = parts > 1; !spec.Parts {
		spec.Key, spec.Bias = e.key, bias
	}
	padded := int64(across * spec.cols())
	plan := &Plan{Variant: fmt.Sprintf("%v_k%d", &spec, parts), Scratch: []int64{int64(spec.pieces()) * 2 * padded * int64(p.K), max(16, int64(spec.sumBytes())*int64(across*groups))}}

	split := quantSplitSpec{spec.Type, spec.Blocks, spec.cols(), spec.pieces()}
	plan.Stages = append(plan.Stages, Stage{Kernel: split.kernel(), Grid: [3]uint32{uint32(padded), uint32(ceilDiv(p.K/4, splitThreads)), 1}, Zero: -1,
		Args: []Arg{input(0), scratch(0), scratch(1), word(uint32(p.M)), word(uint32(p.K))}})

	k := quantManyKernels.of(spec, func() *Kernel {
		return &Kernel{Name: fmt.Sprintf("matmul_q_%v_%v", spec.Blocks, &spec), Target: ptx.SM90a,
			Block: [3]uint32{uint32(spec.threads()), 1, 1}, Build: func(k *ptx.Kernel) { spec.build(k, e) }}
	})
	w := input(1)
	if spec.Tensor {
		w = Arg{Kind: Map, Array: portable.Ref{Kind: portable.InputRef, Index: 1}, Tiles: &Tiles{Type: op.U32,
			Size: []int{row / 4, p.N}, Stride: []int{row}, Tile: []int{spec.few().rowPitch() / 4, spec.rows()}}}
	}
	args := []Arg{w, scratch(0), scratch(1)}
	if spec.Bias {
		args = append(args, input(2))
	}
	args = append(args, word(uint32(p.M)), word(uint32(p.N)), word(uint32(groups)), word(uint32(total)), word(uint32(each)))
	if spec.Parts {
		plan.Scratch = append(plan.Scratch, 4*int64(parts)*int64(p.M)*int64(p.N))
		args = append(args, scratch(2))
	} else {
		args = append(args, e.args()...)
	}
	plan.Stages = append(plan.Stages, Stage{Kernel: k, Grid: [3]uint32{uint32(across), uint32(down), uint32(parts)}, Zero: -1, Args: args})
	if spec.Parts {
		plan.Stages = append(plan.Stages, spec.add(e, bias, p, parts))
	}
	return plan, nil
}

const splitThreads = 256

// quantSplitSpec is the launch that splits activations into bf16. The result has the axes tile (of
// Cols rows), part (of 32 activations), piece, row, and 64 bytes. The sums of 32 activations have
// the axes tile, group (of 256), piece, row, and 16 bytes.
type quantSplitSpec struct {
	Type, Blocks op.DType
	Cols, Pieces int
}

func (s quantSplitSpec) kernel() *Kernel {
	return quantSplitKernels.of(s, func() *Kernel {
		return &Kernel{Name: "matmul_q_split", Target: ptx.SM90, Block: [3]uint32{splitThreads, 1, 1}, Build: s.build}
	})
}

func (s quantSplitSpec) build(k *ptx.Kernel) {
	k.Block(splitThreads, 1, 1)
	a := ptx.GlobalParam[ptx.U32](k, "a").Hint(ptx.ReadOnly)
	x, sums := ptx.GlobalParam[ptx.B32](k, "x"), ptx.GlobalParam[ptx.U16](k, "sums")
	m, depth := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "k")
	code := blockDecoders[s.Blocks.Block()]
	row := k.Special(ptx.CtaidX)
	i := k.Special(ptx.CtaidY).MulAdd(ptx.U(splitThreads), k.Special(ptx.TidX)) // index of four activations
	in := i.Lt(depth.Shr(ptx.U(2)))
	var v [4]ptx.Var[ptx.F32]
	for e := range v {
		v[e] = ptx.NewVar(k, ptx.F(0))
	}
	k.If(in.And(row.Lt(m)), func() {
		if code.levels.ordered() {
			for e, x := range code.levels.activations(s.Type, a, row.MulAdd(depth, i.Shr(ptx.U(6)).Shl(ptx.U(8))), i) {
				v[e].Set(ptx.F32(x))
			}
			return
		}
		// The result has at most 2**31 elements, and so does a.
		for e, x := range loadElements(s.Type, a, row.MulAdd(depth, i.Shl(ptx.U(2))), 4) {
			v[e].Set(ptx.F32(x))
		}
	})
	tile, line := row.Div(ptx.N(s.Cols)), row.Rem(ptx.N(s.Cols))
	var words [2][]ptx.B32
	for half := range words {
		low, high := pieceBits(v[2*half].Get(), s.Pieces), pieceBits(v[2*half+1].Get(), s.Pieces)
		for p := range low {
			words[half] = append(words[half], low[p].Permute(high[p], ptx.U(0x7632)))
		}
	}
	part := tile.MulAdd(depth.Shr(ptx.U(5)), i.Shr(ptx.U(3)))
	k.If(in, func() {
		for p := range s.Pieces {
			at := part.MulAdd(ptx.N(s.Pieces), ptx.N(p)).MulAdd(ptx.N(s.Cols), line).MulAdd(ptx.N(partBytes/8), activationPlace(i.And(ptx.U(7)), code.split))
			x.At64(at.MulWide(ptx.U(2))).Store2([2]ptx.B32{words[0][p], words[1][p]})
		}
	})
	if !code.mins {
		return
	}
	sum := v[0].Get().Add(v[1].Get()).Add(v[2].Get().Add(v[3].Get()))
	for d := 1; d < 8; d *= 2 {
		sum = sum.Add(ptx.ShuffleXor(sum, ptx.N(d)))
	}
	group := tile.MulAdd(depth.Shr(ptx.U(8)), i.Shr(ptx.U(6)))
	k.If(in.And(i.And(ptx.U(7)).Eq(ptx.U(0))), func() {
		for p, b := range pieceBits(sum, pieces) {
			at := group.MulAdd(ptx.N(pieces), ptx.N(p)).MulAdd(ptx.N(s.Cols), line).MulAdd(ptx.U(8), i.Shr(ptx.U(3)).And(ptx.U(7)))
			sums.At(at).Store(b.Shr(ptx.U(16)).U32().U16())
		}
	})
}

// quantAddSpec is the launch that adds the partials of a result.
type quantAddSpec struct {
	Type op.DType
	Bias bool
	Key  string
}

func (s *quantAddSpec) build(k *ptx.Kernel, e *epilogue) {
	k.Block(splitThreads, 1, 1)
	parts := ptx.GlobalParam[ptx.F32](k, "parts")
	var bias ptx.Global[ptx.U32]
	if s.Bias {
		bias = ptx.GlobalParam[ptx.U32](k, "bias").Hint(ptx.ReadOnly)
	}
	m, n, count := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "parts_n")
	out := e.sink(k)
	col := k.Special(ptx.CtaidX).MulAdd(ptx.U(splitThreads), k.Special(ptx.TidX))
	k.If(col.Lt(n), func() {
		k.For(k.Special(ptx.CtaidY), m, k.Special(ptx.NctaidY), func(row ptx.U32) {
			i := row.MulAdd(n, col)
			v := ptx.NewVar(k, parts.At(i).Load())
			k.For(ptx.U(1), count, ptx.U(1), func(p ptx.U32) {
				v.Set(v.Get().Add(parts.At64(p.Mul(m).MulWide(n)).At(i).Load()))
			})
			y := v.Get()
			if s.Bias {
				y = y.Add(ptx.F32(loadElements(s.Type, bias, col, 1)[0]))
			}
			out.setRow(row, col, i, y)
		})
	})
}

// quantManyCode has the values that the parts of the kernel share while it is built.
type quantManyCode struct {
	*quantManySpec
	k              *ptx.Kernel
	tensor         ptx.TensorMap
	w              ptx.Global[ptx.U8] // unless tensor is used
	x, sums        ptx.Global[ptx.U8]
	m, rows        ptx.U32 // rows of activations, and of the matrix
	groups, total  ptx.U32 // groups of a row; bytes of the matrix
	first, last    ptx.U32 // range of groups of this block
	row, col       ptx.U32 // first rows of the block, in the matrix and in the activations
	xs, ws         ptx.Shared[ptx.U8]
	xFull, xEmpty  ptx.MBarrier
	wFull, wEmpty  ptx.MBarrier
	lane           ptx.U32
	weights, bytes int // of a group
	table          sharedTable
}

// parameters declares the parameters of the kernel. It returns the function that stores a result or
// a part of it, and the number of groups of a part.
func (c *quantManyCode) parameters(e *epilogue) (put func(row, m ptx.U32, v ptx.F32), each ptx.U32) {
	k, s := c.k, c.quantManySpec
	c.weights, c.bytes = blockGroup(s.Blocks, true)
	if s.Tensor {
		c.tensor = ptx.TensorMapParam(k, "w")
	} else {
		c.w = ptx.GlobalParam[ptx.U8](k, "w")
	}
	c.x, c.sums = ptx.GlobalParam[ptx.U8](k, "x"), ptx.GlobalParam[ptx.U8](k, "sums")
	var bias ptx.Global[ptx.U32]
	if s.Bias {
		bias = ptx.GlobalParam[ptx.U32](k, "bias").Hint(ptx.ReadOnly)
	}
	c.m, c.rows = ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n")
	c.groups, c.total = ptx.Param[ptx.U32](k, "groups"), ptx.Param[ptx.U32](k, "total")
	each = ptx.Param[ptx.U32](k, "each")
	var parts ptx.Global[ptx.F32]
	var out *sink
	if s.Parts {
		parts = ptx.GlobalParam[ptx.F32](k, "parts")
	} else {
		out = e.sink(k)
	}
	return func(row, m ptx.U32, v ptx.F32) {
		i := m.MulAdd(c.rows, row)
		if s.Parts {
			parts.At64(k.Special(ptx.CtaidZ).Mul(c.m).MulWide(c.rows)).At(i).Store(v)
			return
		}
		if s.Bias {
			v = v.Add(ptx.F32(loadElements(s.Type, bias, row, 1)[0]))
		}
		out.setRow(m, row, i, v)
	}, each
}

// memory declares the shared memory of a block: the stages of both operands and their barriers.
func (c *quantManyCode) memory() {
	k, s := c.k, c.quantManySpec
	k.Align(128)
	c.xs = ptx.DynamicShared[ptx.U8](k, s.XStages*s.xBytes())
	c.ws = ptx.DynamicShared[ptx.U8](k, s.Stages*s.stageBytes())
	k.Align(16)
	c.xFull = ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, s.XStages))
	c.xEmpty = ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, s.XStages))
	c.wFull = ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, s.Stages))
	c.wEmpty = ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, s.Stages))
}

// initBarriers initialises the barriers of the stages.
func (c *quantManyCode) initBarriers() {
	k, s := c.k, c.quantManySpec
	for i := range s.XStages {
		c.xFull.At(ptx.N(i)).Init(ptx.U(1))
		c.xEmpty.At(ptx.N(i)).Init(ptx.N(s.warps()))
	}
	for i := range s.Stages {
		arrivals := 1
		if !s.Tensor {
			arrivals += 32
		}
		c.wFull.At(ptx.N(i)).Init(ptx.N(arrivals))
		c.wEmpty.At(ptx.N(i)).Init(ptx.N(s.warps()))
	}
	k.FenceMBarrierInit()
}

// build writes the kernel.
func (s *quantManySpec) build(k *ptx.Kernel, e *epilogue) {
	k.Block(s.threads(), 1, 1)
	k.MinBlocks(1)
	if s.small() {
		k.MinBlocks(2)
	}
	c := &quantManyCode{quantManySpec: s, k: k}
	put, each := c.parameters(e)
	c.memory()

	tid := k.Special(ptx.TidX)
	c.table = blockDecoders[s.Blocks.Block()].levels.share(k, tid, s.threads(), true)
	warp := tid.Shr(ptx.U(5))
	c.lane = tid.And(ptx.U(31))
	c.col, c.row = k.Special(ptx.CtaidX).Mul(ptx.N(s.cols())), k.Special(ptx.CtaidY).Mul(ptx.N(s.rows()))
	c.first = k.Special(ptx.CtaidZ).Mul(each)
	c.last = c.first.Add(each).Min(c.groups)
	k.If(tid.Eq(ptx.U(0)), c.initBarriers)
	k.Sync()
	k.IfElse(warp.Ge(ptx.N(s.warps())), func() {
		if !s.small() { // the warps that multiply need more registers than an equal share
			k.DropRegisters(24)
		}
		k.If(warp.Eq(ptx.N(s.warps())), c.produce)
	}, func() {
		if !s.small() {
			k.RaiseRegisters(240)
		}
		c.consume(warp, put)
	})
}

// produce is the code of the warp that loads stages.
func (c *quantManyCode) produce() {
	k := c.k
	w, x := newRing(k, c.Stages), newRing(k, c.XStages)
	tile := k.Special(ptx.CtaidX)
	k.For(c.first, c.last, ptx.U(1), func(group ptx.U32) {
		c.wEmpty.At(w.at.Get()).Wait(w.phase.Get().Xor(ptx.U(1)))
		full := c.wFull.At(w.at.Get())
		to := c.ws.At(w.at.Get().Mul(ptx.N(c.stageBytes())))
		from := group.Mul(ptx.N(c.bytes))
		k.If(c.lane.Eq(ptx.U(0)), func() {
			bytes := c.sumBytes()
			if c.Tensor {
				bytes += c.quantManySpec.rows() * c.few().rowPitch()
			}
			full.ArriveExpect(ptx.N(bytes))
			if c.Tensor {
				ptx.TensorLoad(to, c.tensor, full, from.And(ptx.U(^uint32(15))).Shr(ptx.U(2)).S32(), c.row.S32())
			}
			if n := c.sumBytes(); n > 0 {
				ptx.BulkLoad(to.Offset(c.blockBytes()), c.sums.At64(tile.MulAdd(c.groups, group).MulWide(ptx.N(n))), ptx.N(n), full)
			}
		})
		if !c.Tensor {
			c.bringRows(to, from, full)
		}
		w.next()
		k.For(ptx.U(0), ptx.N(8/stepParts), ptx.U(1), func(step ptx.U32) {
			c.xEmpty.At(x.at.Get()).Wait(x.phase.Get().Xor(ptx.U(1)))
			k.If(c.lane.Eq(ptx.U(0)), func() {
				n := ptx.N(c.xBytes())
				full := c.xFull.At(x.at.Get())
				full.ArriveExpect(n)
				at := tile.MulAdd(c.groups, group).MulAdd(ptx.N(8/stepParts), step)
				ptx.BulkLoad(c.xs.At(x.at.Get().Mul(n)), c.x.At64(at.MulWide(n)), n, full)
			})
			x.next()
		})
	})
}

// bringRows copies a group of each row with all lanes, in aligned pieces of 16 bytes. If the last
// row ends inside a piece, loads and stores copy the rest.
func (c *quantManyCode) bringRows(to ptx.Shared[ptx.U8], from ptx.U32, full ptx.MBarrier) {
	k := c.k
	each := c.quantManySpec.rows() / 32
	var begin, size [16]ptx.U32
	sum := ptx.U(0)
	for i := range each {
		line := c.lane.Add(ptx.N(32 * i))
		at := c.rowAt(line).Add(from)
		begin[i] = at.And(ptx.U(^uint32(15)))
		whole := c.total.And(ptx.U(^uint32(15)))
		end := at.Add(ptx.N(c.bytes + 15)).And(ptx.U(^uint32(15))).Min(whole)
		size[i] = end.Sub(begin[i])
		sum = sum.Add(size[i])
		k.If(at.Add(ptx.N(c.bytes)).Gt(end), func() {
			dst := to.At(line.Mul(ptx.N(c.few().rowPitch())))
			k.For(end, c.total, ptx.U(2), func(j ptx.U32) {
				ptx.CastShared[ptx.U16](dst.At(j.Sub(begin[i]))).Store(ptx.Cast[ptx.U16](c.w.At(j)).Load())
			})
		})
	}
	full.ArriveExpect(sum)
	for i := range each {
		line := c.lane.Add(ptx.N(32 * i))
		ptx.BulkLoad(to.At(line.Mul(ptx.N(c.few().rowPitch()))), c.w.At(begin[i]), size[i], full)
	}
	k.SyncWarp(ptx.AllLanes)
}

// rowAt returns the offset in bytes of a row of the block in the matrix. Rows after the last row
// are mapped to the last row.
func (c *quantManyCode) rowAt(line ptx.U32) ptx.U32 {
	return c.row.Add(line).Min(c.rows.Sub(ptx.U(1))).Mul(c.groups.Mul(ptx.N(c.bytes)))
}

// locate sets the addresses of the rows and of the sums of activations that a lane reads in a stage.
func (c *quantManyCode) locate(b *blockLane, stage ptx.Shared[ptx.U8], group, mine, top, left, g ptx.U32) {
	code, quad, tiles := blockDecoders[c.Blocks.Block()], b.quad, c.Cols/tileCols
	for r := range b.row {
		line := top.Add(g).Add(ptx.N(8 * r))
		at := line.Mul(ptx.N(c.few().rowPitch()))
		if !code.aligned() {
			late := group.Mul(ptx.N(c.bytes))
			if !c.Tensor {
				late = late.Add(c.rowAt(line))
			}
			at = at.Add(late.And(ptx.U(15)))
		}
		b.row[r] = stage.At(at)
		b.mine[r] = b.row[r].At(mine)
	}
	if c.mins() {
		from := ptx.CastShared[ptx.B32](stage.At(left.Add(g).MulAdd(ptx.U(16), quad.Shl(ptx.U(2))))).Offset(c.blockBytes() / 4)
		b.sums = nil
		for i := range tiles {
			var s []ptx.Shared[ptx.B32]
			for p := range pieces {
				s = append(s, from.Offset((p*c.cols()+tileCols*i)*16/4))
			}
			b.sums = append(b.sums, s)
		}
	}
}

// consume is the code of the warps that multiply the loaded stages.
func (c *quantManyCode) consume(warp ptx.U32, put func(row, m ptx.U32, v ptx.F32)) {
	k := c.k
	w, x := newRing(k, c.Stages), newRing(k, c.XStages)
	g, quad := c.lane.Shr(ptx.U(2)), c.lane.And(ptx.U(3))
	top, left := warp.Div(ptx.N(c.WarpCols)).Mul(ptx.N(manyRows)), warp.Rem(ptx.N(c.WarpCols)).Mul(ptx.N(c.Cols))
	code := blockDecoders[c.Blocks.Block()]
	tiles, n := c.Cols/tileCols, manyRows/8
	b := &blockLane{k: k, weights: c.weights, quad: quad, row: make([]ptx.Shared[ptx.U8], n), mine: make([]ptx.Shared[ptx.U8], n),
		x: make([][]ptx.Shared[ptx.B32], tiles), total: newTotals(k, manyRows/fewRows, tiles), table: c.table}
	for i := range b.x {
		b.x[i] = make([]ptx.Shared[ptx.B32], c.pieces())
	}
	mine := quad.Shl(ptx.U(3))
	if code.split {
		mine = quad.Shl(ptx.U(2))
	}
	xAt := left.Add(g).MulAdd(ptx.N(partBytes), quad.Shl(ptx.U(4)))
	var activations ptx.Shared[ptx.B32]
	release := func(empty ptx.MBarrier, r *ring) {
		k.SyncWarp(ptx.AllLanes)
		k.If(c.lane.Eq(ptx.U(0)), func() { empty.At(r.at.Get()).Arrive() })
		r.next()
	}
	b.before = func(part int) {
		if part%stepParts == 0 {
			if part > 0 {
				release(c.xEmpty, x)
			}
			c.xFull.At(x.at.Get()).Wait(x.phase.Get())
			activations = ptx.CastShared[ptx.B32](c.xs.At(x.at.Get().MulAdd(ptx.N(c.xBytes()), xAt)))
		}
		for i := range b.x {
			for p := range b.x[i] {
				at := ((part%stepParts*c.pieces()+p)*c.cols()+tileCols*i)*partBytes - part*partBytes
				b.x[i][p] = activations.Offset(at / 4)
			}
		}
	}
	k.For(c.first, c.last, ptx.U(1), func(group ptx.U32) {
		c.wFull.At(w.at.Get()).Wait(w.phase.Get())
		stage := c.ws.At(w.at.Get().Mul(ptx.N(c.stageBytes())))
		c.locate(b, stage, group, mine, top, left, g)
		code.build(b)
		release(c.xEmpty, x)
		release(c.wEmpty, w)
	})
	for t := range b.total {
		for i := range b.total[t] {
			for j, v := range b.total[t][i] {
				row := c.row.Add(top).Add(g).Add(ptx.N(fewRows*t + 8*(j/2)))
				m := c.col.Add(left).Add(quad.Shl(ptx.U(1))).Add(ptx.N(tileCols*i + j%2))
				k.If(row.Lt(c.rows).And(m.Lt(c.m)), func() { put(row, m, v.Get()) })
			}
		}
	}
}
