package ptxkernels

import (
	"github.com/rayo-go/rayo/ptx"
)

// padSpec copies matrices of 16-bit elements with unaligned rows to rows that begin at multiples of
// 16 bytes, which tensor maps need. It does not write the padding after a row, and no kernel reads
// it.
type padSpec struct {
	Odd   bool // rows have an odd number of elements
	Whole bool // rows have a multiple of padEach elements
}

// padThreads is the number of threads in a block, and padEach the number of elements that a thread copies.
const (
	padThreads = 256
	padEach    = 8
)

var padKernels kernelCache[padSpec]

func (s padSpec) kernel() *Kernel {
	return padKernels.of(s, func() *Kernel {
		name := "pad_even"
		switch {
		case s.Odd:
			name = "pad_odd"
		case s.Whole:
			name = "pad_whole"
		}
		return &Kernel{Name: name, Target: ptx.SM70, Block: [3]uint32{padThreads, 1, 1}, Build: s.build}
	})
}

// padded returns the row stride, in elements, of a copy of rows of inner elements. Rows of a copy
// begin at multiples of 128 bytes: loading a line of a tile takes more than twice as long if it
// lies in two cache lines.
func padded(inner int) int { return (inner + 63) &^ 63 }

// padding returns the stage that copies rows of inner elements.
func padding(from, to Arg, inner, rows int) Stage {
	pieces := ceilDiv(inner, padEach)
	return Stage{Kernel: padSpec{Odd: inner%2 != 0, Whole: inner%padEach == 0}.kernel(), Zero: -1,
		Grid: [3]uint32{uint32(ceilDiv(pieces*rows, padThreads)), 1, 1},
		Args: []Arg{from, to, word(uint32(inner)), word(uint32(pieces)), word(uint32(pieces * rows)), word(uint32(padded(inner) / 2))}}
}

// build writes the kernel. A thread copies 16 bytes of a row.
func (s padSpec) build(k *ptx.Kernel) {
	k.Block(padThreads, 1, 1)
	x, y := ptx.GlobalParam[ptx.U16](k, "x"), ptx.GlobalParam[ptx.U32](k, "y")
	inner, pieces, all := ptx.Param[ptx.U32](k, "inner"), ptx.Param[ptx.U32](k, "pieces"), ptx.Param[ptx.U32](k, "all")
	words := ptx.Param[ptx.U32](k, "words") // of a row of y
	i := k.Special(ptx.CtaidX).MulAdd(ptx.U(padThreads), k.Special(ptx.TidX))
	k.ReturnIf(i.Ge(all))
	row := i.Div(pieces)
	piece := i.Sub(row.Mul(pieces))
	col := piece.Mul(ptx.U(padEach))
	x = x.Hint(ptx.ReadOnly)
	from := row.MulAdd(inner, col)
	y = y.At(row.MulAdd(words, piece.Mul(ptx.U(padEach/2))))
	if s.Whole {
		y.Store4(ptx.Cast[ptx.U32](x).At(from.Shr(ptx.U(1))).Load4())
		return
	}
	// If a piece begins in the upper half of a word, its last word also holds the next element.
	// That word is read only if the row does not end before it.
	k.IfElse(col.Add(ptx.U(padEach)).Lt(inner), func() {
		source := ptx.Cast[ptx.B32](x).At(from.Shr(ptx.U(1)))
		var w [padEach/2 + 1]ptx.B32
		for j := range padEach/2 + 1 {
			switch {
			case j < padEach/2:
				w[j] = source.Offset(j).Load()
			case s.Odd:
				w[j] = ptx.Cast[ptx.B32](x).At(from.Add(ptx.U(padEach - 1)).Shr(ptx.U(1))).Load()
			}
		}
		var v [4]ptx.U32
		shift := from.And(ptx.U(1)).Mul(ptx.U(16))
		for j := range v {
			v[j] = w[j].U32()
			if s.Odd {
				v[j] = w[j].FunnelRight(w[j+1], shift).U32()
			}
		}
		y.Store4(v)
	}, func() {
		n := inner.Sub(col)
		for j := range padEach {
			k.If(n.Gt(ptx.N(j)), func() { ptx.Cast[ptx.U16](y).Offset(j).Store(x.At(from).Offset(j).Load()) })
		}
	})
}
