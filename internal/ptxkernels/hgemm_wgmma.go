package ptxkernels

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// wgmmaSpec is a product with the wgmma instruction, for sm_90a. The grid is persistent. Each block
// has one producer warp, which loads tiles through tensor maps into a ring of stages, and Groups
// consumer warpgroups, which multiply them. A block computes a tile of Rows x Cols; a warpgroup
// keeps Rows/Groups rows of it in registers.
//
// For float32, tensor cores read only K-major operands from shared memory. B must be K-major. If A
// is not K-major, it goes through registers. If only A is K-major, the kernel is Turned.
type wgmmaSpec struct {
	Type           op.DType
	TransA, TransB bool // as in op.MatMulOpts
	// Turned means that A is the second operand and B the first, both transposed; the computed tile
	// is transposed too.
	Turned         bool
	Rows, Cols     int
	Groups, Stages int
	// Cluster is the number of blocks in a cluster: 1, or 2 for pairs of vertically adjacent
	// blocks. Each block of a pair loads half of B and multicasts it to both.
	Cluster int
	// Loose means that rows of the result need not begin at multiples of 16 bytes. Then threads
	// store the result instead of bulk copies. Threads always store float32 results.
	Loose bool
	Bias  bool
	// Key is the key of the epilogue, "" for none; Direct means that the stores of the epilogue
	// write the results.
	Key    string
	Direct bool
	// Split means that a tile is a partial sum (split-K), which is stored as float32.
	Split bool
	Odd   bool // rows of the result have an odd number of elements
}

// wgmmaLine is the number of 16-bit units in 128 bytes. A stage has 128 bytes along K, which is the
// width of ptx.Swizzle128.
const wgmmaLine = 64

// depth is the number of elements of a type along K in a stage.
func depth(t op.DType) int { return 2 * wgmmaLine / t.Size() }

// depth is the number of elements along K in a stage.
func (s *wgmmaSpec) depth() int { return depth(s.Type) }

// aInRegisters reports whether A goes through registers.
func (s *wgmmaSpec) aInRegisters() bool { return s.Type == op.F32 && s.TransA }

// groupThreads is the number of threads in a warpgroup.
const groupThreads = 128

func (s *wgmmaSpec) String() string {
	turned := ""
	if s.Turned {
		turned = "t"
	}
	return fmt.Sprintf("wgmma%dx%dx%d%s_s%d_c%d", s.Rows, s.Cols, s.Groups, turned, s.Stages, s.Cluster)
}

// bytes is the shared memory that a block needs.
func (s *wgmmaSpec) bytes() int {
	return 2*(s.Stages*(s.Rows+s.Cols)*wgmmaLine+s.storing()) + 16*s.Stages
}

// storing is the size of the shared memory that results go through, in 16-bit units.
func (s *wgmmaSpec) storing() int {
	if s.Type == op.F32 {
		return s.Groups * 4 * storeRows * singlePitch * 2
	}
	return s.Groups * 4 * storing * storeRows * storeCols
}

// tiles returns the number of tiles down and across a result.
func (s *wgmmaSpec) tiles(rows, cols int) (down, across int) {
	if s.Turned {
		rows, cols = cols, rows
	}
	return ceilDiv(rows, s.Rows*s.Cluster), ceilDiv(cols, s.Cols)
}

var wgmmaKernels kernelCache[wgmmaSpec]

// kernel returns the kernel with epilogue e; e is nil for none.
func (s wgmmaSpec) kernel(e *epilogue) *Kernel {
	return wgmmaKernels.of(s, func() *Kernel {
		name := s.Type.String()
		if s.Type == op.F32 {
			name = "tf32"
		}
		k := &Kernel{Name: "matmul_" + name + "_" + s.String(), Target: ptx.SM90a,
			Block: [3]uint32{uint32((s.Groups + 1) * groupThreads), 1, 1}, Build: func(k *ptx.Kernel) { s.build(k, e) }}
		if s.Cluster > 1 {
			k.Cluster = uint32(s.Cluster)
		}
		return k
	})
}

// plan is the launch of the kernel for a product with operands in a layout for tensor maps.
func (s wgmmaSpec) plan(p *halfProduct, a, b, c matrix, parts int, d *Device) *Stage {
	down, across := s.tiles(p.M, p.N)
	tiles := p.Batch * down * across * parts
	blocks := min(tiles, d.Multiprocessors/s.Cluster) * s.Cluster
	wholeB := uint32(1)
	if p.SharedB {
		wholeB = 0
	}
	_, sideA := s.copiesA()
	_, sideB := s.copiesB()
	args := []Arg{a.tiles(p.Type, s.box(sideA, !s.TransA)), b.tiles(p.Type, s.box(sideB, s.TransB))}
	switch {
	case s.Direct && !s.Split:
	case !s.copies():
		args = append(args, c.address())
	default:
		args = append(args, c.tiles(p.Type, [2]int{storeCols, storeRows}))
	}
	high := min(down, max(1, 2048/(s.Rows*s.Cluster))) // tiles in a band: a wave covers as many rows as columns
	after := p.after
	if s.Split {
		after = nil
	}
	stage := &Stage{
		Kernel: s.kernel(after), Grid: [3]uint32{uint32(blocks), 1, 1}, Zero: -1,
		Args: append(args,
			word(uint32(ceilDiv(p.K, s.depth()))), word(uint32(tiles)), word(uint32(down)), word(uint32(across)), word(uint32(high)), word(wholeB),
			word(uint32(p.M)), word(uint32(p.N))),
	}
	if s.Split {
		steps := ceilDiv(p.K, s.depth())
		stage.Args = append(stage.Args, word(uint32(parts)), word(uint32(ceilDiv(steps, parts))))
	} else {
		stage.Args = p.finishing(stage.Args)
	}
	return stage
}

// of returns the specification for operands of type t; alongA and alongB say whether A and B are K-major.
func (s wgmmaSpec) of(t op.DType, alongA, alongB bool) wgmmaSpec {
	s.Type, s.TransA, s.TransB = t, !alongA, alongB
	if t == op.F32 && !alongB && alongA {
		s.Turned, s.TransA, s.TransB = true, true, true
	}
	return s
}

// copies reports whether bulk copies store the result.
func (s *wgmmaSpec) copies() bool { return !s.Loose && !s.Direct && !s.Split && s.Type != op.F32 }

// copiesA returns the number of copies that load a stage of A, and the number of rows that each
// loads: all rows if A is K-major, otherwise the rows in a line of 128 bytes.
func (s *wgmmaSpec) copiesA() (n, side int) {
	if s.TransA {
		return s.Rows / s.depth(), s.depth()
	}
	return 1, s.Rows
}

// copiesB is copiesA for the columns of B that this block of a cluster brings.
func (s *wgmmaSpec) copiesB() (n, side int) {
	part := s.Cols / s.Cluster
	if s.TransB {
		return 1, part
	}
	return ceilDiv(part, s.depth()), s.depth()
}

// brought is the number of bytes that the copies of a stage load into a block, including copies of
// its neighbours.
func (s *wgmmaSpec) brought() int {
	na, sideA := s.copiesA()
	nb, sideB := s.copiesB()
	return 2 * wgmmaLine * (na*sideA + s.Cluster*nb*sideB)
}

// check returns an error unless tiles divide as they must. The kernel would hang if copies brought
// more bytes than a stage holds.
func (s *wgmmaSpec) check() error {
	if s.brought() != 2*wgmmaLine*(s.Rows+s.Cols) || s.Rows%(64*s.Groups) != 0 || s.Cols%storeCols != 0 ||
		s.Type == op.F32 && !s.TransB || s.Turned && !s.aInRegisters() || s.aInRegisters() && s.Rows > 128*s.Groups {
		return unsupported("%s for this layout", s.String())
	}
	return nil
}

// box returns the tile that a copy loads. along reports whether the operand is K-major.
func (s *wgmmaSpec) box(side int, along bool) [2]int {
	if along {
		return [2]int{s.depth(), side}
	}
	return [2]int{side, s.depth()}
}

// ring is the position of the producer, or of a consumer, in the ring of stages.
type ring struct {
	stages int
	at     ptx.Var[ptx.U32] // the stage
	phase  ptx.Var[ptx.U32] // parity of the completed rounds
}

func newRing(k *ptx.Kernel, stages int) *ring {
	return &ring{stages, ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0))}
}

func (r *ring) next() {
	n := r.at.Get().Add(ptx.U(1))
	last := n.Eq(ptx.N(r.stages))
	r.at.Set(ptx.Select(last, ptx.U(0), n))
	r.phase.Set(r.phase.Get().Xor(ptx.Select(last, ptx.U(1), ptx.U(0))))
}

// wgmmaCode has the values that the parts of the kernel share while it is built.
type wgmmaCode struct {
	*wgmmaSpec
	k           *ptx.Kernel
	a, b, c     ptx.TensorMap
	loose       ptx.Global[ptx.U16] // replaces c, if threads store the result
	steps       ptx.U32
	as, bs, cs  ptx.Shared[ptx.BF16]
	full, empty ptx.MBarrier
	tid, rank   ptx.U32 // rank of the block in its cluster
	tiles, down, across,
	high, wholeB, rows, cols, parts, per ptx.U32
	finish  finisher
	partial ptx.Global[ptx.F32] // replaces c, if Split
}

// parameters declares the parameters of the kernel.
func (g *wgmmaCode) parameters(e *epilogue) {
	k, s := g.k, g.wgmmaSpec
	g.a, g.b = ptx.TensorMapParam(k, "a"), ptx.TensorMapParam(k, "b")
	switch {
	case s.Split:
		g.partial = ptx.GlobalParam[ptx.F32](k, "c")
	case s.Direct:
	case !s.copies():
		g.loose = ptx.GlobalParam[ptx.U16](k, "c")
	default:
		g.c = ptx.TensorMapParam(k, "c")
	}
	for _, p := range []struct {
		to   *ptx.U32
		name string
	}{{&g.steps, "steps"}, {&g.tiles, "tiles"}, {&g.down, "down"}, {&g.across, "across"}, {&g.high, "high"}, {&g.wholeB, "whole_b"}, {&g.rows, "rows"}, {&g.cols, "cols"}} {
		*p.to = ptx.Param[ptx.U32](k, p.name)
	}
	if s.Split {
		g.parts, g.per = ptx.Param[ptx.U32](k, "parts"), ptx.Param[ptx.U32](k, "per")
	} else {
		g.finish = newFinisher(k, s.Type, s.Bias, e, g.rows, g.cols, s.Odd)
	}
}

// begin initialises the barriers of the ring of stages, and prefetches the tensor maps.
func (g *wgmmaCode) begin() {
	k, s := g.k, g.wgmmaSpec
	k.If(g.tid.Eq(ptx.U(0)), func() {
		g.a.Prefetch()
		g.b.Prefetch()
		if s.copies() {
			g.c.Prefetch()
		}
		for i := range s.Stages {
			g.full.At(ptx.N(i)).Init(ptx.U(1))
			g.empty.At(ptx.N(i)).Init(ptx.N(s.releases() * s.Cluster))
		}
		k.FenceMBarrierInit()
	})
}

// build writes the kernel. The layouts are in the PTX manual, "Asynchronous Warpgroup Level Matrix
// Instructions".
func (s wgmmaSpec) build(k *ptx.Kernel, e *epilogue) {
	if s.Cluster > 1 {
		k.Cluster(s.Cluster, 1, 1)
	}
	k.Block((s.Groups+1)*groupThreads, 1, 1)
	k.MinBlocks(1)
	g := &wgmmaCode{wgmmaSpec: &s, k: k}
	g.parameters(e)
	k.Align(1024)
	g.as = ptx.DynamicShared[ptx.BF16](k, s.Stages*s.Rows*wgmmaLine)
	g.bs = ptx.DynamicShared[ptx.BF16](k, s.Stages*s.Cols*wgmmaLine)
	g.cs = ptx.DynamicShared[ptx.BF16](k, s.storing())
	bars := ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, 2*s.Stages))
	g.full, g.empty = bars, bars.At(ptx.N(s.Stages))
	g.tid, g.rank = k.Special(ptx.TidX), ptx.U(0)
	if s.Cluster > 1 {
		g.rank = k.Special(ptx.ClusterRank)
	}
	g.begin()
	g.sync()
	group := g.tid.Shr(ptx.U(7))
	k.IfElse(group.Eq(ptx.U(0)), func() {
		k.DropRegisters(40)
		k.If(g.tid.Eq(ptx.U(0)), g.bring)
	}, func() {
		k.RaiseRegisters([]int{0, 248, 232, 160}[s.Groups])
		g.multiply(group.Sub(ptx.U(1)))
	})
	if s.Cluster > 1 {
		// Wait for the other block: it may still write to this block's shared memory.
		k.ClusterSync()
	}
}

func (g *wgmmaCode) sync() {
	if g.Cluster > 1 {
		g.k.ClusterSync()
		return
	}
	g.k.Sync()
}

// each runs f for each tile of the block. A tile begins at row, col of matrix n.
func (g *wgmmaCode) each(f func(row, col, n ptx.S32)) {
	k := g.k
	first, step := k.Special(ptx.CtaidX), k.Special(ptx.NctaidX)
	if g.Cluster > 1 {
		first, step = first.Shr(ptx.U(1)), step.Shr(ptx.U(1))
	}
	k.For(first, g.tiles, step, func(t ptx.U32) {
		row, col, n := bandTile(t, g.down, g.across, g.high)
		if g.Cluster > 1 {
			row = row.MulAdd(ptx.U(2), g.rank)
		}
		f(row.Mul(ptx.N(g.Rows)).S32(), col.Mul(ptx.N(g.Cols)).S32(), n.S32())
	})
}

// part returns, for tile n, the index of the matrix, the first step along K and the number of
// steps.
func (g *wgmmaCode) part(n ptx.S32) (matrix ptx.S32, from, steps ptx.U32) {
	if !g.Split {
		return n, ptx.U(0), g.steps
	}
	i := n.U32().Div(g.parts)
	from = n.U32().Sub(i.Mul(g.parts)).Mul(g.per)
	return i.S32(), from, g.per.Min(g.steps.Sub(from))
}

// bandTile returns the position of tile t and the index of its matrix. Matrices are down tiles high
// and across tiles wide. Blocks that run at the same time have adjacent tiles, so that their
// operands are in L2: tiles are numbered down a band of high tiles, then across it.
func bandTile(t, down, across, high ptx.U32) (row, col, n ptx.U32) {
	each := down.Mul(across)
	n = t.Div(each)
	t = t.Sub(n.Mul(each))
	band := high.Mul(across)
	i := t.Div(band)
	t = t.Sub(i.Mul(band))
	top := i.Mul(high)
	high = high.Min(down.Sub(top))
	col = t.Div(high)
	return top.Add(t.Sub(col.Mul(high))), col, n
}

// bring is the code of the thread that starts the copies.
func (g *wgmmaCode) bring() {
	r := newRing(g.k, g.Stages)
	g.each(func(row, col, n ptx.S32) {
		na, from, steps := g.part(n)
		nb := na.Mul(g.wholeB.S32())
		if g.Turned {
			na, nb = nb, na
		}
		g.k.Count(steps, func(i ptx.U32) {
			at := r.at.Get()
			g.empty.At(at).Wait(r.phase.Get().Xor(ptx.U(1)))
			full := g.full.At(at)
			full.ArriveExpect(ptx.N(g.brought()))
			x := i.Add(from).Mul(ptx.N(g.depth())).S32()
			as := g.as.At(at.Mul(ptx.N(g.Rows * wgmmaLine)))
			for _, side := range places(g.copiesA()) {
				at := [2]ptx.S32{x, row.Add(ptx.S(int32(side)))}
				if g.TransA {
					at[0], at[1] = at[1], at[0]
				}
				ptx.TensorLoad(as.Offset(side*wgmmaLine), g.a, full, at[0], at[1], na)
			}
			var h ptx.TensorHint
			bs, part := g.bs.At(at.Mul(ptx.N(g.Cols*wgmmaLine))), g.Cols/g.Cluster
			if g.Cluster > 1 {
				h.Blocks = ptx.U(1<<g.Cluster - 1)
				bs = bs.At(g.rank.Mul(ptx.N(part * wgmmaLine)))
				col = col.Add(g.rank.Mul(ptx.N(part)).S32())
			}
			for _, side := range places(g.copiesB()) {
				at := [2]ptx.S32{x, col.Add(ptx.S(int32(side)))}
				if !g.TransB {
					at[0], at[1] = at[1], at[0]
				}
				ptx.TensorLoadHint(h, bs.Offset(side*wgmmaLine), g.b, full, at[0], at[1], nb)
			}
			r.next()
		})
	})
}

// places returns the first positions of n copies of side positions each.
func places(n, side int) (at []int) {
	for i := range n {
		at = append(at, i*side)
	}
	return at
}

// stageTile returns the wgmma descriptor of a tile in a stage, and the distance of a step of 32
// bytes along K.
func stageTile(p ptx.Shared[ptx.BF16], along bool) (t ptx.Tile, step int) {
	if along {
		return ptx.NewTile(p, ptx.Swizzle128, 16, 1024), 32
	}
	return ptx.NewTile(p, ptx.Swizzle128, 64*wgmmaLine*2, 1024), 16 * 128
}

// accumulators returns the sums of a warpgroup, by products of 64 rows.
func (g *wgmmaCode) accumulators(high int) [][]ptx.Var[ptx.F32] {
	acc := make([][]ptx.Var[ptx.F32], high)
	for i := range acc {
		acc[i] = make([]ptx.Var[ptx.F32], g.Cols/2)
		for j := range acc[i] {
			acc[i][j] = ptx.NewVar(g.k, ptx.F(0))
		}
	}
	return acc
}

// product returns the instruction that multiplies elements of the type.
func (g *wgmmaCode) product() func(acc []ptx.Var[ptx.F32], a, b ptx.Tile, w ptx.Wgmma) {
	switch g.Type {
	case op.F16:
		return g.k.WgmmaF16
	case op.F32:
		return g.k.WgmmaTF32
	}
	return g.k.WgmmaBF16
}

// storeFunc returns the function that stores the sums of a tile, and a function that waits for the
// last stores.
func (g *wgmmaCode) storeFunc(group ptx.U32, resident *registerOperand, acc [][]ptx.Var[ptx.F32]) (store func(row, col, n ptx.S32), done func()) {
	if g.Type == op.F32 {
		return g.newSingles(group, resident, acc).store, func() {}
	}
	out := g.newStorer(group)
	return func(row, col, n ptx.S32) {
		for i := range acc {
			out.store(acc[i], row.Add(group.Mul(ptx.N(64*len(acc))).S32()).Add(ptx.S(int32(64*i))), col, n)
		}
	}, out.done
}

// multiply is the code of a warpgroup that multiplies.
func (g *wgmmaCode) multiply(group ptx.U32) {
	k, high := g.k, g.Rows/g.Groups/64 // products of 64 rows in a warpgroup
	acc := g.accumulators(high)
	product := g.product()
	arriving := g.tid.And(ptx.N(g.Groups*groupThreads/g.releases() - 1))
	release := func(stage ptx.U32, when ptx.Pred) {
		if g.Cluster > 1 {
			k.If(when.And(arriving.Lt(ptx.N(g.Cluster))), func() { g.empty.At(stage).ArriveNear(arriving) })
			return
		}
		k.If(when.And(arriving.Eq(ptx.U(0))), func() { g.empty.At(stage).Arrive() })
	}
	var ta ptx.Tile
	var stepA int
	var resident *registerOperand
	if g.aInRegisters() {
		resident = g.newRegisterOperand(group)
	} else { // 64 rows of A have the same size in either layout
		ta, stepA = stageTile(g.as.At(group.Mul(ptx.N(high*64*wgmmaLine))), !g.TransA)
	}
	tb, stepB := stageTile(g.bs, g.TransB)
	store, done := g.storeFunc(group, resident, acc)
	r, before := newRing(k, g.Stages), ptx.NewVar(k, ptx.U(0))
	g.each(func(row, col, n ptx.S32) {
		_, _, steps := g.part(n)
		k.Count(steps, func(i ptx.U32) {
			at, more := r.at.Get(), i.Ne(ptx.U(0))
			g.full.At(at).Wait(r.phase.Get())
			b := tb.Advance(at.Mul(ptx.N(g.Cols * wgmmaLine * 2)))
			schedule := func(d int) ptx.Wgmma {
				add := ptx.Is(true)
				if d == 0 {
					add = more
				}
				return ptx.Wgmma{Add: add, TransA: g.TransA && resident == nil, TransB: !g.TransB}
			}
			if resident != nil {
				for d := range wgmmaLine / 16 {
					resident.product(acc, at, d, b.Advance(ptx.N(d*stepB)), schedule(d))
					k.WgmmaCommit()
					k.WgmmaWait(1) // for the previous 32 bytes
					if d == 0 {
						release(before.Get(), more)
					}
				}
			} else {
				a := ta.Advance(at.Mul(ptx.N(g.Rows * wgmmaLine * 2)))
				k.WgmmaFence()
				for d := range wgmmaLine / 16 {
					for j := range acc {
						product(acc[j], a.Advance(ptx.N(d*stepA+j*64*wgmmaLine*2)), b.Advance(ptx.N(d*stepB)), schedule(d))
					}
				}
				k.WgmmaCommit()
				k.WgmmaWait(1) // for the previous step
				release(before.Get(), more)
			}
			before.Set(at)
			r.next()
		})
		k.WgmmaWait(0)
		release(before.Get(), ptx.Is(true))
		store(row, col, n)
	})
	done()
}

// warpgroupsOf plans a product with schedule w.
func (p *halfProduct) warpgroupsOf(w wgmmaSchedule, d *Device) (*Plan, error) {
	plan := &Plan{}
	a, b, err := p.aligned(plan, w.copyA, w.copyB, p.Type == op.F32)
	if err != nil {
		return nil, err
	}
	w.wgmmaSpec, w.below = w.of(p.Type, a.along, b.along), w.below.of(p.Type, a.along, b.along)
	plan.Variant = w.String()
	c := matrix{Ref: portable.Ref{Kind: portable.OutputRef}, bytes: p.Type.Size(), inner: p.N, outer: p.M, count: p.Batch, stride: p.N}
	if w.top == 0 {
		return plan, p.launch(plan, w.wgmmaSpec, w.parts, a, b, c, d)
	}
	over, aOver, cOver := *p, a, c
	over.M, aOver.outer, cOver.outer = w.top, w.top, w.top
	if err := over.launch(plan, w.wgmmaSpec, w.parts, aOver, b, cOver, d); err != nil {
		return nil, err
	}
	under := *p
	under.M -= w.top
	return plan, under.launch(plan, w.below, w.belowParts, a.from(w.top), b, c.from(w.top), d)
}

// launch adds to the plan the stages that multiply a and b with tiles of s, and K split in parts.
// Tensor maps must be able to describe a and b.
func (p *halfProduct) launch(plan *Plan, s wgmmaSpec, parts int, a, b, c matrix, d *Device) error {
	s = s.of(p.Type, a.along, b.along)
	s.Odd = p.N%2 != 0
	if err := s.check(); err != nil {
		return err
	}
	if s.Turned {
		a, b = b, a
	}
	steps := ceilDiv(p.K, s.depth())
	if parts = ceilDiv(steps, ceilDiv(steps, parts)); parts > 1 { // no empty parts
		if p.Batch*p.M*p.N > math.MaxInt32/parts {
			return unsupported("%d parts of sums", parts)
		}
		s.Split = true
		sums := matrix{Ref: portable.Ref{Kind: portable.ScratchRef, Index: len(plan.Scratch)}}
		plan.Scratch = append(plan.Scratch, int64(4*parts*p.Batch*p.M*p.N))
		plan.Stages = append(plan.Stages, *s.plan(p, a, b, sums, parts, d), p.gather(sums, c, parts))
		return nil
	}
	s.Bias, s.Direct = p.Bias, p.direct()
	if p.after != nil {
		s.Key = p.after.key
	}
	s.Loose = p.N*p.Type.Size()%16 != 0 && !s.Direct
	plan.Stages = append(plan.Stages, *s.plan(p, a, b, c, 1, d))
	return nil
}
