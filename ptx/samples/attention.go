package samples

import (
	"math"

	"github.com/rayo-go/rayo/ptx"
)

// HeadSize is the number of elements of a head of [Attention].
const HeadSize = 64

// Attention computes the causal attention o = softmax(q kᵀ / 8) v. A block computes one query of
// one head: the first axis of the grid has the queries, which are as many as the keys, and the
// second axis has the heads. Arrays have the shape [heads length 64]. Each lane holds two elements
// of the query, the key and the result. The softmax is computed online: when a greater score
// appears, the sums are scaled down.
func Attention(k *ptx.Kernel) {
	q, keys, values := ptx.GlobalParam[ptx.F32](k, "q"), ptx.GlobalParam[ptx.F32](k, "k"), ptx.GlobalParam[ptx.F32](k, "v")
	out, length := ptx.GlobalParam[ptx.F32](k, "o"), ptx.Param[ptx.U32](k, "length")
	lane, query := k.Special(ptx.TidX), k.Special(ptx.CtaidX)
	head := k.Special(ptx.CtaidY).Mul(length)
	first := head.MulAdd(ptx.U(HeadSize), lane.Mul(ptx.U(2))) // position of the lane's elements in row 0
	last := query.Mul(ptx.U(HeadSize))
	own := first.Add(last)
	x := q.At(own).Load2()
	const scale = math.Log2E / 8 // 1/sqrt(64), for powers of two
	for i := range x {
		x[i] = x[i].Mul(ptx.F(scale))
	}
	greatest := ptx.NewVar(k, ptx.F(float32(math.Inf(-1))))
	total := ptx.NewVar(k, ptx.F(0))
	acc := [2]ptx.Var[ptx.F32]{ptx.NewVar(k, ptx.F(0)), ptx.NewVar(k, ptx.F(0))}
	rowK, rowV := keys.At(first), values.At(first)
	at := ptx.NewVar(k, ptx.U(0))
	k.Repeat(func() ptx.Pred {
		u := rowK.At(at.Live()).Load2()
		score := sum(x[0].Mul(u[0]).Add(x[1].Mul(u[1])))
		before := greatest.Get()
		ptx.MaxTo(greatest, score)
		shrink := before.Sub(greatest.Live()).Ex2Approx()
		p := score.Sub(greatest.Live()).Ex2Approx()
		ptx.ScaleAddTo(total, shrink, p)
		for i, v := range rowV.At(at.Live()).Load2() {
			ptx.ScaleAddTo(acc[i], shrink, p.Mul(v))
		}
		ptx.AddTo(at, ptx.U(HeadSize))
		return at.Live().Le(last)
	})
	r := total.Live().Rcp()
	out.At(own).Store2([2]ptx.F32{acc[0].Live().Mul(r), acc[1].Live().Mul(r)})
}
