package ptxkernels

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// A reduction maps each row to an element; a whole array is one row. A team of threads reduces a
// row, each thread every n-th vector. Few long rows are divided among several blocks: each stores a
// partial, and the last block to finish combines the partials in the order of the blocks, so that
// the result is deterministic.

// reduceSchedule is the schedule of a reduction.
type reduceSchedule struct {
	// Lanes is the number of threads for a row: a power of two up to 32, or all threads of a block.
	Lanes int
	// Groups is the number of rows of a block.
	Groups int
	// Width is the number of elements that a thread loads at once: 1, or 16 bytes.
	Width int
	// Batch is the number of loads that a thread starts before it waits.
	Batch int
	Load  ptx.Hint
}

func (w reduceSchedule) threads() int { return w.Lanes * w.Groups }

func (w reduceSchedule) name(parts int) string {
	s := fmt.Sprintf("%dx%d-%dw%d", w.Lanes, w.Groups, w.Batch, w.Width)
	if parts > 1 {
		s += fmt.Sprintf("-split%d", parts)
	}
	return s
}

// reduceSpec holds the parameters that specialise a kernel.
type reduceSpec struct {
	Op   string
	Type op.DType
	reduceSchedule
	// Misaligned means that rows may have any alignment.
	Misaligned bool
	// Split means that several blocks share a row.
	Split bool
	Key   string // key of the epilogue
}

var reduceKernels kernelCache[reduceSpec]

// kernel returns the kernel of s with epilogue e.
func (s reduceSpec) kernel(e *epilogue) *Kernel {
	s.Key = e.key
	return reduceKernels.of(s, func() *Kernel {
		return &Kernel{Name: "reduce_" + s.Op, Target: ptx.SM80, Block: [3]uint32{uint32(s.threads()), 1, 1}, Build: func(k *ptx.Kernel) { s.build(k, e) }}
	})
}

func init() {
	register(planReduce, op.Sum, op.Dot, op.Mean, op.Var, op.Min, op.Max, op.ArgMin, op.ArgMax, op.NormL1, op.NormL2, op.NormLinf)
}

// rowSizes returns the number of rows and their length. A reduction of all elements has one row.
func rowSizes(r *portable.Request) (rows, cols int) {
	if r.Op.Class() != op.Reduction || r.Attrs.I[0] == op.AlongRows {
		return r.In[0].Shape.Rows()
	}
	return 1, size(r.In[0].Shape)
}

func planReduce(r *portable.Request, d *Device) (*Plan, error) {
	if err := rowRequest(r, d); err != nil {
		return nil, err
	}
	rows, cols := rowSizes(r)
	if r.Post != nil && (r.Op == op.ArgMin || r.Op == op.ArgMax) {
		return nil, unsupported("an epilogue after argmin or argmax")
	}
	if cols == 0 {
		return nil, unsupported("nothing to reduce")
	}
	if r.Op == op.Var && cols <= maxResidentVar {
		return planRowsBy(r, chooseRowSchedule(r.Op, r.In[0].Type, cols, 0, d), d)
	}
	w, parts := chooseReduceSchedule(r.In[0].Type, rows, cols, d)
	return planReduceBy(r, w, parts)
}

// maxResidentVar is the length of the longest row that is kept resident for its variance. For
// longer rows, the tolerance allows a running mean.
const maxResidentVar = 8192

// freeOf returns the divisor of a variance.
func freeOf(r *portable.Request, cols int) Arg {
	return word(math.Float32bits(float32(max(cols-op.VarOptsOf(&r.Attrs).DDOF, 0))))
}

// planReduceBy plans a reduction with schedule w and parts blocks for each row.
func planReduceBy(r *portable.Request, w reduceSchedule, parts int) (*Plan, error) {
	rows, cols := rowSizes(r)
	e, err := finish(r, 1)
	if err != nil {
		return nil, err
	}
	s := reduceSpec{Op: r.Op.Name(), Type: r.In[0].Type, reduceSchedule: w, Split: parts > 1}
	s.Misaligned = rows > 1 && cols%w.Width != 0
	var args []Arg
	for i := range r.In {
		args = append(args, input(i))
	}
	args = append(append(args, e.args()...), word(uint32(rows)), word(uint32(cols)), word(math.Float32bits(float32(cols))), freeOf(r, cols))
	p := &Plan{Variant: w.name(parts)}
	stage := Stage{Kernel: s.kernel(e), Zero: -1}
	blocks := (rows-1)/w.Groups + 1
	if s.Split {
		blocks = rows * parts
		p.Scratch = []int64{int64(4 * rows), int64(4 * rows * parts * s.words())}
		stage.Zero = 0
		args = append(args, scratch(0), scratch(1), word(uint32(parts)))
	}
	stage.Grid, stage.Args = [3]uint32{uint32(blocks), 1, 1}, args
	p.Stages = []Stage{stage}
	return p, nil
}

// chooseReduceSchedule returns the schedule for rows of cols elements, and the number of blocks for
// a row.
func chooseReduceSchedule(t op.DType, rows, cols int, d *Device) (w reduceSchedule, parts int) {
	v := rowVector(t)
	w = reduceSchedule{Lanes: 256, Groups: 1, Width: v, Batch: 4, Load: ptx.Once}
	if cols%v != 0 && cols <= 32 {
		// Short misaligned rows: each thread reads its row element by element, and the L1 cache
		// serves adjacent threads.
		return reduceSchedule{Lanes: 1, Groups: 256, Width: 1, Batch: min(cols, 16), Load: ptx.Cached}, 1
	}
	blocks := 4 * d.Multiprocessors
	if rows < blocks {
		if parts = min(blocks/rows, cols/(w.Lanes*w.Width*w.Batch)); parts > 1 {
			return w, parts
		}
	}
	if cols > 8*32*v*w.Batch {
		return w, 1
	}
	w.Lanes = 32
	for w.Lanes > 1 && w.Lanes/2*v*2 >= cols {
		w.Lanes, w.Batch = w.Lanes/2, 2
	}
	w.Groups = 256 / w.Lanes
	return w, 1
}

// build writes the kernel.
func (s reduceSpec) build(k *ptx.Kernel, fin *epilogue) {
	k.Block(s.threads(), 1, 1)
	x := ptx.GlobalParam[ptx.B32](k, "x")
	arrays := []ptx.Global[ptx.B32]{x}
	if s.Op == "dot" {
		arrays = append(arrays, ptx.GlobalParam[ptx.B32](k, "y"))
	}
	out := fin.sink(k)
	rows, cols := ptx.Param[ptx.U32](k, "rows"), ptx.Param[ptx.U32](k, "cols")
	count, free := ptx.Param[ptx.F32](k, "count"), ptx.Param[ptx.F32](k, "free")
	var counters, states ptx.Global[ptx.U32]
	parts := ptx.U(1)
	if s.Split {
		counters, states = ptx.GlobalParam[ptx.U32](k, "counters"), ptx.GlobalParam[ptx.U32](k, "states")
		parts = ptx.Param[ptx.U32](k, "parts")
	}
	r := &reducer{s: &s, k: k, tid: k.Special(ptx.TidX)}
	r.lane = r.tid
	row, part := k.Special(ptx.CtaidX), ptx.U(0)
	if s.Groups > 1 {
		r.lane = r.tid.And(ptx.N(s.Lanes - 1))
		row = row.MulAdd(ptx.N(s.Groups), r.tid.Div(ptx.N(s.Lanes)))
	}
	if s.Split {
		part = row.Rem(parts)
		row = row.Div(parts)
	}
	is := row.Lt(rows)
	acc := s.newState(k)
	r.elements(arrays, acc, ptx.Select(is, row, ptx.U(0)).Mul(cols), ptx.Select(is, cols, ptx.U(0)), part, parts)
	v := r.groupReduce(acc.get(), s.Lanes)
	finish := func(v []ptx.B32) {
		if s.of().places {
			ptx.Cast[ptx.B32](out.to[0]).At(row).Store(s.place(k, v, x, row, cols).B32())
			return
		}
		out.setRow(row, ptx.U(0), row, s.result(v, count, free))
	}
	if !s.Split {
		k.If(is.And(r.lane.Eq(ptx.U(0))), func() { finish(v) })
		return
	}
	all := r.combine(v, counters, states, row, part, parts)
	v = r.groupReduce(all, s.Lanes)
	k.If(r.tid.Eq(ptx.U(0)), func() { finish(v) })
}

// combine stores the partial of the block. The last block of the row returns the combination of the
// partials of all its blocks, and the others end.
func (r *reducer) combine(v []ptx.B32, counters, states ptx.Global[ptx.U32], row, part, parts ptx.U32) []ptx.B32 {
	k, s := r.k, r.s
	words := s.words()
	last := ptx.SharedArray[ptx.U32](k, "last", 1)
	mine := states.At(row.Mul(parts).Mul(ptx.N(words)))
	k.If(r.tid.Eq(ptx.U(0)), func() {
		for i := range v {
			mine.At(parts.MulAdd(ptx.N(i), part)).Store(v[i].U32())
		}
		k.FenceDevice()
		before := ptx.AtomicInc(counters.At(row), parts.Sub(ptx.U(1)))
		k.FenceDevice()
		last.Store(before)
	})
	k.Sync()
	k.ReturnIf(last.Load().Ne(parts.Sub(ptx.U(1))))
	all := s.newState(k)
	k.For(r.tid, parts, ptx.N(s.threads()), func(p ptx.U32) {
		other := make([]ptx.B32, words)
		for i := range other {
			other[i] = mine.At(parts.MulAdd(ptx.N(i), p)).Hint(ptx.L2Only).Load().B32()
		}
		all.set(s.merge(all.get(), other))
	})
	return all.get()
}

// reducer holds the state of a thread while the kernel is built.
type reducer struct {
	s         *reduceSpec
	k         *ptx.Kernel
	tid, lane ptx.U32
	combined  int // number of block-wide reductions so far
}

// elements adds to acc the thread's elements of a part of the row that begins at start. The parts
// share the whole vectors evenly; the ragged head and tail are added element by element.
func (r *reducer) elements(arrays []ptx.Global[ptx.B32], acc *reduceState, start, cols, part, parts ptx.U32) {
	s, k := r.s, r.k
	width := ptx.N(s.Width)
	head := ptx.U(0)
	if s.Misaligned {
		head = width.Sub(start.And(ptx.N(s.Width - 1))).And(ptx.N(s.Width - 1)).Min(cols)
	}
	vectors := cols.Sub(head).Div(width)
	from, to := ptx.U(0), vectors
	if s.Split {
		each := vectors.Add(parts).Sub(ptx.U(1)).Div(parts)
		from = part.Mul(each).Min(vectors)
		to = from.Add(each).Min(vectors)
	}
	stride := s.Lanes
	single := func(from, to ptx.U32) {
		k.For(from.Add(r.lane), to, ptx.N(stride), func(j ptx.U32) {
			batch := make([][][]ptx.F32, len(arrays))
			for a, x := range arrays {
				batch[a] = [][]ptx.F32{{rowElement(x, s.Type, start.Add(j), s.Load)(0)}}
			}
			s.add(acc, batch, []ptx.Pred{ptx.Is(true)}, j, 0)
		})
	}
	// Head, vectors, tail in this order: of equal elements, argmin and argmax return the first.
	if s.Misaligned {
		k.If(part.Eq(ptx.U(0)), func() { single(ptx.U(0), head) })
	}
	k.For(from.Add(r.lane), to, ptx.N(s.Batch*stride), func(i ptx.U32) {
		at := start.Add(head).Div(width).Add(i)
		batch := make([][][]ptx.F32, len(arrays))
		in := make([]ptx.Pred, s.Batch)
		for b := range in {
			in[b] = ptx.Is(true)
			if b > 0 {
				in[b] = i.Add(ptx.N(b * stride)).Lt(to)
			}
		}
		for a, x := range arrays {
			batch[a] = r.batch(x, at, in)
		}
		s.add(acc, batch, in, head.Add(i.Mul(width)), stride*s.Width)
	})
	if s.Width > 1 {
		k.If(part.Eq(parts.Sub(ptx.U(1))), func() { single(vectors.MulAdd(width, head), cols) })
	}
}

// batch loads vectors at index at and at strides of Lanes from it, if their predicate in in holds.
func (r *reducer) batch(x ptx.Global[ptx.B32], at ptx.U32, in []ptx.Pred) [][]ptx.F32 {
	s, k := r.s, r.k
	neutral := s.of().neutral
	var v [][]ptx.F32
	if s.Width == 1 {
		load := rowElement(x, s.Type, at, s.Load)
		for b := range in {
			y := ptx.NewVar(k, ptx.F(neutral))
			k.When(in[b], func() { y.Set(load(b * s.Lanes)) })
			v = append(v, []ptx.F32{y.Get()})
		}
		return v
	}
	from := x.At(at.Mul(ptx.U(4))).Hint(s.Load)
	vars := make([][4]ptx.Var[ptx.B32], len(in))
	for b := range in {
		for j := range vars[b] {
			vars[b][j] = ptx.NewVar(k, rowNeutral(s.Type, neutral))
		}
		k.When(in[b], func() {
			for j, w := range from.Offset(4 * b * s.Lanes).Load4() {
				vars[b][j].Set(w)
			}
		})
	}
	for b := range vars {
		raw := make([]ptx.B32, 4)
		for j := range raw {
			raw[j] = vars[b][j].Get()
		}
		v = append(v, unpackRow(s.Type, raw))
	}
	return v
}

// groupReduce combines the states of groups of lanes threads. The first thread of a group gets the result.
func (r *reducer) groupReduce(v []ptx.B32, lanes int) []ptx.B32 {
	s, k := r.s, r.k
	butterfly := func(v []ptx.B32, n int) []ptx.B32 {
		for d := n / 2; d > 0; d /= 2 {
			other := make([]ptx.B32, len(v))
			for i := range v {
				other[i] = ptx.ShuffleXor(v[i], ptx.N(d))
			}
			v = s.merge(v, other)
		}
		return v
	}
	v = butterfly(v, min(lanes, 32))
	if lanes <= 32 {
		return v
	}
	warps := lanes / 32
	part := ptx.SharedArray[ptx.B32](k, fmt.Sprintf("part%d", r.combined), warps*len(v))
	r.combined++
	k.If(r.tid.And(ptx.U(31)).Eq(ptx.U(0)), func() {
		for i := range v {
			part.At(r.tid.Div(ptx.U(32))).Offset(i * warps).Store(v[i])
		}
	})
	k.Sync()
	other := make([]ptx.B32, len(v))
	at := part.At(r.tid.And(ptx.N(warps - 1)))
	for i := range v {
		other[i] = at.Offset(i * warps).Load()
	}
	return butterfly(other, warps)
}
