package ptxkernels

import (
	"fmt"
	"math"
	"strings"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

func init() { register(planSgemm, op.MatMul) }

// sgemmSchedule is the schedule of a product: a tile, the split of K, and the operands to pack.
type sgemmSchedule struct {
	sgemmTile
	Split int
	Pack  [2]bool // whether a and b are packed first: see packSpec
}

func (w sgemmSchedule) String() string {
	s := w.sgemmTile.String()
	for i, p := range w.Pack {
		if p {
			s += "+" + "ab"[i:i+1]
		}
	}
	if w.Split > 1 {
		s += fmt.Sprintf("*%d", w.Split)
	}
	return s
}

// exactTerms is the number of terms that one float32 accumulator can add within the tolerance of
// sums, with a margin for the sum of the runs.
const exactTerms = 768

// run returns the number of steps of a tile in which an accumulator adds the given number of terms.
func (t sgemmTile) run(terms int) int { return terms * t.Slices / t.Depth }

// long reports whether the given number of steps is too long for one accumulator; then the kernel
// uses inParts.
func (t sgemmTile) long(steps, terms int) bool { return steps > t.run(terms)*4/3 }

// sgemmTiles are the candidate tiles. The rates were measured, except for the last two, which are
// for products of few rows or columns; their rates are estimates.
var sgemmTiles = []rated{
	{sgemmTile{Rows: 128, Cols: 128, Depth: 16, Own: 8, Wide: 8, LaneRows: 4, Slices: 1, Stages: 3, Blocks: 2}, 0.815, 0.74},
	{sgemmTile{Rows: 128, Cols: 64, Depth: 16, Own: 8, Wide: 8, LaneRows: 4, Slices: 1, Stages: 4, Blocks: 3}, 0.79, 0.55},
	{sgemmTile{Rows: 128, Cols: 64, Depth: 32, Own: 8, Wide: 16, LaneRows: 8, Slices: 4, Stages: 4, Blocks: 1}, 0.72, 0.72},
	{sgemmTile{Rows: 64, Cols: 64, Depth: 16, Own: 8, Wide: 8, LaneRows: 4, Slices: 1, Stages: 4, Blocks: 6}, 0.78, 0.30},
	{sgemmTile{Rows: 32, Cols: 128, Depth: 16, Own: 4, Wide: 8, LaneRows: 8, Slices: 1, Stages: 4, Blocks: 4}, 0.55, 0.30},
	{sgemmTile{Rows: 128, Cols: 32, Depth: 16, Own: 8, Wide: 4, LaneRows: 4, Slices: 1, Stages: 4, Blocks: 4}, 0.55, 0.30},
}

var sgemms kernelCache[sgemmSpec]

// sgemmKernel returns the kernel of a specialisation.
func sgemmKernel(s sgemmSpec, e *epilogue) *Kernel {
	return sgemms.of(s, func() *Kernel {
		return &Kernel{Name: "sgemm_" + strings.ReplaceAll(s.sgemmTile.String(), "/", "_"), Target: ptx.SM80, Block: [3]uint32{uint32(s.threads()), 1, 1},
			Build: func(k *ptx.Kernel) { buildSgemm(k, s, e) }}
	})
}

// sgemmRequest is a product to plan.
type sgemmRequest struct {
	*portable.Request
	d     *Device
	p     op.Product
	o     op.MatMulOpts
	e     *epilogue
	terms int // see exactTerms
}

func newSgemm(r *portable.Request, d *Device) (*sgemmRequest, error) {
	q := &sgemmRequest{Request: r, d: d, terms: exactTerms, o: op.MatMulOptsOf(&r.Attrs)}
	if r.In[0].Type != op.F32 || d.Target < ptx.SM80 {
		return nil, unsupported("sgemm needs float32 operands and sm_80")
	}
	var err error
	if q.p, err = op.MatMulOf(&r.Attrs, []op.Shape{r.In[0].Shape, r.In[1].Shape}); err != nil {
		return nil, err
	}
	if q.p.SharedB && !q.o.TransA {
		// The products share B: stack the matrices A to one taller product.
		q.p.M, q.p.Batch = q.p.Batch*q.p.M, 1
	}
	if q.p.K == 0 || q.p.K > 1<<22 || q.p.M > 1<<24 || q.p.N > 1<<24 || q.p.Batch > 1<<15 {
		return nil, unsupported("product of %d by %d by %d, %d times", q.p.M, q.p.K, q.p.N, q.p.Batch)
	}
	q.e, err = finish(r, q.p.N)
	return q, err
}

func planSgemm(r *portable.Request, d *Device) (*Plan, error) {
	q, err := newSgemm(r, d)
	if err != nil {
		return nil, err
	}
	if min(q.p.M, q.p.N) <= skinnyVectors {
		return planSkinny(r, d)
	}
	return q.plan(preferred(r, d, q.choose(), q.schedules))
}

func ceil(n, by int) int { return (n + by - 1) / by }

// plan returns the plan with schedule w.
func (q *sgemmRequest) plan(w sgemmSchedule) (*Plan, error) {
	p, t := q.p, w.sgemmTile
	plan := &Plan{Variant: w.String()}
	batchB := p.Batch
	if p.SharedB {
		batchB = 1
	}
	a, b := q.lay(0, p.M, p.Batch, !q.o.TransA, w, plan), q.lay(1, p.N, batchB, q.o.TransB, w, plan)
	if p.SharedB {
		b.stride = 0
	}
	bias := len(q.In) > 2 && q.In[2].Shape != nil
	s := sgemmSpec{sgemmTile: t, AlongA: a.along, AlongB: b.along, WideA: a.wide, WideB: b.wide, WideC: p.N%4 == 0,
		Bias: bias, key: q.e.key}
	if pa, pb := s.panels(); !pa.fits() || !pb.fits() || s.shared() > q.d.Shared {
		return nil, unsupported("tiles of %v", t)
	}
	steps := ceil(p.K, t.Depth)
	each := ceil(steps, min(w.Split, steps))
	split := ceil(steps, each)
	run := steps
	if t.long(each, q.terms) {
		s.Long, run = true, t.run(q.terms)
	}
	if s.Part = split > 1; s.Part {
		s.Bias, s.key = false, ""
	}
	across, down := ceil(p.N, t.Cols), ceil(p.M, t.Rows)
	args := []Arg{a.array, b.array}
	for _, n := range []int{p.M, p.N, p.K, across, down, min(down, 8), a.pitch, b.pitch, a.lines, b.lines, a.stride, b.stride, each} {
		args = append(args, word(uint32(n)))
	}
	args = append(args, word(math.Float32bits(1)))
	if s.Long {
		args = append(args, plan.temporary(across*down*split*p.Batch*t.Rows*t.Cols*t.Slices), word(uint32(run)))
	}
	if s.Bias {
		args = append(args, input(2))
	}
	var parts Arg
	if s.Part {
		parts = plan.temporary(split * p.Batch * p.M * p.N)
		args = append(args, parts)
	} else {
		args = append(args, q.e.args()...)
	}
	plan.Stages = append(plan.Stages, Stage{Kernel: sgemmKernel(s, q.e), Grid: [3]uint32{uint32(across * down), uint32(split), uint32(p.Batch)}, Args: args, Zero: -1})
	if s.Part {
		plan.Stages = append(plan.Stages, sumParts(op.F32, p.Batch*p.M*p.N, p.N, split, bias, parts, q.e))
	}
	return plan, nil
}

// operandLayout is the layout of an operand in memory.
type operandLayout struct {
	array  Arg
	along  bool // K-major
	wide   bool // not K-major, and rows are multiples of 16 bytes
	lines  int  // number of lines in memory
	pitch  int  // row stride
	stride int  // stride between matrices
}

// lay returns the layout of operand i. If w packs the operand, and it is not in the packed layout
// yet, lay adds the launch that packs it. lines is the number of rows or columns of the result.
func (q *sgemmRequest) lay(i, lines, batch int, along bool, w sgemmSchedule, plan *Plan) operandLayout {
	k := q.p.K
	if !w.Pack[i] || !along && lines%4 == 0 {
		o := operandLayout{array: input(i), along: along, wide: !along && lines%4 == 0, lines: lines, pitch: lines, stride: k * lines}
		if along {
			o.pitch = k
		}
		return o
	}
	rows, columns := k, lines
	if along {
		rows, columns = lines, k
	}
	pitch := packedPitch(lines)
	to := plan.temporary(batch * k * pitch)
	plan.Stages = append(plan.Stages, layOut(input(i), to, rows, columns, batch, along))
	return operandLayout{array: to, wide: true, lines: pitch, pitch: pitch, stride: k * pitch}
}

// temporary adds a temporary of n 4-byte elements.
func (p *Plan) temporary(n int) Arg {
	p.Scratch = append(p.Scratch, 4*int64(n))
	return scratch(len(p.Scratch) - 1)
}
