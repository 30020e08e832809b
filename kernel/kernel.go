package kernel

import (
	"reflect"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// program hides the methods of ir.Kernel from godoc, because users cannot name their types.
type program = ir.Kernel

// Kernel is a kernel made by [New] or a [Family]. It is safe for concurrent use and runs on every
// device.
type Kernel struct {
	program
	name     string
	uniforms []ir.Uniform
	bytes    int // bytes of the parameters
	params   reflect.Type
	pointer  reflect.Type     // of a pointer to params
	run      func(b *Builder) // calls the build function

	made   atomic.Pointer[result]
	active atomic.Int32 // number of builds in progress
}

// result is the result of a build: a program or an error.
type result struct {
	program *ir.Program
	err     error
}

// maxActive limits the concurrent builds of one kernel, because a build function that builds its
// own kernel would never end.
const maxActive = 1000

// New returns the kernel that build builds. P is the struct of its parameters; its fields have the
// types float32, int32 and uint32 (use struct{} for no parameters). rayo calls build when it first
// needs the program, and again to find the lines of findings, possibly from several goroutines at
// once, so build must be deterministic. Its p only provides the addresses of the fields.
func New[P any](name string, build func(b *Builder, p *P)) *Kernel {
	if build == nil {
		return broken(name, "New with a nil function")
	}
	return specialise(name, (*P)(nil), func(b *Builder) {
		p := new(P)
		b.params = unsafe.Pointer(p)
		build(b, p)
	})
}

func broken(name, msg string) *Kernel {
	err := &Error{Kernel: name, Pos: authorPosition(), Msg: msg}
	return &Kernel{name: name, program: program{Programs: ir.Fixed{Err: err}}}
}

// specialise returns a kernel whose parameters have the type to which the pointer nothing points. run sets the
// builder's params and calls the build function: reflect's functions for new values and types of pointers would
// make pages larger.
// Neither specialise nor the functions that it calls are generic, so that programs have their code only
// once.
func specialise(name string, nothing any, run func(b *Builder)) *Kernel {
	pointer := reflect.TypeOf(nothing)
	t := pointer.Elem()
	if !identifier(name) {
		return broken(name, fmt.Sprintf("%q is not a valid name: use letters, digits and underscores", name))
	}
	us, err := uniformsOf(t)
	if err != nil {
		return broken(name, err.Error())
	}
	k := &Kernel{name: name, uniforms: us, bytes: int(t.Size()), params: t, pointer: pointer, run: func(b *Builder) {
		b.paramLen = t.Size()
		run(b)
	}}
	k.Programs = (*builds)(k)
	return k
}

// encode appends the bytes of params, which must be a struct of type k.params or a pointer to one.
func (k *Kernel) encode(dst []byte, params any) ([]byte, bool) {
	if params == nil {
		return dst, k.bytes == 0
	}
	if t := reflect.TypeOf(params); t != k.params && t != k.pointer {
		return dst, false
	}
	// In an interface of either type, the second word is the address of the struct: a struct of
	// numbers is never stored in the interface directly.
	p := (*[2]unsafe.Pointer)(unsafe.Pointer(&params))[1]
	if p == nil {
		return dst, false
	}
	return append(dst, unsafe.Slice((*byte)(p), k.bytes)...), true
}

// Name returns the name.
func (k *Kernel) Name() string {
	if k == nil {
		return "nil"
	}
	if k.Text != nil {
		p, _ := k.Program()
		return p.Name
	}
	return k.name
}

// Err returns the error in the kernel, an [*Error], or nil. It builds the kernel if necessary.
func (k *Kernel) Err() error {
	switch {
	case k == nil:
		return &Error{Msg: "nil kernel"}
	case k.Programs == nil:
		return &Error{Msg: "a kernel that New did not make"}
	}
	_, err := k.Program()
	return err
}

// AppendParams appends the block of parameters to dst. params is the kernel's parameter struct or a
// pointer to it, or nil if the struct has no fields. For another type, the error wraps [ErrParams].
func (k *Kernel) AppendParams(dst []byte, params any) ([]byte, error) {
	if err := k.Err(); err != nil {
		return dst, err
	}
	if k.Text != nil {
		return k.Text.Params(dst, params)
	}
	out, ok := k.encode(dst, params)
	if !ok {
		return dst, &Error{Kernel: k.name, Msg: fmt.Sprintf("the parameters have type %T; expected %v", params, k.params), Err: ErrParams}
	}
	return out, nil
}

// builds builds the programs of a kernel by its build function. It implements [ir.Programs].
type builds Kernel

// Program builds the kernel once.
func (k *builds) Program() (*ir.Program, error) {
	if r := k.made.Load(); r != nil {
		return r.program, r.err
	}
	// Two goroutines may build at the same time, with equal results. A lock would hang if a build
	// function requests its own kernel.
	defer k.active.Add(-1)
	if k.active.Add(1) > maxActive {
		return nil, &Error{Kernel: k.name, Msg: "the build function uses its own kernel"}
	}
	p, e := (*Kernel)(k).build(false)
	r := &result{program: p}
	if e != nil {
		r = &result{err: e}
	}
	k.made.CompareAndSwap(nil, r)
	r = k.made.Load()
	return r.program, r.err
}

// Positions builds the kernel again. It is an error if the program differs.
func (k *builds) Positions() (*ir.Program, error) {
	p, err := k.Program()
	if err != nil {
		return nil, err
	}
	q, e := (*Kernel)(k).build(true)
	if e != nil {
		return nil, e
	}
	if len(p.Code) != len(q.Code) || p.Budget != q.Budget || p.Listing() != q.Listing() {
		return nil, &Error{Kernel: k.name, Msg: "the build function does not do the same each time"}
	}
	return q, nil
}

// build runs the build function.
func (k *Kernel) build(positions bool) (p *ir.Program, e *Error) {
	p, verifier, e := k.make(positions)
	if e == nil && verifier && !positions {
		e = k.together(p)
	}
	if e != nil {
		p = nil
	}
	return p, e
}

// make builds the program without checking that all lanes reach barriers together.
// verifier tells the caller that the check is needed.
func (k *Kernel) make(positions bool) (p *ir.Program, verifier bool, e *Error) {
	b := newBuilder(k.name, positions)
	b.uniforms = k.uniforms
	// runtime.Goexit ends the build function without a panic or a return; e is the error in this
	// case.
	e = &Error{Kernel: k.name, Msg: "the build function ended the goroutine"}
	defer b.release()
	defer func() {
		if r := recover(); r != nil {
			if _, own := r.(abandoned); !own {
				err, _ := r.(error)
				b.failure(err, "panic: %v", r)
			}
			p, e = nil, b.err
		}
	}()
	k.run(b)
	p = b.finish()
	return p, b.verifier, b.err
}

// together checks that lanes reach barriers together. Another build provides the lines for the
// error.
func (k *Kernel) together(p *ir.Program) *Error {
	d := ir.Divergent(p)
	if d.At == 0 {
		return nil
	}
	what := p.Code[d.At].Code.String()
	e := &Error{Kernel: k.name, Msg: "not all lanes may come to this " + what}
	q, _, mistake := k.make(true)
	if mistake != nil || !slices.Equal(p.Code, q.Code) {
		return e
	}
	at := func(v ir.Value) Position {
		f, l := ir.Position(q.Pos, v)
		return Position{f, l}
	}
	e.Pos = at(d.At)
	switch p.Code[d.Cause].Code {
	case ir.Break, ir.Continue, ir.Return:
		e.Msg += fmt.Sprintf(": some lanes leave by the %v at %v", p.Code[d.Cause].Code, at(d.Cause))
	default:
		e.Msg += fmt.Sprintf(": the lanes differ in the %v at %v", p.Code[d.Cause].Code, at(d.Cause))
	}
	return e
}

// String returns the name with "kernel " before it.
func (k *Kernel) String() string { return "kernel " + k.Name() }

// Listing returns a listing of the program, or its error.
func (k *Kernel) Listing() string {
	if err := k.Err(); err != nil {
		return err.Error()
	}
	p, _ := k.Program()
	return p.Listing()
}

// finish makes the checks that need the complete program, and returns the program.
func (b *Builder) finish() *ir.Program {
	if b.err != nil {
		return nil
	}
	if !b.sized {
		b.record(&Error{Kernel: b.name, Msg: "no size of a workgroup: call b.LocalSize(x, y, z), for example b.LocalSize(64, 1, 1)"})
		return nil
	}
	if len(b.blocks) != 1 {
		b.record(&Error{Kernel: b.name, Msg: "a block is still open: was a panic recovered?"})
		return nil
	}
	b.cut(b.blocks[0].ended)
	p := &ir.Program{
		Name: b.name, Local: b.local, PreferRegisters: b.preferRegisters, Uniforms: b.uniforms, Budget: b.budget, Pos: b.pos,
		Bindings: slices.Clone(b.bindings), Shared: slices.Clone(b.shared), Vars: slices.Clone(b.vars),
		Code: b.program(),
	}
	return p
}
