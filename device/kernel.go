package device

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"unsafe"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// maxBuffers is how many buffers a kernel may bind on every device.
const maxBuffers = 8

// Kernel is a kernel that is prepared for a device. It is safe for concurrent use.
type Kernel struct {
	dev     *Device
	kernel  *kernel.Kernel
	program *ir.Program
	// Methods of kernel, as variables, so that programs that prepare no kernel do not link them.
	checkGrid func(kernel.Size) error
	params    func(dst []byte, params any) ([]byte, error)
	positions func() (*ir.Program, error)
}

// Kernel prepares k to run on the device. k is a *[kernel.Kernel], which runs on every device, or a
// text for one kind of device, such as a wgsl.Source.
//
// # Errors
//   - *[kernel.Error] for an error in a kernel, with the author's file and line; *wgsl.CompileError for an error
//     in a text.
//   - [ErrUnsupported] if the kernel writes no buffer or uses a feature that the device lacks, or if the text is for
//     another kind of device.
//   - [ErrLimit] if a workgroup, the workgroup arrays or the number of buffers exceed the limits of the device; if
//     the constants, structures or calls of a text double so often that a compiler would not end; or if the variables
//     of a lane of a text need more than 64 KiB.
//   - the error of ctx. A compilation that a driver has begun continues in the background.
func (d *Device) Kernel(ctx context.Context, k kernel.Source) (*Kernel, error) {
	kernels.Do(useKernels)
	launches.use()
	if k == nil {
		k = (*kernel.Kernel)(nil)
	}
	r := &Kernel{dev: d, kernel: k.Kernel()}
	switch err := r.kernel.Err(); {
	case errors.Is(err, kernel.ErrLimit):
		return nil, fmt.Errorf("%w: %w", ErrLimit, err)
	case err != nil:
		return nil, err
	}
	p, _ := r.kernel.Program()
	r.program, r.checkGrid, r.params, r.positions = p, r.kernel.CheckGrid, r.kernel.AppendParams, r.kernel.Positions
	var err error
	switch {
	case p.Text != nil && kindOf(p.Text.Language) != d.Info().Kind:
		err = fmt.Errorf("the kernel is a text in %v, which only devices of kind %v run: open one by Require or RAYO_DEVICE: %w", p.Text.Language, kindOf(p.Text.Language), ErrUnsupported)
	case len(graph.Written(p)) == 0:
		err = fmt.Errorf("the kernel writes no buffer: a kernel needs at least one result: %w", ErrUnsupported)
	case len(p.Bindings) > maxBuffers:
		err = fmt.Errorf("the kernel has %d buffers; devices support at most %d: %w", len(p.Bindings), maxBuffers, ErrLimit)
	default:
		err = d.engine().CompileKernel(ctx, p)
	}
	if err != nil {
		return nil, r.wrap(err)
	}
	return r, nil
}

// valid returns an error unless [Device.Kernel] made k.
func (k *Kernel) valid() error {
	if k == nil || k.dev == nil {
		return fmt.Errorf("the kernel was not made by Device.Kernel: %w", ErrForeign)
	}
	return nil
}

// Name returns the name of the kernel.
func (k *Kernel) Name() string {
	if k.valid() != nil {
		return "nil"
	}
	return k.program.Name
}

// GridFor returns the grid for n lanes of the kernel, one for each element of the work: n divided
// by the number of lanes of a workgroup, rounded up.
func (k *Kernel) GridFor(n int) kernel.Size {
	if k.valid() != nil {
		return kernel.Size{}
	}
	return k.kernel.GridFor(n)
}

// String returns the name of the kernel with its buffers and parameters, and its device:
// saxpy(input x []f32, inout y []f32, Scale f32) on cpu.
func (k *Kernel) String() string {
	if k.valid() != nil {
		return "no kernel"
	}
	return fmt.Sprintf("%s on %v", k.program.Signature(), k.dev)
}

// Device returns the device for which the kernel was prepared.
func (k *Kernel) Device() *Device { return k.dev }

// launched returns the kernel of a graph node for the given grid.
func (k *Kernel) launched(grid kernel.Size) *graph.Kernel {
	return &graph.Kernel{Program: k.program, Grid: grid.Groups(), Positions: k.positions}
}

// kindOf returns the kind of devices that run texts in language l.
func kindOf(l ir.Language) Kind {
	if l == ir.PTX {
		return CUDA
	}
	return WebGPU
}

// wrap returns err as an OpError of the kernel.
func (k *Kernel) wrap(err error, shapes ...op.Shape) error {
	var oe *OpError
	if err == nil || err == context.Canceled || err == context.DeadlineExceeded || errors.As(err, &oe) || k.valid() != nil {
		return err
	}
	return &OpError{Op: "kernel " + k.Name(), Shapes: shapes, Device: k.dev.String(), Err: err}
}

// Arg is an array for a buffer of a kernel. Args have the order in which the kernel declares its
// buffers. [In], [Out], [InOut] and [Bind] make them.
type Arg struct {
	data []byte
	typ  op.DType
	n    int
	use  argUse
	buf  *Buffer
	elem reflect.Type // element type of an array of structures
}

type argUse uint8

const (
	argNone argUse = iota
	argIn
	argOut
	argInOut
	argBuffer
)

// In passes an array that the kernel reads.
func In[T Element](x []T) Arg { return argOf(argIn, x) }

// Out passes an array that the kernel fills. Elements that the kernel does not write are 0
// afterwards.
func Out[T Element](x []T) Arg { return argOf(argOut, x) }

// InOut passes an array that the kernel updates.
func InOut[T Element](x []T) Arg { return argOf(argInOut, x) }

// Bind passes an array on the device. The kernel reads, fills or updates it in place, as its
// declaration says. Nothing is copied.
func Bind(b *Buffer) Arg { return Arg{use: argBuffer, buf: b} }

// InStructs passes an array of structures that the kernel reads, for texts whose buffers hold
// structures. Every field of T must have the offset of the text's member with the same name; fields
// named _ are padding.
func InStructs[T any](x []T) Arg { return structsOf(argIn, x) }

// OutStructs passes an array of structures that the kernel fills: see [InStructs] and [Out].
func OutStructs[T any](x []T) Arg { return structsOf(argOut, x) }

// InOutStructs passes an array of structures that the kernel updates: see [InStructs].
func InOutStructs[T any](x []T) Arg { return structsOf(argInOut, x) }

// structsOf refers to the memory of x. Its layout is unchecked until the kernel has compared T with
// the declaration.
func structsOf[T any](use argUse, x []T) Arg {
	t := reflect.TypeFor[T]()
	return Arg{data: unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), uintptr(len(x))*t.Size()), typ: op.U32, n: len(x), use: use, elem: t}
}

func argOf[T Element](use argUse, x []T) Arg {
	return Arg{data: engine.Bytes(x), typ: TypeOf[T](), n: len(x), use: use}
}

// Run runs the kernel over a grid of workgroups and waits. params is the parameter struct of the
// kernel or a pointer to it, or nil for a kernel without parameters; args are its buffers in order.
//
// # Errors
//   - [ErrShape] for a wrong number of arguments, an array whose length is not a multiple of the kernel's vectors,
//     and a grid with no or too many workgroups (also kernel.ErrGrid).
//   - [ErrUnsupported] if element types or the type of the parameters differ from those of the kernel (the latter
//     also kernel.ErrParams), and for an In for a buffer that the kernel writes.
//   - [ErrOverlap] if two arrays share memory and the kernel writes one of them.
//   - [ErrFault] if the kernel makes an error at run time, with the author's file and line: an index out of bounds, a
//     loop beyond its budget, or a barrier that not all lanes reach. Its results are then undefined. A GPU does not
//     find all errors that the CPU finds.
//   - [ErrForeign] and [ErrClosed] for buffers of other devices and closed buffers; the error of ctx.
func (k *Kernel) Run(ctx context.Context, grid kernel.Size, params any, args ...Arg) error {
	args = slices.Clone(args) // launch modifies them
	l, err := k.launch(grid, params, args)
	if err != nil {
		return k.wrap(err, shapesOf(args)...)
	}
	plan, err := k.dev.engine().Compile(ctx, &l.g)
	if err == nil {
		err = plan.Run(ctx, l.refs, l.outs, nil)
	}
	return k.wrap(err, shapesOf(args)...)
}

// RunAsync starts [Kernel.Run] and returns a pending result. The slices of args must not be used
// until the Pending is done.
func (k *Kernel) RunAsync(ctx context.Context, grid kernel.Size, params any, args ...Arg) *Pending {
	args = slices.Clone(args)
	l, err := k.launch(grid, params, args)
	var plan *engine.Plan
	if err == nil {
		plan, err = k.dev.engine().Compile(ctx, &l.g)
	}
	shapes := shapesOf(args)
	if err != nil {
		return failed(k.wrap(err, shapes...))
	}
	return &Pending{p: plan.Start(ctx, l.refs, l.outs), explain: func(err error) error { return k.wrap(err, shapes...) }}
}

func shapesOf(args []Arg) []op.Shape {
	var s []op.Shape
	for _, a := range args {
		switch {
		case a.use != argBuffer:
			s = append(s, op.Shape{a.n})
		case a.buf == nil || a.buf.buf == nil:
			s = append(s, nil)
		default:
			s = append(s, a.buf.Shape())
		}
	}
	return s
}

// launch is the graph of one launch, and the arguments to which its references refer.
type launch struct {
	g    graph.Graph
	refs []engine.Ref
	outs [][]byte
}

func (l *launch) ref(r engine.Ref) int32 {
	l.refs = append(l.refs, r)
	return int32(len(l.refs) - 1)
}

// complete finds the type and the length of argument i, and checks it against the kernel and against
// the arguments before it.
func (k *Kernel) complete(args []Arg, i int) (err error) {
	p := k.program
	a, b := &args[i], &p.Bindings[i]
	if a.use == argBuffer {
		if a.buf == nil || a.buf.buf == nil {
			return fmt.Errorf("buffer %s was not made by NewBuffer or Upload: %w", b.Name, ErrForeign)
		}
		a.typ = a.buf.Type()
		a.n, _ = a.buf.Shape().Size()
	}
	if a.elem != nil {
		if a.typ, a.n, err = k.words(i, a); err != nil {
			return fmt.Errorf("buffer %s: %w", b.Name, err)
		}
	}
	if err := a.check(p, i); err != nil {
		return fmt.Errorf("buffer %s: %w", b.Name, err)
	}
	for j := range args[:i] {
		if err := overlaps(a, &args[j], b.Access != ir.ReadOnly || p.Bindings[j].Access != ir.ReadOnly); err != nil {
			return fmt.Errorf("buffers %s and %s: %w", p.Bindings[j].Name, b.Name, err)
		}
	}
	return nil
}

// node returns the node that gives a kernel the elements of an argument.
func (l *launch) node(a *Arg) graph.Node {
	n := graph.Node{Kind: graph.Input, Type: a.typ, Shape: op.Shape{a.n}}
	switch a.use {
	case argBuffer:
		n.Kind, n.Shape = graph.Resident, a.buf.Shape()
		n.Ref = l.buffer(a.buf)
	case argOut:
		n.Kind, n.Shape = graph.Constant, op.Shape{}
		n.Ref = int32(len(l.g.Data))
		l.g.Data = append(l.g.Data, make([]byte, a.typ.Size()))
	default:
		n.Ref = l.ref(engine.Ref{Host: a.data})
	}
	return n
}

// launch checks and completes the arguments, and makes the graph of a launch.
func (k *Kernel) launch(grid kernel.Size, params any, args []Arg) (*launch, error) {
	if err := k.valid(); err != nil {
		return nil, err
	}
	p := k.program
	block, err := k.parameters(grid, params)
	if err != nil {
		return nil, err
	}
	if len(args) != len(p.Bindings) {
		return nil, fmt.Errorf("%d arrays for %d buffers: expected one for each: %w", len(args), len(p.Bindings), ErrShape)
	}
	l := &launch{}
	launched := k.launched(grid)
	var in []graph.ID
	var stores []graph.Node // stores of the results in buffers of the device
	for i := range args {
		if err := k.complete(args, i); err != nil {
			return nil, err
		}
		a := &args[i]
		n := l.node(a)
		in = append(in, l.g.Add(n))
		if p.Bindings[i].Access == ir.ReadOnly {
			continue
		}
		shape := op.Shape{a.n}
		var s graph.Node
		if a.use == argBuffer {
			shape = a.buf.Shape()
			s = graph.Node{Kind: graph.Store, Type: a.typ, Shape: shape, Ref: n.Ref, NIn: 1}
		}
		launched.Results = append(launched.Results, graph.Array{Type: a.typ, Shape: shape})
		stores = append(stores, s)
	}
	if len(p.Uniforms) > 0 {
		in = append(in, l.g.Add(graph.Node{Kind: graph.Input, Type: op.U32, Shape: op.Shape{len(block) / 4}, Ref: l.ref(engine.Ref{Host: block})}))
	}
	l.g.Launches = append(l.g.Launches, launched)
	id := graph.ID(len(l.g.Nodes))
	for _, n := range launched.Nodes(id, 0, in) {
		l.g.Add(n)
	}
	for r, s := range stores {
		if s.Kind == graph.Store {
			s.In[0] = id + graph.ID(r)
			l.g.Add(s)
		} else {
			l.g.Outputs = append(l.g.Outputs, id+graph.ID(r))
		}
	}
	w := graph.Written(p)
	for r, i := range w {
		if stores[r].Kind != graph.Store {
			l.outs = append(l.outs, args[i].data)
		}
	}
	return l, nil
}

// words returns the number of words of an array of structures, and the element type for them.
func (k *Kernel) words(i int, a *Arg) (op.DType, int, error) {
	if k.kernel.Text == nil {
		return 0, 0, fmt.Errorf("only WGSL texts have structures: %w", ErrUnsupported)
	}
	if err := k.kernel.Text.Elements(i, a.elem); err != nil {
		return 0, 0, err
	}
	t := op.U32
	switch k.program.Bindings[i].Type {
	case ir.F32:
		t = op.F32
	case ir.I32:
		t = op.I32
	case ir.F16:
		t = op.F16
	}
	return t, len(a.data) / t.Size(), nil
}

// buffer returns the index of the reference for a buffer. A buffer may be bound twice.
func (l *launch) buffer(b *Buffer) int32 {
	for i := range l.refs {
		if l.refs[i].Buf == b.buf {
			return int32(i)
		}
	}
	return l.ref(engine.Ref{Buf: b.buf})
}

// parameters checks the grid and returns the block of parameters.
func (k *Kernel) parameters(grid kernel.Size, params any) ([]byte, error) {
	if err := k.valid(); err != nil {
		return nil, err
	}
	if err := k.checkGrid(grid); err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrShape)
	}
	block, err := k.params(nil, params)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, ErrUnsupported)
	}
	return block, nil
}

func (a *Arg) check(p *ir.Program, i int) error {
	b := &p.Bindings[i]
	if a.use == argNone {
		return fmt.Errorf("the argument is the zero Arg: use In, Out, InOut or Bind: %w", ErrShape)
	}
	if a.use == argIn && b.Access != ir.ReadOnly {
		return fmt.Errorf("the kernel writes it: use Out or InOut: %w", ErrUnsupported)
	}
	if a.use == argOut && b.Access == ir.ReadOnly {
		return fmt.Errorf("the kernel only reads it: use In: %w", ErrUnsupported)
	}
	return fits(p, i, a.typ, a.n)
}

// fits checks that n elements of type t can be bound to buffer i of a kernel.
func fits(p *ir.Program, i int, t op.DType, n int) error {
	b := &p.Bindings[i]
	if p.Text != nil && p.Text.Layouts[i].Mixed {
		if t != op.F32 && t != op.I32 && t != op.U32 {
			return fmt.Errorf("the array has type %v, and the buffer has structures that mix types: pass elements of four bytes: %w", t, ErrUnsupported)
		}
		return sized(&p.Text.Layouts[i], t, n)
	}
	var ok bool
	switch b.Type {
	case ir.F32:
		ok = t == op.F32
	case ir.I32:
		ok = t == op.I32
	case ir.U32:
		ok = t == op.U32 || t == op.Bool
	case ir.F16:
		ok = t == op.F16
	}
	if !ok {
		return fmt.Errorf("the array has type %v; the buffer needs %v: %w", t, b.Type, ErrUnsupported)
	}
	if p.Text != nil {
		return sized(&p.Text.Layouts[i], t, n)
	}
	if n%int(b.Width) != 0 {
		return fmt.Errorf("the array has %d elements, which is not a multiple of the vector width %d: %w", n, b.Width, ErrShape)
	}
	return nil
}

// sized checks that an array of n elements of type t has a size that the text allows.
func sized(l *ir.Layout, t op.DType, n int) error {
	size := t.Size()
	bytes, head, stride := int64(n)*int64(size), int64(l.Head), int64(l.Stride)
	switch {
	case n == 0:
		return fmt.Errorf("the array has no elements; a WGSL text needs at least one: %w", ErrShape)
	case stride == 0 && bytes < head:
		return fmt.Errorf("the array has %d elements of %d bytes; the buffer needs %d bytes: %w", n, size, head, ErrShape)
	case stride != 0 && bytes < head+stride:
		return fmt.Errorf("the array has %d elements of %d bytes; the buffer needs at least one element of %d bytes after the first %d bytes: %w", n, size, stride, head, ErrShape)
	case stride != 0 && (bytes-head)%stride != 0:
		return fmt.Errorf("the array has %d elements of %d bytes; the buffer needs whole elements of %d bytes after the first %d bytes: %w", n, size, stride, head, ErrShape)
	case bytes%4 != 0:
		return fmt.Errorf("the array has %d elements of %d bytes; the size of a buffer must be a multiple of 4 bytes: %w", n, size, ErrShape)
	}
	return nil
}

// overlaps returns ErrOverlap if a and b share memory and the kernel writes one of them.
func overlaps(a, b *Arg, written bool) error {
	if !written {
		return nil
	}
	if a.buf != nil && b.buf != nil && a.buf.buf == b.buf.buf || a.buf == nil && b.buf == nil && engine.Overlap(a.data, b.data) {
		return ErrOverlap
	}
	return nil
}
