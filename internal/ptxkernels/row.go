package ptxkernels

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// Operations on rows read and write each element once and compute little, so memory bandwidth
// limits them if enough loads are in flight. Therefore the threads of a row load the whole row
// before they compute. They keep it in registers and, if these are too few, in shared memory. The
// length of a row decides the number of threads for a row and the number of rows for a block.

// rowSchedule is the schedule of resident rows.
type rowSchedule struct {
	// Lanes is the number of threads for a row: a power of two up to 32, or a multiple of 128,
	// which is then the whole block.
	Lanes int
	// Groups is the number of lane groups in a block, and Rows the number of rows that each group
	// holds at the same time.
	Groups, Rows int
	// Width is the number of elements that a thread loads at once: 1, or as many as fit in 4, 8 or
	// 16 bytes. Only 16 bytes are supported with shared memory, and misaligned rows with less than
	// 16 bytes only for two elements.
	Width int
	// Registers and Shared are the number of vectors (of Width elements) of a row that a thread
	// holds in registers and in shared memory.
	Registers, Shared int
	// Ring is the number of shared-memory slots of a thread, if blocks iterate over rows: the
	// resident ones and, up to Registers more, the prefetched ones. It is 0 if each block has one
	// row.
	Ring int
	// AlignedWeights means that memory holds a shifted copy of the weights for each alignment of a
	// row.
	AlignedWeights bool
	// Staged means that all rows of a block are loaded and stored together through shared memory.
	// The number of rows of a block must be a multiple of 8, Width must be 1, and there must be no
	// epilogue.
	Staged bool
	// Packed means that a register holds two 16-bit elements.
	Packed bool
	// Load and Save are the cache hints of loads and stores.
	Load, Save ptx.Hint
	// Ahead means that each block prefetches to L2 the row of a block of the next wave.
	Ahead bool
	// Blocks is the minimum number of blocks on a multiprocessor, which bounds the registers. If it
	// is 0, the assembler chooses.
	Blocks int
}

func (w rowSchedule) threads() int { return w.Lanes * w.Groups }

// room returns the length of the longest row.
func (w rowSchedule) room() int { return w.Lanes * (w.Registers + w.Shared) * w.Width }

// resident estimates the number of resident blocks on a multiprocessor.
func (w rowSchedule) resident() int {
	if w.Blocks > 0 {
		return w.Blocks
	}
	registers := 24 + 4*w.Registers
	if !w.Packed {
		registers = 24 + w.Width*w.Registers
	}
	return max(1, 65536/(registers*w.threads()))
}

// name returns the name of the schedule.
func (w rowSchedule) name() string {
	s := fmt.Sprintf("%dx%dx%d-%dw%d", w.Lanes, w.Groups, w.Rows, w.Registers, w.Width)
	if w.Shared > 0 {
		s += fmt.Sprintf("+%d", w.Shared)
	}
	if w.Ring > 0 {
		s += fmt.Sprintf("-ring%d", w.Ring)
	}
	if w.AlignedWeights {
		s += "-laid"
	}
	if w.Staged {
		s += "-staged"
	}
	if w.Packed {
		s += "-packed"
	}
	if w.Ahead {
		s += "-ahead"
	}
	if w.Blocks > 0 {
		s += fmt.Sprintf("-%d", w.Blocks)
	}
	return s
}

// rowSpec holds the parameters that specialise a kernel.
type rowSpec struct {
	Op   string
	Type op.DType
	rowSchedule
	// Misaligned means that rows may have any alignment. Then the first vector begins before the
	// row, and elements of other rows are masked.
	Misaligned bool
	// Parts says whether a block processes whole rows or parts of rows, and which step.
	Parts rowParts
	// Cluster is the number of blocks in a cluster, which share a row; 0 without clusters.
	Cluster int
	// Whole is the number of iterations in which all threads load vectors inside the row. The first
	// vector may include elements of the previous row.
	Whole   int
	Weights int    // a bit for each operand other than x
	Key     string // key of the epilogue
}

var rowKernels kernelCache[rowSpec]

// kernel returns the kernel of s with epilogue e.
func (s rowSpec) kernel(e *epilogue) *Kernel {
	s.Key = e.key
	return rowKernels.of(s, func() *Kernel {
		k := &Kernel{Name: s.Op, Target: ptx.SM80, Block: [3]uint32{uint32(s.threads()), 1, 1}, Build: func(k *ptx.Kernel) { s.build(k, e) }}
		if s.Cluster > 0 {
			k.Target, k.Cluster = ptx.SM90, uint32(s.Cluster)
		}
		return k
	})
}

// inPlace reports whether the result may be the memory of the operand. The threads that write a row
// hold all of it, and if rows are aligned no other thread reads it.
func (s *rowSpec) inPlace(r *portable.Request) bool {
	return !s.Misaligned && r.Op.Class() == op.Row && r.Post == nil
}

func (s rowSpec) build(k *ptx.Kernel, e *epilogue) {
	switch s.Op {
	case "softmax", "log_softmax":
		s.softmax(k, e)
	case "layer_norm", "rms_norm":
		s.norm(k, e)
	case "var":
		s.variance(k, e)
	case layWeights:
		s.lay(k)
	}
}

// rowVector returns the number of elements of a type in 16 bytes.
func rowVector(t op.DType) int { return 16 / t.Size() }

func init() { register(planRows, op.Softmax, op.LogSoftmax, op.LayerNorm, op.RMSNorm) }

// rowRequest returns an error if no row kernel supports the request.
func rowRequest(r *portable.Request, d *Device) error {
	if d.Target < ptx.SM80 {
		return unsupported("a device below %v", ptx.SM80)
	}
	switch t := r.In[0].Type; t {
	case op.F32, op.F16, op.BF16:
		for _, x := range r.In[1:] {
			if x.Shape != nil && x.Type != t {
				return unsupported("operands of %v and %v", t, x.Type)
			}
		}
	default:
		return unsupported("rows of %v", t)
	}
	return nil
}

// planRowsBy plans an operation on rows with schedule w, which must have room for a row.
func planRowsBy(r *portable.Request, w rowSchedule, d *Device) (*Plan, error) {
	rows, cols := rowSizes(r)
	e, err := finish(r, cols)
	if err != nil {
		return nil, err
	}
	if e.exprs != nil || r.Op.Class() != op.Row {
		w.Staged = false
	}
	s := rowSpec{Op: r.Op.Name(), Type: r.In[0].Type, rowSchedule: w}
	s.Misaligned = cols%w.Width != 0
	s.Whole = min(cols/(w.Lanes*w.Width), w.Registers+w.Shared)
	p := &Plan{Variant: w.name(), InPlace: s.inPlace(r)}
	args := append(append(s.operands(r, p), e.args()...), word(uint32(rows)), word(uint32(cols)))
	switch r.Op {
	case op.LayerNorm, op.RMSNorm:
		args = append(args, word(math.Float32bits(op.NormOptsOf(&r.Attrs).Eps)))
	case op.Var:
		args = append(args, freeOf(r, cols))
	}
	if w.Ahead {
		args = append(args, word(uint32(w.resident()*d.Multiprocessors)))
	}
	blocks := (rows-1)/(w.Groups*w.Rows) + 1
	if w.Ring > 0 {
		blocks = min(blocks, d.Multiprocessors*max(w.Blocks, 1))
	}
	p.Stages = append(p.Stages, Stage{Kernel: s.kernel(e), Grid: [3]uint32{uint32(blocks), 1, 1}, Args: args, Zero: -1})
	return p, nil
}
