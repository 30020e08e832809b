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
// It holds its extents by value: calls of one operation then leave nothing to
// the garbage collector.
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

// Shape returns the extents; they are those of h itself.
func (h *Host) Shape() op.Shape { return h.dims[:h.rank:h.rank] }

// Reshape changes the extents, of which there are no more than op.MaxRank.
func (h *Host) Reshape(s op.Shape) { h.rank = copy(h.dims[:], s) }

// maxResults is the most results that an operation has.
const maxResults = 2

// call is a step over host memory: the graph of one node that a one-shot call
// is, planned by hand because there is nothing to decide.
type call struct {
	step  driver.Step
	fused driver.Fused
	body  [1]driver.Instr
	args  [op.MaxInputs]int
	fout  [1]int
	in    [op.MaxInputs]driver.Operand
	out   [maxResults]driver.Operand
	dims  [op.MaxInputs + maxResults]op.Shape
	// extents back dims: shapes are copied so that a caller's stay on its stack.
	extents [op.MaxInputs + maxResults][op.MaxRank]int
	shape   [1]int
	ext     [op.MaxInputs + maxResults]driver.Binding
	// scalar is where a reduction leaves its result.
	scalar [1]uint32
}

var calls = sync.Pool{New: func() any {
	c := new(call)
	for i := range c.args {
		c.args[i] = i
	}
	return c
}}

func (c *call) free() {
	clear(c.ext[:])
	clear(c.dims[:])
	c.step = driver.Step{}
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
	c := calls.Get().(*call)
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
	c.fout[0] = arity
	c.shape[0] = len(dst)
	c.fused = driver.Fused{In: c.in[:arity], Body: c.body[:], Out: c.fout[:], Shape: c.shape[:]}
	c.step.Post = &c.fused
	c.step.Out = c.out[:1]
	e.submissions.Add(1)
	e.steps.Add(1)
	err := e.imm.Run(ctx, &c.step, c.ext[:arity+1])
	c.free()
	e.exit()
	return err
}

// Reduce runs a reduction of all elements of x, and of y if o takes two, and
// returns the 32 bits of the result.
func (e *Engine) Reduce(ctx context.Context, o *op.Operation, a *op.Attrs, x, y []float32) (uint32, error) {
	in := [2]Host{HostOf(Bytes(x), op.F32, op.Shape{len(x)}), HostOf(Bytes(y), op.F32, op.Shape{len(y)})}
	_, arity := o.Arity()
	t := op.F32
	if o == op.ArgMax || o == op.ArgMin {
		t = op.I32
	}
	if e.imm == nil {
		var r [1]uint32
		err := e.viaGraph(ctx, o, a, in[:arity], []Host{HostOf(Bytes(r[:]), t, nil)})
		return r[0], err
	}
	c := calls.Get().(*call)
	out := [1]Host{HostOf(Bytes(c.scalar[:]), t, nil)}
	err := e.call(ctx, c, o, a, in[:arity], out[:])
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
	c := calls.Get().(*call)
	err := e.call(ctx, c, o, a, in, out)
	c.free()
	return err
}

func (e *Engine) call(ctx context.Context, c *call, o *op.Operation, a *op.Attrs, in, out []Host) error {
	if err := driver.Alive(ctx); err != nil {
		return err
	}
	if !e.enter() {
		return e.Err()
	}
	defer e.exit()
	if err := e.prove(ctx, o); err != nil {
		return err
	}
	k := 0
	operand := func(h *Host) driver.Operand {
		n := 0
		if s := h.Type.Size(); s > 0 {
			n = len(h.Data) / s
		}
		c.ext[k].Host = h.Data
		k++
		return driver.Operand{Slot: k - 1, Type: h.Type, N: n}
	}
	for i := range in {
		c.in[i] = driver.Operand{Slot: -1}
		if in[i].Type != op.InvalidType {
			c.in[i] = operand(&in[i])
		}
		c.dims[i] = c.extents[i][:copy(c.extents[i][:], in[i].Shape())]
	}
	for i := range out {
		c.out[i] = operand(&out[i])
		k := len(in) + i
		c.dims[k] = c.extents[k][:copy(c.extents[k][:], out[i].Shape())]
	}
	c.step = driver.Step{Op: o, Attrs: *a, In: c.in[:len(in)], Out: c.out[:len(out)], Dims: c.dims[:len(in)+len(out)]}
	e.submissions.Add(1)
	e.steps.Add(1)
	return e.imm.Run(ctx, &c.step, c.ext[:k])
}

// Start runs one operation over host memory without waiting: the graph of one
// node, planned like any other.
func (e *Engine) Start(ctx context.Context, o *op.Operation, a *op.Attrs, in, out []Host) *Pending {
	p, refs, outs, err := e.oneNode(ctx, o, a, in, out)
	if err != nil {
		return Failed(err)
	}
	return p.Start(ctx, refs, outs)
}

// viaGraph is Start for who waits: it does not return, not even when ctx ends,
// before the device leaves the memory alone.
func (e *Engine) viaGraph(ctx context.Context, o *op.Operation, a *op.Attrs, in, out []Host) error {
	p, refs, outs, err := e.oneNode(ctx, o, a, in, out)
	if err != nil {
		return err
	}
	return p.Run(ctx, refs, outs, nil)
}

// oneNode returns the plan of one operation and what a run of it binds.
func (e *Engine) oneNode(ctx context.Context, o *op.Operation, a *op.Attrs, in, out []Host) (p *Plan, refs []Ref, outs [][]byte, err error) {
	g, refs, outs := graphOf(o, a, in, out)
	p, err = e.Compile(ctx, g)
	return p, refs, outs, err
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
	if len(out) > 1 {
		s := graph.Node{Kind: graph.Result, Ref: 1, Type: out[1].Type, Shape: clone(out[1].Shape()), NIn: 1, In: [graph.MaxInputs]graph.ID{id}}
		g.Outputs = append(g.Outputs, g.Add(s))
		outs = append(outs, out[1].Data)
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
