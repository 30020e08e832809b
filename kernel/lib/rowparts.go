package lib

import "github.com/rayo-go/rayo/kernel"

// rowParts makes of each part of a row what the result needs to know of it: of a softmax
// the key of the greatest element and the sum of e**(x-greatest), of an RMS norm the sum of
// squares, and of a layer norm the mean and the sum of the squares of the distances from
// it, one array behind the other.
var rowParts = newMaker("row_parts", func(b *kernel.Builder, p *rowParams, s rowSpec, _ *epilogue) {
	t := newTeam(b, s.crew)
	x := s.input(b, "x")
	var keys kernel.Buffer[kernel.U32]
	keyed := s.Op == "softmax"
	if keyed {
		keys = kernel.Output[kernel.U32](b, "part_keys")
	}
	out := kernel.Output[kernel.F32](b, "part_numbers")
	r := newRow(b, t, p, &s, x)
	var key kernel.U32
	var numbers []kernel.F32
	switch s.Op {
	case "softmax":
		var sum kernel.F32
		key, sum = r.exponentials(false)
		numbers = []kernel.F32{sum}
	case "norm_l2":
		numbers = []kernel.F32{t.sum(r.squares())}
	case "var":
		var mean, squares kernel.F32
		count := r.elements(r.piece).Max(kernel.F(1)) // a part may be empty
		if r.Each > 0 {
			mean, squares = r.moments(count)
		} else {
			mean, squares = r.readMoments(r.last.Sub(r.first), count)
		}
		numbers = []kernel.F32{mean, squares}
	}
	b.If(r.is.And(t.lane.Eq(kernel.U(0))), func() {
		if keyed {
			keys.Set(r.piece, key)
		}
		for i, v := range numbers {
			out.Set(b.U32(&p.Rows).Mul(b.U32(&p.Parts)).Mul(kernel.U(uint32(i))).Add(r.piece), v)
		}
	})
})
