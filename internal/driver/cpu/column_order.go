package cpu

import (
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// columnOrder changes the order of the elements that a program computes for a reduction. The program f computes rows, of shape s.
// The new program computes the same elements in the order in which its operands are in memory, and the layout says where the
// elements of the rows are in its result. columnOrder returns nil if an operand of full size is not [outer cols inner] in
// memory: see [op.Layout.Columns].
//
// For example, the sum of x*y over the first axis reads columns of x and y. A program over rows would gather the elements of
// each column. In the order of memory it reads x and y without gaps, and the reduction adds whole rows of products.
func columnOrder(f *driver.Fused, s op.Shape) (*driver.Fused, *op.Layout) {
	rows, cols := s.Rows()
	outer, inner := 0, 0
	for i := range f.In {
		if in := &f.In[i]; in.Broadcast == op.Strided && in.N == rows*cols {
			o, n, ok := in.Layout.Columns(rows, cols)
			if !ok || outer > 0 && o != outer {
				return nil, nil
			}
			outer, inner = o, n
		}
	}
	if outer == 0 {
		return nil, nil
	}
	seen, made := op.Shape{outer, inner, cols}, op.Shape{outer, cols, inner}
	swap, _ := op.PermuteTo(0, 2, 1) // the axes are valid
	y := *f
	y.Shape, y.In = made, nil
	for _, in := range f.In {
		l, ok := layoutOf(&in, rows*cols)
		if ok {
			l, ok = op.Permute.Layout(&swap, l, seen, made, in.Type)
		}
		if !ok {
			return nil, nil
		}
		in.Layout = nil
		if in.Broadcast = l.BroadcastKind(in.N); in.Broadcast == op.Strided {
			if in.N == rows*cols {
				return nil, nil
			}
			in.Layout = &l
		}
		y.In = append(y.In, in)
	}
	l, ok := op.Permute.Layout(&swap, op.RowMajor(rows*cols), made, seen, op.F32)
	if !ok {
		return nil, nil
	}
	return &y, &l
}

// layoutOf returns the layout of an operand over the n elements of the result of an elementwise program.
func layoutOf(in *driver.Operand, n int) (op.Layout, bool) {
	var l op.Layout
	var err error
	switch in.Broadcast {
	case op.Strided:
		return *in.Layout, true
	case op.Scalar:
		l, err = op.Over(op.Shape{}, op.Shape{n})
	case op.Tiled:
		l, err = op.Over(op.Shape{in.N}, op.Shape{n / in.N, in.N})
	case op.Repeated:
		l, err = op.Over(op.Shape{in.N, 1}, op.Shape{in.N, n / in.N})
	default:
		l = op.RowMajor(n)
	}
	return l, err == nil
}
