//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// inUnits reports whether rows begin at multiples of the unit, and the memory of each array with a
// layout is a whole number of units.
func (p *attentionPlaced) inUnits(q *request, unit int) bool {
	if !p.Laid {
		return true
	}
	for _, a := range []AttentionPlace{p.Q, p.K, p.V, p.Y} {
		if (a.Off|a.Batch|a.Head|a.Row)%unit != 0 {
			return false
		}
	}
	for _, a := range append(q.In[:op.AttentionV+1:op.AttentionV+1], q.Out...) {
		if a.Layout != nil && a.N%unit != 0 {
			return false
		}
	}
	return true
}

// rowStart returns the position of the first element of row r, in units.
type rowStart func(r kernel.U32) kernel.U32

// attentionRows gives the positions of the rows of a tile.
type attentionRows struct {
	query, result rowStart                                  // rows of the queries and of the result
	keys          func(at kernel.U32) (key, value rowStart) // rows of the keys and values from key at on
}

// rows returns the positions of the rows of a tile whose first query is first. head counts the
// heads of keys of the whole batch. Rows of d units are contiguous unless s.Placed says otherwise.
func (s *attentionSpec) rows(head, rows, first, tq, tk, d kernel.U32, unit int) *attentionRows {
	if p := &s.Placed; p.Laid {
		return p.rows(head, first, tq, unit)
	}
	queries := head.Mul(rows).Add(first).Mul(d)
	past := head.Mul(tk).Mul(d) // position of the first key and value of the head
	query := func(r kernel.U32) kernel.U32 { return queries.Add(r.Mul(d)) }
	return &attentionRows{query: query, result: query, keys: func(at kernel.U32) (key, value rowStart) {
		start := past.Add(at.Mul(d))
		row := func(r kernel.U32) kernel.U32 { return start.Add(r.Mul(d)) }
		return row, row
	}}
}

// rows is [attentionSpec.rows] for rows that are not contiguous.
func (p *attentionPlaced) rows(head, first, tq kernel.U32, unit int) *attentionRows {
	batch := kernel.U(0)
	if p.KVHeads > 0 {
		batch, head = head.Div(kernel.U(uint32(p.KVHeads))), head.Mod(kernel.U(uint32(p.KVHeads)))
	}
	step := func(x kernel.U32, n int) kernel.U32 { return x.Mul(kernel.U(uint32(n / unit))) }
	begin := func(a *AttentionPlace, head kernel.U32) kernel.U32 {
		return behind(a.Off/unit, step(batch, a.Batch).Add(step(head, a.Head)))
	}
	of := func(a *AttentionPlace) rowStart { // rows of the queries of all heads that share a head of keys
		start := begin(a, head.Mul(kernel.U(uint32(p.Share))))
		return func(r kernel.U32) kernel.U32 {
			r = first.Add(r)
			if p.Share == 1 {
				return start.Add(step(r, a.Row))
			}
			return start.Add(step(r.Div(tq), a.Head)).Add(step(r.Mod(tq), a.Row))
		}
	}
	keys, values := begin(&p.K, head), begin(&p.V, head)
	return &attentionRows{query: of(&p.Q), result: of(&p.Y), keys: func(at kernel.U32) (key, value rowStart) {
		row := func(start kernel.U32, a *AttentionPlace) rowStart {
			return func(r kernel.U32) kernel.U32 { return start.Add(step(at.Add(r), a.Row)) }
		}
		return row(keys, &p.K), row(values, &p.V)
	}}
}

// behind returns the position that is off elements after position at.
func behind(off int, at kernel.U32) kernel.U32 {
	if off == 0 {
		return at
	}
	return at.Add(kernel.U(uint32(off)))
}
