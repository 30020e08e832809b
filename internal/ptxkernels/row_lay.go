package ptxkernels

import (
	"fmt"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// Weights of rows that begin anywhere do not lie as the rows do, and to choose the
// elements of two vectors that belong to one is most of the work where elements have
// 16 bits. So, where there are many rows, a kernel writes the weights before once for
// each place of a vector where a row may begin, as they lie in such rows, with
// zeros around them. Rows that begin at the same place could then follow one another,
// so that a multiprocessor finds their weights in its cache; but neighbours that are
// not written together cost more than that saves.

// layWeights is the name of that kernel, in place of an operation's.
const layWeights = "lay_weights"

// layLanes is how many threads a block of it has.
const layLanes = 256

// operands returns the arguments for the operands of r, and adds to p what lays
// the weights.
func (s *rowSpec) operands(r *portable.Request, p *Plan) []Arg {
	args := []Arg{input(0)}
	_, cols := r.In[0].Shape.Rows()
	s.AlignedWeights = s.AlignedWeights && s.Misaligned && s.Width > 1
	lay := rowSpec{Op: layWeights, Type: s.Type, rowSchedule: rowSchedule{Lanes: layLanes, Groups: 1, Width: s.Width}}
	elements := rowVectors(cols, s.Width) * s.Width // in one place
	var from, to []Arg
	for i := 1; i < len(r.In); i++ {
		if r.In[i].Shape == nil {
			continue
		}
		s.Weights |= 1 << i
		if !s.AlignedWeights {
			args = append(args, input(i))
			continue
		}
		from, to = append(from, input(i)), append(to, scratch(len(p.Scratch)))
		args = append(args, to[len(to)-1])
		p.Scratch = append(p.Scratch, int64(s.Width*elements*s.Type.Size()))
	}
	if len(to) == 0 {
		s.AlignedWeights = false
		return args
	}
	lay.Weights = len(to)
	all := append(append(from, to...), word(uint32(cols)), word(uint32(elements)))
	grid := [3]uint32{uint32((elements-1)/layLanes + 1), uint32(s.Width), 1}
	p.Stages = append(p.Stages, Stage{Kernel: lay.kernel(&epilogue{}), Grid: grid, Args: all, Zero: -1})
	return args
}

// layStride returns how many vectors the weights of one place have.
func (r *residentRow) layStride() ptx.U32 {
	return r.cols.Add(ptx.N(2*r.s.Width - 2)).Div(ptx.N(r.s.Width))
}

// lay writes each weight so many elements further, as the block is the how manieth
// of its column of the grid.
func (s rowSpec) lay(k *ptx.Kernel) {
	k.Block(s.threads(), 1, 1)
	var from, to [2]ptx.Global[ptx.B32]
	for i := range s.Weights {
		from[i] = ptx.GlobalParam[ptx.B32](k, fmt.Sprint("from", i))
	}
	for i := range s.Weights {
		to[i] = ptx.GlobalParam[ptx.B32](k, fmt.Sprint("to", i))
	}
	cols, elements := ptx.Param[ptx.U32](k, "cols"), ptx.Param[ptx.U32](k, "elements")
	i := k.Special(ptx.CtaidX).MulAdd(ptx.N(s.threads()), k.Special(ptx.TidX))
	place := k.Special(ptx.CtaidY)
	k.If(i.Lt(elements), func() {
		col := i.Sub(place) // above all columns, before them
		at := place.MulAdd(elements, i)
		for j := range s.Weights {
			v := ptx.NewVar(k, ptx.F(0))
			load := rowElement(from[j], s.Type, col, ptx.ReadOnly)
			k.When(col.Lt(cols), func() { v.Set(load(0)) })
			switch s.Type {
			case op.F16:
				ptx.Cast[ptx.F16](to[j]).At(at).Store(v.Get().F16())
			case op.BF16:
				ptx.Cast[ptx.BF16](to[j]).At(at).Store(v.Get().BF16())
			default:
				ptx.Cast[ptx.F32](to[j]).At(at).Store(v.Get())
			}
		}
	})
}
