package cpu

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// plain has the data for calls of one built-in operation, so that a call needs only one lookup, by
// number.
type plain struct {
	fn     kernel // elementwise, over float32; else nil
	past   kernel // the same past the caches, or nil
	stream streaming
	cost   cost
	shots  sync.Pool // of *shot, for the others
}

// plains returns the entries for the catalogue.
func (d *processor) plains() []plain {
	all := op.Catalogue()
	ps := make([]plain, len(all))
	for i, o := range all {
		p := &ps[i]
		if o.Class() != op.Elementwise {
			if _, arity := o.Arity(); o.Class() == op.Reduction {
				p.cost.seed, p.cost.bytes = reduceNS, float32(4*arity)
			}
			if d.newCore(o) != nil {
				p.shots.New = func() any { return &shot{core: d.newCore(o)} }
			}
			continue
		}
		if o == op.Where || o == op.Cast {
			continue
		}
		_, arity := o.Arity()
		p.fn, p.past = kernelNamed(o.Name()), kernel(simd.Stream(o.Name()))
		p.cost.seed, p.cost.bytes = kernelNS(o.Name()), float32(4*arity+4)
	}
	return ps
}

// Run implements driver.Immediate.
func (d *processor) Run(ctx context.Context, s *driver.Step, ext []driver.Binding) (err error) {
	defer driver.Recovered(&err)
	if s.Op != nil {
		return d.runOperation(ctx, s, ext)
	}
	f := s.Post
	if len(f.Body) == 1 && len(s.Out) == 1 && f.Out[0] == len(f.In) && s.Out[0].Type == op.F32 {
		if in := &f.Body[0]; full(f.In) {
			var at [3]unsafe.Pointer
			n := s.Out[0].N
			if len(in.Args) > len(at) {
				return driver.ErrUnsupported
			}
			for i, a := range in.Args {
				b := ext[f.In[a].Slot].Host
				if len(b) < 4*n {
					return short(f.In[a].Slot, len(b), 4*n)
				}
				at[i] = unsafe.Pointer(unsafe.SliceData(b))
			}
			b := ext[s.Out[0].Slot].Host
			if len(b) < 4*n {
				return short(s.Out[0].Slot, len(b), 4*n)
			}
			dst := unsafe.Pointer(unsafe.SliceData(b))
			if id := in.Op.ID(); id >= 0 && d.plain[id].fn != nil {
				p := &d.plain[id]
				par := (*float32)(unsafe.Pointer(&in.Attrs.F))
				if n > smallCall {
					return d.runLarge(ctx, p, dst, &at, n, par)
				}
				if n > 0 {
					p.fn((*float32)(dst), (*float32)(at[0]), (*float32)(at[1]), (*float32)(at[2]), n, par)
				}
				return nil
			}
			if in.Op.ID() < 0 && inOrder(in.Args, len(f.In)) {
				return d.runUser(ctx, f, s.Out, dst, &at, n)
			}
		}
	}
	return d.runPrepared(ctx, s, ext)
}

// full reports whether all operands are float32, one element for each of the
// result.
func full(in []driver.Operand) bool {
	for i := range in {
		if in[i].Type != op.F32 || in[i].Broadcast != op.Full {
			return false
		}
	}
	return true
}

// inOrder reports whether args are the n operands, each once and in order.
func inOrder(args []int, n int) bool {
	for i, a := range args {
		if a != i {
			return false
		}
	}
	return len(args) == n
}

func short(slot, have, need int) error {
	return fmt.Errorf("operand %d has %d bytes of %d: %w", slot, have, need, driver.ErrShape)
}

// A chunkedCall is a call of one kernel over long operands.
type chunkedCall struct {
	p     *plain
	fn    kernel
	ptr   [4]unsafe.Pointer // the result and the operands
	par   [4]float32
	n     int
	chunk int
	back  bool
	past  bool
	timed bool

	ctx     context.Context
	stopped atomic.Bool
}

var chunkedCalls = sync.Pool{New: func() any { return new(chunkedCall) }}

// runLarge computes n elements in several calls, on several threads if that
// pays.
func (d *processor) runLarge(ctx context.Context, p *plain, dst unsafe.Pointer, at *[3]unsafe.Pointer, n int, par *float32) error {
	ns := p.cost.of(n)
	split, threads := d.pool.Worth(ns), 1
	if split {
		threads = d.pool.Threads()
	}
	s := chunkedCalls.Get().(*chunkedCall)
	s.p, s.fn, s.n, s.ctx, s.back = p, p.fn, n, ctx, d.pool.Turn()
	s.past, s.timed = false, ns >= timedNS
	s.ptr = [4]unsafe.Pointer{dst, at[0], at[1], at[2]}
	copy(s.par[:], unsafe.Slice(par, 4))
	s.stopped.Store(false)
	for _, a := range at {
		d.recent.reads(a)
	}
	var pass passing
	if p.past != nil && dst != at[0] && dst != at[1] && dst != at[2] {
		if pass = p.stream.choose(n, float64(n)*float64(p.cost.bytes), threads); pass.path == 1 {
			s.fn, s.past = p.past, true
		}
	}
	if split {
		s.chunk = chunkOf(n, parts(ns, threads))
		d.pool.Spread((n+s.chunk-1)/s.chunk, s.back, s)
	} else {
		s.chunk = n
		s.Part(0)
	}
	pass.ended(n)
	d.recent.made(dst, pass.t)
	stopped := s.stopped.Load()
	s.ptr, s.ctx = [4]unsafe.Pointer{}, nil
	chunkedCalls.Put(s)
	if stopped {
		return ctx.Err()
	}
	return nil
}

// chunkOf returns the size of the parts of n elements cut in k: whole pages, so
// that threads do not share lines.
func chunkOf(n, k int) int { return max((n+k-1)/k+1023, 1024) &^ 1023 }

// Part implements workers.Task.
func (s *chunkedCall) Part(i int) {
	w := sweepOf(i*s.chunk, min((i+1)*s.chunk, s.n), s.back)
	all := w.hi - w.lo
	timed := i == 0 && s.timed
	var from time.Time
	if timed {
		from = time.Now()
	}
	at := func(k, i int) *float32 {
		if s.ptr[k] == nil {
			return nil
		}
		return (*float32)(unsafe.Add(s.ptr[k], 4*i))
	}
	for first := i == 0; ; first = false {
		lo, hi, ok := w.next()
		if !ok {
			break
		}
		if !first && (s.stopped.Load() || s.ctx.Err() != nil) {
			s.stopped.Store(true)
			return
		}
		s.fn(at(0, lo), at(1, lo), at(2, lo), at(3, lo), hi-lo, &s.par[0])
	}
	if s.past {
		simd.StreamFence()
	}
	if timed {
		s.p.cost.observe(s.n, all, time.Since(from))
	}
}

// A shot has the data of a call of one operation that is not elementwise.
type shot struct {
	core core
	in   [op.MaxInputs]unsafe.Pointer
	out  [2]unsafe.Pointer
}

// runOperation runs a step of an operation that is not elementwise.
func (d *processor) runOperation(ctx context.Context, s *driver.Step, ext []driver.Binding) error {
	id := s.Op.ID()
	if id < 0 || d.plain[id].shots.New == nil || s.Pre != nil || s.Post != nil || !words32(s.In) || !words32(s.Out) ||
		s.Attrs.Act != nil && activation(s.Attrs.Act) == nil {
		return d.runPrepared(ctx, s, ext)
	}
	if len(s.In) > op.MaxInputs || len(s.Out) > 2 {
		return driver.ErrUnsupported
	}
	h := d.plain[id].shots.Get().(*shot)
	err := h.core.configure(s.Op, &s.Attrs, s.Dims)
	if err == nil {
		err = bindAll(h.in[:], s.In, s.Dims, ext)
	}
	if err == nil {
		err = bindAll(h.out[:], s.Out, s.Dims[len(s.In):], ext)
	}
	if err == nil {
		err = h.core.compute(ctx, h.in[:len(s.In)], h.out[:len(s.Out)])
	}
	clear(h.in[:])
	clear(h.out[:])
	d.plain[id].shots.Put(h)
	return err
}

func words32(os []driver.Operand) bool {
	for i := range os {
		if os[i].Slot >= 0 && os[i].Type.Size() != 4 {
			return false
		}
	}
	return true
}

// bindAll sets ptr to the memory of operands.
func bindAll(ptr []unsafe.Pointer, os []driver.Operand, dims []op.Shape, ext []driver.Binding) error {
	for i := range os {
		if os[i].Slot < 0 {
			continue
		}
		n, err := dims[i].Size()
		if err != nil {
			return err
		}
		b := ext[os[i].Slot].Host
		if len(b) < 4*n {
			return short(os[i].Slot, len(b), 4*n)
		}
		ptr[i] = unsafe.Pointer(unsafe.SliceData(b))
	}
	return nil
}

// runPrepared runs a step as a separate program.
func (d *processor) runPrepared(ctx context.Context, s *driver.Step, ext []driver.Binding) error {
	p := driver.Program{Steps: []driver.Step{*s}, Ext: len(ext)}
	for i := range ext {
		p.Slots = append(p.Slots, driver.Slot{Ext: i, Bytes: int64(len(ext[i].Host))})
	}
	e, err := d.Prepare(ctx, &p)
	if err != nil {
		return err
	}
	defer e.Close()
	_, err = e.Submit(ctx, &driver.Submission{Ext: ext, Wait: true})
	return err
}
