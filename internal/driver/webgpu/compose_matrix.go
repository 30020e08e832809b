package webgpu

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// maxCopies bounds the number of copies that move columns of a matrix, one for each row.
const maxCopies = 1 << 16

// columns returns some columns of a matrix as a separate matrix.
func (w *windows) columns(x located, from, n int) (located, error) {
	rows := x.Shape[0]
	y := x.shaped(rows, n)
	if rows == 1 {
		size := x.at.bytes / int64(max(x.Shape[1], 1))
		y.at = x.at.part(int64(from)*size, int64(n)*size)
		return y, nil
	}
	var err error
	if y, err = w.reserve(x.Type, y.Shape); err != nil {
		return y, err
	}
	return y, w.move(rows, func(i int) (dst, src arrayRef) { return y.cells(i, 0, n), x.cells(i, from, n) })
}

// paste copies a matrix to columns of another one.
func (w *windows) paste(y located, from int, x located) error {
	return w.move(x.Shape[0], func(i int) (dst, src arrayRef) {
		return y.cells(i, from, x.Shape[1]), x.cells(i, 0, x.Shape[1])
	})
}

// cells returns elements of a row of a matrix.
func (a located) cells(row, from, n int) arrayRef {
	size := int64(a.Type.Size())
	return a.at.part(int64(row*a.Shape[1]+from)*size, int64(n)*size)
}

// move copies each row with a separate copy.
func (w *windows) move(rows int, row func(i int) (dst, src arrayRef)) error {
	if rows > maxCopies {
		return w.tooLarge
	}
	for i := range rows {
		dst, src := row(i)
		if (dst.off|src.off|dst.bytes)%4 != 0 {
			return errHalfWord
		}
		if err := w.copy(dst, src); err != nil {
			return err
		}
	}
	return nil
}

// runs calls f for consecutive runs of n elements, each as long as the binding limit allows. An
// element has the given numbers of bytes in the arrays.
func (w *windows) runs(n int, f func(from, m int) error, bytes ...int64) error {
	each := max(w.span(n, bytes...), 1)
	if each == n || (n-1)/each+1 > maxWindows {
		return w.tooLarge
	}
	local := w.local
	for from := 0; from < n; from += each {
		w.local = local // all runs use the same temporary buffers
		if err := f(from, min(n-from, each)); err != nil {
			return err
		}
	}
	return nil
}

// transpose transposes one matrix in parts along its longer side.
func (w *windows) transpose() error {
	s := w.r.In[0].Shape
	m, n := s[len(s)-2], s[len(s)-1]
	x, y := w.given(0).shaped(m, n), w.result(0).shaped(n, m)
	size := int64(x.Type.Size())
	switch {
	case size < 2:
		return w.tooLarge
	case m == 1 || n == 1:
		return w.copy(y.at, x.at)
	case m <= n:
		return w.runs(n, func(from, k int) error {
			strip, err := w.columns(x, from, k)
			if err != nil {
				return err
			}
			return w.request(op.Transpose, op.Attrs{}, []located{strip}, []located{y.rows(from, k)}, nil)
		}, int64(m)*size)
	}
	return w.runs(m, func(from, k int) error {
		strip, err := w.reserve(x.Type, op.Shape{n, k})
		if err != nil {
			return err
		}
		if err := w.request(op.Transpose, op.Attrs{}, []located{x.rows(from, k)}, []located{strip}, nil); err != nil {
			return err
		}
		return w.paste(y, from, strip)
	}, int64(n)*size)
}

// matMul computes the product of two matrices in parts. It divides an extent of the first array
// that is too large, preferably one whose parts are rows of this array.
func (w *windows) matMul() error {
	r := w.r
	o := op.MatMulOptsOf(&r.Attrs)
	p, err := op.MatMulOf(&r.Attrs, []op.Shape{r.In[0].Shape, r.In[1].Shape})
	if err != nil {
		return err
	}
	extent := [...]int{'m': p.M, 'k': p.K, 'n': p.N}
	as, bs := "mk", "kn"
	if o.TransA {
		as = "km"
	}
	if o.TransB {
		bs = "nk"
	}
	a, b, y := w.given(0).shaped(extent[as[0]], extent[as[1]]), w.given(1).shaped(extent[bs[0]], extent[bs[1]]), w.result(0).shaped(p.M, p.N)
	along := w.divided([]located{a, b, y}, []string{as, bs, "mn"})
	// part returns the part of an operand for a run of the extent.
	part := func(x located, extents string, from, n int) (located, error) {
		switch along {
		case extents[0]:
			return x.rows(from, n), nil
		case extents[1]:
			return w.columns(x, from, n)
		}
		return x, nil
	}
	both := func(from, n int) ([]located, error) {
		a, err := part(a, as, from, n)
		if err != nil {
			return nil, err
		}
		b, err := part(b, bs, from, n)
		return []located{a, b}, err
	}
	switch along {
	case 'm':
		return w.runs(p.M, func(from, n int) error {
			in, err := both(from, n)
			if err != nil {
				return err
			}
			if w.has(2) {
				in = append(in, w.given(2))
			}
			return w.request(op.MatMul, r.Attrs, in, []located{y.rows(from, n)}, nil)
		}, a.at.bytes/int64(p.M), y.rowBytes())
	case 'n':
		return w.acrossColumns(y, b.at.bytes/int64(p.N), both)
	case 'k':
		o.Act, o.ActParams = nil, op.Attrs{}
		attrs := o.Attrs()
		return w.summed(y, p.K, op.Tiled, func(from, n int, to located, post *ir.Node, with ...operand) error {
			in, err := both(from, n)
			if err != nil {
				return err
			}
			return w.request(op.MatMul, attrs, in, []located{to}, post, with...)
		}, a.at.bytes/int64(p.K), b.at.bytes/int64(p.K))
	}
	return w.tooLarge
}

// divided returns the extent to divide for the first array that is too large, preferably one whose parts are rows of this
// array, or 0. extents has the names of the two extents of each array.
func (w *windows) divided(arrays []located, extents []string) byte {
	for i, x := range arrays {
		if !w.large(x) {
			continue
		}
		if x.Shape[0] == 1 || x.rowBytes() > w.d.limits.Binding {
			return extents[i][1]
		}
		return extents[i][0]
	}
	return 0
}

// acrossColumns computes a product in runs of the columns of the result. part returns the operands
// of a run; the second operand has the given number of bytes for each column.
func (w *windows) acrossColumns(y located, bytes int64, part func(from, n int) ([]located, error)) error {
	m := y.Shape[0]
	return w.runs(y.Shape[1], func(from, n int) error {
		in, err := part(from, n)
		if err != nil {
			return err
		}
		if w.has(2) {
			in = append(in, w.given(2).rows(from, n))
		}
		if m == 1 {
			band, err := w.columns(y, from, n)
			if err != nil {
				return err
			}
			return w.request(w.r.Op, w.r.Attrs, in, []located{band}, nil)
		}
		band, err := w.reserve(y.Type, op.Shape{m, n})
		if err != nil {
			return err
		}
		if err := w.request(w.r.Op, w.r.Attrs, in, []located{band}, nil); err != nil {
			return err
		}
		return w.paste(y, from, band)
	}, bytes, y.at.bytes/int64(y.Shape[1]))
}

// summed computes a result as the sum of the results of part for runs of n terms. Then it adds the
// bias, which has the given broadcast kind, and applies the activation.
func (w *windows) summed(y located, n int, bias op.BroadcastKind, part func(from, n int, to located, post *ir.Node, with ...operand) error, bytes ...int64) error {
	var sums [2]located
	for i := range sums {
		var err error
		if sums[i], err = w.reserve(op.F32, y.Shape); err != nil {
			return err
		}
	}
	k := 0
	err := w.runs(n, func(from, n int) error {
		var post *ir.Node
		var with []operand
		if y.Type != op.F32 {
			post = arg(0) // keeps partial results from being rounded to half floats
		}
		if k++; k > 1 {
			post, with = node(ir.Add, arg(0), arg(1)), []operand{sums[k%2].spread(op.Full)}
		}
		return part(from, n, sums[(k+1)%2], post, with...)
	}, bytes...)
	if err != nil {
		return err
	}
	e, in := arg(0), []operand{sums[(k+1)%2].spread(op.Full)}
	if w.has(2) {
		e, in = node(ir.Add, arg(0), arg(1)), append(in, w.given(2).spread(bias))
	}
	finish, err := portable.Finish(w.r)
	if err != nil {
		return err
	}
	if finish != nil {
		e = ir.Substitute(finish.Exprs[0], []*ir.Node{e}, nil)
	}
	return w.program(y, e, in...)
}

// matVec computes the product of a matrix and a vector as a product of matrices.
func (w *windows) matVec() error {
	a, x, y := w.given(0), w.given(1), w.result(0)
	m, k := y.Shape[0], x.Shape[0]
	if op.MatVecOptsOf(&w.r.Attrs).Trans {
		return w.request(op.MatMul, op.Attrs{}, []located{x.shaped(1, k), a}, []located{y.shaped(1, m)}, nil)
	}
	return w.request(op.MatMul, op.Attrs{}, []located{a, x.shaped(k, 1)}, []located{y.shaped(m, 1)}, nil)
}

// matMulQ computes a product with a quantised matrix that is too large, in runs of its rows.
func (w *windows) matMulQ() error {
	b := w.given(1)
	m, k := w.r.In[0].Shape.Rows()
	if !w.large(b) {
		return w.tooLarge
	}
	return w.acrossColumns(w.result(0).shaped(m, b.Shape[0]), b.rowBytes(), func(from, n int) ([]located, error) {
		return []located{w.given(0).shaped(m, k), b.rows(from, n)}, nil
	})
}

// conv2D computes the convolution of one image in parts: groups, windows, or channels, whose
// results are added.
func (w *windows) conv2D() error {
	r := w.r
	c, err := op.Conv2DOf(&r.Attrs, []op.Shape{r.In[0].Shape, r.In[1].Shape})
	if err != nil {
		return err
	}
	x, windows, y := w.given(0).shaped(c.C, c.H, c.W), w.given(1), w.result(0).shaped(c.O, c.OutH, c.OutW)
	image := func(a located) located { return a.shaped(append(op.Shape{1}, a.Shape...)...) }
	if groups := c.Groups; groups > 1 {
		in, out := c.C/groups, c.O/groups
		return w.runs(groups, func(from, n int) error {
			o := op.Conv2DOptsOf(&r.Attrs)
			o.Groups = n
			arrays := []located{image(x.rows(from*in, n*in)), windows.rows(from*out, n*out)}
			if w.has(2) {
				arrays = append(arrays, w.given(2).rows(from*out, n*out))
			}
			return w.request(op.Conv2D, o.Attrs(), arrays, []located{image(y.rows(from*out, n*out))}, nil)
		}, x.rowBytes()*int64(in), windows.rowBytes()*int64(out), y.rowBytes()*int64(out))
	}
	if (w.large(windows) || w.large(y)) && c.O > 1 {
		return w.runs(c.O, func(from, n int) error {
			arrays := []located{image(x), windows.rows(from, n)}
			if w.has(2) {
				arrays = append(arrays, w.given(2).rows(from, n))
			}
			return w.request(op.Conv2D, r.Attrs, arrays, []located{image(y.rows(from, n))}, nil)
		}, windows.rowBytes(), y.rowBytes())
	}
	if c.C < 2 {
		return w.tooLarge
	}
	o := op.Conv2DOptsOf(&r.Attrs)
	o.Act, o.ActParams = nil, op.Attrs{}
	area := c.KH * c.KW
	flat := windows.shaped(c.O, c.C*area)
	return w.summed(image(y), c.C, op.Repeated, func(from, n int, to located, post *ir.Node, with ...operand) error {
		part, err := w.columns(flat, from*area, n*area)
		if err != nil {
			return err
		}
		return w.request(op.Conv2D, o.Attrs(), []located{image(x.rows(from, n)), part.shaped(c.O, n, c.KH, c.KW)}, []located{to}, post, with...)
	}, x.rowBytes(), windows.at.bytes/int64(c.C))
}
