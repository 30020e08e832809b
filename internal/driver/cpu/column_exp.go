package cpu

import (
	"math"
	"runtime"
	"unsafe"

	"github.com/rayo-go/rayo/simd"
)

// Softmax and logsumexp of the middle axis of an array [outer cols inner] process some adjacent columns at a time. The exponentials
// of these columns stay in the second cache, or in the first one if the axis is short.

const (
	// expColumns is the number of columns that are processed together, if there are so many.
	expColumns = 64
	// expMost is the number of elements up to which more columns are processed together. It is also the number of elements of a block.
	expMost = 8 << 10
	// expKept is the number of exponentials of a softmax up to which they are kept. More are computed twice.
	expKept = 128 << 10
	// expSteps is the number of rows whose exponentials are added in one float32, because the error grows with the steps.
	expSteps = 256
)

// pageless is false in pages, where a call of a kernel takes as long as a thousand elements, and where the linker leaves these kernels out.
const pageless = runtime.GOARCH != "wasm"

// expsColumns reports whether there are kernels for groups of columns.
func expsColumns() bool { return pageless && simd.Active() != simd.SIMD128 }

// columnsAtOnce returns the number of columns of an array that are processed together.
func columnsAtOnce(cols, inner int) int {
	return min(inner, max(expColumns, expMost/max(1, cols)&^15))
}

// A columnGroup is a group of w adjacent columns in memory: rows rows, which are stride elements apart. The exponentials of step rows
// are added in one float32, then the sums of these blocks. The rounding of results depends on step, which therefore must not depend on
// the number of threads.
type columnGroup struct {
	x               unsafe.Pointer
	w, rows, stride int
	step            int
}

// stepOf returns the number of rows of a block of groups of at most w columns.
func stepOf(w int) int { return min(expSteps, max(1, expMost/max(1, w))) }

// expKernels are the kernels for groups of columns.
type expKernels struct {
	add, exp, log, recip kernel
	sub, mul, maximum    rowKernel
	foldMaximum, foldAdd simd.ColumnFold
}

// A rowKernel is an elementwise kernel of two operands, and the same for many rows, or nil.
type rowKernel struct {
	one  kernel
	many simd.MapRowsFunc
}

func newExpKernels() *expKernels {
	rows := func(name string) rowKernel { return rowKernel{kernelNamed(name), simd.MapRows(name)} }
	return &expKernels{add: kernelNamed("add"), exp: kernelNamed("exp"), log: kernelNamed("log"), recip: kernelNamed("recip"),
		sub: rows("sub"), mul: rows("mul"), maximum: rows("maximum"),
		foldMaximum: simd.FoldColumns("f32.maximum"), foldAdd: simd.FoldColumns("f32.add")}
}

// each computes rows rows of w elements. The rows of dst, x and y are ds, xs and ys elements apart.
func (k *rowKernel) each(dst, x, y unsafe.Pointer, w, rows, ds, xs, ys int) {
	most := 1
	if k.many != nil {
		most = max(1, callElements/w)
	}
	for r := 0; r < rows; r += most {
		to, from, with := unsafe.Add(dst, 4*r*ds), unsafe.Add(x, 4*r*xs), unsafe.Add(y, 4*r*ys)
		if k.many != nil {
			k.many((*float32)(to), (*float32)(from), (*float32)(with), w, min(most, rows-r), 4*ds, 4*xs, 4*ys)
		} else {
			k.one((*float32)(to), (*float32)(from), (*float32)(with), nil, w, nil)
		}
	}
}

// fold combines acc with each row of g, by f or, if it is nil, by k.
func (g columnGroup) fold(acc []float32, f simd.ColumnFold, k kernel) {
	to := &acc[0]
	if f == nil {
		for r := range g.rows {
			k(to, to, (*float32)(unsafe.Add(g.x, 4*r*g.stride)), nil, g.w, nil)
		}
		return
	}
	for from, most := 0, max(1, callElements/g.w); from < g.rows; from += most {
		f((*uint32)(unsafe.Pointer(to)), (*uint32)(unsafe.Add(g.x, 4*from*g.stride)), g.w, min(most, g.rows-from), g.stride)
	}
}

// inPlace applies a kernel of one operand.
func inPlace(f kernel, x []float32) {
	for len(x) > 0 {
		n := min(len(x), callElements)
		f(&x[0], &x[0], nil, nil, n, nil)
		x = x[n:]
	}
}

// greatest sets top to the greatest element of each column of g.
func (e *expKernels) greatest(top []float32, g columnGroup) {
	copy(top, slice(g.x, g.w))
	if g.rows > 1 { // a pointer past the last row could leave the array
		g.x, g.rows = unsafe.Add(g.x, 4*g.stride), g.rows-1
		g.fold(top, e.foldMaximum, e.maximum.one)
	}
}

// sums sets sum to the sum of e**(x-top) of each column of g. The exponentials of a block of rows are in block; if keep is set, it has room
// for those of all rows. part has w elements.
func (e *expKernels) sums(sum, part, block, top []float32, g columnGroup, keep bool) {
	for r := 0; r < g.rows; r += g.step {
		rows := min(g.step, g.rows-r)
		if keep && r > 0 {
			block = block[g.step*g.w:]
		}
		at := unsafe.Pointer(&block[0])
		e.sub.each(at, unsafe.Add(g.x, 4*r*g.stride), unsafe.Pointer(&top[0]), g.w, rows, g.w, g.stride, 0)
		inPlace(e.exp, block[:rows*g.w])
		to := part
		if r == 0 {
			to = sum
		}
		clear(to)
		columnGroup{x: at, w: g.w, rows: rows, stride: g.w}.fold(to, e.foldAdd, e.add)
		if r > 0 {
			e.add(&sum[0], &sum[0], &part[0], nil, g.w, nil)
		}
	}
}

// room returns the number of elements for four rows of w elements and a block of exponentials, of rows rows if keep is set.
func (g columnGroup) room(keep bool) int {
	rows := min(g.rows, g.step)
	if keep {
		rows = g.rows
	}
	return (4 + rows) * g.w
}

// softmax sets the columns at dst, whose rows are as far apart as those of g, to the softmax of the columns of g, or to its logarithm.
func (e *expKernels) softmax(l *lane, dst unsafe.Pointer, g columnGroup, log bool) {
	w, keep := g.w, !log && g.rows*g.w <= expKept
	l.reserve(g.room(keep))
	top, sum, part, block := l.extra[:w], l.extra[w:2*w], l.extra[2*w:3*w], l.extra[4*w:]
	e.greatest(top, g)
	e.sums(sum, part, block, top, g, keep)
	from, by, made := unsafe.Pointer(&top[0]), unsafe.Pointer(&sum[0]), unsafe.Pointer(&block[0])
	if log {
		inPlace(e.log, sum)
		e.sub.each(dst, g.x, from, w, g.rows, g.stride, g.stride, 0)
		e.sub.each(dst, dst, by, w, g.rows, g.stride, g.stride, 0)
		return
	}
	inPlace(e.recip, sum)
	step := g.rows
	if !keep {
		step = g.step
	}
	for r := 0; r < g.rows; r += step {
		rows, at := min(step, g.rows-r), 4*r*g.stride
		if !keep { // compute the exponentials again
			e.sub.each(made, unsafe.Add(g.x, at), from, w, rows, w, g.stride, 0)
			inPlace(e.exp, block[:rows*w])
		}
		e.mul.each(unsafe.Add(dst, at), made, by, w, rows, g.stride, w, 0)
	}
}

// logSumExp sets dst to the logarithms of the sums of the exponentials of the columns of g.
func (e *expKernels) logSumExp(l *lane, dst []float32, g columnGroup) {
	w := g.w
	l.reserve(g.room(false))
	top, sum, part, from, block := l.extra[:w], l.extra[w:2*w], l.extra[2*w:3*w], l.extra[3*w:4*w], l.extra[4*w:]
	e.greatest(top, g)
	copy(from, top)
	if most := simd.ReduceMaxAbs.Value(simd.ReduceMaxAbs.Block(top, nil, 0), 0); !(most < float32(math.Inf(1))) {
		for i, v := range from { // no infinity is subtracted from another
			if math.IsInf(float64(v), 0) {
				from[i] = 0
			}
		}
	}
	e.sums(sum, part, block, from, g, false)
	inPlace(e.log, sum)
	e.add(&dst[0], &sum[0], &from[0], nil, w, nil)
}
