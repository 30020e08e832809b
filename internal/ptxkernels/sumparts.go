package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// sumSpec specialises a kernel that adds the partials of split-K.
type sumSpec struct {
	Type       op.DType // of bias
	Wide, Bias bool
	key        string
}

var partSums kernelCache[sumSpec]

// sumParts returns the launch that adds split partials of a result with all elements in rows of n,
// adds a bias of type t, and applies the epilogue.
func sumParts(t op.DType, all, n, split int, bias bool, parts Arg, e *epilogue) Stage {
	s := sumSpec{t, n%4 == 0, bias, e.key}
	args := []Arg{parts, word(uint32(all)), word(uint32(n)), word(uint32(split))}
	if bias {
		args = append(args, input(2))
	}
	args = append(args, e.args()...)
	k := partSums.of(s, func() *Kernel {
		return &Kernel{Name: "sum_parts", Target: ptx.SM70, Block: [3]uint32{256, 1, 1}, Build: func(k *ptx.Kernel) { buildSumParts(k, s, e) }}
	})
	threads := all
	if s.Wide {
		threads /= 4
	}
	return Stage{Kernel: k, Grid: [3]uint32{uint32(ceil(threads, 256)), 1, 1}, Args: args, Zero: -1}
}

// buildSumParts writes the kernel. It adds the partials in order; a thread adds one element or four
// adjacent elements.
func buildSumParts(k *ptx.Kernel, s sumSpec, e *epilogue) {
	k.Block(256, 1, 1)
	from := ptx.GlobalParam[ptx.F32](k, "parts")
	all, n, split := ptx.Param[ptx.U32](k, "all"), ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "split")
	var bias ptx.Global[ptx.U32]
	if s.Bias {
		bias = ptx.GlobalParam[ptx.U32](k, "bias")
	}
	to := e.sink(k)
	width := 1
	if s.Wide {
		width = 4
	}
	i := k.Special(ptx.CtaidX).MulAdd(ptx.U(256), k.Special(ptx.TidX)).Mul(ptx.N(width))
	k.ReturnIf(i.Ge(all))
	var sum []ptx.Var[ptx.F32]
	at := ptx.NewVar(k, i.MulWide(ptx.U(1)))
	// add adds the next partials. Their loads overlap.
	add := func(parts int) {
		var v [][]ptx.F32
		for range parts {
			v = append(v, loads(from.At64(at.Get()), width))
			ptx.AddTo(at, all.U64())
		}
		for _, x := range v {
			for j := range x {
				ptx.AddTo(sum[j], x[j])
			}
		}
	}
	for range width {
		sum = append(sum, ptx.NewVar(k, ptx.F(0)))
	}
	const many = 4
	whole := split.Div(ptx.U(many)).Mul(ptx.U(many))
	k.For(ptx.U(0), whole, ptx.U(many), func(ptx.U32) { add(many) })
	k.For(whole, split, ptx.U(1), func(ptx.U32) { add(1) })
	r, c := i.Div(n), i.Rem(n)
	x := make([]ptx.F32, width)
	for j := range x {
		x[j] = sum[j].Get()
	}
	if s.Bias {
		for j, b := range loadElements(s.Type, bias, c, width) {
			x[j] = x[j].Add(ptx.F32(b))
		}
	}
	to.setRow(r, c, i, x...)
}
