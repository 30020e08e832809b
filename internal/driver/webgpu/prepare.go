package webgpu

import (
	"context"
	"encoding/binary"
	"errors"
	"sort"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/portable"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/op"
)

// executable is a prepared program. It is immutable, except for caches for later submissions.
type executable struct {
	d     *device
	slots []driver.Slot
	steps []step
	ends  []int // number of steps up to the end of each step of the program
	// hosted has the indices of the steps that compute on the host.
	hosted []int

	driver.Externals
	uses    []int // for each external slot: number of steps that use it
	buffers []int // for each external slot: a number; results with different numbers may be in one buffer

	temps    []int64 // sizes of the temporary buffers: parts of the arena, then buffers of steps
	single   bool    // the program is one kernel that reads and writes each element once
	uniforms int64   // size of the parameters that change with each submission
	fixed    *gpu.Buffer
	params   *gpu.Buffer

	codes []*code

	layouts layouts

	inUse driver.RefBarrier
}

// step is a part of a submission.
type step interface {
	record(r *recorder) error
}

// place says where an array of a step is.
type place struct {
	kind placeKind
	at   int // index of an external slot or a temporary buffer
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
	places []place // places of the slots
	data   []byte  // constants
	blocks []byte  // blocks of parameters
	parts  int     // number of parts of the arena
	local  int     // number of temporary buffers of the current step
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
	e.buffers = separate(p)
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
	e.single = len(p.Steps) == 1 && len(e.steps) == 1 && p.Steps[0].Op == nil && p.Steps[0].Post != nil && p.Steps[0].Post.Once()
	if err := e.upload(); err != nil {
		e.release()
		return nil, err
	}
	return e.executable, nil
}

// arena divides the arena into buffers and adds them.
func (e *preparer) arena(p *driver.Program) {
	from := int64(0)
	for _, to := range append(append([]int64(nil), p.Cuts...), p.Arena) {
		e.temps = append(e.temps, to-from)
		from = to
	}
}

// slot returns the place of a slot.
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

// separate numbers the written external slots. Two slots of a step have different numbers if the
// step writes one of them.
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

// externals returns the external slots that a step uses, and those that it writes.
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
	return appendAligned(&e.data, b, max(len(b), minBytes), e.d.limits.StorageAlign)
}

// block adds parameters of the given size, which begin with the given values, and returns their
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

// upload uploads constants and parameters. The queue keeps the order, so it happens before all
// submissions.
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
			return translateError(err)
		}
		*x.to = b
		s.Uploads = append(s.Uploads, gpu.Transfer{Host: x.data, Buffer: b})
	}
	if len(s.Uploads) == 0 {
		return nil
	}
	_, err := e.d.gpu.Submit(context.WithoutCancel(e.ctx), &s, nil)
	return translateError(err)
}

// Reserve implements [driver.Arrays]. Each array has its own buffer in a step.
func (e *preparer) Reserve(bytes int64) arrayRef {
	at := e.parts + e.local
	e.local++
	if at == len(e.temps) {
		e.temps = append(e.temps, 0)
	}
	e.temps[at] = max(e.temps[at], bytes)
	return arrayRef{place{kind: temporary, at: at}, bytes}
}

// Constant implements [driver.Arrays].
func (e *preparer) Constant(data []byte) arrayRef {
	return arrayRef{place{kind: constant, off: e.keep(data)}, int64(len(data))}
}

// At implements [driver.Arrays].
func (e *preparer) At(o driver.Operand) arrayRef {
	return arrayRef{e.places[o.Slot], e.slots[o.Slot].Bytes}
}

// compile returns a kernel. The executable uses it until it is closed.
func (e *preparer) compile(key codeKey) (*code, error) {
	k, err := e.d.kernels.get(e.ctx, key)
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
			e.temps[a.at] = max(e.temps[a.at], minBytes)
		}
	}
	e.steps = append(e.steps, s)
}

// step prepares one step of the program.
func (e *preparer) step(s *driver.Step) error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch {
	case s.Kernel != nil && graphs.launch == nil:
		return errNoKernel // package device calls UseGraphs before it makes a kernel
	case s.Kernel != nil:
		return graphs.launch(e, s)
	case s.Op == nil:
		return e.fused(s.Post, nil, s.Out)
	case s.Reshapes():
		return e.copy(e.At(s.Out[0]), e.At(s.In[0]))
	case operations.prepare == nil:
		return errNoKernel // package device calls UseOperations before it uses operations
	}
	return operations.prepare(e, s)
}

// minBytes is the minimum size of an array, because a binding must hold at least one element.
const minBytes = 16

// request is a request of the portable library with the memory of its arrays.
type request = driver.Request[arrayRef]

// request returns an empty request.
func (e *preparer) request() *request {
	return &request{Request: portable.Request{Target: e.d.library, Tuning: e.d.tuned()}}
}

// fused prepares an elementwise program. If operand 0 is not in a slot, first is its memory.
func (e *preparer) fused(f *driver.Fused, first *arrayRef, out []driver.Operand) error {
	if src, is := driver.Copied(e, f, first, out); is {
		return e.copy(e.At(out[0]), src)
	}
	// Pass constants as operands, so that one kernel serves all of them.
	exprs, params, err := f.Parametric(min(max(e.d.library.Buffers-len(f.In)-len(out), 0), driver.MaxParams))
	if err != nil {
		return err
	}
	r := e.request()
	if err := r.Program(e, f, exprs, first, driver.Scalars(e, params), out); err != nil {
		return err
	}
	if err := e.compute(&r.Request, r.From, r.To); err != nil {
		return err
	}
	return r.Narrow(e)
}

// operation prepares an operation that is not elementwise.
func (e *preparer) operation(s *driver.Step) error {
	r := e.request()
	if err := r.Operation(e, s); err != nil {
		return err
	}
	l := &driver.Lowering[arrayRef]{Arrays: e, Mark: e.mark, Alone: e.orReference, Program: e.fused,
		Kernel: func(r *request) error { return e.compute(&r.Request, r.From, r.To) }}
	return l.Operation(r, s)
}

// mark returns a function that removes all steps that were added after the call to mark, and their memory.
func (e *preparer) mark() func() {
	local, steps := e.local, len(e.steps)
	return func() { e.local, e.steps = local, e.steps[:steps] }
}

// errNoKernel is the error for a request without a kernel in the library.
var errNoKernel = fmt.Errorf("the library has no kernel: %w", driver.ErrUnsupported)

// plan adds the launches that compute a request. in are its operands, followed by the operands of
// the epilogue.
func (e *preparer) plan(r *portable.Request, in, out []arrayRef) error {
	p, err := portable.For(r)
	if err != nil {
		if errors.Is(err, op.ErrUnsupported) {
			return fmt.Errorf("%w: %w", errNoKernel, err)
		}
		return err
	}
	for i, arrays := range driver.Bound(e, p, in, out) {
		s := &p.Stages[i]
		prog, err := s.Kernel.Program()
		if err != nil {
			return err
		}
		if err := e.dispatch(&dispatch{grid: s.Grid, arrays: arrays, dynamic: -1, static: -1}, prog, s.Params, true); err != nil {
			return err
		}
	}
	return nil
}

// Miscomputes, if tests set it, reports whether a driver computes a launch of a kernel of rayo incorrectly.
// The reference computes the operation then.
var Miscomputes func(driver string, p *ir.Program, grid [3]uint32, params []byte, arrayBytes []int64, subgroup int) bool

// dispatch adds the launch of a program with constant parameters.
func (e *preparer) dispatch(l *dispatch, p *ir.Program, params []byte, trusted bool) error {
	if Miscomputes != nil && trusted {
		var bytes []int64
		for _, a := range l.arrays {
			bytes = append(bytes, a.bytes)
		}
		if Miscomputes(e.d.info.Name, p, l.grid, params, bytes, e.d.library.Subgroup) {
			return errNoKernel
		}
	}
	if err := e.ready(l, p, params, trusted); err != nil {
		return err
	}
	e.add(l, l.arrays...)
	return nil
}

// ready prepares the launch of a program without adding it.
func (e *preparer) ready(l *dispatch, p *ir.Program, params []byte, trusted bool) error {
	key, lengths, err := bindable(p, l.arrays)
	if err != nil {
		return err
	}
	key.trusted = trusted
	for _, a := range l.arrays {
		if a.bytes > e.d.limits.Binding {
			return fmt.Errorf("an array has %d bytes, a binding at most %d: %w", a.bytes, e.d.limits.Binding, driver.ErrLimit)
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
	return nil
}

// bindable checks that arrays can be bound to a program. lengths has the parameters for bindings
// whose length must be a parameter.
func bindable(p *ir.Program, arrays []arrayRef) (key codeKey, lengths []byte, err error) {
	key.p = p
	if len(arrays) != len(p.Bindings) {
		return key, nil, fmt.Errorf("there are %d arrays for %d buffers: %w", len(arrays), len(p.Bindings), driver.ErrShape)
	}
	if p.Text != nil {
		return key, nil, nil
	}
	for i, a := range arrays {
		n, err := elements(&p.Bindings[i], a.bytes)
		if err != nil {
			return key, nil, err
		}
		if (a.bytes == 0 || a.bytes%4 != 0 && p.Bindings[i].Type == ir.F16) && i < 64 && asks(p, i) {
			key.lengths |= 1 << i
			lengths = binary.NativeEndian.AppendUint32(lengths, n)
		}
	}
	return key, lengths, nil
}

// elements returns the number of elements of a buffer for a binding of the given size.
func elements(b *ir.Binding, bytes int64) (uint32, error) {
	each := int64(4)
	if b.Type == ir.F16 {
		each = 2
	}
	whole := bytes
	if b.Type == ir.U32 {
		whole = words(bytes) // quantised blocks, which are read by words
	}
	size := each * int64(b.Width)
	if whole%each != 0 || whole/size >= 1<<32 {
		return 0, fmt.Errorf("an array of %d bytes cannot be bound to buffer %s: %w", bytes, b.Name, driver.ErrShape)
	}
	return uint32(whole / size), nil
}

// launch prepares a user's kernel, which is not trusted.
func (e *preparer) launch(s *driver.Step) error {
	k := s.Kernel
	if most := uint32(e.d.library.Groups); k.Grid[0] > most || k.Grid[1] > most || k.Grid[2] > most {
		return fmt.Errorf("the grid has %v workgroups; the device allows at most %d along each axis: %w", k.Grid[:], most, driver.ErrLimit)
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
			return fmt.Errorf("a step computes the parameters, which is not supported for this kernel: %w", driver.ErrUnsupported)
		}
	}
	back, err := e.ownWords(l, k.Program)
	if err != nil {
		return err
	}
	if err := e.dispatch(l, k.Program, params, false); err != nil {
		return err
	}
	for _, c := range back {
		if err := e.copy(c[0], c[1]); err != nil {
			return err
		}
	}
	return nil
}

// ownWords makes a kernel write an odd number of half floats to temporary memory, and returns the
// copies back. Without it, the device would treat the other half of the last word as an element.
func (e *preparer) ownWords(l *dispatch, p *ir.Program) (back [][2]arrayRef, err error) {
	for i, a := range l.arrays {
		if a.kind != external || a.bytes%4 == 0 || i >= len(p.Bindings) || p.Bindings[i].Access == ir.ReadOnly {
			continue
		}
		l.arrays[i] = e.Reserve(a.bytes)
		if err := e.copy(l.arrays[i], a); err != nil {
			return nil, err
		}
		back = append(back, [2]arrayRef{a, l.arrays[i]})
	}
	return back, nil
}

// release frees the resources of the executable.
func (e *executable) release() {
	e.layouts.free()
	for _, b := range []*gpu.Buffer{e.fixed, e.params} {
		if b != nil {
			b.Free()
		}
	}
	for _, k := range e.codes {
		e.d.kernels.put(k)
	}
	e.codes = nil
}

// Close implements [driver.Executable].
func (e *executable) Close() { e.inUse.Shut(e.release) }
