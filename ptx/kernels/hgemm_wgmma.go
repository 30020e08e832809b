package kernels

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// wgmmaSpec is a product by warpgroups (sm_90a): a persistent grid whose blocks
// have one warp that brings tiles by tensor maps through a ring of stages, and
// Groups warpgroups that multiply them. What a block computes at once is
// Rows x Cols; a warpgroup has Rows/Groups rows of it, in registers.
type wgmmaSpec struct {
	Type           op.DType
	TransA, TransB bool // as in op.MatMulOpts
	Rows, Cols     int
	Groups, Stages int
	// Cluster is 1, or 2 for pairs of blocks, one below the other, that bring
	// half of B each and give it to both.
	Cluster int
	// Loose says that rows of the result begin anywhere, not at multiples of 16
	// bytes: then threads store it, not copies.
	Loose bool
	Bias  bool
	// Key is that of the epilogue, "" for none; Direct says that its own stores
	// write the results.
	Key    string
	Direct bool
	// Split says that a tile is a part of the sum only, which is stored as floats.
	Split bool
	Odd   bool // rows of the result have an odd number of elements
}

// depth is how far along the sum a stage reaches: 128 bytes, what a swizzle of
// 128 bytes is as wide as.
const depth = 64

// groupThreads is a warpgroup.
const groupThreads = 128

func (s *wgmmaSpec) String() string {
	return fmt.Sprintf("wgmma%dx%dx%d_s%d_c%d", s.Rows, s.Cols, s.Groups, s.Stages, s.Cluster)
}

// bytes is the shared memory that a block needs.
func (s *wgmmaSpec) bytes() int {
	return 2*(s.Stages*(s.Rows+s.Cols)*depth+s.Groups*4*storing*storeRows*storeCols) + 16*s.Stages
}

var wgmmaKernels kernelCache[wgmmaSpec]

// kernel returns the kernel, whose epilogue is e, nil for none.
func (s wgmmaSpec) kernel(e *epilogue) *Kernel {
	return wgmmaKernels.of(s, func() *Kernel {
		k := &Kernel{Name: "matmul_" + s.Type.String() + "_" + s.String(), Target: ptx.SM90a,
			Block: [3]uint32{uint32((s.Groups + 1) * groupThreads), 1, 1}, Build: func(k *ptx.Kernel) { s.build(k, e) }}
		if s.Cluster > 1 {
			k.Cluster = uint32(s.Cluster)
		}
		return k
	})
}

// plan is the launch of the kernel for a product whose operands are laid out as
// tensor maps want them.
func (s wgmmaSpec) plan(p *halfProduct, a, b, c matrix, parts int, d *Device) *Stage {
	down, across := ceilDiv(p.M, s.Rows*s.Cluster), ceilDiv(p.N, s.Cols)
	tiles := p.Batch * down * across * parts
	blocks := min(tiles, d.Multiprocessors/s.Cluster) * s.Cluster
	wholeB := uint32(1)
	if p.SharedB {
		wholeB = 0
	}
	_, sideA := s.copiesA()
	_, sideB := s.copiesB()
	args := []Arg{a.tiles(p.Type, box(sideA, !s.TransA)), b.tiles(p.Type, box(sideB, s.TransB))}
	switch {
	case s.Direct && !s.Split:
	case s.Loose || s.Split:
		args = append(args, c.address())
	default:
		args = append(args, c.tiles(p.Type, [2]int{storeCols, storeRows}))
	}
	high := min(down, max(1, 2048/(s.Rows*s.Cluster))) // tiles: as far down as a wave goes across
	after := p.after
	if s.Split {
		after = nil
	}
	stage := &Stage{
		Kernel: s.kernel(after), Grid: [3]uint32{uint32(blocks), 1, 1}, Zero: -1,
		Args: append(args,
			word(uint32(ceilDiv(p.K, depth))), word(uint32(tiles)), word(uint32(down)), word(uint32(across)), word(uint32(high)), word(wholeB),
			word(uint32(p.M)), word(uint32(p.N))),
	}
	if s.Split {
		steps := ceilDiv(p.K, depth)
		stage.Args = append(stage.Args, word(uint32(parts)), word(uint32(ceilDiv(steps, parts))))
	} else {
		stage.Args = p.finishing(stage.Args)
	}
	return stage
}

// copies reports whether copies store the result.
func (s *wgmmaSpec) copies() bool { return !s.Loose && !s.Direct && !s.Split }

// copiesA returns how many copies bring what a stage has of A, and how many of its
// rows each brings: of A stored along the sum all, otherwise 64, the most that a
// line of 128 bytes has.
func (s *wgmmaSpec) copiesA() (n, side int) {
	if s.TransA {
		return s.Rows / 64, 64
	}
	return 1, s.Rows
}

// copiesB is copiesA for the columns of B that this block of a cluster brings.
func (s *wgmmaSpec) copiesB() (n, side int) {
	part := s.Cols / s.Cluster
	if s.TransB {
		return 1, part
	}
	return ceilDiv(part, 64), 64
}

// brought is the bytes that the copies of a stage bring to a block, those of its
// neighbours included.
func (s *wgmmaSpec) brought() int {
	na, sideA := s.copiesA()
	nb, sideB := s.copiesB()
	return 2 * depth * (na*sideA + s.Cluster*nb*sideB)
}

// check returns an error unless tiles divide as they must. A stage that is brought
// more than it has room for would be a kernel that never ends.
func (s *wgmmaSpec) check() error {
	if s.brought() != 2*depth*(s.Rows+s.Cols) || s.Rows%(64*s.Groups) != 0 || s.Cols%storeCols != 0 {
		return unsupported("%s for this layout", s.String())
	}
	return nil
}

// box returns the tile that a copy brings: along is whether lines go along the sum.
func box(side int, along bool) [2]int {
	if along {
		return [2]int{depth, side}
	}
	return [2]int{side, depth}
}

// ring is the stages that copies and products go through in turn.
type ring struct {
	stages int
	at     ptx.Var[ptx.U32] // the stage
	phase  ptx.Var[ptx.U32] // parity of the rounds so far
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

// wgmmaCode is what the parts of the kernel share while it is built.
type wgmmaCode struct {
	*wgmmaSpec
	k           *ptx.Kernel
	a, b, c     ptx.TensorMap
	loose       ptx.Global[ptx.U16] // in the place of c
	steps       ptx.U32
	as, bs, cs  ptx.Shared[ptx.BF16]
	full, empty ptx.MBarrier
	tid, rank   ptx.U32 // rank of the block in its cluster
	tiles, down, across,
	high, wholeB, rows, cols, parts, per ptx.U32
	finish  finisher
	partial ptx.Global[ptx.F32] // of Split, in the place of c
}

// build writes the kernel. The layouts are those of the PTX manual, "Asynchronous
// Warpgroup Level Matrix Instructions".
func (s wgmmaSpec) build(k *ptx.Kernel, e *epilogue) {
	if s.Cluster > 1 {
		k.Cluster(s.Cluster, 1, 1)
	}
	k.Block((s.Groups+1)*groupThreads, 1, 1)
	k.MinBlocks(1)
	g := &wgmmaCode{wgmmaSpec: &s, k: k}
	g.a, g.b = ptx.TensorMapParam(k, "a"), ptx.TensorMapParam(k, "b")
	switch {
	case s.Split:
		g.partial = ptx.GlobalParam[ptx.F32](k, "c")
	case s.Direct:
	case s.Loose:
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
	k.Align(1024)
	g.as = ptx.DynamicShared[ptx.BF16](k, s.Stages*s.Rows*depth)
	g.bs = ptx.DynamicShared[ptx.BF16](k, s.Stages*s.Cols*depth)
	g.cs = ptx.DynamicShared[ptx.BF16](k, s.Groups*4*storing*storeRows*storeCols)
	bars := ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, 2*s.Stages))
	g.full, g.empty = bars, bars.At(ptx.N(s.Stages))
	g.tid, g.rank = k.Special(ptx.TidX), ptx.U(0)
	if s.Cluster > 1 {
		g.rank = k.Special(ptx.ClusterRank)
	}

	k.If(g.tid.Eq(ptx.U(0)), func() {
		g.a.Prefetch()
		g.b.Prefetch()
		if s.copies() {
			g.c.Prefetch()
		}
		for i := range s.Stages {
			g.full.At(ptx.N(i)).Init(ptx.U(1))
			g.empty.At(ptx.N(i)).Init(ptx.N(s.Groups * s.Cluster))
		}
		k.FenceMBarrierInit()
	})
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
		// A block that has ended cannot be written to by its neighbour.
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

// each runs f for the tiles of the block, which begin at row, col of matrix n.
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

// part returns the number of the matrix, where along the sum tile n of a place
// begins, and how many steps it has.
func (g *wgmmaCode) part(n ptx.S32) (matrix ptx.S32, from, steps ptx.U32) {
	if !g.Split {
		return n, ptx.U(0), g.steps
	}
	i := n.U32().Div(g.parts)
	from = n.U32().Sub(i.Mul(g.parts)).Mul(g.per)
	return i.S32(), from, g.per.Min(g.steps.Sub(from))
}

// bandTile returns the place of tile t, and the number of its matrix. Matrices are
// down tiles high and across tiles wide. Blocks that run together lie close, so
// that what they read is in L2: tiles are numbered down a band of high tiles,
// then across it.
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

// bring is the thread that starts copies.
func (g *wgmmaCode) bring() {
	r := newRing(g.k, g.Stages)
	g.each(func(row, col, n ptx.S32) {
		n, from, steps := g.part(n)
		nb := n.Mul(g.wholeB.S32())
		g.k.Count(steps, func(i ptx.U32) {
			at := r.at.Get()
			g.empty.At(at).Wait(r.phase.Get().Xor(ptx.U(1)))
			full := g.full.At(at)
			full.ArriveExpect(ptx.N(g.brought()))
			x := i.Add(from).Mul(ptx.U(depth)).S32()
			as := g.as.At(at.Mul(ptx.N(g.Rows * depth)))
			for _, side := range places(g.copiesA()) {
				at := [2]ptx.S32{x, row.Add(ptx.S(int32(side)))}
				if g.TransA {
					at[0], at[1] = at[1], at[0]
				}
				ptx.TensorLoad(as.Offset(side*depth), g.a, full, at[0], at[1], n)
			}
			var h ptx.TensorHint
			bs, part := g.bs.At(at.Mul(ptx.N(g.Cols*depth))), g.Cols/g.Cluster
			if g.Cluster > 1 {
				h.Blocks = ptx.U(1<<g.Cluster - 1)
				bs = bs.At(g.rank.Mul(ptx.N(part * depth)))
				col = col.Add(g.rank.Mul(ptx.N(part)).S32())
			}
			for _, side := range places(g.copiesB()) {
				at := [2]ptx.S32{x, col.Add(ptx.S(int32(side)))}
				if !g.TransB {
					at[0], at[1] = at[1], at[0]
				}
				ptx.TensorLoadHint(h, bs.Offset(side*depth), g.b, full, at[0], at[1], nb)
			}
			r.next()
		})
	})
}

// places returns where n copies of so many places each begin.
func places(n, side int) (at []int) {
	for i := range n {
		at = append(at, i*side)
	}
	return at
}

// stageTile describes how a warpgroup finds a tile of a stage: where, and how far
// a step of 16 along the sum is.
func stageTile(p ptx.Shared[ptx.BF16], along bool) (t ptx.Tile, step int) {
	if along {
		return ptx.NewTile(p, ptx.Swizzle128, 16, 1024), 32
	}
	return ptx.NewTile(p, ptx.Swizzle128, 64*depth*2, 1024), 16 * 128
}

// multiply is a warpgroup that multiplies.
func (g *wgmmaCode) multiply(group ptx.U32) {
	k, high := g.k, g.Rows/g.Groups/64 // rows of a product, in units of 64
	acc := make([][]ptx.Var[ptx.F32], high)
	for i := range acc {
		acc[i] = make([]ptx.Var[ptx.F32], g.Cols/2)
		for j := range acc[i] {
			acc[i][j] = ptx.NewVar(k, ptx.F(0))
		}
	}
	product := k.WgmmaBF16
	if g.Type == op.F16 {
		product = k.WgmmaF16
	}
	inGroup := g.tid.And(ptx.U(groupThreads - 1))
	release := func(stage ptx.U32, when ptx.Pred) {
		if g.Cluster > 1 {
			k.If(when.And(inGroup.Lt(ptx.N(g.Cluster))), func() { g.empty.At(stage).ArriveNear(inGroup) })
			return
		}
		k.If(when.And(inGroup.Eq(ptx.U(0))), func() { g.empty.At(stage).Arrive() })
	}
	// 64 rows of A are as many bytes in either layout.
	ta, stepA := stageTile(g.as.At(group.Mul(ptx.N(high*64*depth))), !g.TransA)
	tb, stepB := stageTile(g.bs, g.TransB)
	out := g.newStorer(group)
	r, before := newRing(k, g.Stages), ptx.NewVar(k, ptx.U(0))
	g.each(func(row, col, n ptx.S32) {
		_, _, steps := g.part(n)
		k.Count(steps, func(i ptx.U32) {
			at, more := r.at.Get(), i.Ne(ptx.U(0))
			g.full.At(at).Wait(r.phase.Get())
			a, b := ta.Advance(at.Mul(ptx.N(g.Rows*depth*2))), tb.Advance(at.Mul(ptx.N(g.Cols*depth*2)))
			k.WgmmaFence()
			for d := range depth / 16 {
				w := ptx.Wgmma{Add: ptx.Is(true), TransA: g.TransA, TransB: !g.TransB}
				if d == 0 {
					w.Add = more
				}
				for j := range acc {
					product(acc[j], a.Advance(ptx.N(d*stepA+j*64*depth*2)), b.Advance(ptx.N(d*stepB)), w)
				}
			}
			k.WgmmaCommit()
			k.WgmmaWait(1) // those of the step before
			release(before.Get(), more)
			before.Set(at)
			r.next()
		})
		k.WgmmaWait(0)
		release(before.Get(), ptx.Is(true))
		for i := range acc {
			out.store(acc[i], row.Add(group.Mul(ptx.N(64*high)).S32()).Add(ptx.S(int32(64*i))), col, n)
		}
	})
	out.done()
}

// warpgroupsOf plans a product in one way.
func (p *halfProduct) warpgroupsOf(w wgmmaWay, d *Device) (*Plan, error) {
	plan := &Plan{Variant: w.String()}
	a, b, err := p.aligned(plan, w.copyA, w.copyB)
	if err != nil {
		return nil, err
	}
	c := matrix{Ref: lib.Ref{Kind: lib.OutputRef}, inner: p.N, outer: p.M, count: p.Batch, stride: p.N}
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

// launch adds to the plan what multiplies a and b, which tensor maps can describe,
// with tiles of one kind and sums in so many parts.
func (p *halfProduct) launch(plan *Plan, s wgmmaSpec, parts int, a, b, c matrix, d *Device) error {
	s.Type, s.TransA, s.TransB, s.Odd = p.Type, p.TransA, p.TransB, p.N%2 != 0
	if err := s.check(); err != nil {
		return err
	}
	steps := ceilDiv(p.K, depth)
	if parts = ceilDiv(steps, ceilDiv(steps, parts)); parts > 1 { // none without steps
		if p.Batch*p.M*p.N > math.MaxInt32/parts {
			return unsupported("%d parts of sums", parts)
		}
		s.Split = true
		sums := matrix{Ref: lib.Ref{Kind: lib.ScratchRef, Index: len(plan.Scratch)}}
		plan.Scratch = append(plan.Scratch, int64(4*parts*p.Batch*p.M*p.N))
		plan.Stages = append(plan.Stages, *s.plan(p, a, b, sums, parts, d), p.gather(sums, c, parts))
		return nil
	}
	s.Bias, s.Direct = p.Bias, p.direct()
	if p.after != nil {
		s.Key = p.after.key
	}
	s.Loose = p.N%8 != 0 && !s.Direct
	plan.Stages = append(plan.Stages, *s.plan(p, a, b, c, 1, d))
	return nil
}
