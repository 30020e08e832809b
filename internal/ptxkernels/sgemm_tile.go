package ptxkernels

import (
	"fmt"

	"github.com/rayo-go/rayo/ptx"
)

// sgemmTile is the tiling of a float32 product. A block computes Rows x Cols of the result, in
// steps of Depth along K; shared memory holds Stages steps. A thread computes Own x Wide of the
// result, in quads of 4 x 4. The lanes of a warp are arranged as LaneRows x 32/LaneRows.
//
// The issue rate of instructions limits such a kernel: at the peak rate, every issued instruction
// is a multiply-add. A thread with 8 x 16 results loads 24 numbers with 6 instructions for 128
// multiply-adds.
type sgemmTile struct {
	Rows, Cols, Depth int
	Own, Wide         int
	LaneRows          int
	Slices            int // groups of threads that divide each step along K
	Stages            int
	Blocks            int // minimum number of blocks on a multiprocessor
}

func (t sgemmTile) String() string {
	s := fmt.Sprintf("%dx%dx%d", t.Rows, t.Cols, t.Depth)
	if t.Slices > 1 {
		s += fmt.Sprintf("/%d", t.Slices)
	}
	return s
}

// group is the number of threads in a slice.
func (t sgemmTile) group() int { return t.Rows * t.Cols / (t.Own * t.Wide) }

func (t sgemmTile) threads() int { return t.group() * t.Slices }

// sgemmPanel is the part of a stage for one operand: depth elements of each line, which is a row or
// a column of the result. Shared memory has adjacent lines in adjacent words.
type sgemmPanel struct {
	lines, depth, threads int
	along                 bool // global memory is K-major: the copies transpose
	wide                  bool // copies of 16 bytes load four lines; not if along
}

// pitch is the stride of positions along K in shared memory. Transposing copies write 8 positions
// of 4 lines at once; a padding of four elements puts them into 32 different banks.
func (p sgemmPanel) pitch() int {
	if p.along {
		return p.lines + 4
	}
	return p.lines
}

func (p sgemmPanel) size() int { return p.depth * p.pitch() }

// sgemmCopies holds a thread's copies of a panel. Sources are offsets from the block's first line
// at the first position along K.
type sgemmCopies struct {
	panel sgemmPanel
	from  []ptx.U32 // offsets of the lines (along) or of the positions along K that the thread copies
	to    ptx.Shared[ptx.F32]
	step  ptx.U32 // the thread's first position along K
}

// copies returns the copies of thread t. stride is the stride of lines if along, otherwise of
// positions along K. Only count lines exist from the block's first line on; lines after them repeat
// the last one.
func (p sgemmPanel) copies(k *ptx.Kernel, t, stride, count ptx.U32, shared ptx.Shared[ptx.F32]) sgemmCopies {
	c := sgemmCopies{panel: p}
	last := count.Sub(ptx.U(1))
	switch {
	case p.along:
		lane := t.And(ptx.U(31))
		line := t.Shr(ptx.U(5)).MulAdd(ptx.U(4), lane.Shr(ptx.U(3)))
		c.step = lane.And(ptx.U(7))
		for i := range p.lines / p.atOnce() {
			l := line.Add(ptx.N(i * p.atOnce())).Min(last)
			c.from = append(c.from, l.MulAdd(stride, c.step))
		}
		c.to = shared.At(c.step.MulAdd(ptx.N(p.pitch()), line))
	case p.wide:
		each := p.lines / 4
		line := t.Rem(ptx.N(each)).Mul(ptx.U(4))
		c.step = t.Div(ptx.N(each))
		l := line.Min(count.Sub(ptx.U(4)))
		for i := range p.depth / p.atOnce() {
			c.from = append(c.from, c.step.Add(ptx.N(i*p.atOnce())).MulAdd(stride, l))
		}
		c.to = shared.At(c.step.MulAdd(ptx.N(p.pitch()), line))
	default:
		// Hide the divisor from the assembler. If it knew that the position of all threads is 0, it
		// would keep the increments of addresses in registers, and the tile of 64 by 64 has none to
		// spare.
		line := t.Rem(ptx.N(p.lines))
		c.step = t.Div(ptx.NewVar(k, ptx.N(p.lines)).Get())
		l := line.Min(last)
		for i := range p.depth / p.atOnce() {
			c.from = append(c.from, c.step.Add(ptx.N(i*p.atOnce())).MulAdd(stride, l))
		}
		c.to = shared.At(c.step.MulAdd(ptx.N(p.pitch()), line))
	}
	return c
}

// atOnce is the number of lines (along) or positions along K that the block copies at once.
func (p sgemmPanel) atOnce() int {
	switch {
	case p.along:
		return p.threads / 8
	case p.wide:
		return p.threads / (p.lines / 4)
	}
	return p.threads / p.lines
}

// fits reports whether all threads have the same number of copies.
func (p sgemmPanel) fits() bool {
	n, of := p.atOnce(), p.depth
	if p.along {
		of = p.lines
	}
	return n > 0 && of%n == 0 && p.depth%8 == 0
}

// bring starts the copies of a step, which begins at src, to offset stage. Positions along K from
// have on become zeros.
func (c *sgemmCopies) bring(src ptx.Global[ptx.F32], stage, have ptx.U32) {
	to, p := c.to.At(stage), c.panel
	bytes := 4
	if p.wide {
		bytes = 16
	}
	size := func(step int) ptx.U32 {
		return ptx.Select(c.step.Add(ptx.N(step)).Lt(have), ptx.N(bytes), ptx.U(0))
	}
	if p.along {
		for i := range c.from {
			from := src.At(c.from[i])
			for j := 0; j < p.depth; j += 8 {
				ptx.CopyAsyncZero(to.Offset(j*p.pitch()+i*p.atOnce()), from.Offset(j), 4, size(j))
			}
		}
		return
	}
	for i := range c.from {
		step := i * p.atOnce()
		ptx.CopyAsyncZero(to.Offset(step*p.pitch()), src.At(c.from[i]), bytes, size(step))
	}
}

// bringAll is bring for a whole step, or for a step of zeros if some is false.
func (c *sgemmCopies) bringAll(src ptx.Global[ptx.F32], stage ptx.U32, some ptx.Pred) {
	to, p := c.to.At(stage), c.panel
	bytes := 4
	if p.wide {
		bytes = 16
	}
	n := ptx.Select(some, ptx.N(bytes), ptx.U(0))
	for i := range c.from {
		from := src.At(c.from[i])
		if !p.along {
			ptx.CopyAsyncZero(to.Offset(i*p.atOnce()*p.pitch()), from, bytes, n)
			continue
		}
		for j := 0; j < p.depth; j += 8 {
			ptx.CopyAsyncZero(to.Offset(j*p.pitch()+i*p.atOnce()), from.Offset(j), 4, n)
		}
	}
}
