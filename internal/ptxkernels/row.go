package ptxkernels

import (
	"fmt"
	"math"
	"sync"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// Operations on rows read and write each element once, and compute little: they are as
// fast as memory if enough loads are in flight. So the threads of a row read all of it
// before they compute anything, and keep it in registers, and in shared memory if the
// registers are too few. The length of a row decides the number of threads for a row and
// the number of rows for a block.

// rowSchedule is how rows are held.
type rowSchedule struct {
	// Lanes are the threads of a row: a power of two up to 32, or a multiple of
	// 128, which then are the block.
	Lanes int
	// Groups are the rows that a block has at the same time, and Rows how many of
	// them each team has.
	Groups, Rows int
	// Width is the number of elements that a thread loads at once: 1, or as many as fit in 4, 8 or
	// 16 bytes. Only 16 bytes are supported with shared memory, and misaligned rows with less than
	// 16 bytes only for two elements.
	Width int
	// Registers and Shared are how many times that a thread holds of a row.
	Registers, Shared int
	// Ring is the number of shared-memory slots of a thread, if blocks iterate over rows: the
	// resident ones and, up to Registers more, the prefetched ones. It is 0 if each block has one
	// row.
	Ring int
	// AlignedWeights says that weights are in memory once for each place of a vector where rows
	// begin, as they then lie.
	AlignedWeights bool
	// Staged means that rows are loaded and stored through shared memory, all rows of a block
	// together; their number is a multiple of 8. Width is 1 then, and there is no epilogue.
	Staged bool
	// Packed says that registers hold elements as memory does, two of 16 bits in
	// one.
	Packed bool
	// Load and Save are the cache hints of loads and stores.
	Load, Save ptx.Hint
	// Ahead means that blocks prefetch into L2 the rows of the blocks that start when the running
	// ones end.
	Ahead bool
	// Blocks is for how many on a multiprocessor there must be registers, 0 for
	// as the assembler likes.
	Blocks int
}

func (w rowSchedule) threads() int { return w.Lanes * w.Groups }

// room returns the elements that a row can have.
func (w rowSchedule) room() int { return w.Lanes * (w.Registers + w.Shared) * w.Width }

// resident returns about how many blocks a multiprocessor has at the same time.
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

// name identifies the schedules.
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

// rowSpec is what kernels that hold rows are specialised by.
type rowSpec struct {
	Op   string
	Type op.DType
	rowSchedule
	// Misaligned means that rows may have any alignment: vectors begin before the row then, and
	// elements of other rows are masked out.
	Misaligned bool
	// Parts says whether blocks have rows or parts of them, and which of the work
	// they do.
	Parts rowParts
	// Cluster is how many blocks have the parts of a row if they are a cluster.
	Cluster int
	// Whole is the number of iterations in which all threads load vectors inside the row, except
	// for elements of the row before.
	Whole   int
	Weights int    // a bit for each operand beside x
	Key     string // of the epilogue
}

// rowKernels are the kernels of each specialisation.
var rowKernels = struct {
	sync.Mutex
	of map[rowSpec]*Kernel
}{of: map[rowSpec]*Kernel{}}

// maxRowKernels bounds the kernels with epilogues that are kept, together with
// the others; beyond it they are made anew.
const maxRowKernels = 2048

// kernel returns the kernel for s that ends as e says.
func (s rowSpec) kernel(e *epilogue) *Kernel {
	s.Key = e.key
	rowKernels.Lock()
	defer rowKernels.Unlock()
	k := rowKernels.of[s]
	if k == nil {
		if len(rowKernels.of) >= maxRowKernels {
			clear(rowKernels.of)
		}
		k = &Kernel{Name: s.Op, Target: ptx.SM80, Block: [3]uint32{uint32(s.threads()), 1, 1}, Build: func(k *ptx.Kernel) { s.build(k, e) }}
		if s.Cluster > 0 {
			k.Target, k.Cluster = ptx.SM90, uint32(s.Cluster)
		}
		rowKernels.of[s] = k
	}
	return k
}

// inPlace reports whether rows may be written where they were: each is held by the
// threads that write it, and where rows begin with a vector nobody else reads it.
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

// rowVector returns how many elements of a type have 16 bytes.
func rowVector(t op.DType) int { return 16 / t.Size() }

func init() { register(planRows, op.Softmax, op.LogSoftmax, op.LayerNorm, op.RMSNorm) }

// rowRequest returns an error for requests that no kernel of rows takes.
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

// planRowsBy plans an operation on rows that a way has room for.
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
