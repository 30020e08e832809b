package ptxkernels

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// mmaSpec is a product with the mma instruction, for sm_80 and later; float32 is multiplied as
// TF32. A block computes Rows x Cols, and each warp keeps High x Wide of these in registers.
// Asynchronous copies load tiles into a ring of stages.
type mmaSpec struct {
	Type           op.DType
	TransA, TransB bool // as in op.MatMulOpts
	Rows, Cols     int
	High, Wide     int // multiples of 16
	Stages         int
	Bias           bool
	// Key is the key of the epilogue, "" for none; Direct means that the stores of the epilogue
	// write the results. Odd means that rows of the result have an odd number of elements.
	Key         string
	Direct, Odd bool
}

// mmaLine is the number of bytes along K in a stage, for each row of A or column of B.
const mmaLine = 64

// depth is the number of elements along K in a stage.
func (s *mmaSpec) depth() int { return mmaLine / s.Type.Size() }

// piece is the number of elements in 16 bytes.
func (s *mmaSpec) piece() int { return 16 / s.Type.Size() }

func (s *mmaSpec) threads() int { return s.Rows / s.High * (s.Cols / s.Wide) * 32 }

func (s *mmaSpec) String() string {
	return fmt.Sprintf("mma%dx%d_s%d", s.Rows, s.Cols, s.Stages)
}

var mmaKernels kernelCache[mmaSpec]

// kernel returns the kernel with epilogue e; e is nil for none.
func (s mmaSpec) kernel(e *epilogue) *Kernel {
	return mmaKernels.of(s, func() *Kernel {
		name := s.Type.String()
		if s.Type == op.F32 {
			name = "tf32"
		}
		return &Kernel{Name: "matmul_" + name + "_" + s.String(), Target: ptx.SM80,
			Block: [3]uint32{uint32(s.threads()), 1, 1}, Build: func(k *ptx.Kernel) { s.build(k, e) }}
	})
}

// mmaTile is a tile of an operand in shared memory: lines of pieces of 16 bytes. If along is set, a
// line runs along K; otherwise there is one line for each position along K.
type mmaTile struct {
	s           *mmaSpec
	k           *ptx.Kernel
	along       bool
	side        int // rows of A or columns of B
	at          ptx.Shared[ptx.B32]
	from        ptx.Global[ptx.B32]
	stride      ptx.U32 // elements between lines in memory
	first, size ptx.U32 // first row of A or column of B, and number of rows or columns of the matrix
	depth       ptx.U32 // K
}

// line is the number of pieces in a line.
func (t *mmaTile) line() int {
	if t.along {
		return mmaLine / 16
	}
	return t.side / t.s.piece()
}

// words is the size of the tile in a stage, in words.
func (t *mmaTile) words() int {
	if t.single() {
		return t.pitch() * t.lines()
	}
	return t.side * mmaLine / 4
}

// single reports whether lanes read the float32 elements of a tile one by one, because ldmatrix
// transposes only matrices of 16-bit elements.
func (t *mmaTile) single() bool { return t.s.Type == op.F32 && !t.along }

// pitch is the distance in words between lines of a tile for which single is true. The lanes of a
// warp read eight adjacent words in each of four lines at once; with this pitch they are in
// different banks.
func (t *mmaTile) pitch() int { return t.side + 8 }

// place returns the position of a piece, in words. Pieces are permuted (swizzled), so that the same
// piece of eight adjacent lines is in eight different groups of banks.
func (t *mmaTile) place(line, piece ptx.U32) ptx.U32 {
	if t.single() {
		return line.MulAdd(ptx.N(t.pitch()), piece.Mul(ptx.U(4)))
	}
	turn := line.And(ptx.U(7))
	if t.along { // two lines fill all banks
		turn = line.Shr(ptx.U(1)).And(ptx.U(3))
	}
	return line.MulAdd(ptx.N(t.line()), piece.Xor(turn)).Mul(ptx.U(4))
}

// pieceOf describes a piece that a thread copies in each step.
type pieceOf struct {
	has  ptx.Pred // whether this thread has the piece
	all  bool     // all threads have the piece
	from ptx.U32  // element of the first step
	to   ptx.U32  // word of the stage
	left ptx.U32  // the end along K if pieces run along K, otherwise the bytes to copy; 0 if unused
	z    ptx.U32  // position along K in the first step
}

// pieces returns the pieces that the thread copies.
func (t *mmaTile) pieces(tid ptx.U32) (all []pieceOf) {
	n, each := t.line()*t.lines(), ptx.N(t.s.piece())
	for e := 0; e < n; e += t.s.threads() {
		i := tid.Add(ptx.N(e))
		line, piece := i.Div(ptx.N(t.line())), i.Rem(ptx.N(t.line()))
		p := pieceOf{has: i.Lt(ptx.N(n)), all: e+t.s.threads() <= n, to: t.place(line, piece)}
		if t.along {
			outer := t.first.Add(line)
			p.z = piece.Mul(each)
			p.from = outer.Min(t.size.Sub(ptx.U(1))).MulAdd(t.stride, p.z)
			p.left = ptx.Select(outer.Lt(t.size), t.depth, ptx.U(0))
		} else {
			inner := t.first.Add(piece.Mul(each))
			p.z = line
			p.from = line.MulAdd(t.stride, inner)
			p.left = t.size.Sub(inner.Min(t.size)).Min(each).Mul(ptx.N(t.s.Type.Size()))
		}
		all = append(all, p)
	}
	return all
}

// bring starts the copies of the pieces of a step to a stage.
func (t *mmaTile) bring(all []pieceOf, stage, step ptx.U32) {
	z := step.Mul(ptx.N(t.s.depth()))
	for _, p := range all {
		var src, left ptx.U32
		if t.along {
			src = p.from.Add(z)
			left = p.left.Sub(p.z.Add(z).Min(p.left)).Min(ptx.N(t.s.piece())).Mul(ptx.N(t.s.Type.Size()))
		} else {
			src = z.MulAdd(t.stride, p.from)
			left = ptx.Select(p.z.Add(z).Lt(t.depth), p.left, ptx.U(0))
		}
		// A copy of 0 bytes accepts any address.
		from := t.s.at(t.from, src)
		to := t.at.At(stage.MulAdd(ptx.N(t.words()), p.to))
		if p.all {
			ptx.CopyAsyncZero(to, from, 16, left)
		} else {
			t.k.If(p.has, func() { ptx.CopyAsyncZero(to, from, 16, left) })
		}
	}
}

// at returns the address of element i of a matrix.
func (s *mmaSpec) at(p ptx.Global[ptx.B32], i ptx.U32) ptx.Global[ptx.B32] {
	if s.Type == op.F32 {
		return p.At(i)
	}
	return ptx.Cast[ptx.B32](ptx.Cast[ptx.U16](p).At(i))
}

// matrix returns the matrix of an operand that begins at element n*next.
func (s *mmaSpec) matrix(p ptx.Global[ptx.B32], n, next ptx.U32) ptx.Global[ptx.B32] {
	if s.Type == op.F32 {
		return p.At64(n.MulWide(next))
	}
	return ptx.Cast[ptx.B32](ptx.Cast[ptx.U16](p).At64(n.MulWide(next)))
}

// lines is the number of lines in the tile.
func (t *mmaTile) lines() int {
	if t.along {
		return t.side
	}
	return t.s.depth()
}

// load returns four matrices of a stage, each of 8 rows (or columns) by 16 bytes along K: at x and
// x+8, and at piece z and the next piece along K. If across is set, the second matrix is at x+8 and
// the third at the next piece; otherwise the other way round.
func (t *mmaTile) load(stage ptx.U32, lane ptx.U32, x ptx.U32, z int, across bool) [4]ptx.B32 {
	if !t.single() {
		v := t.matrices(stage, lane, x, z, across)
		if t.s.Type == op.F32 {
			for i := range v {
				v[i] = toTF32(v[i])
			}
		}
		return v
	}
	from := t.at.At(stage.Add(lane.And(ptx.U(3)).MulAdd(ptx.N(t.pitch()), lane.Shr(ptx.U(2)))).Add(x))
	var v [4]ptx.B32
	for i := range v {
		dx, dz := i>>1, i&1
		if across {
			dx, dz = dz, dx
		}
		v[i] = toTF32(from.Offset((z+4*dz)*t.pitch() + 8*dx).Load())
	}
	return v
}

// toTF32 returns a number whose upper 19 bits, the only bits that TF32 products use, are one of the
// two TF32 numbers next to x. It adds a third to two thirds of their distance, so that truncation
// leaves at most that error. Rounding to nearest would take five instructions, or would convert the
// hardware's NaN to 0.
func toTF32(x ptx.B32) ptx.B32 {
	f := x.Float()
	return f.Fma(ptx.F(0x1p-10/3), f).Bits()
}

// matrices is load with one ldmatrix instruction.
func (t *mmaTile) matrices(stage ptx.U32, lane ptx.U32, x ptx.U32, z int, across bool) [4]ptx.B32 {
	low, bit3, bit4 := lane.And(ptx.U(7)), lane.Shr(ptx.U(3)).And(ptx.U(1)), lane.Shr(ptx.U(4))
	dx, dz := bit4, bit3
	if across {
		dx, dz = bit3, bit4
	}
	var line, piece ptx.U32
	if t.along {
		line, piece = x.Add(dx.MulAdd(ptx.U(8), low)), dz.Add(ptx.N(z/t.s.piece()))
	} else {
		line, piece = dz.MulAdd(ptx.U(8), low).Add(ptx.N(z)), x.Shr(ptx.U(3)).Add(dx)
	}
	return ptx.LoadMatrix4(t.at.At(stage.Add(t.place(line, piece))), !t.along)
}

// build writes the kernel. The fragment layouts are in the PTX manual, "Matrix Fragments for
// mma.m16n8k16" and "for mma.m16n8k8".
func (s mmaSpec) build(k *ptx.Kernel, e *epilogue) {
	k.Block(s.threads(), 1, 1)
	k.MinBlocks(max(1, 512/s.threads()))
	ta := &mmaTile{s: &s, k: k, along: !s.TransA, side: s.Rows, from: ptx.GlobalParam[ptx.B32](k, "a")}
	tb := &mmaTile{s: &s, k: k, along: s.TransB, side: s.Cols, from: ptx.GlobalParam[ptx.B32](k, "b")}
	out := ptx.GlobalParam[ptx.U16](k, "c")
	m, n, depth := ptx.Param[ptx.U32](k, "m"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "k")
	ta.stride, tb.stride = ptx.Param[ptx.U32](k, "stride_a"), ptx.Param[ptx.U32](k, "stride_b")
	// Elements between the matrices of an operand, 0 if all products share one matrix.
	nextA, nextB := ptx.Param[ptx.U32](k, "next_a"), ptx.Param[ptx.U32](k, "next_b")
	down, across, high := ptx.Param[ptx.U32](k, "down"), ptx.Param[ptx.U32](k, "across"), ptx.Param[ptx.U32](k, "high")
	f := newFinisher(k, s.Type, s.Bias, e, m, n, s.Odd)
	k.Align(128)
	ta.at = ptx.DynamicShared[ptx.B32](k, s.Stages*ta.words())
	tb.at = ptx.DynamicShared[ptx.B32](k, s.Stages*tb.words())

	tid, lane := k.Special(ptx.TidX), k.Special(ptx.LaneID)
	i, j, batch := bandTile(k.Special(ptx.CtaidX), down, across, high)
	row, col := i.Mul(ptx.N(s.Rows)), j.Mul(ptx.N(s.Cols))
	ta.first, ta.size, ta.depth = row, m, depth
	tb.first, tb.size, tb.depth = col, n, depth
	ta.from, tb.from = s.matrix(ta.from, batch, nextA), s.matrix(tb.from, batch, nextB)

	warp := tid.Shr(ptx.U(5))
	warps := ptx.N(s.Cols / s.Wide)
	mine, mineB := warp.Div(warps).Mul(ptx.N(s.High)), warp.Rem(warps).Mul(ptx.N(s.Wide))
	acc := s.accumulators(k)
	steps := depth.Add(ptx.N(s.depth() - 1)).Div(ptx.N(s.depth()))
	as, bs := ta.pieces(tid), tb.pieces(tid)
	bring := func(stage, step ptx.U32) {
		k.If(step.Lt(steps), func() {
			ta.bring(as, stage, step)
			tb.bring(bs, stage, step)
		})
		k.CopyCommit()
	}
	for i := range s.Stages - 1 {
		bring(ptx.N(i), ptx.N(i))
	}
	stage := ptx.NewVar(k, ptx.U(0))
	k.Count(steps, func(step ptx.U32) {
		k.CopyWait(s.Stages - 2)
		k.Sync() // the tiles are loaded, and no warp still reads the tiles of the previous step
		now := stage.Get()
		before := ptx.Select(now.Eq(ptx.U(0)), ptx.N(s.Stages-1), now.Sub(ptx.U(1)))
		bring(before, step.Add(ptx.N(s.Stages-1)))
		for z := 0; z < s.depth(); z += 2 * s.piece() {
			var b [][2]ptx.B32
			for j := 0; j < s.Wide; j += 16 {
				v := tb.load(now.Mul(ptx.N(tb.words())), lane, mineB.Add(ptx.N(j)), z, false)
				b = append(b, [2]ptx.B32{v[0], v[1]}, [2]ptx.B32{v[2], v[3]})
			}
			for i := range acc {
				a := ta.load(now.Mul(ptx.N(ta.words())), lane, mine.Add(ptx.N(16*i)), z, true)
				for j := range acc[i] {
					s.product(k, &acc[i][j], a, b[j])
				}
			}
		}
		after := now.Add(ptx.U(1))
		stage.Set(ptx.Select(after.Eq(ptx.N(s.Stages)), ptx.U(0), after))
	})
	k.CopyWaitAll()
	row, col = row.Add(mine).Add(lane.Shr(ptx.U(2))), col.Add(mineB).Add(lane.And(ptx.U(3)).Mul(ptx.U(2)))
	s.store(&f, acc, out, batch, row, col)
}

// accumulators returns the sums of a warp, by tiles of 16 rows and 8 columns.
func (s *mmaSpec) accumulators(k *ptx.Kernel) [][][4]ptx.Var[ptx.F32] {
	acc := make([][][4]ptx.Var[ptx.F32], s.High/16)
	for i := range acc {
		acc[i] = make([][4]ptx.Var[ptx.F32], s.Wide/8)
		for j := range acc[i] {
			for e := range acc[i][j] {
				acc[i][j][e] = ptx.NewVar(k, ptx.F(0))
			}
		}
	}
	return acc
}

// store stores the sums of a warp. Those of the lane begin at row and col.
func (s *mmaSpec) store(f *finisher, acc [][][4]ptx.Var[ptx.F32], out ptx.Global[ptx.U16], batch, row, col ptx.U32) {
	for i := range acc {
		for j := range acc[i] {
			for h := range 2 {
				x, y := acc[i][j][2*h].Get(), acc[i][j][2*h+1].Get()
				r, c := row.Add(ptx.N(16*i+8*h)), col.Add(ptx.N(8*j))
				if s.Direct {
					f.put(batch, r, c, x, y)
				} else {
					f.store(out, batch, r, c, x, y)
				}
			}
		}
	}
}

func (s *mmaSpec) product(k *ptx.Kernel, acc *[4]ptx.Var[ptx.F32], a [4]ptx.B32, b [2]ptx.B32) {
	switch s.Type {
	case op.F32:
		k.MmaTF32(acc, a, b)
		return
	case op.F16:
		k.MmaF16(acc, [4]ptx.F16x2{a[0].F16x2(), a[1].F16x2(), a[2].F16x2(), a[3].F16x2()}, [2]ptx.F16x2{b[0].F16x2(), b[1].F16x2()})
		return
	}
	k.MmaBF16(acc, [4]ptx.BF16x2{a[0].BF16x2(), a[1].BF16x2(), a[2].BF16x2(), a[3].BF16x2()}, [2]ptx.BF16x2{b[0].BF16x2(), b[1].BF16x2()})
}

// mmaTiles are the candidate tiles. The number is the utilisation of the tensor cores, relative to
// the best tile.
var mmaTiles = []struct {
	mmaSpec
	busy float64
}{
	{mmaSpec{Rows: 128, Cols: 128, High: 64, Wide: 32, Stages: 4}, 1},
	{mmaSpec{Rows: 64, Cols: 64, High: 32, Wide: 32, Stages: 4}, 0.7},
}

// warps plans a product for sm_80 and later.
func (p *halfProduct) warps(d *Device) (*Plan, error) {
	best, minimum := 0, math.Inf(1)
	for i, s := range mmaTiles {
		// A multiprocessor runs two blocks of 256 threads at a time, or more smaller blocks.
		tiles := p.Batch * ceilDiv(p.M, s.Rows) * ceilDiv(p.N, s.Cols)
		rounds := float64(ceilDiv(tiles, d.Multiprocessors*512/s.threads()) * 512 / s.threads())
		if t := rounds * float64(s.Rows*s.Cols) / s.busy; t < minimum {
			best, minimum = i, t
		}
	}
	return p.warpsOf(mmaTiles[best].mmaSpec)
}

// warpsOf plans a product with tiles of one kind.
func (p *halfProduct) warpsOf(s mmaSpec) (*Plan, error) {
	s.Type, s.TransA, s.TransB, s.Bias, s.Odd = p.Type, p.TransA, p.TransB, p.Bias, p.N%2 != 0
	if p.after != nil {
		s.Key, s.Direct = p.after.key, p.direct()
	}
	plan := &Plan{Variant: s.String()}
	a, b, err := p.aligned(plan, false, false, false)
	if err != nil {
		return nil, err
	}
	down, across := ceilDiv(p.M, s.Rows), ceilDiv(p.N, s.Cols)
	next := func(m matrix) Arg {
		if m.count == 1 {
			return word(0)
		}
		return word(uint32(m.outer * m.stride))
	}
	args := []Arg{a.address(), b.address(), output(0),
		word(uint32(p.M)), word(uint32(p.N)), word(uint32(p.K)), word(uint32(a.stride)), word(uint32(b.stride)), next(a), next(b),
		word(uint32(down)), word(uint32(across)), word(uint32(min(down, max(1, 1024/s.Rows))))}
	plan.Stages = append(plan.Stages, Stage{Kernel: s.kernel(p.after), Grid: [3]uint32{uint32(p.Batch * down * across), 1, 1}, Zero: -1, Args: p.finishing(args)})
	return plan, nil
}

// direct reports whether the stores of the epilogue must write the results: it has several results,
// or a result of another type than the operands.
func (p *halfProduct) direct() bool {
	return p.after != nil && (len(p.after.out) != 1 || p.after.out[0] != p.Type)
}

// finishing returns the arguments followed by the arguments of a finisher.
func (p *halfProduct) finishing(args []Arg) []Arg {
	if p.Bias {
		args = append(args, input(2))
	}
	if p.after != nil {
		args = append(args, p.after.args()...)
	}
	return args
}
