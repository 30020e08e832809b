package kernel

import (
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/internal/ir"
)

// Kernel is a kernel that [New] or a [Family] made. It is safe for concurrent
// use and runs on every device.
type Kernel struct {
	name     string
	uniforms []ir.Uniform
	bytes    int // of the parameters
	params   reflect.Type
	run      func(b *Builder) // calls the build function
	encode   func(dst []byte, params any) ([]byte, bool)

	made   atomic.Pointer[result]
	active atomic.Int32 // builds that are going on
}

// result is what building gave: a program or an error.
type result struct {
	program *ir.Program
	err     error
}

// maxActive bounds the builds of one kernel that go on at once: a build function
// that builds its own kernel would never end.
const maxActive = 1000

// New returns the kernel that build builds. P is the struct of its parameters; its fields have the
// types float32, int32 and uint32 (use struct{} for no parameters). rayo calls build when it first
// needs the program, and again to find the lines of findings, possibly from several goroutines at
// once, so build must be deterministic. Its p only provides the addresses of the fields.
func New[P any](name string, build func(b *Builder, p *P)) *Kernel {
	if build == nil {
		return broken(name, "New with a nil function")
	}
	return specialise(name, func(b *Builder, p *P) { build(b, p) })
}

func broken(name, msg string) *Kernel {
	k := &Kernel{name: name}
	k.made.Store(&result{err: &Error{Kernel: name, Pos: authorPosition(), Msg: msg}})
	return k
}

func specialise[P any](name string, build func(b *Builder, p *P)) *Kernel {
	t := reflect.TypeFor[P]()
	if !identifier(name) {
		return broken(name, fmt.Sprintf("%q is no name: letters, digits and underscores", name))
	}
	us, err := uniformsOf(t)
	if err != nil {
		return broken(name, err.Error())
	}
	return &Kernel{name: name, uniforms: us, bytes: int(t.Size()), params: t,
		run: func(b *Builder) {
			p := new(P)
			b.params, b.paramLen = unsafe.Pointer(p), unsafe.Sizeof(*p)
			build(b, p)
		},
		encode: encodeParams[P],
	}
}

// encodeParams appends the bytes of params, a P or a *P.
func encodeParams[P any](dst []byte, params any) ([]byte, bool) {
	var p *P
	switch v := params.(type) {
	case P:
		p = &v
	case *P:
		p = v
	}
	if p == nil {
		return dst, unsafe.Sizeof(*p) == 0 && params == nil
	}
	return append(dst, unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p))...), true
}

// Name returns the name.
func (k *Kernel) Name() string {
	if k == nil {
		return "nil"
	}
	return k.name
}

// Err returns the mistake in the kernel, an [*Error], or nil. It builds the
// kernel if that has not been done.
func (k *Kernel) Err() error {
	_, err := k.Program()
	return err
}

// AppendParams appends the block of parameters to dst: params is the kernel's
// struct or a pointer to it (nil if it has no fields). Another type is an error
// that wraps [ErrParams].
func (k *Kernel) AppendParams(dst []byte, params any) ([]byte, error) {
	if err := k.Err(); err != nil {
		return dst, err
	}
	out, ok := k.encode(dst, params)
	if !ok {
		return dst, &Error{Kernel: k.name, Msg: fmt.Sprintf("parameters of type %T: expected %v", params, k.params), Err: ErrParams}
	}
	return out, nil
}

// Program returns the program, which nobody may change.
func (k *Kernel) Program() (*ir.Program, error) {
	if k == nil {
		return nil, &Error{Msg: "nil kernel"}
	}
	if r := k.made.Load(); r != nil {
		return r.program, r.err
	}
	if k.run == nil {
		return nil, &Error{Msg: "a kernel that New did not make"}
	}
	// Two goroutines may both build: the results are the same, and a lock
	// would hang where a build function asks for its own kernel.
	defer k.active.Add(-1)
	if k.active.Add(1) > maxActive {
		return nil, &Error{Kernel: k.name, Msg: "the build function uses its own kernel"}
	}
	p, e := k.build(false)
	r := &result{program: p}
	if e != nil {
		r = &result{err: e}
	}
	k.made.CompareAndSwap(nil, r)
	r = k.made.Load()
	return r.program, r.err
}

// Positions returns the program with the place in the author's source of every
// instruction. It builds the kernel once more; that another program comes out
// is an error.
func (k *Kernel) Positions() (*ir.Program, error) {
	p, err := k.Program()
	if err != nil {
		return nil, err
	}
	q, e := k.build(true)
	if e != nil {
		return nil, e
	}
	if !slices.Equal(p.Code, q.Code) || !slices.Equal(p.Bindings, q.Bindings) || !slices.Equal(p.Shared, q.Shared) ||
		!slices.Equal(p.Vars, q.Vars) || p.Local != q.Local || p.Budget != q.Budget {
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
	// Goexit ends the function without a panic or a return.
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

// together checks that lanes come to barriers together. The lines for the
// message come from another build.
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
		e.Msg += fmt.Sprintf(": some leave by the %v at %v", p.Code[d.Cause].Code, at(d.Cause))
	default:
		e.Msg += fmt.Sprintf(": they differ in the %v at %v", p.Code[d.Cause].Code, at(d.Cause))
	}
	return e
}

// String lists the program, or returns the mistake in it.
func (k *Kernel) String() string {
	p, err := k.Program()
	if err != nil {
		return err.Error()
	}
	return p.String()
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
