package cpu

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
)

// callElements is the most elements that one call of a kernel gets: the
// runtime cannot stop a goroutine in assembly, and a cancelled context is
// noticed between calls only.
const callElements = 64 << 10

// address returns p as kernels take it. A conversion would make the race
// detector ask that there be four bytes, where there may be one half.
func address(p unsafe.Pointer) *float32 { return *(**float32)(unsafe.Pointer(&p)) }

// smallCall is the number of elements up to which nobody asks whether a kernel
// might be split.
const smallCall = 2048

// A mapTask is a program over its whole result, on its way through the
// workers.
type mapTask struct {
	d  *processor
	p  *program
	n  int // elements
	at []place

	ctx     context.Context
	chunk   int // elements of a part
	stopped atomic.Bool
}

// run computes all elements. l is a lane of the caller's.
func (t *mapTask) run(ctx context.Context, l *lane) error {
	p := t.p
	if t.n == 0 {
		return nil
	}
	if t.n <= smallCall {
		t.span(l, 0, t.n)
		return nil
	}
	ns := p.cost.of(t.n)
	if t.d.pool.Worth(ns) {
		t.ctx = ctx
		t.stopped.Store(false)
		k := parts(ns, t.d.pool.Threads())
		t.chunk = chunkOf(t.n, k)
		t.d.pool.Do((t.n+t.chunk-1)/t.chunk, t)
		t.ctx = nil
		if t.stopped.Load() {
			return ctx.Err()
		}
		return nil
	}
	if ns < timedNS {
		t.span(l, 0, t.n)
		return nil
	}
	from := time.Now()
	for lo := 0; lo < t.n; lo += callElements {
		if lo > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		t.span(l, lo, min(lo+callElements, t.n))
	}
	p.cost.learn(t.n, time.Since(from))
	return nil
}

// Part implements workers.Task.
func (t *mapTask) Part(i int) {
	var l *lane
	if !t.p.straight {
		l = lanes.Get().(*lane)
	}
	lo := i * t.chunk
	hi := min(lo+t.chunk, t.n)
	from := time.Now()
	for ; lo < hi; lo += callElements {
		if t.stopped.Load() || t.ctx.Err() != nil {
			t.stopped.Store(true)
			break
		}
		t.span(l, lo, min(lo+callElements, hi))
	}
	if i == 0 && hi == t.chunk {
		t.p.cost.learn(hi, time.Since(from))
	}
	if l != nil {
		lanes.Put(l)
	}
}

// span computes elements lo to hi.
func (t *mapTask) span(l *lane, lo, hi int) {
	p := t.p
	if p.straight {
		c := &p.block[0]
		var par *float32
		if c.p != 0 {
			par = p.consts[int(c.p)-p.firstConst]
		}
		c.fn(t.address(c.dst, lo), t.address(c.x, lo), t.address(c.y, lo), t.address(c.z, lo), hi-lo, par)
		return
	}
	l.begin(p, t.at, hi-lo)
	l.run(t.at, lo, hi)
	l.end()
}

// address returns where element i of the stream of a table entry is.
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

// bind notes where the streams are that have slots.
func (t *mapTask) bind(f *frame) {
	for i := range t.p.streams {
		if s := t.p.streams[i].slot; s >= 0 {
			t.at[i].base = f.base[s]
		}
	}
}
