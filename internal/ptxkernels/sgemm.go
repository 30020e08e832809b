package ptxkernels

import (
	"github.com/rayo-go/rayo/ptx"
)

// sgemmSpec specialises a kernel: a tile, and the layouts of the operands.
type sgemmSpec struct {
	sgemmTile
	AlongA, AlongB bool // the operand is K-major: a not transposed, b transposed
	WideA, WideB   bool // the operand is not K-major, and rows are multiples of four elements
	WideC          bool // rows of the result are multiples of four
	Bias           bool
	Part           bool // split-K: the kernel writes partials, which another kernel adds
	Long           bool // the sum is too long for one accumulator: see inParts
	key            string
}

func (s sgemmSpec) panels() (a, b sgemmPanel) {
	return sgemmPanel{s.Rows, s.Depth, s.threads(), s.AlongA, s.WideA}, sgemmPanel{s.Cols, s.Depth, s.threads(), s.AlongB, s.WideB}
}

// stage is the number of elements in a stage.
func (s sgemmSpec) stage() int {
	a, b := s.panels()
	return a.size() + b.size()
}

// shared is the size of a block's shared memory, in bytes.
func (s sgemmSpec) shared() int {
	return 4 * max(s.stage()*s.Stages, s.Rows*s.Cols*(s.Slices-1))
}

// sgemmOf holds the parameters of a kernel, in order.
type sgemmOf struct {
	a, b, bias, out, parts ptx.Global[ptx.F32]
	m, n, k                ptx.U32
	across, down, band     ptx.U32 // in tiles; band is the number of rows of tiles in a band: see place
	pitchA, pitchB         ptx.U32 // row strides
	linesA, linesB         ptx.U32 // rows of a and columns of b in memory: m and n, or more with padding
	strideA, strideB       ptx.U32 // strides between products; strideB is 0 if all share one b
	steps                  ptx.U32 // steps along K of a block
	run                    ptx.U32 // steps in one run of inParts (Long)
	one                    ptx.F32 // 1, as a value that the assembler does not know
}

// declare declares the parameters after the operands.
func (p *sgemmOf) declare(k *ptx.Kernel, s sgemmSpec, e *epilogue) *sink {
	for _, w := range []struct {
		to   *ptx.U32
		name string
	}{{&p.m, "m"}, {&p.n, "n"}, {&p.k, "k"}, {&p.across, "across"}, {&p.down, "down"}, {&p.band, "band"},
		{&p.pitchA, "pitchA"}, {&p.pitchB, "pitchB"}, {&p.linesA, "linesA"}, {&p.linesB, "linesB"},
		{&p.strideA, "strideA"}, {&p.strideB, "strideB"}, {&p.steps, "steps"}} {
		*w.to = ptx.Param[ptx.U32](k, w.name)
	}
	p.one = ptx.Param[ptx.F32](k, "one")
	if s.Long {
		p.parts = ptx.GlobalParam[ptx.F32](k, "parts")
		p.run = ptx.Param[ptx.U32](k, "run")
	}
	if s.Bias {
		p.bias = ptx.GlobalParam[ptx.F32](k, "bias")
	}
	if s.Part {
		p.out = ptx.GlobalParam[ptx.F32](k, "out")
		return nil
	}
	return e.sink(k)
}

// buildSgemm writes the kernel: the usual software pipeline, which copies tiles some steps ahead to
// shared memory and loads registers one term ahead.
func buildSgemm(k *ptx.Kernel, s sgemmSpec, e *epilogue) {
	k.Block(s.threads(), 1, 1)
	k.MinBlocks(s.Blocks)
	c := &sgemmCode{sgemmSpec: s, k: k}
	c.p.a = ptx.GlobalParam[ptx.F32](k, "a")
	c.p.b = ptx.GlobalParam[ptx.F32](k, "b")
	to := c.p.declare(k, s, e)
	c.pa, c.pb = s.panels()
	c.shared = ptx.DynamicShared[ptx.F32](k, s.shared()/4)

	pair, part := k.Special(ptx.CtaidZ), k.Special(ptx.CtaidY)
	c.t = k.Special(ptx.TidX)
	row, col := s.place(k, &c.p)
	c.bringFirst(pair, part, row, col)
	myRow, myCol := c.placeThread()
	c.newTerms()

	c.reading, c.writing = ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.N(s.stage()*(s.Stages-1)))
	k.CopyWait(s.Stages - 2)
	k.Sync()
	c.load(0, 0, c.reading.Get())
	if !s.Long {
		k.Count(c.count, c.turn)
	} else {
		s.inParts(k, c.acc, c.t, c.count, &c.p, c.turn)
	}
	if s.Slices > 1 {
		s.gather(k, c.acc, c.inSlice, c.slice, c.shared)
	}
	s.finish(k, &c.p, to, c.acc, c.slice, row.Add(myRow), col.Add(myCol))
}

// sgemmCode holds the values that the parts of the kernel share while it is built.
type sgemmCode struct {
	sgemmSpec
	k      *ptx.Kernel
	p      sgemmOf
	pa, pb sgemmPanel
	shared ptx.Shared[ptx.F32]
	t      ptx.U32

	// Copies: their first addresses, their progress, and the distance of a step.
	count        ptx.U32 // number of steps along K
	fromA, fromB ptx.Global[ptx.F32]
	advA, advB   ptx.U32
	ca, cb       sgemmCopies
	doneA, doneB ptx.Var[ptx.U32]

	// The part of the thread.
	inSlice, slice   ptx.U32
	readA, readB     ptx.Shared[ptx.F32]
	acc              [][]ptx.Var[ptx.F32]
	u, v             [2][]ptx.Var[ptx.F32] // fragments of a and of b: the current term and the next
	reading, writing ptx.Var[ptx.U32]      // stages in shared memory
}

// mine is the number of terms of each slice in a step.
func (c *sgemmCode) mine() int { return c.Depth / c.Slices }

// laneCols is the number of lanes of a warp along a row.
func (c *sgemmCode) laneCols() int { return 32 / c.LaneRows }

// bringFirst starts the copies of the first steps of a part of K. Only the first step of the whole
// sum may be partial.
func (c *sgemmCode) bringFirst(pair, part, row, col ptx.U32) {
	s, k, p := c.sgemmSpec, c.k, &c.p
	all := p.k.Add(ptx.N(s.Depth - 1)).Div(ptx.N(s.Depth))
	first := part.Mul(p.steps)
	c.count = all.Sub(first).Min(p.steps)
	rest := p.k.Sub(all.Sub(ptx.U(1)).Mul(ptx.N(s.Depth)))
	have := ptx.Select(first.Eq(ptx.U(0)), rest, ptx.N(s.Depth))
	begin := ptx.Select(first.Eq(ptx.U(0)), ptx.U(0), rest.Add(first.Sub(ptx.U(1)).Mul(ptx.N(s.Depth))))

	start := func(base ptx.Global[ptx.F32], jump, pitch, line ptx.U32, along bool) ptx.Global[ptx.F32] {
		base = base.At(pair.Mul(jump))
		if along {
			return base.At(line.MulAdd(pitch, begin))
		}
		return base.At(begin.MulAdd(pitch, line))
	}
	c.fromA = start(p.a, p.strideA, p.pitchA, row, s.AlongA)
	c.fromB = start(p.b, p.strideB, p.pitchB, col, s.AlongB)
	c.advA, c.advB = c.advance(ptx.N(s.Depth))
	c.ca = c.pa.copies(k, c.t, p.pitchA, p.linesA.Sub(row), c.shared)
	c.cb = c.pb.copies(k, c.t, p.pitchB, p.linesB.Sub(col), c.shared.Offset(c.pa.size()))

	c.doneA, c.doneB = ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0))
	for i := range s.Stages - 1 {
		some := have
		if i > 0 {
			some = ptx.Select(ptx.N(i).Lt(c.count), ptx.N(s.Depth), ptx.U(0))
		}
		c.ca.bring(c.fromA.At(c.doneA.Get()), ptx.N(i*s.stage()), some)
		c.cb.bring(c.fromB.At(c.doneB.Get()), ptx.N(i*s.stage()), some)
		k.CopyCommit()
		if i == 0 {
			firstA, firstB := c.advance(have)
			c.doneA.Set(firstA)
			c.doneB.Set(firstB)
			continue
		}
		ptx.AddTo(c.doneA, c.advA)
		ptx.AddTo(c.doneB, c.advB)
	}
}

// advance returns the distance of n terms along K in each operand.
func (c *sgemmCode) advance(n ptx.U32) (a, b ptx.U32) {
	a, b = n, n
	if !c.AlongA {
		a = c.p.pitchA.Mul(n)
	}
	if !c.AlongB {
		b = c.p.pitchB.Mul(n)
	}
	return a, b
}

// placeThread returns the position of the thread in the tile.
func (c *sgemmCode) placeThread() (row, col ptx.U32) {
	s, t := c.sgemmSpec, c.t
	c.inSlice = t
	c.slice = ptx.U(0)
	if s.Slices > 1 {
		c.inSlice, c.slice = t.Rem(ptx.N(s.group())), t.Div(ptx.N(s.group()))
	}
	lane, warp := t.And(ptx.U(31)), c.inSlice.Shr(ptx.U(5))
	warpRows, warpCols := s.LaneRows*s.Own, c.laneCols()*s.Wide
	across := s.Cols / warpCols
	laneRow, laneCol := lanePlace(lane, s.LaneRows)
	row = warp.Div(ptx.N(across)).MulAdd(ptx.N(warpRows), laneRow.Mul(ptx.U(4)))
	col = warp.Rem(ptx.N(across)).MulAdd(ptx.N(warpCols), laneCol.Mul(ptx.U(4)))
	c.readA = c.shared.At(c.slice.Mul(ptx.N(c.mine() * c.pa.pitch())).Add(row))
	c.readB = c.shared.Offset(c.pa.size()).At(c.slice.Mul(ptx.N(c.mine() * c.pb.pitch())).Add(col))
	return row, col
}

// newTerms declares the registers of the accumulators and the fragments.
func (c *sgemmCode) newTerms() {
	zeros := func(n int) []ptx.Var[ptx.F32] {
		v := make([]ptx.Var[ptx.F32], n)
		for i := range v {
			v[i] = ptx.NewVar(c.k, ptx.F(0))
		}
		return v
	}
	for range c.Own {
		c.acc = append(c.acc, zeros(c.Wide))
	}
	for h := range c.u {
		c.u[h] = zeros(c.Own)
		c.v[h] = zeros(c.Wide)
	}
}

// load loads term d of the stage at offset at to fragment h (0 or 1).
func (c *sgemmCode) load(h, d int, at ptx.U32) {
	a, b := c.readA.At(at), c.readB.At(at)
	for i := 0; i < c.Own; i += 4 {
		for j, x := range a.Offset(d*c.pa.pitch() + i*c.LaneRows).Load4() {
			c.u[h][i+j].Set(x)
		}
	}
	for i := 0; i < c.Wide; i += 4 {
		for j, x := range b.Offset(d*c.pb.pitch() + i*c.laneCols()).Load4() {
			c.v[h][i+j].Set(x)
		}
	}
}

// next advances to the next stage of the ring.
func (c *sgemmCode) next(at ptx.Var[ptx.U32]) {
	ptx.AddTo(at, ptx.N(c.stage()))
	at.Set(ptx.Select(at.Get().Eq(ptx.N(c.stage()*c.Stages)), ptx.U(0), at.Get()))
}

// turn multiplies step i while it loads the next terms from shared memory and copies a later step
// from global memory.
func (c *sgemmCode) turn(i ptx.U32) {
	for d := range c.mine() {
		h := d & 1
		if d == c.mine()-1 {
			c.k.CopyWait(c.Stages - 2)
			c.k.Sync()
			c.next(c.reading)
			c.load(1-h, 0, c.reading.Get())
		} else {
			c.load(1-h, d+1, c.reading.Get())
		}
		if d == 0 {
			some := i.Add(ptx.N(c.Stages - 1)).Lt(c.count)
			c.ca.bringAll(c.fromA.At(c.doneA.Get()), c.writing.Get(), some)
			c.cb.bringAll(c.fromB.At(c.doneB.Get()), c.writing.Get(), some)
			c.k.CopyCommit()
			c.next(c.writing)
			ptx.AddTo(c.doneA, c.advA)
			ptx.AddTo(c.doneB, c.advB)
		}
		for i := range c.Own {
			for j := range c.Wide {
				if i&1 == 1 { // alternate directions, so that at the end of a row only one operand changes
					j = c.Wide - 1 - j
				}
				ptx.MulAddTo(c.acc[i][j], c.u[h][i].Get(), c.v[h][j].Get())
			}
		}
	}
}

// place returns the first row and column of the block. Blocks are numbered column by column in
// bands of tile rows, so that blocks that run at the same time share operands in L2.
func (s sgemmSpec) place(k *ptx.Kernel, p *sgemmOf) (row, col ptx.U32) {
	id := k.Special(ptx.CtaidX)
	wholeBand := p.band.Mul(p.across)
	top := id.Div(wholeBand).Mul(p.band)
	inBand := id.Rem(wholeBand)
	height := p.down.Sub(top).Min(p.band)
	return top.Add(inBand.Rem(height)).Mul(ptx.N(s.Rows)), inBand.Div(height).Mul(ptx.N(s.Cols))
}

// finish adds the bias and stores the thread's results: groups of four rows from row on, by groups
// of four columns from col on.
func (s sgemmSpec) finish(k *ptx.Kernel, p *sgemmOf, to *sink, acc [][]ptx.Var[ptx.F32], slice, row, col ptx.U32) {
	pair, laneCols := k.Special(ptx.CtaidZ), 32/s.LaneRows
	first := pair.Mul(p.m)
	if s.Part {
		first = k.Special(ptx.CtaidY).MulAdd(k.Special(ptx.NctaidZ), pair).Mul(p.m)
	}
	put := func(r, c ptx.U32, x []ptx.F32) {
		// A vector store needs consecutive registers. Multiplying by 1 copies the sums to such
		// registers. The sums themselves can then be in registers chosen to avoid bank conflicts of
		// multiply-adds.
		for j := range x {
			x[j] = x[j].Mul(p.one)
		}
		i := first.Add(r).MulAdd(p.n, c)
		if s.Part {
			stores(p.out.At(i), x)
			return
		}
		if s.Bias {
			for j, y := range loads(p.bias.At(c), len(x)) {
				x[j] = x[j].Add(y)
			}
		}
		to.setRow(first.Add(r), c, i, x...)
	}
	for g := range s.Slices {
		own := s.Own / s.Slices
		write := func() {
			for i := g * own; i < (g+1)*own; i++ {
				r := row.Add(ptx.N(i/4*4*s.LaneRows + i%4))
				k.If(r.Lt(p.m), func() {
					for j := 0; j < s.Wide; j += 4 {
						c := col.Add(ptx.N(j * laneCols))
						x := make([]ptx.F32, 4)
						for q := range x {
							x[q] = acc[i][j+q].Get()
						}
						if s.WideC {
							k.If(c.Lt(p.n), func() { put(r, c, x) })
							continue
						}
						for q := range x {
							k.If(c.Add(ptx.N(q)).Lt(p.n), func() { put(r, c.Add(ptx.N(q)), x[q:q+1]) })
						}
					}
				})
			}
		}
		if s.Slices == 1 {
			write()
		} else {
			k.If(slice.Eq(ptx.N(g)), write)
		}
	}
}

// lanePlace returns the row and the column of a lane in a warp with the given number of rows.
// Shared memory serves accesses of 16 bytes by quarters of a warp, and merges quarters that read
// the same addresses. Therefore adjacent lanes share a column.
func lanePlace(lane ptx.U32, rows int) (row, col ptx.U32) {
	switch rows {
	case 4:
		return lane.And(ptx.U(1)).Or(lane.Shr(ptx.U(3)).And(ptx.U(2))), lane.Shr(ptx.U(1)).And(ptx.U(7))
	case 8:
		return lane.Shr(ptx.U(1)).And(ptx.U(7)), lane.And(ptx.U(1)).Or(lane.Shr(ptx.U(3)).And(ptx.U(2)))
	}
	return lane.Div(ptx.N(32 / rows)), lane.Rem(ptx.N(32 / rows))
}

// inParts runs turn for all steps. After every p.run steps it moves the accumulators to p.parts and
// starts again from 0, because the rounding errors of one long float32 sum would exceed the
// tolerance.
func (s sgemmSpec) inParts(k *ptx.Kernel, acc [][]ptx.Var[ptx.F32], t, count ptx.U32, p *sgemmOf, turn func(i ptx.U32)) {
	block := k.Special(ptx.CtaidZ).MulAdd(k.Special(ptx.NctaidY), k.Special(ptx.CtaidY)).MulAdd(k.Special(ptx.NctaidX), k.Special(ptx.CtaidX))
	aside := p.parts.At(block.Mul(ptx.N(s.Rows * s.Cols * s.Slices)).Add(t))
	each := func(f func(at ptx.Global[ptx.F32], v ptx.Var[ptx.F32])) {
		for i := range acc {
			for j := range acc[i] {
				f(aside.Offset((i*s.Wide+j)*s.threads()), acc[i][j])
			}
		}
	}
	add := func(at ptx.Global[ptx.F32], v ptx.Var[ptx.F32]) { ptx.AddTo(v, at.Load()) }
	done, before := ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0))
	k.Loop(func() {
		end := count.Min(done.Get().Add(p.run))
		k.For(done.Get(), end, ptx.U(1), turn)
		k.If(before.Get().Ne(ptx.U(0)), func() { each(add) })
		k.BreakIf(end.Eq(count))
		done.Set(end)
		before.Set(ptx.U(1))
		each(func(at ptx.Global[ptx.F32], v ptx.Var[ptx.F32]) {
			at.Store(v.Get())
			v.Set(ptx.F(0))
		})
	})
}

// gather adds the sums of the slices. Each slice collects Own/Slices rows of every thread and adds
// them in the order of the slices.
func (s sgemmSpec) gather(k *ptx.Kernel, acc [][]ptx.Var[ptx.F32], t, slice ptx.U32, shared ptx.Shared[ptx.F32]) {
	own, quads := s.Own/s.Slices, s.Wide/4
	// Offset of the sums that slice f passes to slice g.
	place := func(f, g int) int {
		if f > g {
			f--
		}
		return (g*(s.Slices-1) + f) * own * quads
	}
	k.CopyWaitAll()
	k.Sync()
	at := shared.At(t.Mul(ptx.U(4)))
	for f := range s.Slices {
		k.If(slice.Eq(ptx.N(f)), func() {
			for g := range s.Slices {
				if g == f {
					continue
				}
				for i := range own {
					for j := range quads {
						var x [4]ptx.F32
						for q := range x {
							x[q] = acc[g*own+i][4*j+q].Get()
						}
						at.Offset((place(f, g) + i*quads + j) * 4 * s.group()).Store4(x)
					}
				}
			}
		})
	}
	k.Sync()
	s.addSlices(k, acc, slice, at, place)
}

// addSlices adds the sums that the other slices stored at at to the sums of each slice.
func (s sgemmSpec) addSlices(k *ptx.Kernel, acc [][]ptx.Var[ptx.F32], slice ptx.U32, at ptx.Shared[ptx.F32], place func(f, g int) int) {
	own, quads := s.Own/s.Slices, s.Wide/4
	for g := range s.Slices {
		k.If(slice.Eq(ptx.N(g)), func() {
			for i := range own {
				for j := range quads {
					var sum [4]ptx.F32
					for f := range s.Slices {
						var x [4]ptx.F32
						if f == g {
							for q := range x {
								x[q] = acc[g*own+i][4*j+q].Get()
							}
						} else {
							x = at.Offset((place(f, g) + i*quads + j) * 4 * s.group()).Load4()
						}
						for q := range sum {
							if f == 0 {
								sum[q] = x[q]
							} else {
								sum[q] = sum[q].Add(x[q])
							}
						}
					}
					for q := range sum {
						acc[g*own+i][4*j+q].Set(sum[q])
					}
				}
			}
		})
	}
}
