//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// A matrix is an operand of a product that lanes read where it lies in memory: lines of terms, rows of the matrix if
// deep, and columns otherwise.
type matrix struct {
	b                    *kernel.Builder
	deep                 bool
	at                   func(i kernel.U32) kernel.F32
	at4                  func(i kernel.U32) kernel.Vec4F // nil unless rows of both operands are multiples of four elements
	origin, lines, terms kernel.U32
}

func newMatrix(b *kernel.Builder, name string, t op.DType, deep, wide bool) *matrix {
	x := &matrix{b: b, deep: deep}
	if wide {
		x.at4 = kernel.Input[kernel.Vec4F](b, name).At
	} else {
		x.at = input(b, name, t)
	}
	return x
}

// read returns four elements from a term of a line on: terms of the line if deep is set, and lines with the same
// term otherwise. Elements beyond the matrix are zeros, or any elements where no sum of the result needs them.
func (x *matrix) read(line, term kernel.U32, deep bool) kernel.Vec4F {
	four := kernel.U(4)
	if x.at4 != nil && deep {
		return x.at4(x.origin.Add(line.Min(x.lines.Sub(kernel.U(1))).Mul(x.terms)).Add(term).Div(four))
	}
	if x.at4 != nil {
		return x.at4(x.origin.Add(term.Mul(x.lines)).Add(line.Min(x.lines.Sub(four))).Div(four))
	}
	var v [4]kernel.F32
	for c := range v {
		l, t := line, term
		if deep {
			t = t.Add(kernel.U(uint32(c)))
		} else {
			l = l.Add(kernel.U(uint32(c)))
		}
		place := t.Mul(x.lines).Add(l)
		if x.deep {
			place = l.Mul(x.terms).Add(t)
		}
		inside := l.Lt(x.lines).And(t.Lt(x.terms))
		v[c] = kernel.Select(inside, x.at(x.origin.Add(kernel.Select(inside, place, kernel.U(0)))), kernel.F(0))
	}
	return x.b.Vec4F(v[0], v[1], v[2], v[3])
}

// direct is [matMulTile.multiply] without workgroup memory: each lane reads its lines of both operands from memory. The
// tile begins at row and col.
func (s matMulTile) direct(b *kernel.Builder, x, y *matrix, row, col, k kernel.U32, long bool) [][]kernel.Var[kernel.Vec4F] {
	lx, ly := s.lanes()
	sums := make([][]kernel.Var[kernel.Vec4F], s.Own)
	for i := range sums {
		sums[i] = kernel.NewVars(b, "sum", s.Wide, kernel.Vec4F{})
	}
	steps := func(from, to kernel.U32) {
		b.ForStep(from, to, kernel.U(4), func(d kernel.U32) {
			xs := make([]kernel.Vec4F, s.Own)
			for i := range xs {
				xs[i] = x.read(row.Add(b.LocalY()).Add(kernel.U(uint32(i*ly))), d, true)
			}
			for c := range 4 {
				for j := range s.Wide {
					v := y.read(col.Add(b.LocalX().Add(kernel.U(uint32(j*lx))).Mul(kernel.U(4))), d.Add(kernel.U(uint32(c))), false)
					for i := range xs {
						sums[i][j].Set(xs[i].At(c).Splat4().MulAdd(v, sums[i][j].Get()))
					}
				}
			}
		})
	}
	if long {
		inParts(b, k, steps, sums)
	} else {
		steps(kernel.U(0), k)
	}
	return sums
}
