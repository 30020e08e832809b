package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/ptxgen"
	"github.com/rayo-go/rayo/op"
)

// executable is a prepared program. It is immutable except for the code of kernels for unaligned
// memory, which is compiled when it is needed, and statistics.
type executable struct {
	d     *gpuDevice
	slots []driver.Slot
	steps []step
	ends  []int // number of steps up to the end of each step of the program

	driver.Externals

	// The memory of a submission: the arena, then the memory of steps, then staged operands.
	scratch  int64 // bytes of the arena and of the memory of steps
	faults   []*driver.Kernel
	constant Memory  // memory of constant slots and of the constants of steps
	consts   []int64 // offset of each constant slot, -1 for other slots
	direct   bool    // kernels may use host memory: see run.place
	single   bool    // the program reads and writes each element once

	mu    sync.Mutex
	codes []*code // under mu

	pausing *code // kernel of run.pause for the current submission

	calls  int // number of calls of all steps, 0 if they cannot be recorded
	graphs graphs

	inUse driver.RefBarrier
}

// step is a part of a submission.
type step interface {
	enqueue(r *run) error
	// calls returns the number of driver calls of the step, or 0 if they cannot be recorded.
	calls() int
}

// place says where an array of a step is.
type place struct {
	kind placeKind
	slot int   // slot of the program
	off  int64 // offset in the scratch memory or among the constants
}

type placeKind uint8

const (
	inSlot placeKind = iota
	inScratch
	inConstant
)

// arrayRef is an array that a step uses.
type arrayRef struct {
	place
	bytes int64
}

const alignment = 256

func alignUp(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }

// preparer makes an executable.
type preparer struct {
	*executable
	data  []byte // constants
	local int64  // bytes of scratch memory of the current step
	most  int64  // maximum of local over the steps
}

// Prepare implements [driver.Device].
func (d *gpuDevice) Prepare(ctx context.Context, p *driver.Program) (x driver.Executable, err error) {
	defer driver.Recovered(&err)
	if d.closed.Load() {
		return nil, driver.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e := &preparer{executable: &executable{d: d, slots: p.Slots, Externals: driver.ExternalsOf(p), direct: true}}
	e.scratch = alignUp(p.Arena)
	for i := range p.Slots {
		at := int64(-1)
		if b := p.Slots[i].Data; b != nil {
			at = e.keep(b)
		}
		e.consts = append(e.consts, at)
	}
	for i := range p.Steps {
		if err = ctx.Err(); err == nil {
			e.local = 0
			err = e.step(&p.Steps[i])
			e.most = max(e.most, e.local)
			e.ends = append(e.ends, len(e.steps))
		}
		if err != nil {
			e.release()
			return nil, fmt.Errorf("step %d, %s: %w", i, p.Steps[i].Name(), err)
		}
	}
	e.scratch += alignUp(e.most)
	if len(e.data) > 0 {
		if err := e.upload(ctx); err != nil {
			e.release()
			return nil, err
		}
	}
	e.single = len(p.Steps) == 1 && once(&p.Steps[0])
	e.count()
	return e.executable, nil
}

// once reports whether a step reads each element of its operands once.
func once(s *driver.Step) bool {
	switch {
	case s.Kernel != nil:
		return false
	case s.Op != nil:
		return s.Op.Class() == op.Reduction && s.Post == nil && len(s.In) == 1
	}
	return s.Post.Once()
}

// count counts the driver calls of a submission, including one copy to the device and one back.
func (e *preparer) count() {
	n := 0
	for _, s := range e.steps {
		c := s.calls()
		if c == 0 {
			return
		}
		n += c
	}
	if !e.direct {
		for i := range e.Need {
			if e.Need[i] > 0 {
				n += 2
				break
			}
		}
	}
	e.calls = n
}

// keep adds constants and returns their offset.
func (e *preparer) keep(b []byte) int64 {
	at := alignUp(int64(len(e.data)))
	e.data = append(e.data, make([]byte, at-int64(len(e.data)))...)
	e.data = append(e.data, b...)
	return at
}

// upload copies the constants to the device.
func (e *preparer) upload(ctx context.Context) error {
	d := e.d
	m, err := d.hw.Alloc(alignUp(int64(len(e.data))))
	if err != nil {
		return d.translateError(err)
	}
	e.constant = m
	t := d.order.Take()
	if err := t.Await(ctx); err != nil {
		return err
	}
	defer t.End()
	return d.translateError(d.hw.Upload(m.Ptr(), e.data))
}

// Reserve implements [driver.Arrays].
func (e *preparer) Reserve(bytes int64) arrayRef {
	at := alignUp(e.local)
	e.local = at + bytes
	return arrayRef{place{kind: inScratch, off: e.scratch + at}, bytes}
}

// Constant implements [driver.Arrays].
func (e *preparer) Constant(data []byte) arrayRef {
	return arrayRef{place{kind: inConstant, off: e.keep(data)}, int64(len(data))}
}

// At implements [driver.Arrays].
func (e *preparer) At(o driver.Operand) arrayRef {
	return arrayRef{place{kind: inSlot, slot: o.Slot}, e.slots[o.Slot].Bytes}
}

// compile returns the kernel of p. The executable uses it until it is closed.
func (e *executable) compile(p programKey) (*code, error) {
	k, err := e.d.cache.get(p)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	e.codes = append(e.codes, k)
	e.mu.Unlock()
	return k, nil
}

// step prepares one step.
func (e *preparer) step(s *driver.Step) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch {
	case s.Kernel != nil:
		return e.launch(s)
	case s.Op == nil:
		return e.fused(s.Post, nil, s.Out)
	}
	return e.operation(s)
}

// request is a request of the portable library with the memory of its arrays.
type request = driver.Request[arrayRef]

// request returns an empty request.
func (e *preparer) request() *request {
	return &request{Request: portable.Request{Target: libraryTarget, Tuning: e.d.tuned()}}
}

// fused prepares an elementwise program. If operand 0 is not in a slot, first is its memory.
func (e *preparer) fused(f *driver.Fused, first *arrayRef, out []driver.Operand) error {
	if src, is := driver.Copied(e, f, first, out); is {
		return e.copy(e.At(out[0]), src)
	}
	// Pass constants as operands, so that one kernel serves all of them.
	exprs, params, err := f.Parametric(driver.MaxParams)
	if err != nil {
		return err
	}
	exprs = ir.Contract(exprs...)
	scalars := driver.Scalars(e, params)
	if err := e.nativeMap(f, exprs, first, scalars, out); err == nil || !errors.Is(err, op.ErrUnsupported) {
		return err
	}
	o := ptxgen.Options{Coherent: true}
	if moved, to, size := movedBits(f, first, out); size > 0 {
		f, out, o.ElementBytes = moved, to, size
		if exprs, _, err = f.Parametric(0); err != nil {
			return err
		}
	}
	r := e.request()
	if err := r.Program(e, f, exprs, first, scalars, out); err != nil {
		return err
	}
	if err := e.plan(r, o); err != nil {
		return err
	}
	return r.Narrow(e)
}

// movesBits reports whether elements of type t, which kernels of the library do not read, are moved as integers of their
// size.
func movesBits(t op.DType) bool { return t.Storage() || t == op.BF16 }

// transpose prepares a transposition of elements that are moved as integers as an elementwise program.
func (e *preparer) transpose(s *driver.Step) error {
	x := s.In[0]
	l, ok := op.Transpose.Layout(&s.Attrs, op.RowMajor(x.N), s.Dims[0], s.Dims[1], x.Type)
	if !ok {
		return op.ErrUnsupported
	}
	x.Broadcast, x.Layout = op.Strided, &l
	return e.fused(&driver.Fused{In: []driver.Operand{x}, Out: []int{0}, Shape: s.Dims[1]}, nil, s.Out)
}

// movedBits returns a program that only moves elements of one byte or of bfloat16, and its result, with elements of U32
// instead. Kernels access such elements by their size in memory, so that no conversion is needed. For other programs
// size is 0.
func movedBits(f *driver.Fused, first *arrayRef, out []driver.Operand) (moved *driver.Fused, to []driver.Operand, size int) {
	if first != nil || len(f.In) != 1 || len(f.Out) != 1 || f.Out[0] != 0 || f.In[0].Type != out[0].Type {
		return nil, nil, 0
	}
	x, y := f.In[0], out[0]
	if !movesBits(x.Type) {
		return nil, nil, 0
	}
	size = x.Type.Size()
	x.Type, y.Type = op.U32, op.U32 // the fill of a layout has the same low bits
	m := *f
	m.In = []driver.Operand{x}
	return &m, []driver.Operand{y}, size
}

// copy adds a copy of all of dst.
func (e *preparer) copy(dst, src arrayRef) error {
	e.direct = false
	src.bytes = dst.bytes
	e.steps = append(e.steps, &copyStep{dst, src})
	return nil
}

// operation prepares an operation that is not elementwise.
func (e *preparer) operation(s *driver.Step) error {
	if s.Reshapes() {
		return e.copy(e.At(s.Out[0]), e.At(s.In[0]))
	}
	if s.Op == op.Transpose && s.Post == nil && movesBits(s.In[0].Type) {
		return e.transpose(s)
	}
	if err := e.nativeOperation(s); err == nil || !errors.Is(err, op.ErrUnsupported) {
		return err
	}
	r := e.request()
	if err := r.Operation(e, s); err != nil {
		return err
	}
	e.direct = e.direct && (s.Op.Class() == op.Reduction || s.Op.Class() == op.Row)
	from := r.From
	if r.InPlace {
		from = from[1:]
	}
	if err := e.copyOverlaps(from, r.To); err != nil {
		return err
	}
	l := e.lowering(e, func(r *request) error { return e.plan(r, ptxgen.Options{}) }, e.orReference)
	return l.Operation(r, s)
}

// lowering returns the functions that lower steps to kernels with the given arrays.
func (e *preparer) lowering(a driver.Arrays[arrayRef], kernel, alone func(r *request) error) *driver.Lowering[arrayRef] {
	return &driver.Lowering[arrayRef]{Arrays: a, Mark: e.mark, Kernel: kernel, Alone: alone, Program: e.fused}
}

// mark returns a function that removes all steps that were added after the call to mark, and their
// memory.
func (e *preparer) mark() func() {
	local, steps := e.local, len(e.steps)
	return func() { e.local, e.steps = local, e.steps[:steps] }
}

// copyOverlaps copies operands that share memory with results, because kernels of the library read
// and write in any order.
func (e *preparer) copyOverlaps(in, out []arrayRef) error {
	temporary := func(a arrayRef) (lo, hi int64, ok bool) {
		s := &e.slots[a.slot]
		return s.Off, s.Off + a.bytes, a.kind == inSlot && a.bytes > 0 && s.Ext < 0 && s.Data == nil
	}
	for i, x := range in {
		lo, hi, ok := temporary(x)
		if !ok {
			continue
		}
		for _, y := range out {
			if l, h, ok := temporary(y); ok && lo < h && l < hi {
				in[i] = e.Reserve(x.bytes)
				if err := e.copy(in[i], x); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// plan adds the launches that compute a request.
func (e *preparer) plan(r *request, o ptxgen.Options) error {
	p, err := portable.For(&r.Request)
	if err != nil {
		return err
	}
	local := e.local
	arrays := driver.Bound(e, p, r.From, r.To)
	var launches []step
	for i := range p.Stages {
		l, err := e.stage(&p.Stages[i], arrays[i], o)
		if err != nil {
			e.local = local
			return err
		}
		launches = append(launches, l)
	}
	e.steps = append(e.steps, launches...)
	return nil
}

// stage returns the launch for a stage of a plan.
func (e *preparer) stage(s *portable.Stage, arrays []arrayRef, o ptxgen.Options) (*launch, error) {
	p, err := s.Kernel.Program()
	if err != nil {
		return nil, err
	}
	if err := launchable(s.Grid); err != nil {
		return nil, err
	}
	l := &launch{e: e.executable, program: p, options: o, grid: s.Grid, params: s.Params, fault: -1, slot: -1}
	for i, a := range arrays {
		if err := l.bind(&p.Bindings[i], a); err != nil {
			return nil, err
		}
	}
	l.code, err = e.compile(programKey{p: p, o: o})
	return l, err
}

// launchable returns an error for a grid that no GPU can run.
func launchable(g [3]uint32) error {
	if g[0] > math.MaxInt32 || g[1] > 65535 || g[2] > 65535 {
		return fmt.Errorf("the grid of %v workgroups is too large: %w", g, driver.ErrLimit)
	}
	return nil
}

// launch prepares a user's kernel.
func (e *preparer) launch(s *driver.Step) error {
	k := s.Kernel
	if err := launchable(k.Grid); err != nil {
		return err
	}
	o := ptxgen.Options{Checked: true, ParamsInMemory: k.Params >= 0}
	l := &launch{e: e.executable, program: k.Program, options: o, grid: k.Grid, slot: k.Params, fault: len(e.faults)}
	for i, slot := range k.Bind {
		if err := l.bind(&k.Program.Bindings[i], arrayRef{place{kind: inSlot, slot: slot}, e.slots[slot].Bytes}); err != nil {
			return err
		}
	}
	var err error
	if l.code, err = e.compile(programKey{p: k.Program, o: o}); err != nil {
		return err
	}
	e.direct = false
	e.faults = append(e.faults, k)
	e.steps = append(e.steps, l)
	return nil
}

// Compile implements [driver.Compiler].
func (d *gpuDevice) Compile(ctx context.Context, p *ir.Program) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.closed.Load() {
		return driver.ErrClosed
	}
	k, err := d.cache.get(programKey{p: p, o: ptxgen.Options{Checked: true}})
	if err != nil {
		return err
	}
	d.cache.put(k)
	return nil
}

// release frees the resources of the executable.
func (e *executable) release() {
	e.graphs.free(e.d)
	if e.constant != nil {
		_ = e.constant.Free()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, k := range e.codes {
		e.d.cache.put(k)
	}
	e.codes = nil
}

// Close implements [driver.Executable].
func (e *executable) Close() { e.inUse.Shut(e.release) }
