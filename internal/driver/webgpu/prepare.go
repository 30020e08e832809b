package webgpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ir"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
)

// executable is a prepared program. It does not change but for what it keeps for
// later submissions.
type executable struct {
	d     *device
	slots []driver.Slot
	steps []step
	ends  []int // how many of them there are up to each step of the program
	// hosted are the places of the steps that compute on the host.
	hosted []int

	driver.Externals
	uses  []int // by external slot: steps that have it
	apart []int // likewise: results with different numbers may lie in one buffer

	temps    []int64 // bytes of the temporary buffers: parts of the arena, then those of steps
	single   bool    // it is one kernel that reads and writes each element once
	uniforms int64   // bytes of the parameters that come with each submission
	fixed    *gpu.Buffer
	params   *gpu.Buffer

	codes []*code

	layouts layouts

	gate driver.Gate
}

// step is a part of a submission.
type step interface {
	record(r *recorder) error
}

// place is where an array of a step is.
type place struct {
	kind placeKind
	at   int // external slot, or temporary buffer
	off  int64
}

type placeKind uint8

const (
	external placeKind = iota
	temporary
	constant
)

// arrayRef is an array that a step uses.
type arrayRef struct {
	place
	bytes int64
}

// part returns a part of an array.
func (a arrayRef) part(off, bytes int64) arrayRef {
	a.off += off
	a.bytes = bytes
	return a
}

// preparer makes an executable.
type preparer struct {
	*executable
	ctx    context.Context
	places []place // of the slots
	data   []byte  // of constants
	blocks []byte  // of parameters
	parts  int     // of the arena
	local  int     // temporary buffers of the present step
}

// Prepare implements [driver.Device].
func (d *device) Prepare(ctx context.Context, p *driver.Program) (x driver.Executable, err error) {
	defer driver.Recovered(&err)
	if err := d.alive(ctx); err != nil {
		return nil, err
	}
	e := &preparer{executable: &executable{d: d, slots: p.Slots, Externals: driver.ExternalsOf(p), uses: make([]int, p.Ext)}, ctx: ctx, parts: len(p.Cuts) + 1}
	e.layouts.e = e.executable
	e.arena(p)
	for i := range p.Slots {
		e.places = append(e.places, e.slot(p, &p.Slots[i]))
	}
	e.apart = separate(p)
	for i := range p.Steps {
		if err = ctx.Err(); err == nil {
			e.local = 0
			err = e.step(&p.Steps[i])
			e.ends = append(e.ends, len(e.steps))
		}
		if err != nil {
			e.release()
			return nil, fmt.Errorf("step %d, %s: %w", i, p.Steps[i].Name(), err)
		}
	}
	e.single = len(p.Steps) == 1 && len(e.steps) == 1 && once(&p.Steps[0])
	if err := e.upload(); err != nil {
		e.release()
		return nil, err
	}
	return e.executable, nil
}

// once reports whether a step reads and writes each element of what it uses once.
func once(s *driver.Step) bool {
	if s.Post == nil || s.Op != nil {
		return false
	}
	for _, x := range s.Post.In {
		if x.Spread != op.Full && x.Spread != op.Scalar {
			return false
		}
	}
	return true
}

// arena adds the buffers that the arena is cut into.
func (e *preparer) arena(p *driver.Program) {
	from := int64(0)
	for _, to := range append(append([]int64(nil), p.Cuts...), p.Arena) {
		e.temps = append(e.temps, to-from)
		from = to
	}
}

// slot returns where a slot is.
func (e *preparer) slot(p *driver.Program, s *driver.Slot) place {
	switch {
	case s.Data != nil:
		return place{kind: constant, off: e.keep(s.Data)}
	case s.Ext >= 0:
		return place{kind: external, at: s.Ext}
	}
	part := sort.Search(len(p.Cuts), func(i int) bool { return p.Cuts[i] > s.Off })
	off := s.Off
	if part > 0 {
		off -= p.Cuts[part-1]
	}
	return place{kind: temporary, at: part, off: off}
}

// separate numbers the external slots that are written so that no step has two of
// one number of which it writes one.
func separate(p *driver.Program) []int {
	not := make([][]int, p.Ext)
	result := make([]bool, p.Ext)
	for i := range p.Slots {
		if s := &p.Slots[i]; s.Ext >= 0 && s.Written {
			result[s.Ext] = true
		}
	}
	for i := range p.Steps {
		used, written := externals(p, &p.Steps[i])
		for _, w := range written {
			for _, u := range used {
				if u != w && result[u] {
					not[w], not[u] = append(not[w], u), append(not[u], w)
				}
			}
		}
	}
	number := make([]int, p.Ext)
	for x := range number {
		number[x] = -1
	}
	for x := range number {
		taken := make(map[int]bool)
		for _, o := range not[x] {
			taken[number[o]] = true
		}
		for number[x] = 0; taken[number[x]]; {
			number[x]++
		}
	}
	return number
}

// externals returns the external slots that a step uses, and of these those that
// it writes.
func externals(p *driver.Program, s *driver.Step) (used, written []int) {
	add := func(to *[]int, os []driver.Operand) {
		for _, o := range os {
			if o.Slot >= 0 && p.Slots[o.Slot].Ext >= 0 {
				*to = append(*to, p.Slots[o.Slot].Ext)
			}
		}
	}
	add(&written, s.Out)
	add(&used, s.Out)
	add(&used, s.In)
	if s.Post != nil {
		add(&used, s.Post.In)
	}
	return used, written
}

// keep adds constants and returns their offset.
func (e *preparer) keep(b []byte) int64 {
	return appendAligned(&e.data, b, max(len(b), leastBytes), e.d.limits.StorageAlign)
}

// block adds parameters of a size, the first of which are given, and returns their
// offset.
func (e *preparer) block(b []byte, size int64) int64 {
	return appendAligned(&e.blocks, b, int(size), e.d.limits.UniformAlign)
}

func appendAligned(to *[]byte, b []byte, size int, align int64) int64 {
	at := up(int64(len(*to)), align)
	grown := append(*to, make([]byte, at-int64(len(*to))+int64(max(size, len(b))))...)
	copy(grown[at:], b)
	*to = grown
	return at
}

// up returns n rounded up to a multiple of align.
func up(n, align int64) int64 {
	align = max(align, 4)
	return (n + align - 1) / align * align
}

// upload brings constants and parameters to the device: ahead of all submissions,
// as the queue keeps the order.
func (e *preparer) upload() error {
	var s gpu.Submission
	for _, x := range []struct {
		to   **gpu.Buffer
		data []byte
		use  gpu.Usage
	}{{&e.fixed, e.data, gpu.Storage}, {&e.params, e.blocks, gpu.Uniform}} {
		if len(x.data) == 0 {
			continue
		}
		b, err := e.d.gpu.NewBuffer(words(int64(len(x.data))), x.use)
		if err != nil {
			return meaning(err)
		}
		*x.to = b
		s.Uploads = append(s.Uploads, gpu.Transfer{Host: x.data, Buffer: b})
	}
	if len(s.Uploads) == 0 {
		return nil
	}
	_, err := e.d.gpu.Submit(context.WithoutCancel(e.ctx), &s, nil)
	return meaning(err)
}

// reserve returns a temporary array of the present step, in a buffer that no other
// array of the step is in.
func (e *preparer) reserve(bytes int64) arrayRef {
	at := e.parts + e.local
	e.local++
	if at == len(e.temps) {
		e.temps = append(e.temps, 0)
	}
	e.temps[at] = max(e.temps[at], bytes)
	return arrayRef{place{kind: temporary, at: at}, bytes}
}

// compile returns a kernel, which is the executable's until it is closed.
func (e *preparer) compile(key codeKey) (*code, error) {
	k, err := e.d.codes.get(e.ctx, key)
	if err == nil {
		e.codes = append(e.codes, k)
	}
	return k, err
}

// add adds a step.
func (e *preparer) add(s step, arrays ...arrayRef) {
	for _, a := range arrays {
		switch a.kind {
		case external:
			e.uses[a.at]++
		case temporary:
			e.temps[a.at] = max(e.temps[a.at], leastBytes)
		}
	}
	e.steps = append(e.steps, s)
}

// step prepares one step of the program.
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
	return arrayRef{e.places[o.Slot], e.slots[o.Slot].Bytes}
}

// leastBytes are what every array has room for: bindings are not empty, and hold
// one element at least.
const leastBytes = 16

// maxParams is up to how many parameters of an elementwise program are operands:
// each is a load and a binding. Programs that have more are not likely to come with
// others.
const maxParams = 4

// scalar is a parameter as an operand.
var scalar = lib.Operand{Type: op.F32, Spread: op.Scalar, N: 1}

// fused prepares an elementwise program; where operand 0 is not in a slot, first
// says where it is.
func (e *preparer) fused(f *driver.Fused, first *arrayRef, out []driver.Operand) error {
	if from, ok := e.identity(f, first, out); ok {
		return e.copy(e.at(out[0]), from)
	}
	// Parameters that are operands spare compiling a kernel for each.
	exprs, params, err := f.Parametric(min(max(e.d.library.Buffers-len(f.In)-len(out), 0), maxParams))
	if err != nil {
		return err
	}
	r := &lib.Request{Post: &lib.Epilogue{Exprs: exprs}, Target: e.d.library, Tuning: e.d.tuned()}
	var in []arrayRef
	for i, x := range f.In {
		o := e.wide(x)
		var a arrayRef
		if i == 0 && first != nil {
			a = *first // of the type that kernels have
			o.Type = x.Type
		} else if a, err = e.operand(x, o.Type); err != nil {
			return err
		}
		r.Post.In, in = append(r.Post.In, o), append(in, a)
	}
	for _, v := range params {
		b := binary.NativeEndian.AppendUint32(nil, math.Float32bits(v))
		r.Post.In, in = append(r.Post.In, scalar), append(in, arrayRef{place{kind: constant, off: e.keep(b)}, 4})
	}
	shapes := make([]op.Shape, len(out))
	for i := range shapes {
		shapes[i] = f.Shape
	}
	to, narrow := e.results(r, out, shapes, false)
	if err := e.compute(r, in, to); err != nil {
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
func (e *preparer) copy(dst, src arrayRef) error {
	if dst.bytes == 0 {
		return nil
	}
	src.bytes = dst.bytes
	if dst.bytes%4 != 0 && dst.kind == external {
		return e.copyHalves(dst, src)
	}
	e.add(&copyStep{dst, src}, dst, src)
	return nil
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
		return e.copy(e.at(s.Out[0]), e.at(s.In[0]))
	}
	// Half floats are of one kind in all operands and results of an operation.
	widen := false
	for _, os := range [][]driver.Operand{s.In, s.Out} {
		for _, o := range os {
			widen = widen || o.Slot >= 0 && o.Type == op.F16 && e.wide(o).Type != op.F16
		}
	}
	typeOf := func(o driver.Operand) op.DType {
		if o.Type == op.F16 && widen {
			return op.F32
		}
		return e.wide(o).Type
	}
	r := &lib.Request{Op: s.Op, Attrs: s.Attrs, Target: e.d.library, Tuning: e.d.tuned()}
	var in []arrayRef
	for i, x := range s.In {
		if x.Slot < 0 {
			r.In, in = append(r.In, lib.Array{}), append(in, arrayRef{})
			continue
		}
		a, err := e.operand(x, typeOf(x))
		if err != nil {
			return err
		}
		r.In, in = append(r.In, lib.Array{Type: typeOf(x), Shape: shapeOf(s.Dims[i])}), append(in, a)
	}
	to, narrow := e.results(r, s.Out, shapes, widen)
	if s.Post == nil {
		if err := e.orReference(r, in, to); err != nil {
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
	local := e.local
	for _, x := range s.Post.In[1:] {
		o := e.wide(x)
		a, err := e.operand(x, o.Type)
		if err != nil {
			return err
		}
		r.Post.In, with = append(r.Post.In, o), append(with[:len(with):len(with)], a)
	}
	if err = e.compute(r, with, to); err == nil {
		return narrow()
	}
	if !errors.Is(err, errNoKernel) {
		return err
	}
	e.local = local
	n, err := shapes[0].Size()
	if err != nil {
		return err
	}
	t := typeOf(driver.Operand{Type: made[0], N: n})
	result := e.reserve(int64(n) * int64(t.Size()))
	plain.Out = []lib.Array{{Type: t, Shape: shapes[0]}}
	if err := e.orReference(&plain, in, []arrayRef{result}); err != nil {
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

// errNoKernel is the error of a request that the library has no kernel for.
var errNoKernel = fmt.Errorf("no kernel: %w", driver.ErrUnsupported)

// plan adds the launches that compute a request. in are its operands, those of the
// epilogue behind them.
func (e *preparer) plan(r *lib.Request, in, out []arrayRef) error {
	p, err := lib.For(r)
	if err != nil {
		if errors.Is(err, op.ErrUnsupported) {
			return fmt.Errorf("%w: %w", errNoKernel, err)
		}
		return err
	}
	temp := make([]arrayRef, len(p.Scratch))
	for i, n := range p.Scratch {
		temp[i] = e.reserve(n)
	}
	for i := range p.Stages {
		s := &p.Stages[i]
		prog, err := s.Kernel.Program()
		if err != nil {
			return err
		}
		l := &dispatch{grid: s.Grid, dynamic: -1, static: -1}
		for _, ref := range s.Bind {
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
				a = arrayRef{place{kind: constant, off: e.keep(c)}, int64(len(c))}
			}
			l.arrays = append(l.arrays, a)
		}
		if err := e.dispatch(l, prog, s.Params, true); err != nil {
			return err
		}
	}
	return nil
}

// dispatch adds the launch of a program, with parameters that do not change.
func (e *preparer) dispatch(l *dispatch, p *ir.Program, params []byte, trusted bool) error {
	key, lengths, err := bindable(p, l.arrays)
	if err != nil {
		return err
	}
	key.trusted = trusted
	for _, a := range l.arrays {
		if a.bytes > e.d.limits.Binding {
			return fmt.Errorf("an array of %d bytes, the most that a kernel can be given is %d: %w", a.bytes, e.d.limits.Binding, driver.ErrLimit)
		}
	}
	if l.code, err = e.compile(key); err != nil {
		return err
	}
	if l.code.params {
		at := paramBytes(p)
		if l.dynamic >= 0 {
			l.uniform, e.uniforms = up(e.uniforms, e.d.limits.UniformAlign), up(e.uniforms, e.d.limits.UniformAlign)+l.code.bytes
			l.lengths, l.lengthsAt = lengths, at
		} else {
			block := make([]byte, at, at+int64(len(lengths)))
			copy(block, params)
			l.static = e.block(append(block, lengths...), l.code.bytes)
		}
	}
	e.add(l, l.arrays...)
	return nil
}

// bindable checks that arrays can be bound to a program. Where the length of a
// binding has to be a parameter, lengths are these parameters.
func bindable(p *ir.Program, arrays []arrayRef) (key codeKey, lengths []byte, err error) {
	key.p = p
	if len(arrays) != len(p.Bindings) {
		return key, nil, fmt.Errorf("%d arrays for %d buffers: %w", len(arrays), len(p.Bindings), driver.ErrShape)
	}
	if p.Text != nil {
		return key, nil, nil
	}
	for i, a := range arrays {
		b := &p.Bindings[i]
		size := int64(b.Width) * 4
		if b.Type == ir.F16 {
			size = int64(b.Width) * 2
		}
		bytes := a.bytes
		if b.Type == ir.U32 {
			bytes = words(bytes) // blocks of bytes, which are read by words
		}
		if bytes%size != 0 || bytes/size >= 1<<32 {
			return key, nil, fmt.Errorf("%d bytes for buffer %s: %w", a.bytes, b.Name, driver.ErrShape)
		}
		if (bytes == 0 || bytes%4 != 0) && i < 64 && asks(p, i) {
			key.lengths |= 1 << i
			lengths = binary.NativeEndian.AppendUint32(lengths, uint32(bytes/size))
		}
	}
	return key, lengths, nil
}

// launch prepares a user's kernel, in which nothing is trusted.
func (e *preparer) launch(s *driver.Step) error {
	k := s.Kernel
	if most := uint32(e.d.library.Groups); k.Grid[0] > most || k.Grid[1] > most || k.Grid[2] > most {
		return fmt.Errorf("a grid of %v workgroups, the most is %d along each axis: %w", k.Grid, most, driver.ErrLimit)
	}
	l := &dispatch{grid: k.Grid, dynamic: -1, static: -1}
	for _, slot := range k.Bind {
		l.arrays = append(l.arrays, arrayRef{e.places[slot], e.slots[slot].Bytes})
	}
	var params []byte
	if k.Params >= 0 {
		slot := &e.slots[k.Params]
		switch {
		case slot.Data != nil:
			params = slot.Data
		case slot.Ext >= 0:
			l.dynamic = slot.Ext
		default:
			return fmt.Errorf("parameters that a step computes: %w", driver.ErrUnsupported)
		}
	}
	return e.dispatch(l, k.Program, params, false)
}

// release gives back what the executable holds.
func (e *executable) release() {
	e.layouts.free()
	for _, b := range []*gpu.Buffer{e.fixed, e.params} {
		if b != nil {
			b.Free()
		}
	}
	for _, k := range e.codes {
		e.d.codes.put(k)
	}
	e.codes = nil
}

// Close implements [driver.Executable].
func (e *executable) Close() { e.gate.Shut(e.release) }
