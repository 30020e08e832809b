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

func planTranspose(q *request) (*Plan, error) {
	s := q.In[0].Shape
	n := len(s)
	m, rows, cols := size(s[:n-2]), s[n-2], s[n-1]
	across, down := (cols-1)/tileSide+1, (rows-1)/tileSide+1
	params := transposeParams{uint32(m), uint32(rows), uint32(cols), uint32(across), uint32(down)}
	var p planner
	p.stage(transposes.of(q.In[0].Type, q.epilogue), kernel.GridOf(m*across*down), params, append(q.inputs(), q.outputs()...)...)
	return p.done("")
}
