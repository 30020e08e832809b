package cpu

import (
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// A nest is a program of one operation on two operands that broadcast in short rows, as loops over axes. One call of a kernel computes
// the rows of an axis. Other programs copy such operands to registers first, which takes longer than the operation.
type nest struct {
	call  call
	n     int   // elements of a row
	inner steps // distances between the elements of a row, in bytes
	axes  []nestAxis
	off   steps // of the first elements
}

// steps are distances in bytes in the result and in the operands.
type steps [3]int

// A nestAxis is an axis of a nest, and the distances of its elements.
type nestAxis struct {
	n int
	steps
}

// nestLimits are the limits of the rows of a nest, in elements. A kernel for rows takes 1.6 to 3 ns for a row of up to 32 elements on an
// Intel Xeon with AVX-512, 2026-11-29; the other limits are estimates.
var nestLimits = struct{ strided, stretched, plain, most int }{
	strided:   3,   // of operands that are copied otherwise, at least
	stretched: 6,   // of operands whose elements are repeated otherwise, at least
	plain:     32,  // of operations without a kernel for rows, at least
	most:      256, // at most; the kernels for longer rows can use non-temporal stores
}

// nestOf returns the loops of f, or nil if other programs are faster. The call is not set.
func nestOf(f *driver.Fused, out []driver.Operand) *nest {
	if newChain != nil || len(f.In) != 2 || len(f.Body) != 1 || len(out) != 1 || f.Round != op.InvalidType || out[0].Type.Size() != 4 {
		return nil
	}
	n, _ := f.Shape.Size() // fuse has checked it
	least, ls := nestLimits.most, [2]op.Layout{}
	for i := range f.In {
		in := &f.In[i]
		switch {
		case in.Type.Size() != 4:
			return nil
		case in.Broadcast == op.Strided:
			if p := periodOf(in.Layout); p == 0 || p > smallPeriod {
				least = min(least, nestLimits.strided)
			}
		case in.Broadcast == op.Repeated && n/max(1, in.N) <= smallRun:
			least = min(least, nestLimits.stretched)
		}
		var ok bool
		if ls[i], ok = layoutOf(in, n); !ok || ls[i].Windowed() {
			return nil
		}
	}
	axes := commonAxes(n, &ls)
	if len(axes) < 2 || axes[0].n < least || axes[0].n >= nestLimits.most {
		return nil
	}
	q := &nest{n: axes[0].n, inner: axes[0].steps, axes: axes[1:], off: steps{0, 4 * ls[0].Off, 4 * ls[1].Off}}
	if x, y := q.inner[1], q.inner[2]; x|y != 4 { // one of them is 4, or both are
		return nil
	}
	return q
}

// commonAxes returns the axes, from the last to the first, along which both layouts of n elements of 4 bytes have constant distances, or
// nil. Axes are merged if they are one axis in the layouts and in the result.
func commonAxes(n int, ls *[2]op.Layout) (axes []nestAxis) {
	var left, stride, next [2]int
	for i := range ls {
		left[i], next[i] = 1, int(ls[i].Rank)
	}
	for at := 4; at < 4*n; {
		for i := range ls {
			for left[i] == 1 && next[i] > 0 {
				next[i]--
				f := &ls[i].F[next[i]]
				left[i], stride[i] = f.N, 4*f.Stride
			}
		}
		m := min(left[0], left[1])
		if m == 1 || left[0]%m != 0 || left[1]%m != 0 {
			return nil
		}
		a := nestAxis{m, steps{at, stride[0], stride[1]}}
		if k := len(axes) - 1; k >= 0 && a.steps == axes[k].times(axes[k].n) {
			axes[k].n *= m
		} else {
			axes = append(axes, a)
		}
		for i := range ls {
			left[i], stride[i] = left[i]/m, stride[i]*m
		}
		at *= m
	}
	return axes
}

// times returns k steps.
func (s steps) times(k int) steps { return steps{k * s[0], k * s[1], k * s[2]} }

// adopt sets the call of the nest, if the program is a call that it can make, or returns false.
func (q *nest) adopt(p *program) bool {
	if len(p.block) != 1 || len(p.once)+len(p.segment) > 0 {
		return false
	}
	q.call = p.block[0]
	c := &q.call
	second := c.y
	if c.p != 0 {
		second = c.p
	}
	if c.z != 0 || c.y != 0 && c.p != 0 || int(c.dst) != 1+p.inputs || c.x == second || int(min(c.x, second)) != 1 || int(max(c.x, second)) != 2 {
		return false
	}
	if c.x == 2 { // order the distances as the operands of the call
		swap := func(s *steps) { s[1], s[2] = s[2], s[1] }
		swap(&q.inner)
		swap(&q.off)
		for i := range q.axes {
			swap(&q.axes[i].steps)
		}
	}
	return c.rows != nil || q.n >= nestLimits.plain
}

// run computes elements lo to hi of the result. A result or an operand may begin with a later element of the whole: see [place].
func (q *nest) run(at []place, lo, hi int) {
	places := [3]*place{&at[2], &at[q.call.x-1], &at[2-q.call.x]}
	var p [3]unsafe.Pointer
	from := q.off
	for i, a := range places {
		p[i] = a.base
		from[i] -= 4 * a.org
	}
	for lo < hi {
		row, col := lo/q.n, lo%q.n
		if n := min(q.n-col, hi-lo); n < q.n {
			off := q.seek(from, nil, row)
			for i := range off {
				off[i] += col * q.inner[i]
			}
			q.rows(p, off, n, 1, steps{})
			lo += n
			continue
		}
		n := (hi - lo) / q.n
		q.whole(p, from, row, n)
		lo += n * q.n
	}
}

// seek returns the offsets of a row from those of row 0, and sets the digits of its number unless they are nil.
func (q *nest) seek(off steps, digits *[op.MaxRank]int, row int) steps {
	for k := range q.axes {
		a := &q.axes[k]
		d := row % a.n
		row /= a.n
		for i := range off {
			off[i] += d * a.steps[i]
		}
		if digits != nil {
			digits[k] = d
		}
	}
	return off
}

// whole computes n rows from a row on. Row 0 is at the offsets from.
func (q *nest) whole(p [3]unsafe.Pointer, from steps, row, n int) {
	var digits [op.MaxRank]int
	off := q.seek(from, &digits, row)
	first := &q.axes[0]
	for {
		k := min(n, first.n-digits[0])
		q.rows(p, off, q.n, k, first.steps)
		if n -= k; n == 0 {
			return
		}
		// The rows of the first axis are complete.
		back := digits[0]
		digits[0] = 0
		for i, s := range first.steps {
			off[i] -= back * s
		}
		for k := 1; ; k++ {
			a := &q.axes[k]
			for i, s := range a.steps {
				off[i] += s
			}
			if digits[k]++; digits[k] < a.n {
				break
			}
			digits[k] = 0
			for i, s := range a.steps {
				off[i] -= a.n * s
			}
		}
	}
}

// rows computes k rows of n elements, which are at the offsets off from p and the given distances apart.
func (q *nest) rows(p [3]unsafe.Pointer, off steps, n, k int, by steps) {
	c := &q.call
	for i := range p {
		p[i] = unsafe.Add(p[i], off[i])
	}
	if c.rows != nil {
		c.rows((*float32)(p[0]), (*float32)(p[1]), (*float32)(p[2]), n, k, by[0], by[1], by[2])
		return
	}
	for ; ; k-- {
		if c.p != 0 {
			c.fn((*float32)(p[0]), (*float32)(p[1]), nil, nil, n, (*float32)(p[2]))
		} else {
			c.fn((*float32)(p[0]), (*float32)(p[1]), (*float32)(p[2]), nil, n, nil)
		}
		if k == 1 {
			return
		}
		for i := range p {
			p[i] = unsafe.Add(p[i], by[i])
		}
	}
}
