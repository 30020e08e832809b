//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A workgroup moves one square tile. It reads rows and writes columns, so that neighbouring lanes
// access neighbouring elements in both arrays.
const (
	tileSide = 32
	tileRows = 8 // rows that the workgroup moves at once
)

type transposeParams struct {
	Matrices, Rows, Cols uint32
	Across, Down         uint32 // number of tiles
}

var transposes = maker[transposeParams, op.DType]{name: "transpose", build: func(b *kernel.Builder, p *transposeParams, t op.DType, e *epilogue) {
	b.LocalSize(tileSide, tileRows, 1)
	x := inputBits(b, "x", t)
	put := e.bits(b, t)
	// pitch is one more than the width of the tile, so that the elements of a column are in
	// different banks.
	const pitch = tileSide + 1
	tile := kernel.Shared[kernel.U32](b, "tile", tileSide*pitch)

	rows, cols, across := b.U32(&p.Rows), b.U32(&p.Cols), b.U32(&p.Across)
	number := b.Group()
	matrix, number := number.Div(across.Mul(b.U32(&p.Down))), number.Mod(across.Mul(b.U32(&p.Down)))
	row, col := number.Div(across).Mul(kernel.U(tileSide)), number.Mod(across).Mul(kernel.U(tileSide))
	is := matrix.Lt(b.U32(&p.Matrices))
	start := kernel.Select(is, matrix, kernel.U(0)).Mul(rows.Mul(cols))
	for k := 0; k < tileSide; k += tileRows {
		lx, ly := b.LocalX(), b.LocalY().Add(kernel.U(uint32(k)))
		r, c := row.Add(ly), col.Add(lx)
		b.If(is.And(r.Lt(rows)).And(c.Lt(cols)), func() {
			tile.Set(ly.Mul(kernel.U(pitch)).Add(lx), x(start.Add(r.Mul(cols)).Add(c)))
		})
	}
	b.Barrier()
	for k := 0; k < tileSide; k += tileRows {
		lx, ly := b.LocalX(), b.LocalY().Add(kernel.U(uint32(k)))
		r, c := row.Add(lx), col.Add(ly)
		b.If(is.And(r.Lt(rows)).And(c.Lt(cols)), func() {
			put(start.Add(c.Mul(rows)).Add(r), tile.At(lx.Mul(kernel.U(pitch)).Add(ly)))
		})
	}
}}

// transposeOf has the properties that decide the variant of a transposition: N is the number of all
// elements.
type transposeOf struct {
	N, Rows, Cols int
	Tiled         bool // the operand can be read by tiles: see tiledOperand
}

// minNarrow is the minimum number of elements for which narrow matrices get a kernel that is compiled for
// their shape.
const minNarrow = 1 << 16

// transposeSchedule is the schedule of a transposition: with square tiles, or with the tiles of the
// variant of [mapSchedules] that has the same name.
type transposeSchedule struct{ Tiled bool }

var transposeSchedules = table[transposeOf, transposeSchedule]{
	{"squares", func(transposeOf, *Target) bool { return true }, transposeSchedule{}},
	{"tile", transposeOf.tiled, transposeSchedule{Tiled: true}},
}

func (m transposeOf) tiled(*Target) bool { return m.Tiled }

// good reports whether the variant suits the matrices: narrow ones fill only a part of a square. Other
// matrices use squares, because one kernel then serves all shapes.
func (m transposeOf) good(w *transposeSchedule) bool {
	return w.Tiled == (m.N >= minNarrow && min(m.Rows, m.Cols) < tileSide)
}

func planTranspose(q *request) (*Plan, error) {
	s := q.In[0].Shape
	n := len(s)
	m, rows, cols := size(s[:n-2]), s[n-2], s[n-1]
	l, _ := op.Transpose.Layout(&q.Attrs, op.RowMajor(size(s)), s, q.shapes[0], q.In[0].Type)
	x := Operand{Type: q.In[0].Type, N: size(s), Broadcast: op.Strided, Layout: &l}
	in := []Operand{x}
	if q.epilogue != nil {
		in = append(in, q.epilogue.in...)
	}
	of := transposeOf{x.N, rows, cols, tiledOperand(in) == 0}
	w, name, err := transposeSchedules.prefer(q, of, of.good)
	if err != nil {
		return nil, err
	}
	if w.Tiled {
		q.Variant = name
		return planCopy(q, x)
	}
	across, down := (cols-1)/tileSide+1, (rows-1)/tileSide+1
	params := transposeParams{uint32(m), uint32(rows), uint32(cols), uint32(across), uint32(down)}
	var p planner
	p.stage(transposes.of(q.In[0].Type, q.epilogue), kernel.GridOf(m*across*down), params, append(q.inputs(), q.outputs()...)...)
	return p.done(name)
}
