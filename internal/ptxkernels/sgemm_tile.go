package ptxkernels

import (
	"fmt"

	"github.com/rayo-go/rayo/ptx"
)

// sgemmTile is how a product of float32 matrices is cut. A block computes Rows by
// Cols of the result and walks the sum in steps of Depth, which it holds in shared
// memory Stages times over. A thread has Own by Wide of the result, in quads of
// four by four, and the lanes of a warp stand LaneRows by 32/LaneRows.
//
// What limits such a kernel is the number of instructions that a multiprocessor
// starts: one multiply-add a cycle needs all of them. A thread with 8 by 16 of
// the result loads 24 numbers for 128 multiply-adds, 6 instructions.
type sgemmTile struct {
	Rows, Cols, Depth int
	Own, Wide         int
	LaneRows          int
	Slices            int // groups of threads that share the steps of the sum, each its part of every step
	Stages            int
	Blocks            int // that are to fit on a multiprocessor
}

func (t sgemmTile) String() string {
	s := fmt.Sprintf("%dx%dx%d", t.Rows, t.Cols, t.Depth)
	if t.Slices > 1 {
		s += fmt.Sprintf("/%d", t.Slices)
	}
	return s
}

// group is the threads of a slice.
func (t sgemmTile) group() int { return t.Rows * t.Cols / (t.Own * t.Wide) }

func (t sgemmTile) threads() int { return t.group() * t.Slices }

// sgemmPanel is one operand's part of a stage: lines of the result's rows or
// columns, Depth of each, kept so that neighbouring lines are neighbours.
type sgemmPanel struct {
	lines, depth, threads int
	along                 bool // memory has the sum's index innermost: lines are transposed on their way
	wide                  bool // lines come in fours of 16 bytes; not if along
}

// pitch is the distance between steps of the sum in shared memory. Transposed
// lines are written by 8 steps and 4 lines at once, which four elements more put
// into 32 different banks.
func (p sgemmPanel) pitch() int {
	if p.along {
		return p.lines + 4
	}
	return p.lines
}

func (p sgemmPanel) size() int { return p.depth * p.pitch() }

// sgemmCopies is a thread's copies of a panel: sources are offsets from the
// block's first line at the first step.
type sgemmCopies struct {
	panel sgemmPanel
	from  []ptx.U32 // offsets, one for each line or step that the thread copies from
	to    ptx.Shared[ptx.F32]
	step  ptx.U32 // the thread's first step
}

// copies returns the copies of thread t of lines that are so many elements apart
// if along, else of steps that are. There are count lines from the block's first
// on; others are copied from the last.
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
		// A quotient that the assembler does not see through, as a shift: where it
		// knows the step of all threads to be 0, it keeps what it adds to addresses
		// in registers that the tile of 64 by 64 has not.
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

// atOnce is how many lines (along) or steps the block copies at once.
func (p sgemmPanel) atOnce() int {
	switch {
	case p.along:
		return p.threads / 8
	case p.wide:
		return p.threads / (p.lines / 4)
	}
	return p.threads / p.lines
}

// fits reports whether the copies come out even.
func (p sgemmPanel) fits() bool {
	n, of := p.atOnce(), p.depth
	if p.along {
		of = p.lines
	}
	return n > 0 && of%n == 0 && p.depth%8 == 0
}

// bring starts the copies of a step of the sum that begins at src, to a place of
// the stages. Steps from have on become zeros.
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

// bringAll is bring of whole steps, or of none.
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
