package lib

import (
	"math"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

func init() { register(reduceFamily(3, float32(math.NaN()), variances), op.Var) }

// variances reduces to sums of squares of distances from a centre. The centre is
// the mean as far as one pass over the elements tells. The second pass adds the
// distances too: from the true mean the sum would be 0, and what it is (the
// rest) says how far the centre is off. A piece is its centre, its squares and
// its rest.
var variances = newMaker("reduce_var", func(b *kernel.Builder, p *reduceParams, s reduceSpec, e *epilogue) {
	t := newTeam(b, s.crew)
	x := moments(b, p, &s)
	put := [3]func(i kernel.U32, v kernel.Dynamic){}
	if s.Split {
		for k, name := range []string{"part_centres", "part_squares", "part_rests"} {
			put[k] = outputValue(b, name, op.F32).set
		}
	} else {
		put[0] = e.result(b, s.Type)
	}
	c := pieceOf(b, p, t, s.Split)
	from := c.From.Add(t.lane)
	// Scaled before they are added: the sum of large elements might overflow.
	centre := t.sum(total(b, from, c.To, s.Team, func(acc kernel.F32, i kernel.U32) kernel.F32 {
		v, weight := x.value(i, c)
		return v.Fma(weight, acc)
	}))
	sums := totals(b, 2, from, c.To, s.Team, func(acc []kernel.F32, i kernel.U32) []kernel.F32 {
		squares, rest := x.about(i, c, centre)
		return []kernel.F32{acc[0].Add(squares), acc[1].Add(rest)}
	})
	squares, rest := t.sum(sums[0]), t.sum(sums[1])
	b.If(c.Is.And(t.lane.Eq(kernel.U(0))), func() {
		if s.Split {
			put[0](c.Number, kernel.Dyn(centre))
			put[1](c.Number, kernel.Dyn(squares))
			put[2](c.Number, kernel.Dyn(rest))
			return
		}
		// Where the squares overflow, those of the rest may too.
		v := squares.Sub(rest.Mul(rest.Div(b.F32(&p.Count))))
		v = kernel.Select(squares.AsU32().Eq(kernel.U(infBits)), squares, v)
		put[0](c.Number, kernel.Dyn(v.Div(b.F32(&p.Free))))
	})
})

// moment reads the operands of a variance: a number and its share of the mean,
// and what it adds to the squares and the rest about a centre.
type moment struct {
	value func(i kernel.U32, c piece) (v, weight kernel.F32)
	about func(i kernel.U32, c piece, centre kernel.F32) (squares, rest kernel.F32)
}

func moments(b *kernel.Builder, p *reduceParams, s *reduceSpec) moment {
	if !s.Pieces {
		x := input(b, "x", s.Type)
		return moment{
			func(i kernel.U32, c piece) (v, weight kernel.F32) { return x(i), c.To.Sub(c.From).F32().Recip() },
			func(i kernel.U32, _ piece, centre kernel.F32) (squares, rest kernel.F32) {
				d := x(i).Sub(centre)
				return d.Mul(d), d
			}}
	}
	centres, ss, rests := kernel.Input[kernel.F32](b, "centres"), kernel.Input[kernel.F32](b, "squares"), kernel.Input[kernel.F32](b, "rests")
	elements := func(i kernel.U32, c piece) kernel.F32 {
		last := i.Sub(c.Row).Eq(b.U32(&p.Cols).Sub(kernel.U(1)))
		return kernel.Select(last, b.F32(&p.Tail), b.F32(&p.Length))
	}
	return moment{
		func(i kernel.U32, c piece) (v, weight kernel.F32) {
			return centres.At(i), elements(i, c).Div(b.F32(&p.Count))
		},
		func(i kernel.U32, c piece, centre kernel.F32) (squares, rest kernel.F32) {
			d, n := centres.At(i).Sub(centre), elements(i, c)
			squares = ss.At(i).Add(d.Mul(n.Mul(d).Add(rests.At(i).Mul(kernel.F(2)))))
			return squares, n.Fma(d, rests.At(i))
		}}
}
