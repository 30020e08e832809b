package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// finisher converts sums to results: it adds the bias and applies the epilogue to two adjacent
// elements of a row. The first is in an even column.
type finisher struct {
	k          *ptx.Kernel
	t          op.DType
	rows, cols ptx.U32
	odd        bool // rows have an odd number of elements
	bias       *ptx.Global[ptx.U32]
	after      *sink
}

// newFinisher declares the bias and the arrays of the epilogue as the next parameters.
func newFinisher(k *ptx.Kernel, t op.DType, bias bool, e *epilogue, rows, cols ptx.U32, odd bool) finisher {
	f := finisher{k: k, t: t, rows: rows, cols: cols, odd: odd}
	if bias {
		p := ptx.GlobalParam[ptx.U32](k, "bias").Hint(ptx.ReadOnly)
		f.bias = &p
	}
	if e != nil {
		f.after = e.sink(k)
	}
	return f
}

// within returns col and col+1, clamped to the columns of the matrix. If rows have an even number
// of elements, second is always first+1.
func (f *finisher) within(col ptx.U32) (first, second ptx.U32) {
	if !f.odd {
		first = col.Min(f.cols.Sub(ptx.U(2)))
		return first, first.Add(ptx.U(1))
	}
	last := f.cols.Sub(ptx.U(1))
	return col.Min(last), col.Add(ptx.U(1)).Min(last)
}

// biased returns the sums of columns col and the next with their bias.
func (f *finisher) biased(col ptx.U32, a, b ptx.F32) (ptx.F32, ptx.F32) {
	if f.bias == nil {
		return a, b
	}
	first, second := f.within(col)
	if !f.odd {
		v := loadElements(f.t, *f.bias, first, 2)
		return a.Add(ptx.F32(v[0])), b.Add(ptx.F32(v[1]))
	}
	return a.Add(ptx.F32(loadElements(f.t, *f.bias, first, 1)[0])), b.Add(ptx.F32(loadElements(f.t, *f.bias, second, 1)[0]))
}

// value returns the results of two elements, for an epilogue with one result of a floating-point
// type. Elements outside the matrix have undefined results. n is the index of the matrix.
func (f *finisher) value(n, row, col ptx.U32, a, b ptx.F32) (ptx.F32, ptx.F32) {
	a, b = f.biased(col, a, b)
	if f.after == nil {
		return a, b
	}
	row = n.MulAdd(f.rows, row.Min(f.rows.Sub(ptx.U(1))))
	first, second := f.within(col)
	if !f.odd {
		v := f.after.floats(row, first, row.MulAdd(f.cols, first), a, b)
		return v[0], v[1]
	}
	one := func(c ptx.U32, v ptx.F32) ptx.F32 { return f.after.floats(row, c, row.MulAdd(f.cols, c), v)[0] }
	return one(first, a), one(second, b)
}

// put stores the results with the stores of the epilogue.
func (f *finisher) put(n, row, col ptx.U32, a, b ptx.F32) {
	k := f.k
	k.If(row.Lt(f.rows), func() {
		a, b := f.biased(col, a, b)
		row := n.MulAdd(f.rows, row)
		if !f.odd {
			k.If(col.Lt(f.cols), func() { f.after.setRow(row, col, row.MulAdd(f.cols, col), a, b) })
			return
		}
		for j, v := range []ptx.F32{a, b} {
			c := col.Add(ptx.N(j))
			k.If(c.Lt(f.cols), func() { f.after.setRow(row, c, row.MulAdd(f.cols, c), v) })
		}
	})
}

// store stores the results of one type at their places in y.
func (f *finisher) store(y ptx.Global[ptx.U16], n, row, col ptx.U32, a, b ptx.F32) {
	k := f.k
	k.If(row.Lt(f.rows).And(col.Lt(f.cols)), func() {
		a, b := f.value(n, row, col, a, b)
		i := n.MulAdd(f.rows, row).MulAdd(f.cols, col)
		if f.t == op.F32 {
			to := ptx.Cast[ptx.F32](y).At(i)
			if !f.odd {
				to.Store2([2]ptx.F32{a, b})
				return
			}
			to.Store(a)
			k.If(col.Add(ptx.U(1)).Lt(f.cols), func() { to.Offset(1).Store(b) })
			return
		}
		to := y.At(i)
		v := pack(f.t, a, b)
		if !f.odd {
			ptx.Cast[ptx.B32](to).Store(v)
			return
		}
		to.Store(ptx.U16(v))
		k.If(col.Add(ptx.U(1)).Lt(f.cols), func() { to.Offset(1).Store(ptx.U16(v.Shr(ptx.U(16)))) })
	})
}

// pack rounds two numbers to the 16-bit type t and packs them in a register.
func pack(t op.DType, low, high ptx.F32) ptx.B32 {
	if t == op.F16 {
		return high.PackF16(low).B32()
	}
	return high.PackBF16(low).B32()
}

// storeFour stores four adjacent float32 results. The number of columns must be a multiple of four.
func (f *finisher) storeFour(y ptx.Global[ptx.U16], n, row, col ptx.U32, v [4]ptx.F32) {
	f.k.If(row.Lt(f.rows).And(col.Lt(f.cols)), func() {
		v[0], v[1] = f.value(n, row, col, v[0], v[1])
		v[2], v[3] = f.value(n, row, col.Add(ptx.U(2)), v[2], v[3])
		ptx.Cast[ptx.F32](y).At(n.MulAdd(f.rows, row).MulAdd(f.cols, col)).Store4(v)
	})
}
