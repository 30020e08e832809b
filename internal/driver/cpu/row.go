package cpu

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// A rowTask applies a row operation to rows of cols elements.
type rowTask struct {
	d          *processor
	op         simd.RowOp
	rows, cols int
	x          source
	dst        unsafe.Pointer // nil if post stores the results
	post       source         // its operand 0 is the result
	cost       *cost

	ctx     context.Context
	stopped atomic.Bool
	group   int // number of rows in a part
}

var (
	softmaxCost = cost{seed: 0.4, bytes: 8}
	normCost    = cost{seed: 0.25, bytes: 8}
)

// longRow is the length from which on a row is split among threads. Then prologue and epilogue are
// separate passes, because a long row does not stay in the cache until its epilogue.
const longRow = 1 << 16

// choose implements [chooser].
func (t *rowTask) choose(o *opStep) core { return o.columnScan() }

func (t *rowTask) configure(o *op.Operation, a *op.Attrs, dims []op.Shape) error {
	t.rows, t.cols = dims[0].Rows()
	t.op = simd.RowOp{}
	t.cost = &softmaxCost
	switch o {
	case op.Softmax:
		t.op.Kind = simd.RowSoftmax
	case op.LogSoftmax:
		t.op.Kind = simd.RowLogSoftmax
	case op.LayerNorm:
		t.op.Kind = simd.RowLayerNorm
		t.op.Eps = op.NormOptsOf(a).Eps
		t.cost = &normCost
	default:
		t.op.Kind = simd.RowRMSNorm
		t.op.Eps = op.NormOptsOf(a).Eps
		t.cost = &normCost
	}
	return nil
}

// weights sets the operands after the first.
func (t *rowTask) weights(in []unsafe.Pointer) {
	t.op.Gamma, t.op.Beta = nil, nil
	if len(in) > 1 && in[1] != nil {
		t.op.Gamma = unsafe.Slice((*float32)(in[1]), t.cols)
	}
	if len(in) > 2 && in[2] != nil {
		t.op.Beta = unsafe.Slice((*float32)(in[2]), t.cols)
	}
}

// compute implements core.
func (t *rowTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	t.x.base, t.dst = in[0], out[0]
	t.weights(in)
	err := t.run(ctx)
	t.x.base, t.dst = nil, nil
	t.op.Gamma, t.op.Beta = nil, nil
	return err
}

func (t *rowTask) run(ctx context.Context) error {
	n := t.rows * t.cols
	if n == 0 {
		return nil
	}
	made := t.x.p != nil || t.post.p != nil
	if n > smallCall {
		t.d.recent.reads(t.x.base)
	}
	if t.cols >= longRow && !made {
		for r := range t.rows {
			if err := ctx.Err(); err != nil {
				return err
			}
			t.op.Rows(t.d.pool, t.out(r, 1), t.x.in(r*t.cols, (r+1)*t.cols), 1, t.cols)
		}
		return nil
	}
	if n <= smallCall && !made {
		t.op.Rows(nil, t.out(0, t.rows), t.x.in(0, n), t.rows, t.cols)
		return nil
	}
	ns := t.cost.of(n) + 20*float64(t.rows)
	if !made && ns < timedNS {
		t.op.Rows(nil, t.out(0, t.rows), t.x.in(0, n), t.rows, t.cols)
		return nil
	}
	t.ctx = ctx
	t.stopped.Store(false)
	threads := t.d.pool.Threads()
	if t.d.pool.Worth(ns) {
		k := parts(ns, threads)
		t.group = (t.rows + k - 1) / k
		t.d.pool.Spread((t.rows+t.group-1)/t.group, t.d.pool.Turn(), t)
	} else {
		t.group = t.rows
		t.Part(0)
	}
	t.ctx = nil
	if t.stopped.Load() {
		return ctx.Err()
	}
	return nil
}

// out returns k rows of the result from row r on.
func (t *rowTask) out(r, k int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(t.dst, r*t.cols*4)), k*t.cols)
}

// Part implements workers.Task.
func (t *rowTask) Part(i int) {
	lo, hi := i*t.group, min((i+1)*t.group, t.rows)
	made := t.x.p != nil || t.post.p != nil
	// Process as many rows at once as fit into a block, or more if no program runs on them.
	k := max(1, callElements/t.cols)
	if made {
		k = max(1, madeBlock/t.cols)
	}
	var x, y *lane
	if made {
		x, y = lanes.Get().(*lane), lanes.Get().(*lane)
		x.open(&t.x, k*t.cols)
		if t.post.p != nil {
			y.open(&t.post, k*t.cols)
		}
	}
	for r := lo; r < hi; r += k {
		if t.stopped.Load() || t.ctx.Err() != nil {
			t.stopped.Store(true)
			break
		}
		m := min(k, hi-r)
		if !made {
			t.op.Rows(nil, t.out(r, m), t.x.in(r*t.cols, (r+m)*t.cols), m, t.cols)
			continue
		}
		in := x.feed(&t.x, r*t.cols, (r+m)*t.cols)
		if t.post.p == nil {
			t.op.Rows(nil, t.out(r, m), in, m, t.cols)
			continue
		}
		t.op.Rows(nil, y.extra[:m*t.cols], in, m, t.cols)
		y.at[0] = place{unsafe.Pointer(unsafe.SliceData(y.extra)), r * t.cols}
		y.run(y.at, r*t.cols, (r+m)*t.cols)
	}
	if made {
		x.shut(&t.x)
		y.shut(&t.post)
		lanes.Put(x)
		lanes.Put(y)
	}
}

// rowStep is a row operation with a prologue and an epilogue, which process each row while it is in
// the cache.
type rowStep struct{ *opStep }

type rowRunner struct {
	s    rowStep
	task rowTask
	in   []unsafe.Pointer
	pre  []*mapTask // the first computes the source, the others run before the operation
	post *mapTask
}

// long reports whether rows are split among threads.
func (o *opStep) long() bool {
	_, cols := o.dims[0].Rows()
	return cols >= longRow
}

// step implements [stepper].
func (t *rowTask) step(o *opStep) (step, error) {
	if o.long() {
		return nil, nil
	}
	for i := 1; i < len(o.in); i++ {
		o.reserve(&o.in[i])
	}
	return rowStep{o}, nil
}

func (s rowStep) runner(f *frame) runner {
	r := &rowRunner{s: s, in: make([]unsafe.Pointer, len(s.in))}
	t := &r.task
	t.d = f.d
	_ = t.configure(s.op, &s.attrs, s.dims)
	c := &cost{seed: t.cost.seed, bytes: t.cost.bytes}
	r.pre = tasksOf(f, s.in)
	if m := r.pre[0]; m != nil {
		t.x.p, t.x.at = m.p, m.at
		c.seed += m.p.cost.seed
	}
	if m := tasksOf(f, s.out)[0]; m != nil {
		r.post = m
		t.post.p, t.post.at = m.p, m.at
		c.seed += m.p.cost.seed
	}
	if t.x.p != nil || t.post.p != nil {
		t.cost = c
	}
	return r
}

func (r *rowRunner) run(ctx context.Context, f *frame) error {
	t := &r.task
	for i, m := range r.pre {
		a := &r.s.in[i]
		switch {
		case a.absent:
		case m == nil:
			r.in[i] = f.base[a.slot]
		case i == 0:
			m.bind(f)
		default:
			r.in[i] = unsafe.Add(f.temp, a.temp)
			m.bind(f)
			m.at[m.p.inputs].base = r.in[i]
			if err := m.run(ctx, &f.lane); err != nil {
				return err
			}
		}
	}
	t.x.base = r.in[0]
	t.weights(r.in)
	if r.post != nil {
		r.post.bind(f)
	} else {
		t.dst = f.base[r.s.out[0].slot]
	}
	err := t.run(ctx)
	t.x.base, t.dst = nil, nil
	return err
}
