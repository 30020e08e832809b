package ptxkernels

import (
	"github.com/rayo-go/rayo/ptx"
)

// sgemmSpec is a kernel: a tile, and how the operands lie in memory.
type sgemmSpec struct {
	sgemmTile
	AlongA, AlongB bool // the sum's index is innermost: a that is not transposed, b that is
	WideA, WideB   bool // the other index is innermost, of a multiple of four
	WideC          bool // rows of the result are multiples of four
	Bias           bool
	Part           bool // writes sums of a part of the terms, for another kernel to add
	Long           bool // so many terms that they are added in parts
	key            string
}

func (s sgemmSpec) panels() (a, b sgemmPanel) {
	return sgemmPanel{s.Rows, s.Depth, s.threads(), s.AlongA, s.WideA}, sgemmPanel{s.Cols, s.Depth, s.threads(), s.AlongB, s.WideB}
}

// stage is the elements of a step of the sum in shared memory.
func (s sgemmSpec) stage() int {
	a, b := s.panels()
	return a.size() + b.size()
}

// shared is the bytes of shared memory of a block.
func (s sgemmSpec) shared() int {
	return 4 * max(s.stage()*s.Stages, s.Rows*s.Cols*(s.Slices-1))
}

// sgemmOf is the parameters of a kernel, in order.
type sgemmOf struct {
	a, b, bias, out, parts ptx.Global[ptx.F32]
	m, n, k                ptx.U32
	across, down, band     ptx.U32 // tiles; band is how many rows of tiles are done together
	pitchA, pitchB         ptx.U32 // from one row in memory to the next
	linesA, linesB         ptx.U32 // of the operands in memory: m and n, or more
	strideA, strideB       ptx.U32 // from one product to the next, 0 for one b for all
	steps                  ptx.U32 // steps of the sum that a block does
	run                    ptx.U32 // steps that are added up one after the other (Long)
	one                    ptx.F32 // 1, which the assembler does not know
}

// declare declares the parameters behind the operands.
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

// buildSgemm writes the kernel: the recipe is the usual one of tiles that are
// copied some steps ahead, and of numbers that threads read one term ahead.
func buildSgemm(k *ptx.Kernel, s sgemmSpec, e *epilogue) {
	k.Block(s.threads(), 1, 1)
	k.MinBlocks(s.Blocks)
	var p sgemmOf
	p.a = ptx.GlobalParam[ptx.F32](k, "a")
	p.b = ptx.GlobalParam[ptx.F32](k, "b")
	to := p.declare(k, s, e)
	pa, pb := s.panels()
	shared := ptx.DynamicShared[ptx.F32](k, s.shared()/4)
	stage := s.stage()

	pair, part := k.Special(ptx.CtaidZ), k.Special(ptx.CtaidY)
	t := k.Special(ptx.TidX)
	row, col := s.place(k, &p)

	// The part of the sum: all steps are whole but the very first.
	all := p.k.Add(ptx.N(s.Depth - 1)).Div(ptx.N(s.Depth))
	first := part.Mul(p.steps)
	count := all.Sub(first).Min(p.steps)
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
	fromA := start(p.a, p.strideA, p.pitchA, row, s.AlongA)
	fromB := start(p.b, p.strideB, p.pitchB, col, s.AlongB)
	advA, advB := ptx.N(s.Depth), ptx.N(s.Depth)
	if !s.AlongA {
		advA = p.pitchA.Mul(advA)
	}
	if !s.AlongB {
		advB = p.pitchB.Mul(advB)
	}
	ca := pa.copies(k, t, p.pitchA, p.linesA.Sub(row), shared)
	cb := pb.copies(k, t, p.pitchB, p.linesB.Sub(col), shared.Offset(pa.size()))

	// doneA and doneB are how far the copies have come.
	doneA, doneB := ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0))
	for i := range s.Stages - 1 {
		some := have
		if i > 0 {
			some = ptx.Select(ptx.N(i).Lt(count), ptx.N(s.Depth), ptx.U(0))
		}
		ca.bring(fromA.At(doneA.Get()), ptx.N(i*stage), some)
		cb.bring(fromB.At(doneB.Get()), ptx.N(i*stage), some)
		k.CopyCommit()
		if i == 0 {
			firstA, firstB := have, have
			if !s.AlongA {
				firstA = p.pitchA.Mul(have)
			}
			if !s.AlongB {
				firstB = p.pitchB.Mul(have)
			}
			doneA.Set(firstA)
			doneB.Set(firstB)
			continue
		}
		ptx.AddTo(doneA, advA)
		ptx.AddTo(doneB, advB)
	}

	// The place of the thread in the tile.
	inSlice := t
	slice := ptx.U(0)
	if s.Slices > 1 {
		inSlice, slice = t.Rem(ptx.N(s.group())), t.Div(ptx.N(s.group()))
	}
	lane, warp := t.And(ptx.U(31)), inSlice.Shr(ptx.U(5))
	laneCols := 32 / s.LaneRows
	warpRows, warpCols := s.LaneRows*s.Own, laneCols*s.Wide
	across := s.Cols / warpCols
	laneRow, laneCol := lanePlace(lane, s.LaneRows)
	myRow := warp.Div(ptx.N(across)).MulAdd(ptx.N(warpRows), laneRow.Mul(ptx.U(4)))
	myCol := warp.Rem(ptx.N(across)).MulAdd(ptx.N(warpCols), laneCol.Mul(ptx.U(4)))
	mine := s.Depth / s.Slices // steps of each
	readA := shared.At(slice.Mul(ptx.N(mine * pa.pitch())).Add(myRow))
	readB := shared.Offset(pa.size()).At(slice.Mul(ptx.N(mine * pb.pitch())).Add(myCol))

	acc := make([][]ptx.Var[ptx.F32], s.Own)
	for i := range acc {
		acc[i] = make([]ptx.Var[ptx.F32], s.Wide)
		for j := range acc[i] {
			acc[i][j] = ptx.NewVar(k, ptx.F(0))
		}
	}
	var u, v [2][]ptx.Var[ptx.F32]
	for h := range u {
		for range s.Own {
			u[h] = append(u[h], ptx.NewVar(k, ptx.F(0)))
		}
		for range s.Wide {
			v[h] = append(v[h], ptx.NewVar(k, ptx.F(0)))
		}
	}
	load := func(h, d int, at ptx.U32) {
		a, b := readA.At(at), readB.At(at)
		for i := 0; i < s.Own; i += 4 {
			for j, x := range a.Offset(d*pa.pitch() + i*s.LaneRows).Load4() {
				u[h][i+j].Set(x)
			}
		}
		for i := 0; i < s.Wide; i += 4 {
			for j, x := range b.Offset(d*pb.pitch() + i*laneCols).Load4() {
				v[h][i+j].Set(x)
			}
		}
	}
	next := func(at ptx.Var[ptx.U32]) {
		ptx.AddTo(at, ptx.N(stage))
		at.Set(ptx.Select(at.Get().Eq(ptx.N(stage*s.Stages)), ptx.U(0), at.Get()))
	}

	reading, writing := ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.N(stage*(s.Stages-1)))
	k.CopyWait(s.Stages - 2)
	k.Sync()
	load(0, 0, reading.Get())
	// A turn multiplies a step of the sum while the next terms come from shared
	// memory and a later step comes from global memory.
	turn := func(i ptx.U32) {
		for d := range mine {
			h := d & 1
			if d == mine-1 {
				k.CopyWait(s.Stages - 2)
				k.Sync()
				next(reading)
				load(1-h, 0, reading.Get())
			} else {
				load(1-h, d+1, reading.Get())
			}
			if d == 0 {
				some := i.Add(ptx.N(s.Stages - 1)).Lt(count)
				ca.bringAll(fromA.At(doneA.Get()), writing.Get(), some)
				cb.bringAll(fromB.At(doneB.Get()), writing.Get(), some)
				k.CopyCommit()
				next(writing)
				ptx.AddTo(doneA, advA)
				ptx.AddTo(doneB, advB)
			}
			for i := range s.Own {
				for j := range s.Wide {
					if i&1 == 1 { // a turn at the end of a row changes one operand only
						j = s.Wide - 1 - j
					}
					ptx.MulAddTo(acc[i][j], u[h][i].Get(), v[h][j].Get())
				}
			}
		}
	}
	if !s.Long {
		k.Count(count, turn)
	} else {
		s.inParts(k, acc, t, count, &p, turn)
	}

	if s.Slices > 1 {
		s.gather(k, acc, inSlice, slice, shared)
	}
	s.finish(k, &p, to, acc, slice, row.Add(myRow), col.Add(myCol))
}

// place returns the first row and column of the block: bands of rows of tiles,
// column by column, so that blocks that run together share operands in L2.
func (s sgemmSpec) place(k *ptx.Kernel, p *sgemmOf) (row, col ptx.U32) {
	id := k.Special(ptx.CtaidX)
	wholeBand := p.band.Mul(p.across)
	top := id.Div(wholeBand).Mul(p.band)
	inBand := id.Rem(wholeBand)
	height := p.down.Sub(top).Min(p.band)
	return top.Add(inBand.Rem(height)).Mul(ptx.N(s.Rows)), inBand.Div(height).Mul(ptx.N(s.Cols))
}

// finish adds the bias and stores what the thread has: quads of rows from row and
// of columns from col on.
func (s sgemmSpec) finish(k *ptx.Kernel, p *sgemmOf, to *sink, acc [][]ptx.Var[ptx.F32], slice, row, col ptx.U32) {
	pair, laneCols := k.Special(ptx.CtaidZ), 32/s.LaneRows
	first := pair.Mul(p.m)
	if s.Part {
		first = k.Special(ptx.CtaidY).MulAdd(k.Special(ptx.NctaidZ), pair).Mul(p.m)
	}
	put := func(r, c ptx.U32, x []ptx.F32) {
		// What is stored in one access stands in registers side by side. This
		// product lets the sums stand where no two of what a multiply-add reads
		// are of one bank of registers.
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

// lanePlace returns the row and the column of a lane in a warp of so many rows.
// Shared memory serves 16 bytes a lane in quarters of a warp, and quarters that
// want the same at once: neighbouring lanes therefore share a column.
func lanePlace(lane ptx.U32, rows int) (row, col ptx.U32) {
	switch rows {
	case 4:
		return lane.And(ptx.U(1)).Or(lane.Shr(ptx.U(3)).And(ptx.U(2))), lane.Shr(ptx.U(1)).And(ptx.U(7))
	case 8:
		return lane.Shr(ptx.U(1)).And(ptx.U(7)), lane.And(ptx.U(1)).Or(lane.Shr(ptx.U(3)).And(ptx.U(2)))
	}
	return lane.Div(ptx.N(32 / rows)), lane.Rem(ptx.N(32 / rows))
}

// inParts is turn for all steps, where after every p.run steps what was added up
// is put aside in p.parts: a float32 that adds very many terms one after the other
// is further off than the operation allows.
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

// gather adds the sums of the slices: each slice gets all of Own/Slices rows of
// every thread, and adds them in the order of the slices.
func (s sgemmSpec) gather(k *ptx.Kernel, acc [][]ptx.Var[ptx.F32], t, slice ptx.U32, shared ptx.Shared[ptx.F32]) {
	own, quads := s.Own/s.Slices, s.Wide/4
	// Place of what slice f has for slice g: for each g those of the others.
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
