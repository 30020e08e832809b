package ptxkernels

import (
	"fmt"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// The vectors of a misaligned row do not match the vectors of the weights. To select the weights of
// a vector from two vectors of weights is most of the work if elements have 16 bits. So, if there
// are many rows, a kernel first writes a copy of the weights for each alignment of a row, shifted
// by it and padded with zeros. A multiprocessor could process all rows with the same alignment in
// sequence, to find their weights in its cache; but writing rows that are not adjacent costs more
// than this saves.

// layWeights is the rowSpec.Op of the kernel that copies weights.
const layWeights = "lay_weights"

// layLanes is the number of threads in a block of this kernel.
const layLanes = 256

// operands returns the arguments for the operands of r. If s has aligned weights, it adds the
// launch that copies them to p.
func (s *rowSpec) operands(r *portable.Request, p *Plan) []Arg {
	args := []Arg{input(0)}
	_, cols := r.In[0].Shape.Rows()
	s.AlignedWeights = s.AlignedWeights && s.Misaligned && s.Width > 1
	lay := rowSpec{Op: layWeights, Type: s.Type, rowSchedule: rowSchedule{Lanes: layLanes, Groups: 1, Width: s.Width}}
	elements := rowVectors(cols, s.Width) * s.Width // of one copy
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

// layStride returns the number of vectors in a copy of the weights.
func (r *residentRow) layStride() ptx.U32 {
	return r.cols.Add(ptx.N(2*r.s.Width - 2)).Div(ptx.N(r.s.Width))
}

// lay writes the kernel that copies weights. The index of a block along y is the number of elements
// by which it shifts them.
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
		col := i.Sub(place) // wraps around to above cols for the padding before the weights
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
