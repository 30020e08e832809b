package engine

import (
	"context"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/op"
)

// Host is an array in host memory: an operand or result of a one-shot call.
type Host = driver.Host

// HostOf returns the array of type t and shape s in data.
func HostOf(data []byte, t op.DType, s op.Shape) Host { return driver.HostOf(data, t, s) }

// call has the data that a one-shot call passes to the device by reference.
type call struct {
	attrs  op.Attrs
	in     [2]Host // operands of reductions
	out    [1]Host
	scalar [1]uint32 // result of a reduction
}

var calls = sync.Pool{New: func() any { return new(call) }}

// callOf returns a call with parameters.
func callOf(a *op.Attrs) *call {
	c := calls.Get().(*call)
	c.attrs = *a
	return c
}

// free drops references to the caller's memory and returns c to the pool.
func (c *call) free() {
	c.attrs.Act, c.in[0].Data, c.in[1].Data = nil, nil, nil
	calls.Put(c)
}

// Elementwise runs o over float32 slices of one length, which the caller has
// checked: dst and as many operands as o takes.
func (e *Engine) Elementwise(ctx context.Context, o *op.Operation, a *op.Attrs, dst, x, y, z []float32) error {
	if e.imm == nil {
		n := op.Shape{len(dst)}
		in := []Host{HostOf(Bytes(x), op.F32, n), HostOf(Bytes(y), op.F32, n), HostOf(Bytes(z), op.F32, n)}
		_, most := o.Arity()
		return e.viaGraph(ctx, o, a, in[:most], []Host{HostOf(Bytes(dst), op.F32, n)})
	}
	if err := driver.Alive(ctx); err != nil {
		return err
	}
	if !e.enter() {
		return e.Err()
	}
	e.countStep()
	c := callOf(a)
	err := e.imm.Elementwise(ctx, o, &c.attrs, dst, x, y, z)
	c.free()
	e.exit()
	return err
}

// Reduce runs a reduction of all elements of x, and of y if o takes two, and
// returns the 32 bits of the result.
func (e *Engine) Reduce(ctx context.Context, o *op.Operation, a *op.Attrs, x, y []float32) (uint32, error) {
	_, arity := o.Arity()
	t := op.F32
	if o == op.ArgMax || o == op.ArgMin || o == op.CountNonzero {
		t = op.I32
	}
	if e.imm == nil {
		n := op.Shape{len(x)}
		in := []Host{HostOf(Bytes(x), op.F32, n), HostOf(Bytes(y), op.F32, n)}
		r := make([]uint32, 1)
		err := e.viaGraph(ctx, o, a, in[:arity], []Host{HostOf(Bytes(r), t, nil)})
		return r[0], err
	}
	if err := e.begin(ctx, o); err != nil {
		return 0, err
	}
	c := callOf(a)
	n := [...]int{len(x)}
	c.in[0].Set(Bytes(x), op.F32, n[:])
	if arity > 1 {
		c.in[1].Set(Bytes(y), op.F32, n[:])
	}
	c.out[0].Set(Bytes(c.scalar[:]), t, nil)
	err := e.imm.Call(ctx, o, &c.attrs, c.in[:arity], c.out[:])
	r := c.scalar[0]
	c.free()
	e.exit()
	return r, err
}

// Call runs one operation over host memory and waits. The caller has checked the shapes and types,
// and that out does not overlap in unless o allows it.
func (e *Engine) Call(ctx context.Context, o *op.Operation, a *op.Attrs, in, out []Host) error {
	if e.imm == nil {
		return e.viaGraph(ctx, o, a, in, out)
	}
	if err := e.begin(ctx, o); err != nil {
		return err
	}
	c := callOf(a)
	err := e.imm.Call(ctx, o, &c.attrs, in, out)
	c.free()
	e.exit()
	return err
}

// begin checks that an operation may start and registers it as running. If it returns nil, the
// caller must call exit.
func (e *Engine) begin(ctx context.Context, o *op.Operation) error {
	if err := driver.Alive(ctx); err != nil {
		return err
	}
	if !e.enter() {
		return e.Err()
	}
	if err := e.selfTest(ctx, o, usual); err != nil {
		e.exit()
		return err
	}
	e.countStep()
	return nil
}

// countStep counts a submission of one step.
func (e *Engine) countStep() {
	e.submissions.Add(1)
	e.steps.Add(1)
}

// Start runs one operation over host memory without waiting. It plans a graph of one node like any
// other graph.
func (e *Engine) Start(ctx context.Context, o *op.Operation, a *op.Attrs, in, out []Host) *driver.Completion {
	p, refs, outs, err := e.oneNode(ctx, o, a, in, out)
	if err != nil {
		return driver.Completed(err)
	}
	return p.Start(ctx, refs, outs)
}

// oneNode returns the plan of one operation and the bindings of a run. The float parameters of an
// elementwise operation are operands, so that calls with different parameters share a plan.
func (e *Engine) oneNode(ctx context.Context, o *op.Operation, a *op.Attrs, in, out []Host) (p *Plan, refs []Ref, outs [][]byte, err error) {
	o, a, in = parametric(o, a, in)
	g, refs, outs := graphOf(o, a, in, out)
	p, err = e.Compile(ctx, g)
	return p, refs, outs, err
}

// parametric returns the call of o with its float parameters as operands, if it is
// elementwise.
func parametric(o *op.Operation, a *op.Attrs, in []Host) (*op.Operation, *op.Attrs, []Host) {
	p := o.Parametric()
	if p == nil {
		return o, a, in
	}
	values := append([]uint32(nil), a.F[:len(o.Params())]...)
	in = in[:len(in):len(in)]
	for i := range values {
		in = append(in, HostOf(Bytes(values[i:i+1]), op.F32, nil))
	}
	return p, &op.Attrs{}, in
}

// graphOf returns the graph of one operation.
func graphOf(o *op.Operation, a *op.Attrs, in, out []Host) (g *graph.Graph, refs []Ref, outs [][]byte) {
	g = &graph.Graph{}
	n := graph.Node{Kind: graph.Compute, Op: o, Attrs: *a, NIn: uint8(len(in))}
	for i := range in {
		n.In[i] = graph.Absent
		if h := &in[i]; h.Type != op.InvalidType {
			n.In[i] = g.Add(graph.Node{Kind: graph.Input, Type: h.Type, Shape: clone(h.Shape()), Ref: int32(len(refs))})
			refs = append(refs, Ref{Host: h.Data})
		}
	}
	n.Type, n.Shape = out[0].Type, clone(out[0].Shape())
	id := g.Add(n)
	g.Outputs = []graph.ID{id}
	outs = [][]byte{out[0].Data}
	for k := 1; k < len(out); k++ {
		s := graph.Node{Kind: graph.Result, Ref: int32(k), Type: out[k].Type, Shape: clone(out[k].Shape()), NIn: 1, In: [graph.MaxInputs]graph.ID{id}}
		g.Outputs = append(g.Outputs, g.Add(s))
		outs = append(outs, out[k].Data)
	}
	return g, refs, outs
}

// clone copies a shape, so that the caller's shape does not escape to the heap.
func clone(s op.Shape) op.Shape { return append(op.Shape{}, s...) }

// Bytes returns the memory of a slice of elements without pointers.
func Bytes[T any](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(x[0])))
}

// View returns memory, aligned for its elements, as a slice of them.
func View[T any](memory []byte) []T {
	var t T
	if len(memory) == 0 {
		return []T{}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/int(unsafe.Sizeof(t)))
}
