package cpu

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
)

// A columnExpTask computes logsumexp of the middle axis of an array [outer cols inner]. A long axis is divided into parts, and short
// rows are joined to longer ones; the logsumexp of their results is the result. Results do not depend on the number of threads.
type columnExpTask struct {
	d                  *processor
	layout             *op.Layout
	exp                *expKernels
	outer, cols, inner int
	joined             int // number of rows that are one row of a group
	parts, chunks      int // number of parts of the middle axis, and of chunks of the last axis
	part, chunk        int // their length; that of a part in joined rows
	unit               int // number of arrays in a piece of work, if they have one part and one chunk
	partials           int // number of results of an array that are combined in the end, for each column; 0 if there is one

	x, dst, scratch unsafe.Pointer
	merging         bool
	ctx             context.Context
	stopped         atomic.Bool
}

const (
	// expPart is the number of elements of a group of columns from which on the axis is divided into parts.
	expPart = 128 << 10
	// expLanes is the number of columns to which shorter rows are joined.
	expLanes = 64
	// expUnit is the number of elements of short arrays in a piece of work.
	expUnit = 16 << 10
)

// exponentials returns the core for logsumexp of columns, or nil if foldTask is faster: it transposes small arrays.
func (o *opStep) exponentials() core {
	l, s := o.in[0].layout, o.dims[0]
	if !expsColumns() || o.op != op.LogSumExp || l == nil || o.attrs.I[0] != op.AlongRows || o.in[0].typ != op.F32 {
		return nil
	}
	_, cols := s.Rows()
	if _, inner, ok := l.Columns(s.Rows()); !ok || cols == 0 || inner < scanInner && cols*inner <= foldShort {
		return nil
	}
	return &columnExpTask{d: o.d, layout: l}
}

// configure implements core.
func (t *columnExpTask) configure(o *op.Operation, _ *op.Attrs, dims []op.Shape) error {
	rows, cols := dims[0].Rows()
	var ok bool
	if t.outer, t.inner, ok = t.layout.Columns(rows, cols); !ok {
		return fmt.Errorf("%s of %v: %w", o.Name(), t.layout, driver.ErrUnsupported)
	}
	t.cols, t.exp, t.joined, t.partials = cols, newExpKernels(), 1, 0
	for t.joined*t.inner < expLanes && 4*t.joined <= cols {
		t.joined *= 2
	}
	steps := cols / t.joined
	t.chunk = columnsAtOnce(steps, t.joined*t.inner)
	if t.joined > 1 {
		t.chunk = t.joined * t.inner
	}
	t.chunks = (t.joined*t.inner + t.chunk - 1) / max(1, t.chunk)
	t.part = max(expSteps, expPart/max(1, t.chunk))
	t.parts = (steps + t.part - 1) / t.part
	if t.partials = t.parts * t.joined; cols%t.joined > 0 {
		t.partials++
	}
	if t.partials == 1 {
		t.partials = 0
	}
	t.unit = 1
	if t.parts*t.chunks == 1 {
		t.unit = max(1, expUnit/max(1, cols*t.inner))
	}
	return nil
}

// compute implements core.
func (t *columnExpTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	if t.outer*t.inner == 0 {
		return nil
	}
	t.x, t.dst, t.scratch, t.ctx = in[0], out[0], out[0], ctx
	t.stopped.Store(false)
	defer func() { t.x, t.dst, t.scratch, t.ctx = nil, nil, nil, nil }()
	if t.partials > 0 {
		b, err := t.d.memory.Get(4 * t.outer * t.partials * t.inner)
		if err != nil {
			return fmt.Errorf("temporary memory: %w", err)
		}
		defer b.Free()
		t.scratch = base(b)
	}
	ns := float64(t.outer) * (100 + 0.6*float64(t.cols*t.inner))
	t.merging = false
	t.spread((t.outer+t.unit-1)/t.unit*t.parts*t.chunks, ns)
	if t.partials > 0 && !t.stopped.Load() {
		t.merging = true
		t.spread((t.outer+t.unit-1)/t.unit, float64(t.outer)*(100+float64(t.partials*t.inner)))
	}
	if t.stopped.Load() {
		return ctx.Err()
	}
	return nil
}

// spread executes n pieces of work, on several threads if this is faster.
func (t *columnExpTask) spread(n int, ns float64) {
	if t.d.pool.Worth(ns) {
		t.d.pool.Spread(n, t.d.pool.Turn(), t)
		return
	}
	for i := range n {
		t.Part(i)
	}
}

// Part implements workers.Task.
func (t *columnExpTask) Part(i int) {
	if t.stopped.Load() || t.ctx.Err() != nil {
		t.stopped.Store(true)
		return
	}
	l := lanes.Get().(*lane)
	defer lanes.Put(l)
	pieces := t.parts * t.chunks
	if t.merging {
		pieces = 1
	}
	first := i / pieces * t.unit
	for o := first; o < min(first+t.unit, t.outer); o++ {
		if t.merging {
			t.merge(l, o)
		} else {
			t.piece(l, o, i%pieces/t.chunks, i%t.chunks)
		}
	}
}

// piece computes a part of the middle axis in a chunk of the last, of array o.
func (t *columnExpTask) piece(l *lane, o, part, chunk int) {
	stride, j := t.joined*t.inner, chunk*t.chunk
	from, steps := part*t.part, t.cols/t.joined
	g := columnGroup{unsafe.Add(t.x, 4*(o*t.cols*t.inner+from*stride+j)), min(t.chunk, stride-j), min(t.part, steps-from), stride, stepOf(t.chunk)}
	results := max(1, t.partials)
	to := unsafe.Add(t.scratch, 4*((o*results+part*t.joined)*t.inner+j))
	t.exp.logSumExp(l, slice(to, g.w), g)
	if rest := t.cols % t.joined; rest > 0 && part == t.parts-1 {
		g = columnGroup{unsafe.Add(t.x, 4*(o*t.cols+t.cols-rest)*t.inner), t.inner, rest, t.inner, stepOf(t.inner)}
		t.exp.logSumExp(l, slice(unsafe.Add(t.scratch, 4*(o*results+results-1)*t.inner), t.inner), g)
	}
}

// merge combines the results of the parts of array o.
func (t *columnExpTask) merge(l *lane, o int) {
	for j := 0; j < t.inner; j += expMost {
		g := columnGroup{unsafe.Add(t.scratch, 4*(o*t.partials*t.inner+j)), min(expMost, t.inner-j), t.partials, t.inner, stepOf(t.inner)}
		t.exp.logSumExp(l, slice(unsafe.Add(t.dst, 4*(o*t.inner+j)), g.w), g)
	}
}
