package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// Short misaligned rows go through shared memory. The rows of a block are contiguous, so they can
// be loaded and stored together as aligned vectors. Threads then read their elements one by one
// from shared memory.

// rowStage is the rows of a block in shared memory.
type rowStage struct {
	t      *rowGroup
	base   ptx.Shared[ptx.B32]
	from   ptx.U32 // index of the first element in the array
	length ptx.U32 // elements of all rows of the block
	turns  int     // number of vectors of a thread
}

// stage copies the rows of the block to shared memory.
func (t *rowGroup) stage(x ptx.Global[ptx.B32]) *rowStage {
	s, k := t.s, t.k
	rows := s.Groups * s.Rows
	width := rowVector(s.Type)
	g := &rowStage{t: t, turns: (rows*s.room()-1)/(width*s.threads()) + 1}
	g.base = ptx.DynamicShared[ptx.B32](k, 4*g.turns*s.threads())
	first := k.Special(ptx.CtaidX).Mul(ptx.N(rows))
	g.from = first.Mul(t.cols)
	g.length = t.nrows.Sub(first).Min(ptx.N(rows)).Mul(t.cols)
	src := x.At(g.from.Div(ptx.N(width)).Add(t.tid).Mul(ptx.U(4)))
	to := g.base.At(t.tid.Mul(ptx.U(4)))
	for i := range g.turns {
		n := 4 * i * s.threads()
		at := g.element(i)
		bytes := g.length.Sub(at).Min(ptx.N(width)).Mul(ptx.N(s.Type.Size()))
		k.When(at.Lt(g.length), func() { ptx.CopyAsyncZero(to.Offset(n), src.Offset(n), 16, bytes) })
	}
	k.CopyWaitAll()
	k.Sync()
	return g
}

// element returns the index, relative to g.from, of the thread's first element in iteration i.
func (g *rowStage) element(i int) ptx.U32 {
	return g.t.tid.Add(ptx.N(i * g.t.s.threads())).Mul(ptx.N(rowVector(g.t.s.Type)))
}

// place returns the index in the stage of the thread's first element of a row.
func (g *rowStage) place(r *residentRow) ptx.U32 { return r.first.Sub(g.from).Add(r.place) }

// load loads a row from shared memory.
func (g *rowStage) load(r *residentRow, neutral float32) {
	s := r.s
	r.stage = g
	r.parts = make([]rowPart, s.Registers)
	at := g.place(r)
	for p := range r.parts {
		v := ptx.NewVar(r.k, ptx.F(neutral))
		r.k.When(r.in(p), func() {
			switch s.Type {
			case op.F16:
				v.Set(ptx.CastShared[ptx.F16](g.base).At(at).Offset(p * s.Lanes).Load().F32())
			case op.BF16:
				v.Set(ptx.CastShared[ptx.BF16](g.base).At(at).Offset(p * s.Lanes).Load().F32())
			default:
				v.Set(ptx.CastShared[ptx.F32](g.base).At(at).Offset(p * s.Lanes).Load())
			}
		})
		r.parts[p].values = []ptx.F32{v.Get()}
	}
}

// store overwrites an element in the stage. No other thread reads it before [rowStage.flush].
func (g *rowStage) store(r *residentRow, p int, v ptx.F32) {
	s := r.s
	at := g.place(r)
	r.k.When(r.in(p), func() {
		switch s.Type {
		case op.F16:
			ptx.CastShared[ptx.F16](g.base).At(at).Offset(p * s.Lanes).Store(v.F16())
		case op.BF16:
			ptx.CastShared[ptx.BF16](g.base).At(at).Offset(p * s.Lanes).Store(v.BF16())
		default:
			ptx.CastShared[ptx.F32](g.base).At(at).Offset(p * s.Lanes).Store(v)
		}
	})
}

// flush writes the stage to the result.
func (g *rowStage) flush(y ptx.Global[ptx.B32]) {
	t, s, k := g.t, g.t.s, g.t.k
	width := rowVector(s.Type)
	k.Sync()
	to := y.At(g.from.Div(ptx.N(width)).Add(t.tid).Mul(ptx.U(4))).Hint(s.Save)
	from := g.base.At(t.tid.Mul(ptx.U(4)))
	for i := range g.turns {
		n := 4 * i * s.threads()
		end := g.element(i).Add(ptx.N(width))
		k.When(end.Le(g.length), func() { to.Offset(n).Store4(from.Offset(n).Load4()) })
		k.If(end.Gt(g.length), func() { // the last elements of the array
			for e := range width {
				k.When(g.element(i).Add(ptx.N(e)).Lt(g.length), func() {
					if s.Type == op.F32 {
						to.Offset(n + e).Store(from.Offset(n + e).Load())
					} else {
						ptx.Cast[ptx.U16](to).Offset(2*n + e).Store(ptx.CastShared[ptx.U16](from).Offset(2*n + e).Load())
					}
				})
			}
		})
	}
}
