package cpu

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/simd"
)

// callElements is the maximum number of elements in one call of a kernel. The runtime cannot
// preempt a goroutine in assembly, and the context is checked only between calls.
const callElements = 64 << 10

// address returns p in the type of kernel arguments. With a conversion, the race detector would
// require four bytes at p, but there may be only a half float.
func address(p unsafe.Pointer) *float32 { return *(**float32)(unsafe.Pointer(&p)) }

// smallCall is the number of elements up to which calls are never split.
const smallCall = 2048

// A mapTask is a run of a program over its whole result, as a task for the workers.
type mapTask struct {
	d  *processor
	p  *program
	n  int // elements
	at []place

	ctx     context.Context
	chunk   int  // number of elements in a part
	back    bool // from the last element to the first
	past    bool // use non-temporal stores
	boxes   *boxes
	stopped atomic.Bool
}

// run computes all elements. l is a lane of the caller.
func (t *mapTask) run(ctx context.Context, l *lane) error {
	p := t.p
	if t.n == 0 {
		return nil
	}
	t.back, t.past, t.boxes = false, false, p.boxes
	if t.n <= smallCall {
		t.span(l, 0, t.n)
		return nil
	}
	t.ctx = ctx
	ns := p.cost.of(t.n)
	split, threads := t.d.pool.Worth(ns), 1
	if split {
		threads = t.d.pool.Threads()
	}
	t.back = t.d.pool.Turn()
	for i := range p.inputs {
		t.d.recent.reads(t.at[i].base)
	}
	var pass passing
	if p.passes {
		pass = p.streaming.choose(t.n, float64(t.n)*float64(p.cost.bytes), threads)
		if t.past = pass.path == 1; t.past {
			t.boxes = p.boxesPast
		}
	}
	t.stopped.Store(false)
	if k := parts(ns, threads); split && t.boxes != nil {
		k = min(k, t.boxes.count)
		t.chunk = (t.boxes.count + k - 1) / k
		t.d.pool.Spread((t.boxes.count+t.chunk-1)/t.chunk, t.back, t)
	} else if split {
		t.chunk = chunkOf(t.n, k)
		if p.piece > 0 {
			t.chunk = (t.chunk + p.piece - 1) / p.piece * p.piece
		}
		t.d.pool.Spread((t.n+t.chunk-1)/t.chunk, t.back, t)
	} else {
		from := time.Now()
		t.span(l, 0, t.n)
		if ns >= timedNS {
			p.cost.observe(t.n, t.n, time.Since(from))
		}
	}
	pass.ended(t.n)
	for i := p.inputs; i < len(t.at); i++ {
		t.d.recent.made(t.at[i].base, pass.t)
	}
	t.ctx = nil
	if t.stopped.Load() {
		return ctx.Err()
	}
	return nil
}

// Part implements workers.Task.
func (t *mapTask) Part(i int) {
	if b := t.boxes; b != nil {
		lo := i * t.chunk
		hi := min(lo+t.chunk, b.count)
		from := time.Now()
		t.copyBoxes(lo, hi)
		if i == 0 {
			t.p.cost.observe(t.n, t.n/b.count*hi, time.Since(from))
		}
		return
	}
	var l *lane
	if !t.p.straight {
		l = lanes.Get().(*lane)
	}
	lo := i * t.chunk
	hi := min(lo+t.chunk, t.n)
	from := time.Now()
	t.span(l, lo, hi)
	if i == 0 {
		t.p.cost.observe(t.n, hi, time.Since(from))
	}
	if l != nil {
		lanes.Put(l)
	}
}

// span computes elements lo to hi.
func (t *mapTask) span(l *lane, lo, hi int) {
	p := t.p
	if t.boxes != nil {
		t.copyBoxes(0, t.boxes.count)
		return
	}
	if !p.straight {
		l.begin(p, t.at, min(hi-lo, callElements))
		l.past = t.past
	}
	s := sweepOf(lo, hi, t.back)
	if p.piece > 0 {
		s = sweep{lo, hi, p.piece, false}
	}
	for first := true; ; first = false {
		lo, hi, ok := s.next()
		if !ok {
			break
		}
		if !first && (t.stopped.Load() || t.ctx.Err() != nil) {
			t.stopped.Store(true)
			break
		}
		if p.moves {
			p.streams[0].bring(unsafe.Add(t.at[1].base, lo*p.streams[1].size), t.at[0].base, lo, hi-lo, t.past)
			continue
		}
		if !p.straight {
			l.run(t.at, lo, hi)
			continue
		}
		c := &p.block[0]
		var par *float32
		if c.p != 0 {
			par = p.consts[int(c.p)-p.firstConst]
		}
		fn := c.fn
		if t.past {
			fn = c.past
		}
		fn(t.address(c.dst, lo), t.address(c.x, lo), t.address(c.y, lo), t.address(c.z, lo), hi-lo, par)
	}
	if t.past {
		simd.StreamFence()
	}
	if !p.straight {
		l.past = false
		l.end()
	}
}

// copyBoxes copies boxes lo to hi.
func (t *mapTask) copyBoxes(lo, hi int) {
	src, dst := (*uint32)(unsafe.Add(t.at[0].base, t.p.streams[0].layout.Off*t.p.streams[0].size)), (*uint32)(t.at[1].base)
	for i := lo; i < hi; i++ {
		if i > lo && t.ctx != nil && (t.stopped.Load() || t.ctx.Err() != nil) { // small arrays have no context
			t.stopped.Store(true)
			break
		}
		t.boxes.copy(dst, src, i, t.past)
	}
	if t.past {
		simd.StreamFence()
	}
}

// address returns the address of element i of the stream at a table entry.
func (t *mapTask) address(entry int32, i int) *float32 {
	if entry == 0 {
		return nil
	}
	return address(unsafe.Add(t.at[entry-1].base, i*t.p.streams[entry-1].size))
}

// mapStep is an elementwise step.
type mapStep struct{ p *program }

type mapRunner struct {
	task mapTask
	lane *lane
}

func (d *processor) prepareMap(s *driver.Step) (step, error) {
	p, err := d.fuse(s.Post, s.Out)
	if err != nil {
		return nil, err
	}
	return mapStep{p}, nil
}

func (s mapStep) runner(f *frame) runner {
	return &mapRunner{mapTask{d: f.d, p: s.p, n: s.p.n, at: make([]place, len(s.p.streams))}, &f.lane}
}

func (r *mapRunner) run(ctx context.Context, f *frame) error {
	r.task.bind(f)
	err := r.task.run(ctx, r.lane)
	clear(r.task.at)
	return err
}

// bind sets the addresses of the streams that have slots.
func (t *mapTask) bind(f *frame) {
	for i := range t.p.streams {
		if s := t.p.streams[i].slot; s >= 0 {
			t.at[i].base = f.base[s]
		}
	}
}
