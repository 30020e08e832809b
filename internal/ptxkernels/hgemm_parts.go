package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// gatherSpec is the last stage of a split-K product: it adds the partial sums in order, and applies
// the bias and the epilogue.
type gatherSpec struct {
	Type      op.DType
	Bias, Odd bool
	Key       string
	Direct    bool // see mmaSpec
}

const gatherThreads = 256

var gatherKernels kernelCache[gatherSpec]

// gather returns the stage that adds the partials and writes the result.
func (p *halfProduct) gather(from, to matrix, parts int) Stage {
	s := gatherSpec{Type: p.Type, Bias: p.Bias, Odd: p.N%2 != 0, Direct: p.direct()}
	if p.after != nil {
		s.Key = p.after.key
	}
	pairs := ceilDiv(p.N, 2)
	all := p.Batch * p.M * pairs
	return Stage{Zero: -1, Grid: [3]uint32{uint32(ceilDiv(all, gatherThreads)), 1, 1},
		Kernel: gatherKernels.of(s, func() *Kernel {
			return &Kernel{Name: "matmul_parts_" + s.Type.String(), Target: ptx.SM80,
				Block: [3]uint32{gatherThreads, 1, 1}, Build: func(k *ptx.Kernel) { s.build(k, p.after) }}
		}),
		Args: p.finishing([]Arg{from.address(), to.address(), word(uint32(all)), word(uint32(pairs)), word(uint32(parts)), word(uint32(p.M)), word(uint32(p.N))})}
}

// build writes the kernel. A thread computes two adjacent elements of a row.
func (s gatherSpec) build(k *ptx.Kernel, e *epilogue) {
	k.Block(gatherThreads, 1, 1)
	x, y := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.U16](k, "y")
	all, pairs, parts := ptx.Param[ptx.U32](k, "all"), ptx.Param[ptx.U32](k, "pairs"), ptx.Param[ptx.U32](k, "parts")
	rows, cols := ptx.Param[ptx.U32](k, "rows"), ptx.Param[ptx.U32](k, "cols")
	f := newFinisher(k, s.Type, s.Bias, e, rows, cols, s.Odd)
	i := k.Special(ptx.CtaidX).MulAdd(ptx.U(gatherThreads), k.Special(ptx.TidX))
	k.ReturnIf(i.Ge(all))
	row := i.Div(pairs)
	col := i.Sub(row.Mul(pairs)).Mul(ptx.U(2))
	n := row.Div(rows)
	row = row.Sub(n.Mul(rows))
	each := rows.Mul(cols)
	a, b := ptx.NewVar(k, ptx.F(0)), ptx.NewVar(k, ptx.F(0))
	two := col.Add(ptx.U(1)).Lt(cols)
	x = x.Hint(ptx.ReadOnly).At(row.MulAdd(cols, col))
	k.Count(parts, func(j ptx.U32) {
		from := x.At64(n.MulAdd(parts, j).MulWide(each))
		if !s.Odd {
			v := from.Load2()
			ptx.AddTo(a, v[0])
			ptx.AddTo(b, v[1])
			return
		}
		ptx.AddTo(a, from.Load())
		k.If(two, func() { ptx.AddTo(b, from.Offset(1).Load()) })
	})
	if s.Direct {
		f.put(n, row, col, a.Get(), b.Get())
	} else {
		f.store(y, n, row, col, a.Get(), b.Get())
	}
}
