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
// The zero Host is an absent optional operand.
//
// It stores its extents by value, so that calls of an operation do not allocate.
type Host struct {
	Data []byte
	Type op.DType
	rank int
	dims [op.MaxRank]int
}

// HostOf returns the array of type t and shape s in data.
func HostOf(data []byte, t op.DType, s op.Shape) Host {
	h := Host{Data: data, Type: t}
	h.Reshape(s)
	return h
}

// Set makes h the array of type t and shape s in data.
func (h *Host) Set(data []byte, t op.DType, s op.Shape) {
	h.Data, h.Type = data, t
	h.Reshape(s)
}

// Shape returns the extents; the slice aliases h.
func (h *Host) Shape() op.Shape { return h.dims[:h.rank:h.rank] }

// Reshape changes the extents; there must be at most op.MaxRank.
func (h *Host) Reshape(s op.Shape) { h.rank = copy(h.dims[:], s) }

// maxResults is the most results that an operation has.
const maxResults = 2

// A one-shot call is the graph of one node. Its plan is fixed, because there is nothing to decide:
// one step over host memory. Calls are pooled, and the fields that are the same in all calls are
// set once.

// mapCall is a call of an elementwise operation.
type mapCall struct {
	step  driver.Step
	fused driver.Fused
	body  [1]driver.Instr
	args  [op.MaxInputs]int
	in    [op.MaxInputs]driver.Operand
	out   [1]driver.Operand
	fout  [1]int
	shape [1]int
	ext   [op.MaxInputs + 1]driver.Binding
}

var mapCalls = sync.Pool{New: func() any {
	c := new(mapCall)
	for i := range c.args {
		c.args[i] = i
	}
	c.fused = driver.Fused{Body: c.body[:], Out: c.fout[:], Shape: c.shape[:]}
	c.step = driver.Step{Post: &c.fused, Out: c.out[:]}
	return c
}}

// call is a call of any other operation.
type call struct {
	step    driver.Step
	in      [op.MaxInputs]driver.Operand
	out     [maxResults]driver.Operand
	dims    [op.MaxInputs + maxResults]op.Shape
	extents [op.MaxInputs][1]int // of reductions, for dims
	ext     [op.MaxInputs + maxResults]driver.Binding
	scalar  [1]uint32 // where a reduction leaves its result
}

var calls = sync.Pool{New: func() any { return new(call) }}

// free forgets what belongs to the caller.
func (c *call) free() {
	for i := range c.step.Dims {
		c.ext[i].Host, c.dims[i] = nil, nil
	}
	c.step.Attrs.Act = nil
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
	c := mapCalls.Get().(*mapCall)
	_, arity := o.Arity()
	full := driver.Operand{Type: op.F32, N: len(dst)}
	for i := range arity {
		full.Slot = i
		c.in[i] = full
	}
	c.ext[0].Host = Bytes(x)
	if arity > 1 {
		c.ext[1].Host = Bytes(y)
		if arity > 2 {
			c.ext[2].Host = Bytes(z)
		}
	}
	c.ext[arity].Host = Bytes(dst)
	full.Slot = arity
	c.out[0] = full
	c.body[0] = driver.Instr{Op: o, Attrs: *a, Args: c.args[:arity], Type: op.F32}
	c.fused.In, c.fout[0], c.shape[0] = c.in[:arity], arity, len(dst)
	e.submissions.Add(1)
	e.steps.Add(1)
	err := e.imm.Run(ctx, &c.step, c.ext[:arity+1])
	for i := range c.ext[:arity+1] {
		c.ext[i].Host = nil
	}
	mapCalls.Put(c)
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
	c := calls.Get().(*call)
	c.vector(0, x)
	if arity > 1 {
		c.vector(1, y)
	}
	c.dims[arity] = nil
	c.bind(&c.out[0], arity, Bytes(c.scalar[:]), t)
	err := e.run(ctx, c, o, a, arity, 1, arity+1)
	r := c.scalar[0]
	c.free()
	return r, err
}

// Call runs one operation over host memory and waits. Shapes and types are
// right, and out does not overlap in where o forbids it.
func (e *Engine) Call(ctx context.Context, o *op.Operation, a *op.Attrs, in, out []Host) error {
	if e.imm == nil {
		return e.viaGraph(ctx, o, a, in, out)
	}
	if err := e.begin(ctx, o); err != nil {
		return err
	}
	c := calls.Get().(*call)
	slots := 0
	for i := range in {
		h := &in[i]
		c.dims[i] = h.Shape()
		if h.Type == op.InvalidType {
			c.in[i] = driver.Operand{Slot: -1}
			continue
		}
		c.bind(&c.in[i], slots, h.Data, h.Type)
		slots++
	}
	for i := range out {
		h := &out[i]
		c.dims[len(in)+i] = h.Shape()
		c.bind(&c.out[i], slots, h.Data, h.Type)
		slots++
	}
	err := e.run(ctx, c, o, a, len(in), len(out), slots)
	c.free()
	return err
}

// begin checks that an operation may start and counts it as under way; if it
// returns nil, run must follow.
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
	return nil
}

// bind fills an operand or result and the slot that it has.
func (c *call) bind(o *driver.Operand, slot int, data []byte, t op.DType) {
	n := 0
	if s := t.Size(); s > 0 {
		n = len(data) / s
	}
	*o = driver.Operand{Slot: slot, Type: t, N: n}
	c.ext[slot].Host = data
}

// vector binds operand i of a reduction.
func (c *call) vector(i int, x []float32) {
	c.extents[i][0] = len(x)
	c.dims[i] = c.extents[i][:]
	c.bind(&c.in[i], i, Bytes(x), op.F32)
}

// run runs o over the bound arrays.
func (e *Engine) run(ctx context.Context, c *call, o *op.Operation, a *op.Attrs, in, out, slots int) error {
	c.step.Op, c.step.Attrs, c.step.In, c.step.Out, c.step.Dims = o, *a, c.in[:in], c.out[:out], c.dims[:in+out]
	e.submissions.Add(1)
	e.steps.Add(1)
	err := e.imm.Run(ctx, &c.step, c.ext[:slots])
	e.exit()
	return err
}

// Start runs one operation over host memory without waiting: the graph of one
// node, planned like any other.
func (e *Engine) Start(ctx context.Context, o *op.Operation, a *op.Attrs, in, out []Host) *driver.Completion {
	p, refs, outs, err := e.oneNode(ctx, o, a, in, out)
	if err != nil {
		return driver.Completed(err)
	}
	return p.Start(ctx, refs, outs)
}

// viaGraph is Start for callers that wait: it does not return, even if ctx ends, before the device
// has stopped using the memory.
func (e *Engine) viaGraph(ctx context.Context, o *op.Operation, a *op.Attrs, in, out []Host) error {
	p, refs, outs, err := e.oneNode(ctx, o, a, in, out)
	if err != nil {
		return err
	}
	return p.Run(ctx, refs, outs, nil)
}

// oneNode returns the plan of one operation and the bindings of a run. The float parameters of an
// elementwise operation are operands, so that calls that differ in them have one plan.
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

// clone keeps shapes of callers on their stacks.
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
