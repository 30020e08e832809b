package cpu

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// A reduceTask reduces each row of cols elements to one element. Every row is divided into blocks
// whose results are combined in order, so that results do not depend on the number of threads or on
// the split.
type reduceTask struct {
	d          *processor
	kind       simd.Reduction
	index      bool // results are I32
	ddof       int
	rows, cols int
	x, y       source
	dst        unsafe.Pointer
	cost       *cost

	ctx      context.Context
	stopped  atomic.Bool
	block    int  // number of elements in a block
	group    int  // number of rows, or of blocks of one row, in a part
	row      int  // -1 if parts are rows; otherwise the row whose blocks are the parts
	back     bool // from the last block to the first
	whole    int  // number of elements of all parts
	partials []simd.Partial
}

// madeBlock is the size of a block that a program computes. It should still be in the first-level
// cache when it is reduced.
const madeBlock = maxBlock

// sweptBlocks is the number of blocks in a piece of a sweep.
const sweptBlocks = 8

// reduceNS estimates the time to reduce an element: see kernelNS.
const reduceNS = 0.05

func (t *reduceTask) configure(o *op.Operation, a *op.Attrs, dims []op.Shape) error {
	t.index = t.kind == simd.ReduceArgMax || t.kind == simd.ReduceArgMin
	if o == op.Var {
		t.ddof = op.VarOptsOf(a).DDOF
	}
	if a.I[0] == op.AlongRows {
		t.rows, t.cols = dims[0].Rows()
	} else {
		n, err := dims[0].Size()
		if err != nil {
			return err
		}
		t.rows, t.cols = 1, n
	}
	return nil
}

// compute implements core.
func (t *reduceTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	t.x.base, t.dst = in[0], out[0]
	if len(in) > 1 {
		t.y.base = in[1]
	}
	err := t.run(ctx)
	t.x.base, t.y.base, t.dst = nil, nil, nil
	return err
}

func (t *reduceTask) run(ctx context.Context) error {
	n := t.rows * t.cols
	made := t.x.p != nil || t.y.p != nil
	t.block = simd.ReduceBlock
	if made {
		t.block = madeBlock
	}
	if t.rows == 1 && t.cols <= t.block && !made {
		t.put(0, t.kind.Block(t.x.in(0, n), t.y.in(0, n), 0))
		return nil
	}
	if n <= smallCall && !made && n > 0 {
		t.reduceRows(0, t.x.in(0, n), t.y.in(0, n), t.rows)
		return nil
	}
	ns := t.cost.of(n) + 5*float64(t.rows)
	threads := t.d.pool.Threads()
	t.ctx = ctx
	t.stopped.Store(false)
	split := t.d.pool.Worth(ns)
	t.d.recent.reads(t.x.base)
	t.d.recent.reads(t.y.base)
	t.back, t.whole = t.d.pool.Turn() && alternates(float64(n)*float64(t.cost.bytes), threads), n
	if t.rows < 4*threads && t.cols > 2*t.block {
		k := 1
		if split {
			k = parts(ns/float64(t.rows), threads)
		}
		t.longRows(k, split, made)
	} else {
		t.row = -1
		k := 1
		if split {
			k = parts(ns, threads)
		}
		t.group = max(1, (t.rows+k-1)/k)
		t.do((t.rows+t.group-1)/t.group, split)
	}
	t.ctx = nil
	if t.stopped.Load() {
		return ctx.Err()
	}
	return nil
}

// longRows reduces one row after the other, by blocks in k parts.
func (t *reduceTask) longRows(k int, split, made bool) {
	blocks := (t.cols + t.block - 1) / t.block
	if cap(t.partials) < blocks {
		t.partials = make([]simd.Partial, blocks)
	}
	t.partials = t.partials[:blocks]
	t.group = (blocks + k - 1) / k
	for t.row = range t.rows {
		t.do((blocks+t.group-1)/t.group, split)
		if t.stopped.Load() {
			return
		}
		p := t.kind.JoinAll(simd.Partial{}, t.partials)
		if !made {
			p = t.kind.Search(t.x.in(t.row*t.cols, (t.row+1)*t.cols), p)
		}
		t.put(t.row, p)
	}
}

func (t *reduceTask) do(parts int, split bool) {
	if split {
		t.d.pool.Spread(parts, t.back, t)
		return
	}
	for i := range parts {
		t.Part(i)
	}
}

// in returns elements lo to hi of a source in memory.
func (s *source) in(lo, hi int) []float32 {
	if s.base == nil {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Add(s.base, lo*4)), hi-lo)
}

// put stores the result of a row.
func (t *reduceTask) put(row int, p simd.Partial) {
	at := unsafe.Add(t.dst, row*4)
	if t.index {
		*(*int32)(at) = int32(t.kind.Index(p))
	} else {
		*(*float32)(at) = t.kind.Value(p, t.ddof)
	}
}

// Part implements workers.Task.
func (t *reduceTask) Part(i int) {
	lo := i * t.group
	if t.x.p == nil && t.y.p == nil {
		from := time.Now()
		var n int
		if t.row < 0 {
			hi := min(lo+t.group, t.rows)
			t.plainRows(lo, hi)
			n = (hi - lo) * t.cols
		} else {
			n = t.plainBlocks(lo, min(lo+t.group, len(t.partials)))
		}
		if i == 0 && n > 0 && !t.stopped.Load() {
			t.cost.observe(t.whole, n, time.Since(from))
		}
		return
	}
	x, y := lanes.Get().(*lane), lanes.Get().(*lane)
	// Compute several short rows at once.
	most := t.block
	if t.row < 0 && t.cols < t.block {
		most = max(t.x.rows(t.cols), t.y.rows(t.cols)) * t.cols
	}
	x.open(&t.x, most)
	y.open(&t.y, most)
	if t.row >= 0 {
		base := t.row * t.cols
		for b := lo; b < min(lo+t.group, len(t.partials)); b++ {
			if t.cancelled() {
				break
			}
			from, to := b*t.block, min((b+1)*t.block, t.cols)
			t.partials[b] = t.kind.Block(x.feed(&t.x, base+from, base+to), y.feed(&t.y, base+from, base+to), from)
		}
	} else {
		t.madeRows(x, y, lo, min(lo+t.group, t.rows), most)
	}
	x.shut(&t.x)
	y.shut(&t.y)
	lanes.Put(x)
	lanes.Put(y)
}

// plainBlocks reduces blocks of a row in memory and returns their elements.
func (t *reduceTask) plainBlocks(lo, hi int) int {
	base := t.row * t.cols
	s := sweep{lo, hi, sweptBlocks, t.back}
	for {
		b, end, ok := s.next()
		if !ok || t.cancelled() {
			break
		}
		from, to := b*t.block, min(end*t.block, t.cols)
		t.kind.Blocks(t.partials[b:end], t.x.in(base+from, base+to), t.y.in(base+from, base+to), from)
	}
	return min(hi*t.block, t.cols) - lo*t.block
}

// plainRows reduces rows that are in memory.
func (t *reduceTask) plainRows(lo, hi int) {
	step := max(1, callElements/max(1, t.cols))
	for r := lo; r < hi; r += step {
		if t.cancelled() {
			return
		}
		k := min(step, hi-r)
		t.reduceRows(r, t.x.in(r*t.cols, (r+k)*t.cols), t.y.in(r*t.cols, (r+k)*t.cols), k)
	}
}

// reduceRows reduces k rows from row r on, with elements x and y.
func (t *reduceTask) reduceRows(r int, x, y []float32, k int) {
	at := unsafe.Add(t.dst, r*4)
	if t.index {
		simd.ReduceRowsIndex(nil, t.kind, unsafe.Slice((*int32)(at), k), x, k, t.cols)
	} else {
		simd.ReduceRows(nil, t.kind, t.ddof, unsafe.Slice((*float32)(at), k), x, y, k, t.cols)
	}
}

// madeRows reduces rows that programs compute, at most most elements at once.
func (t *reduceTask) madeRows(x, y *lane, lo, hi, most int) {
	if t.cols <= most {
		step := max(1, most/max(1, t.cols))
		for r := lo; r < hi; r += step {
			if t.cancelled() {
				return
			}
			k := min(step, hi-r)
			from, to := r*t.cols, (r+k)*t.cols
			t.reduceRows(r, x.feed(&t.x, from, to), y.feed(&t.y, from, to), k)
		}
		return
	}
	for r := lo; r < hi; r++ {
		if t.cancelled() {
			return
		}
		var sum simd.Partial
		for from := 0; from < t.cols; from += t.block {
			to := min(from+t.block, t.cols)
			sum = t.kind.Join(sum, t.kind.Block(x.feed(&t.x, r*t.cols+from, r*t.cols+to), y.feed(&t.y, r*t.cols+from, r*t.cols+to), from))
		}
		t.put(r, sum)
	}
}

// cancelled reports whether the context has ended.
func (t *reduceTask) cancelled() bool {
	if t.stopped.Load() {
		return true
	}
	if t.ctx.Err() != nil {
		t.stopped.Store(true)
		return true
	}
	return false
}

// reduceStep is a reduction whose operands may be computed by programs block by block.
type reduceStep struct {
	*opStep
	kind simd.Reduction
}

type reduceRunner struct {
	s    reduceStep
	task reduceTask
	feed [2]*mapTask // bind the streams of the sources
	post *mapTask
}

// step implements [stepper].
func (t *reduceTask) step(o *opStep) (step, error) {
	o.reserve(&o.out[0])
	return reduceStep{o, t.kind}, nil
}

// choose implements [chooser].
func (t *reduceTask) choose(o *opStep) core {
	if o.in[0].typ.Float() && o.in[0].layout == nil {
		return nil
	}
	return &foldTask{d: t.d}
}

func (s reduceStep) runner(f *frame) runner {
	r := &reduceRunner{s: s}
	r.task.d, r.task.kind, r.task.cost = f.d, s.kind, &f.d.plainOf(s.op).cost
	// prepareOp has checked the shapes.
	_ = r.task.configure(s.op, &s.attrs, s.dims)
	c := &cost{seed: r.task.cost.seed, bytes: r.task.cost.bytes}
	for i, t := range tasksOf(f, s.in) {
		r.feed[i] = t
		if t != nil {
			src := [2]*source{&r.task.x, &r.task.y}[i]
			src.p, src.at = t.p, t.at
			c.seed += t.p.cost.seed
		}
	}
	if r.feed[0] != nil || r.feed[1] != nil {
		r.task.cost = c
	}
	r.post = tasksOf(f, s.out)[0]
	return r
}

func (r *reduceRunner) run(ctx context.Context, f *frame) error {
	t := &r.task
	for i := range r.s.in {
		src := [2]*source{&t.x, &t.y}[i]
		if m := r.feed[i]; m != nil {
			m.bind(f)
		} else {
			src.base = f.base[r.s.in[i].slot]
		}
	}
	a := &r.s.out[0]
	if r.post != nil {
		t.dst = unsafe.Add(f.temp, a.temp)
	} else {
		t.dst = f.base[a.slot]
	}
	if err := t.run(ctx); err != nil {
		return err
	}
	t.x.base, t.y.base = nil, nil
	if r.post == nil {
		return nil
	}
	r.post.bind(f)
	r.post.at[0].base = t.dst
	return r.post.run(ctx, &f.lane)
}
