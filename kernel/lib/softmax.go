package lib

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

func init() { register(rowFamily(softmaxes), op.Softmax, op.LogSoftmax) }

// softmaxes computes softmax and log_softmax.
var softmaxes = newMaker("softmax", func(b *kernel.Builder, p *rowParams, s rowSpec, e *epilogue) {
	t := newTeam(b, s.crew)
	x := input(b, "x", s.Type)
	put := e.result(b, s.Type)
	r := newRow(t, b.U32(&p.Rows), b.U32(&p.Cols), s.Held, x)
	k := r.most()
	greatest := numberOf(k)
	sum := r.sum(func(x kernel.F32) kernel.F32 { return x.Sub(greatest).Exp() })
	// NaN and +Inf are greatest where they are at all, and of a row of -Inf alone
	// that is.
	undefined := k.Ge(kernel.U(infKey)).Or(k.Eq(kernel.U(ninfKey)))
	f := func(x kernel.F32) kernel.F32 { return x.Sub(greatest).Exp().Div(sum) }
	if s.Op == "log_softmax" {
		log := sum.Log()
		f = func(x kernel.F32) kernel.F32 { return x.Sub(greatest).Sub(log) }
	}
	r.each(func(j kernel.U32, x kernel.F32) {
		put(r.start.Add(j), kernel.Dyn(kernel.Select(undefined, nan(), f(x))))
	})
})
