package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A reduction is rows of cols elements that become one element each; of a whole
// array, one row. Teams reduce rows, or where there are few long rows, equal
// parts of them: a second launch then reduces the parts. The parts depend on the
// length of a row alone, so that results do not depend on the device.

type rowsOf struct{ Rows, Cols int }

// reduceWay is how a reduction is divided.
type reduceWay struct {
	crew
	Split bool // rows into parts
}

const (
	maxParts   = 1024
	leastPart  = 4096    // elements that are worth a workgroup
	longestRow = 1 << 22 // for one workgroup: see sumTurns
)

var reduceWays = table[rowsOf, reduceWay]{
	{"quad", func(m rowsOf, t *Target) bool { return m.Cols <= 16 }, reduceWay{crew: crew{Team: 4, Teams: 32}}},
	{"team", func(m rowsOf, t *Target) bool { return m.Cols <= 256 }, reduceWay{crew: crew{Team: 32, Teams: 4}}},
	{"split-subgroups", func(m rowsOf, t *Target) bool { return t.Subgroups && worthSplitting(m) }, reduceWay{crew{256, 1, true}, true}},
	{"split", func(m rowsOf, t *Target) bool { return worthSplitting(m) }, reduceWay{crew{256, 1, false}, true}},
	{"group-subgroups", func(m rowsOf, t *Target) bool { return t.Subgroups && m.Cols <= longestRow }, reduceWay{crew: crew{256, 1, true}}},
	{"group", func(m rowsOf, t *Target) bool { return m.Cols <= longestRow }, reduceWay{crew: crew{256, 1, false}}},
}

func worthSplitting(m rowsOf) bool {
	return m.Cols > longestRow || m.Cols >= 2*leastPart && m.Rows < 256
}

// parts returns how many parts a row of cols elements has, and their length:
// the last part may be shorter.
func parts(cols int) (n, length int) {
	length = max(leastPart, (cols-1)/maxParts+1)
	length = (length + 3) &^ 3 // for vectors
	return (cols-1)/length + 1, length
}

// reduceParams are the parameters of every kernel that reduces.
type reduceParams struct {
	Rows  uint32
	Cols  uint32  // elements of a row, or pieces
	Part  uint32  // of these, what a team reduces
	Count float32 // elements of the whole row
	Free  float32 // of these, those that the variance is divided by
	// Of the pieces that are reduced, the elements of each and of the last.
	Length, Tail float32
}

// reduceSpec is what kernels that reduce are specialised by.
type reduceSpec struct {
	Op   string
	Type op.DType
	reduceWay
	Pieces bool // the operands are pieces
	Wide   bool // the operands are read as vectors of four
}

// vector returns the components that are read at once.
func (s *reduceSpec) vector() int {
	if s.Wide {
		return 4
	}
	return 1
}

// whole reports whether the kernel gives the result, not pieces of it.
func (s *reduceSpec) whole() bool { return !s.Split }

// piece is what a team reduces: elements From to To of the operand, which become
// element Number of the result.
type piece struct {
	Number, From, To kernel.U32
	Row              kernel.U32  // the first element of the row
	Is               kernel.Bool // the team has something to do; else From is To
}

// each runs f for what a lane reads of a piece: vectors of so many elements.
func (c piece) each(t *team, vector int, f func(i kernel.U32)) {
	from, to := c.vectors(vector)
	t.b.ForStep(from.Add(t.lane), to, kernel.U(uint32(t.Team)), f)
}

// vectors returns the piece counted in vectors.
func (c piece) vectors(n int) (from, to kernel.U32) {
	return c.From.Div(kernel.U(uint32(n))), c.To.Div(kernel.U(uint32(n)))
}

// pieceOf returns the piece of a team.
func pieceOf(b *kernel.Builder, p *reduceParams, t *team, split bool) piece {
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
	return piece{Number: t.number, From: from, To: kernel.Select(is, to, from), Row: start, Is: is}
}

// reduceFamily returns the family of reductions whose kernels m makes: their
// pieces consist of as many numbers as states says. empty is the result of no
// elements.
func reduceFamily(states int, empty float32, m *maker[reduceParams, reduceSpec]) *family {
	return &family{variants: reduceWays.names(), plan: func(q *request) (*Plan, error) {
		a := rowsOf{1, size(q.In[0].Shape)}
		if q.Attrs.I[0] == op.AlongRows {
			a.Rows, a.Cols = q.In[0].Shape.Rows()
		}
		if a.Cols == 0 {
			return planFill(q, empty)
		}
		w, name, err := reduceWays.choose(q, a)
		if err != nil {
			return nil, err
		}
		var p planner
		s := reduceSpec{Op: q.Op.Name(), Type: q.In[0].Type, reduceWay: w}
		s.Wide = states < 3 && s.Type == op.F32 && a.Cols%4 == 0
		params := reduceParams{Rows: uint32(a.Rows), Cols: uint32(a.Cols), Part: uint32(a.Cols), Count: float32(a.Cols),
			Free: float32(max(a.Cols-op.VarOptsOf(&q.Attrs).DDof, 0))}
		operands := q.inputs()
		if w.Split {
			n, length := parts(a.Cols)
			params.Part = uint32(length)
			pieces := make([]Ref, states)
			for i := range pieces {
				pieces[i] = p.scratch(a.Rows * n)
			}
			p.stage(m.of(s, nil), w.groups(a.Rows*n), params, append(operands, pieces...)...)
			s.Split, s.Pieces, s.Wide, operands = false, true, false, pieces
			params.Cols, params.Part = uint32(n), uint32(n)
			params.Length, params.Tail = float32(length), float32(a.Cols-(n-1)*length)
		}
		p.stage(m.of(s, q.epilogue), w.groups(a.Rows), params, append(operands, q.outputs()...)...)
		return p.done(name)
	}}
}
