//go:build !js || !nowebgpu

package portable

import (
	"strconv"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A reduction turns each row of cols elements into one element. The reduction of a whole array has
// one row. Lane groups reduce rows. If there are few long rows, lane groups reduce equal parts of
// them, and a second launch reduces the parts. The parts depend only on the length of a row, so
// that the results do not depend on the device.

type rowsOf struct {
	Rows, Cols int
	Bytes      int // size of an element in bytes; 0 if it does not matter
	Unit       int // elements of one load; 0 means 1
	// Ragged says that rows begin at any element and may nevertheless be read in vectors.
	Ragged bool
}

// units returns how many units a row has. For a misaligned row it is the maximum.
func (m rowsOf) units() int {
	if m.Ragged && m.Unit > 1 {
		return alignedUnits(m.Cols)
	}
	return m.Cols / max(m.Unit, 1)
}

// reduceSchedule is the schedule of a reduction.
type reduceSchedule struct {
	groupLayout
	Split bool // rows are divided into parts
}

const (
	maxParts = 1024
	// reducedParts is the maximum number of parts of a row that a single launch can reduce.
	reducedParts = 4096
	minPart      = 4096    // elements that are worth a workgroup
	longestRow   = 1 << 22 // maximum length of a row for one workgroup: see sumTerms
	// maxEach is the maximum number of elements of a row that a lane reads at once.
	maxEach = 32
)

var reduceSchedules = lazyTable[rowsOf, reduceSchedule]{make: reduceTable}

func reduceTable() (vs table[rowsOf, reduceSchedule]) {
	add := func(name string, w reduceSchedule, fits func(m rowsOf) bool) {
		w.Subgroups = true
		sub := w
		vs = append(vs, variant[rowsOf, reduceSchedule]{name + "-subgroups", func(m rowsOf, t *Target) bool { return sub.on(t) && fits(m) }, sub})
		w.Subgroups = false
		vs = append(vs, variant[rowsOf, reduceSchedule]{name, func(m rowsOf, t *Target) bool { return w.on(t) && fits(m) }, w})
	}
	team := func(lanes, groups, units int) {
		add("team"+strconv.Itoa(lanes), reduceSchedule{groupLayout: groupLayout{GroupLanes: lanes, Groups: groups}}, func(m rowsOf) bool {
			return m.units() <= lanes*units
		})
	}
	team(1, 128, 2)
	team(4, 32, 4)
	team(8, 16, 4)
	team(16, 8, 4)
	team(32, 4, 8)
	add("split", reduceSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}, Split: true}, worthSplitting)
	long := func(m rowsOf) bool { return m.Cols <= longestRow }
	add("group128", reduceSchedule{groupLayout: groupLayout{GroupLanes: 128, Groups: 1}}, func(m rowsOf) bool { return m.units() <= 128*8 })
	add("group", reduceSchedule{groupLayout: groupLayout{GroupLanes: 256, Groups: 1}}, long)
	return vs
}

func worthSplitting(m rowsOf) bool {
	return m.Cols > longestRow || m.Cols >= 2*minPart && m.Rows < 256
}

// parts returns the number of parts of a row with cols elements, at most limit, and their length.
// The last part may be shorter. The length is a multiple of the elements that a lane group reads at
// once, because a lane reads remaining units one at a time.
func parts(cols, limit int) (n, length int) {
	length = ((cols-1)/limit/minPart + 1) * minPart
	return (cols-1)/length + 1, length
}

// reduceParams are the parameters of all kernels that reduce.
type reduceParams struct {
	Rows  uint32
	Cols  uint32  // elements, or pieces, of a row
	Part  uint32  // elements that a lane group reduces
	Count float32 // elements of the whole row
	Free  float32 // number of elements in the divisor of the variance
	// The elements of each piece, and of the last piece.
	Length, Tail float32
}

// reduceSpec specialises the kernels that reduce.
type reduceSpec struct {
	Op   string
	Type op.DType
	reduceSchedule
	Pieces bool // the operands are pieces
	Unit   int  // elements of one load
	Each   int  // see stridedRange
	filled
}

// whole reports whether the kernel computes the result and not pieces of it.
func (s *reduceSpec) whole() bool { return !s.Split }

// piece is the work of a lane group: it reduces elements From to To-1 of the operand to element
// Number of the result.
type piece struct {
	Number, From, To kernel.U32
	Row              kernel.U32  // first element of the row
	Is               kernel.Bool // whether the lane group has a piece; otherwise From equals To
	end              kernel.U32  // end of memory that the lane group can read in any case
}

// units returns the units of a piece. A lane group without a piece reads valid memory.
func (c piece) units(t *laneGroup, s *reduceSpec) *stridedRange {
	unit := kernel.U(uint32(s.Unit))
	return &stridedRange{t: t, first: c.From.Div(unit), last: c.end.Div(unit), Each: s.Each, filled: s.filled}
}

// eachOf returns how many of n units each lane of the layout reads at once, and which of these
// units exist. The number is 0 if it would exceed limit.
func eachOf(n int, c groupLayout, limit int) (each int, f filled) {
	each = (n-1)/c.GroupLanes + 1
	switch {
	case each > limit:
		return 0, all
	case each*c.GroupLanes == n:
		return each, all
	}
	return each, allButLast
}

// pieceOf returns the piece of a lane group.
func pieceOf(b *kernel.Builder, p *reduceParams, t *laneGroup, split bool) piece {
	cols, size := b.U32(&p.Cols), b.U32(&p.Cols)
	row, part := t.number, kernel.U(0)
	if split {
		size = b.U32(&p.Part)
		parts := cols.Sub(kernel.U(1)).Div(size).Add(kernel.U(1))
		row, part = t.number.Div(parts), t.number.Mod(parts)
	}
	is := row.Lt(b.U32(&p.Rows))
	start := kernel.Select(is, row, kernel.U(0)).Mul(cols)
	from := start.Add(part.Mul(size))
	to := from.Add(size).Min(start.Add(cols))
	return piece{Number: t.number, From: from, To: kernel.Select(is, to, from), Row: start, Is: is, end: to}
}

// reduceFamily returns the family of reductions with kernels from m. A partial has the given number
// of components, states. empty is the result for rows without elements.
func reduceFamily(states int, empty float32, m *maker[reduceParams, reduceSpec]) *family {
	return &family{variants: append(reduceSchedules.get().names(), foldSchedules.names()...), plan: func(q *request) (*Plan, error) {
		if !q.In[0].Type.Float() || q.Inner > 0 || foldSchedules.has(q.Variant) {
			return planFold(q)
		}
		a := rowsOf{Rows: 1, Cols: size(q.In[0].Shape)}
		if q.Attrs.I[0] == op.AlongRows {
			a.Rows, a.Cols = q.In[0].Shape.Rows()
		}
		if a.Cols == 0 {
			return planFill(q, empty)
		}
		a.Unit = unitOf(q.In[0].Type, a.Cols)
		w, name, err := reduceSchedules.get().choose(q, a)
		if err != nil {
			return nil, err
		}
		w.groupLayout = w.with(&q.Target)
		var p planner
		s := reduceSpec{Op: q.Op.Name(), Type: q.In[0].Type, reduceSchedule: w, Unit: a.Unit}
		if !w.Split {
			s.Each, s.filled = eachOf(a.units(), w.groupLayout, maxEach/a.Unit)
		}
		params := reduceParams{Rows: uint32(a.Rows), Cols: uint32(a.Cols), Part: uint32(a.Cols), Count: float32(a.Cols),
			Free: float32(max(a.Cols-op.VarOptsOf(&q.Attrs).DDOF, 0))}
		operands := q.inputs()
		if w.Split {
			n, length := parts(a.Cols, reducedParts)
			params.Part = uint32(length)
			pieces := make([]Ref, states)
			for i := range pieces {
				pieces[i] = p.scratch(a.Rows * n)
			}
			p.stage(m.of(s, nil), w.groups(a.Rows*n), params, append(operands, pieces...)...)
			s.Split, s.Pieces, s.Unit, operands = false, true, 1, pieces
			s.Each, s.filled = eachOf(n, w.groupLayout, maxEach) // the second launch reads all pieces at once
			params.Cols, params.Part = uint32(n), uint32(n)
			params.Length, params.Tail = float32(length), float32(a.Cols-(n-1)*length)
		}
		p.stage(m.of(s, q.epilogue), w.groups(a.Rows), params, append(operands, q.outputs()...)...)
		return p.done(name)
	}}
}
