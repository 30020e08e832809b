package cpu

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// plain has the data for calls of one built-in operation, so that a call needs only one lookup by
// ID.
type plain struct {
	fn     kernel // for elementwise operations over float32, otherwise nil
	past   kernel // the same with non-temporal stores, or nil
	stream streaming
	cost   cost
	shots  sync.Pool // of *shot, for the other operations
}

// plainOf returns the data for o, an operation of the catalogue.
func (d *processor) plainOf(o *op.Operation) *plain {
	at := &d.plain[o.ID()]
	if p := at.Load(); p != nil {
		return p
	}
	at.CompareAndSwap(nil, d.newPlain(o))
	return at.Load()
}

func (d *processor) newPlain(o *op.Operation) *plain {
	p := &plain{}
	_, arity := o.Arity()
	if o.Class() != op.Elementwise {
		if o.Class() == op.Reduction {
			p.cost.seed, p.cost.bytes = reduceNS, float32(4*arity)
		}
		p.shots.New = func() any {
			if c := d.newCore(o); c != nil {
				return &shot{core: c}
			}
			return nil // the operation has no core here, or its group is not linked yet
		}
		return p
	}
	if o != op.Where && o != op.Cast {
		p.fn, p.past = kernelNamed(o.Name()), kernel(simd.Stream(o.Name()))
		p.cost.seed, p.cost.bytes = kernelNS(o.Name()), float32(4*arity+4)
	}
	return p
}

// Elementwise implements [driver.Immediate].
func (d *processor) Elementwise(ctx context.Context, o *op.Operation, a *op.Attrs, dst, x, y, z []float32) (err error) {
	defer driver.Recovered(&err)
	id := o.ID()
	if id < 0 {
		return composed(d, ctx, o, a, dst, x, y, z)
	}
	p := d.plain[id].Load()
	if p == nil {
		p = d.plainOf(o)
	}
	if p.fn == nil {
		return composed(d, ctx, o, a, dst, x, y, z)
	}
	at := pointers(x, y, z)
	to, n := unsafe.Pointer(unsafe.SliceData(dst)), len(dst)
	par := (*float32)(unsafe.Pointer(&a.F))
	if n > smallCall {
		return d.runLarge(ctx, p, to, &at, n, par)
	}
	if n > 0 {
		p.fn((*float32)(to), (*float32)(at[0]), (*float32)(at[1]), (*float32)(at[2]), n, par)
	}
	return nil
}

// pointers returns the addresses of the operands.
func pointers(x, y, z []float32) [3]unsafe.Pointer {
	return [...]unsafe.Pointer{unsafe.Pointer(unsafe.SliceData(x)), unsafe.Pointer(unsafe.SliceData(y)), unsafe.Pointer(unsafe.SliceData(z))}
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

// runLarge computes n elements in several calls, on several threads if this is faster.
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

// chunkOf returns the size of a part if n elements are divided into k parts: whole pages, so that
// threads do not share cache lines.
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
	dims [op.MaxInputs + maxResults]op.Shape
	in   [op.MaxInputs]unsafe.Pointer
	out  [maxResults]unsafe.Pointer
}

// maxResults is the maximum number of results of an operation here.
const maxResults = 2

// Call implements [driver.Immediate].
func (d *processor) Call(ctx context.Context, o *op.Operation, a *op.Attrs, in, out []driver.Host) (err error) {
	defer driver.Recovered(&err)
	id := o.ID()
	if id < 0 || !words32(in) || !words32(out) || a.Act != nil && activation(a.Act) == nil {
		return d.callPrepared(ctx, o, a, in, out)
	}
	if len(in) > op.MaxInputs || len(out) > maxResults {
		return driver.ErrUnsupported
	}
	p := d.plain[id].Load()
	if p == nil {
		p = d.plainOf(o)
	}
	h, ok := p.shots.Get().(*shot)
	if !ok {
		return d.callPrepared(ctx, o, a, in, out)
	}
	bind(h.in[:], h.dims[:], in)
	bind(h.out[:], h.dims[len(in):], out)
	if err = h.core.configure(o, a, h.dims[:len(in)+len(out)]); err == nil {
		err = h.core.compute(ctx, h.in[:len(in)], h.out[:len(out)])
	}
	clear(h.dims[:])
	clear(h.in[:])
	clear(h.out[:])
	p.shots.Put(h)
	return err
}

// words32 reports whether all elements have 32 bits.
func words32(hosts []driver.Host) bool {
	for i := range hosts {
		if t := hosts[i].Type; t != op.InvalidType && t.Size() != 4 {
			return false
		}
	}
	return true
}

// bind sets the addresses and the shapes of arrays.
func bind(at []unsafe.Pointer, dims []op.Shape, hosts []driver.Host) {
	for i := range hosts {
		dims[i] = hosts[i].Shape()
		if hosts[i].Type != op.InvalidType {
			at[i] = unsafe.Pointer(unsafe.SliceData(hosts[i].Data))
		}
	}
}

// elementwisePrepared runs an elementwise operation without a single kernel as a program.
func (d *processor) elementwisePrepared(ctx context.Context, o *op.Operation, a *op.Attrs, dst, x, y, z []float32) error {
	if o.ID() < 0 {
		at := pointers(x, y, z)
		return d.runUser(ctx, o, unsafe.Pointer(unsafe.SliceData(dst)), &at, len(dst))
	}
	f := oneInstruction(o)
	f.Body[0].Attrs, f.Shape = *a, op.Shape{len(dst)}
	var data [][]byte
	for i, x := range [][]float32{x, y, z}[:len(f.In)] {
		f.In[i].N = len(x)
		data = append(data, bytesOf(x))
	}
	out := []driver.Operand{{Slot: len(data), Type: op.F32, N: len(dst)}}
	return d.runPrepared(ctx, driver.Step{Post: f, Out: out}, append(data, bytesOf(dst)))
}

// bytesOf returns the memory of x.
func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

// callPrepared runs an operation of another class as a program.
func (d *processor) callPrepared(ctx context.Context, o *op.Operation, a *op.Attrs, in, out []driver.Host) error {
	s := driver.Step{Op: o, Attrs: *a}
	var data [][]byte
	add := func(to *[]driver.Operand, hosts []driver.Host) {
		for i := range hosts {
			h := &hosts[i]
			s.Dims = append(s.Dims, h.Shape())
			if h.Type == op.InvalidType {
				*to = append(*to, driver.Operand{Slot: -1})
				continue
			}
			n := 0
			if size := h.Type.Size(); size > 0 {
				n = len(h.Data) / size
			}
			*to = append(*to, driver.Operand{Slot: len(data), Type: h.Type, N: n})
			data = append(data, h.Data)
		}
	}
	add(&s.In, in)
	add(&s.Out, out)
	return d.runPrepared(ctx, s, data)
}

// runPrepared runs a step as a program, with the memory of its slots.
func (d *processor) runPrepared(ctx context.Context, s driver.Step, data [][]byte) error {
	p := driver.Program{Steps: []driver.Step{s}, Ext: len(data)}
	ext := make([]driver.Binding, len(data))
	for i, b := range data {
		p.Slots = append(p.Slots, driver.Slot{Ext: i, Bytes: int64(len(b))})
		ext[i].Host = b
	}
	e, err := d.prepare(ctx, &p)
	if err != nil {
		return err
	}
	defer e.Close()
	_, err = e.Submit(ctx, &driver.Submission{Ext: ext, Wait: true})
	return err
}
