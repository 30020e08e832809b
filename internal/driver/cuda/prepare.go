package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/ptxgen"
	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
)

// executable is a prepared program. It does not change but for the code of
// kernels for unaligned memory, which is made when it is needed, and what is
// counted.
type executable struct {
	d     *gpuDevice
	slots []driver.Slot
	steps []step
	ends  []int // how many steps there are up to each step of the program

	driver.Externals
	params []bool // by external slot: it is a block of parameters; nil if there are none

	// The memory of a submission: the arena, then what steps use, then what is
	// staged.
	scratch  int64 // bytes of the first two
	faults   []*driver.Kernel
	constant Memory  // of constant slots and of constants of steps
	consts   []int64 // offset of each constant slot, -1 for others
	direct   bool    // kernels may use the memory of the host: see run.place
	single   bool    // and read and write each element of it once

	mu    sync.Mutex
	codes []*code // under mu

	calls  int // of all steps, 0 if they cannot be recorded
	graphs graphs

	gate driver.Gate
}

// step puts one step into the stream.
type step interface {
	enqueue(r *run) error
	// calls returns how many calls that is, 0 if they cannot be recorded.
	calls() int
}

// place is where an array of a step is.
type place struct {
	kind placeKind
	slot int   // of the program
	off  int64 // in the scratch memory or among the constants
}

type placeKind uint8

const (
	inSlot placeKind = iota
	inScratch
	inConstant
)

// arrayRef is an array that a kernel is bound to.
type arrayRef struct {
	place
	bytes int64
}

const alignment = 256

func alignUp(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }

// preparer makes an executable.
type preparer struct {
	*executable
	data  []byte // of constants
	local int64  // scratch memory of the present step
	most  int64  // of any step
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

// once reports whether a step reads each element of what it reads once.
func once(s *driver.Step) bool {
	switch {
	case s.Kernel != nil:
		return false
	case s.Op != nil:
		return s.Op.Class() == op.Reduction && s.Post == nil && len(s.In) == 1
	}
	for _, x := range s.Post.In {
		if x.Spread != op.Full && x.Spread != op.Scalar {
			return false
		}
	}
	return true
}

// count counts the calls of a submission, those of a copy to the device and of
// one back among them.
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

// upload brings the constants to the device.
func (e *preparer) upload(ctx context.Context) error {
	d := e.d
	m, err := d.hw.Alloc(alignUp(int64(len(e.data))))
	if err != nil {
		return d.meaning(err)
	}
	e.constant = m
	t := d.turns.Take()
	if err := t.Await(ctx); err != nil {
		return err
	}
	defer t.End()
	return d.meaning(d.hw.Upload(m.Ptr(), e.data))
}

// reserve gives out scratch memory of the present step.
func (e *preparer) reserve(bytes int64) place {
	at := alignUp(e.local)
	e.local = at + bytes
	return place{kind: inScratch, off: e.scratch + at}
}

// compile returns the kernel of p, which is the executable's until it is closed.
func (e *executable) compile(p programKey) (*code, error) {
	k, err := e.d.codes.get(p)
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
	switch {
	case s.Kernel != nil:
		return e.launch(s)
	case s.Op == nil && s.Post == nil:
		return fmt.Errorf("empty step: %w", driver.ErrUnsupported)
	case s.Op == nil:
		return e.fused(s.Post, nil, s.Out)
	case s.Op.Class() == op.Elementwise:
		return fmt.Errorf("elementwise, but not as a program: %w", driver.ErrUnsupported)
	}
	return e.operation(s)
}

// at returns where an operand is.
func (e *preparer) at(o driver.Operand) arrayRef {
	return arrayRef{place{kind: inSlot, slot: o.Slot}, e.slots[o.Slot].Bytes}
}

// maxParams is up to how many parameters of an elementwise program are operands:
// each is a load, and what is constant lets functions be shorter that come after it.
// Programs that have more are not likely to come with others.
const maxParams = 4

// scalar is a parameter as an operand.
var scalar = lib.Operand{Type: op.F32, Spread: op.Scalar, N: 1}

// fused prepares an elementwise program; where operand 0 is not in a slot, first
// says where it is.
func (e *preparer) fused(f *driver.Fused, first *arrayRef, out []driver.Operand) error {
	if from, ok := e.identity(f, first, out); ok {
		e.copy(e.at(out[0]), from)
		return nil
	}
	// Parameters that are operands spare compiling a kernel for each.
	exprs, params, err := f.Parametric(maxParams)
	if err != nil {
		return err
	}
	exprs = ir.Contract(exprs...)
	var scalars []arrayRef
	for _, v := range params {
		b := binary.NativeEndian.AppendUint32(nil, math.Float32bits(v))
		scalars = append(scalars, arrayRef{place{kind: inConstant, off: e.keep(b)}, 4})
	}
	if err := e.nativeMap(f, exprs, first, scalars, out); err == nil || !errors.Is(err, op.ErrUnsupported) {
		return err
	}
	r := &lib.Request{Post: &lib.Epilogue{Exprs: exprs}, Target: libraryTarget, Tuning: e.d.tuned()}
	var in []arrayRef
	for i, x := range f.In {
		if i == 0 && first != nil {
			r.Post.In = append(r.Post.In, lib.Operand{Type: x.Type, Spread: x.Spread, N: x.N})
			in = append(in, *first)
			continue
		}
		o, a, err := e.operand(x)
		if err != nil {
			return err
		}
		r.Post.In, in = append(r.Post.In, o), append(in, a)
	}
	for _, a := range scalars {
		r.Post.In, in = append(r.Post.In, scalar), append(in, a)
	}
	shapes := make([]op.Shape, len(out))
	for i := range shapes {
		shapes[i] = f.Shape
	}
	to, narrow := e.results(r, out, shapes)
	if err := e.plan(r, in, to, ptxgen.Options{Coherent: true}); err != nil {
		return err
	}
	return narrow()
}

// identity reports whether an elementwise program copies an array as it is, and
// which.
func (e *preparer) identity(f *driver.Fused, first *arrayRef, out []driver.Operand) (arrayRef, bool) {
	if len(f.Out) != 1 || f.Out[0] >= len(f.In) {
		return arrayRef{}, false
	}
	x := &f.In[f.Out[0]]
	if x.Type != out[0].Type || x.Spread != op.Full || x.N != out[0].N {
		return arrayRef{}, false
	}
	if f.Out[0] == 0 && first != nil {
		return *first, true
	}
	return e.at(*x), true
}

// copy adds a copy of all of dst.
func (e *preparer) copy(dst, src arrayRef) {
	e.direct = false
	src.bytes = dst.bytes
	e.steps = append(e.steps, &copyStep{dst, src})
}

// operation prepares an operation that is not elementwise.
func (e *preparer) operation(s *driver.Step) error {
	if len(s.Dims) != len(s.In)+s.Op.Results() || s.Pre != nil {
		return fmt.Errorf("%d shapes of %d operands, %d prologues: %w", len(s.Dims), len(s.In), len(s.Pre), driver.ErrUnsupported)
	}
	types := make([]op.DType, len(s.In))
	for i, x := range s.In {
		if x.Slot >= 0 {
			types[i] = x.Type
		}
	}
	made, err := s.Op.Types(&s.Attrs, types)
	if err != nil {
		return err
	}
	shapes := make([]op.Shape, len(s.Out))
	for i, o := range s.Out {
		shapes[i] = shapeOf(s.Dims[len(s.In)])
		if s.Post == nil {
			shapes[i] = shapeOf(s.Dims[len(s.In)+i])
		}
		if s.Post == nil && i < len(made) && o.Type != made[i] {
			return fmt.Errorf("result %d of type %v, not %v: %w", i, o.Type, made[i], driver.ErrUnsupported)
		}
	}
	if s.Op == op.Reshape && s.Post == nil && s.In[0].Slot >= 0 {
		e.copy(e.at(s.Out[0]), e.at(s.In[0]))
		return nil
	}
	if err := e.nativeOperation(s, shapes, made); err == nil || !errors.Is(err, op.ErrUnsupported) {
		return err
	}
	r := &lib.Request{Op: s.Op, Attrs: s.Attrs, Target: libraryTarget, Tuning: e.d.tuned()}
	var in []arrayRef
	for i, x := range s.In {
		if x.Slot < 0 {
			r.In, in = append(r.In, lib.Array{}), append(in, arrayRef{})
			continue
		}
		o, a, err := e.operand(x)
		if err != nil {
			return err
		}
		r.In, in = append(r.In, lib.Array{Type: o.Type, Shape: shapeOf(s.Dims[i])}), append(in, a)
	}
	to, narrow := e.results(r, s.Out, shapes)
	e.direct = e.direct && (s.Op.Class() == op.Reduction || s.Op.Class() == op.Row)
	e.apart(in, to)
	if s.Post == nil {
		if err := e.orReference(r, in, to, func() error { return e.plan(r, in, to, ptxgen.Options{}) }); err != nil {
			return err
		}
		return narrow()
	}
	// The epilogue in the same kernel, or behind it.
	exprs, err := s.Post.Expressions()
	if err != nil {
		return err
	}
	plain := *r
	with := in
	r.Post = &lib.Epilogue{Exprs: exprs}
	for _, x := range s.Post.In[1:] {
		o, a, err := e.operand(x)
		if err != nil {
			return err
		}
		r.Post.In, with = append(r.Post.In, o), append(with[:len(with):len(with)], a)
	}
	err = e.plan(r, with, to, ptxgen.Options{})
	if err == nil {
		return narrow()
	}
	if !errors.Is(err, op.ErrUnsupported) {
		return err
	}
	n, err := shapes[0].Size()
	if err != nil {
		return err
	}
	t := inKernels(made[0])
	result := arrayRef{bytes: int64(n) * int64(t.Size())}
	result.place = e.reserve(result.bytes)
	plain.Out = []lib.Array{{Type: t, Shape: shapes[0]}}
	if err := e.orReference(&plain, in, []arrayRef{result}, func() error { return e.plan(&plain, in, []arrayRef{result}, ptxgen.Options{}) }); err != nil {
		return err
	}
	post := *s.Post
	post.In = append([]driver.Operand(nil), post.In...)
	post.In[0].Type = t
	return e.fused(&post, &result, s.Out)
}

// shapeOf returns a shape that is not nil: absent arrays have nil.
func shapeOf(s op.Shape) op.Shape {
	if s == nil {
		return op.Shape{}
	}
	return s
}

// apart copies operands that share memory with results: kernels of the library
// read and write in an order of their own.
func (e *preparer) apart(in, out []arrayRef) {
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
				moved := arrayRef{e.reserve(x.bytes), x.bytes}
				e.copy(moved, x)
				in[i] = moved
				break
			}
		}
	}
}

// plan adds the launches that compute a request. refs are its operands, those of
// the epilogue behind them.
func (e *preparer) plan(r *lib.Request, in, out []arrayRef, o ptxgen.Options) error {
	p, err := lib.For(r)
	if err != nil {
		return err
	}
	temp := make([]arrayRef, len(p.Scratch))
	local := e.local
	for i, n := range p.Scratch {
		temp[i] = arrayRef{e.reserve(n), n}
	}
	var launches []step
	for i := range p.Stages {
		s := &p.Stages[i]
		prog, err := s.Kernel.Program()
		if err == nil {
			err = launchable(s.Grid)
		}
		l := &launch{e: e.executable, program: prog, options: o, grid: s.Grid, params: s.Params, fault: -1, slot: -1}
		for j, ref := range s.Bind {
			var a arrayRef
			switch ref.Kind {
			case lib.InputRef:
				a = in[ref.Index]
			case lib.OutputRef:
				a = out[ref.Index]
			case lib.ScratchRef:
				a = temp[ref.Index]
			default:
				c := p.Constants[ref.Index]
				a = arrayRef{place{kind: inConstant, off: e.keep(c)}, int64(len(c))}
			}
			if err == nil {
				err = l.bind(&prog.Bindings[j], a)
			}
		}
		if err == nil {
			l.code, err = e.compile(programKey{p: prog, o: o})
		}
		if err != nil {
			e.local = local
			return err
		}
		launches = append(launches, l)
	}
	e.steps = append(e.steps, launches...)
	return nil
}

// launchable returns an error for a grid that no GPU runs.
func launchable(g [3]uint32) error {
	if g[0] > math.MaxInt32 || g[1] > 65535 || g[2] > 65535 {
		return fmt.Errorf("a grid of %v workgroups: %w", g, driver.ErrLimit)
	}
	return nil
}

// launch prepares a user's kernel.
func (e *preparer) launch(s *driver.Step) error {
	k := s.Kernel
	if err := launchable(k.Grid); err != nil {
		return err
	}
	o := ptxgen.Options{Checked: true}
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
	if k.Params >= 0 && e.slots[k.Params].Ext >= 0 {
		if e.params == nil {
			e.params = make([]bool, len(e.Need))
		}
		e.params[e.slots[k.Params].Ext] = true
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
	k, err := d.codes.get(programKey{p: p, o: ptxgen.Options{Checked: true}})
	if err != nil {
		return err
	}
	d.codes.put(k)
	return nil
}

// release gives back what the executable holds.
func (e *executable) release() {
	e.graphs.free(e.d)
	if e.constant != nil {
		_ = e.constant.Free()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, k := range e.codes {
		e.d.codes.put(k)
	}
	e.codes = nil
}

// Close implements [driver.Executable].
func (e *executable) Close() { e.gate.Shut(e.release) }
