package cpu

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
)

// columnScans has the scans whose state is one number, with the name of the kernel that combines it with an element. The name
// has no type. [UseRows] enters them.
var columnScans = map[*op.Operation]string{}

const (
	// scanInner is the minimum number of adjacent columns: each row of them takes a call.
	scanInner = 16
	// scanLanes is the maximum number of columns that are scanned together. Their last results stay in the L1 cache.
	scanLanes = 2048
	// scanPart is the number of elements of short arrays in a part.
	scanPart = 1 << 13
	// scanSteps is the number of elements of a column that are added in float32. Sums of blocks of that length are added in
	// float64.
	scanSteps = 256
)

// scansColumns reports whether a scanColumns can read, or write, an array of shape s in a layout.
func scansColumns(o *op.Operation, s op.Shape, l *op.Layout) bool {
	_, scans := columnScans[o]
	if !scans && !(expsColumns() && (o == op.Softmax || o == op.LogSoftmax)) || len(s) == 0 {
		return false
	}
	_, inner, ok := l.Columns(s.Rows())
	return ok && inner >= scanInner
}

// A scanColumns scans the middle axis of an array [outer cols inner], or computes its softmax, with adjacent columns in adjacent lanes. The memory of the
// operand, of the result, or of both has this order: see [op.Layout.Columns]. If one of them is row by row, its elements are
// moved before or after the scan.
type scanColumns struct {
	d                  *processor
	op                 *op.Operation
	typ                op.DType
	from, to           *op.Layout // nil for rows
	fn                 kernel
	exp                *expKernels // of a softmax
	outer, cols, inner int
	chunk, chunks      int // number of columns that are scanned together, and of such chunks
	unit               int // number of arrays [cols inner] in a part, if they have one chunk

	x, dst  unsafe.Pointer
	ctx     context.Context
	stopped atomic.Bool
}

// columnScan returns the core that scans columns, or nil if both the operand and the result are row by row.
func (o *opStep) columnScan() core {
	if o.in[0].layout == nil && o.out[0].layout == nil {
		return nil
	}
	return &scanColumns{d: o.d, from: o.in[0].layout, to: o.out[0].layout}
}

// operands implements typed.
func (t *scanColumns) operands(types []op.DType) { t.typ = types[0] }

// configure implements core.
func (t *scanColumns) configure(o *op.Operation, _ *op.Attrs, dims []op.Shape) error {
	name := columnScans[o]
	if t.typ != op.F32 && t.typ != op.InvalidType {
		word := t.typ
		if word == op.Bool {
			word = op.U32
		}
		name = word.String() + "." + name
	}
	l := t.from
	if l == nil {
		l = t.to
	}
	var ok bool
	rows, cols := dims[0].Rows()
	if t.outer, t.inner, ok = l.Columns(rows, cols); !ok {
		return fmt.Errorf("%s of %v: %w", o.Name(), l, driver.ErrUnsupported)
	}
	if t.from != nil && t.to != nil && *t.from != *t.to {
		return fmt.Errorf("%s from the layout %v to %v: %w", o.Name(), t.from, t.to, driver.ErrUnsupported)
	}
	t.op, t.cols = o, cols
	t.chunk = min(t.inner, scanLanes)
	if pageless && (o == op.Softmax || o == op.LogSoftmax) {
		t.exp, t.chunk = newExpKernels(), columnsAtOnce(cols, t.inner)
	} else if t.fn = kernelNamed(name); t.fn == nil {
		return fmt.Errorf("%s of %v: %w", o.Name(), t.typ, driver.ErrUnsupported)
	}
	if threads := t.d.pool.Threads(); t.outer < threads {
		t.chunk = max(scanInner, min(t.chunk, (t.inner+threads-1)/threads))
	}
	t.chunks, t.unit = (t.inner+t.chunk-1)/t.chunk, 1
	if t.chunks == 1 {
		t.unit = max(1, scanPart/max(1, t.cols*t.inner))
	}
	return nil
}

// compute implements core.
func (t *scanColumns) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	t.x, t.dst, t.ctx = in[0], out[0], ctx
	t.stopped.Store(false)
	defer func() { t.x, t.dst, t.ctx = nil, nil, nil }()
	n := t.outer * t.cols * t.inner
	if t.from == nil || t.to == nil {
		b, err := t.d.memory.Get(4 * n)
		if err != nil {
			return fmt.Errorf("temporary memory: %w", err)
		}
		defer b.Free()
		if t.to == nil {
			t.dst = base(b)
		} else {
			l, _ := t.to.Inverse(n) // columns have one
			t.x = base(b)
			bring(t.x, in[0], &l, 0, n, 4, false)
		}
	}
	if parts := (t.outer + t.unit - 1) / t.unit * t.chunks; parts > 1 && t.d.pool.Worth(float64(n)*0.5) {
		t.d.pool.Spread(parts, t.d.pool.Turn(), t)
	} else {
		for i := range parts {
			t.Part(i)
		}
	}
	if t.stopped.Load() {
		return ctx.Err()
	}
	if t.to == nil {
		bring(out[0], t.dst, t.from, 0, n, 4, false)
	}
	return nil
}

// Part implements workers.Task.
func (t *scanColumns) Part(i int) {
	if t.stopped.Load() || t.ctx.Err() != nil {
		t.stopped.Store(true)
		return
	}
	l := lanes.Get().(*lane)
	defer lanes.Put(l)
	j := i % t.chunks * t.chunk
	w := min(t.chunk, t.inner-j)
	for o := i / t.chunks * t.unit; o < min((i/t.chunks+1)*t.unit, t.outer); o++ {
		first := 4 * (o*t.cols*t.inner + j)
		x, dst := unsafe.Add(t.x, first), unsafe.Add(t.dst, first)
		if pageless && t.exp != nil {
			t.exp.softmax(l, dst, columnGroup{x, w, t.cols, t.inner, stepOf(columnsAtOnce(t.cols, t.inner))}, t.op == op.LogSoftmax)
		} else if t.op == op.Cumsum && t.typ == op.F32 {
			t.sums(l, dst, x, w)
		} else {
			copy(unsigned(dst, w), unsigned(x, w))
			t.steps(dst, x, w, t.cols)
		}
	}
}

// steps computes rows 1 to n-1 of dst: each is the previous row of dst combined with the row of x.
func (t *scanColumns) steps(dst, x unsafe.Pointer, w, n int) {
	for r := 1; r < n; r++ {
		at := 4 * r * t.inner
		t.fn(address(unsafe.Add(dst, at)), address(unsafe.Add(dst, at-4*t.inner)), address(unsafe.Add(x, at)), nil, w, nil)
	}
}

// sums computes the running sums of w columns of float32. It computes those of each block of scanSteps elements alone, and adds
// the sum of all elements before the block.
func (t *scanColumns) sums(l *lane, dst, x unsafe.Pointer, w int) {
	l.reserve(4 * w)
	sums := unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(l.extra))), w)
	before, local := l.extra[2*w:][:w], l.extra[3*w:][:w]
	clear(l.extra[:4*w])
	first := min(scanSteps, t.cols)
	t.fn(address(dst), &local[0], address(x), nil, w, nil) // 0 + -0 is 0
	t.steps(dst, x, w, first)
	if first == t.cols {
		return
	}
	copy(local, slice(unsafe.Add(dst, 4*(first-1)*t.inner), w))
	for r := first; r < t.cols; r++ {
		if r%scanSteps == 0 {
			for i, v := range local {
				sums[i] += float64(v)
				before[i], local[i] = float32(sums[i]), 0
			}
		}
		at := 4 * r * t.inner
		t.fn(&local[0], &local[0], address(unsafe.Add(x, at)), nil, w, nil)
		t.fn(address(unsafe.Add(dst, at)), &before[0], &local[0], nil, w, nil)
	}
}
