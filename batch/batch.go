// Package batch records many operations and runs them in one submission to a device. The
// operands travel to the device once, elementwise operations fuse with their neighbours,
// and intermediate results share memory on the device.
//
//	b := batch.New(dev)
//	x := b.Upload([]float32{1, 2, -3, 4})
//	y := b.Scale(b.Relu(x), 2)
//	err := b.Execute(ctx)
//	out, err := batch.Read[float32](ctx, b, y) // [2 4 0 8]
//
// A number among the arguments of an operation, such as the 2 of Scale, is part of the
// plan, which may fold it. A recording with another number gets another plan, which reuses
// the compiled kernels. To change a number from run to run, make it an operand:
// b.Mul(x, b.Upload(factor)), where factor has one element, keeps its plan.
//
// To run one recording many times, compile it, and bind other slices for each run. The package example
// Training is a step of gradient descent; the example of [BindInput] binds a position for each run.
//
//	plan, err := b.Compile(ctx, y)
//	err = plan.Run(ctx, batch.BindInput(x, data), batch.BindOutput(y, result))
//
// Recording computes nothing and returns no errors. The batch keeps the first mistake, with the
// file and line of the call, and Execute or Compile returns it: [op.ErrShape] if shapes do not
// match, [op.ErrUnsupported] for element types that an operation does not support,
// [device.ErrForeign] for a value of another batch.
package batch

//go:generate go run github.com/rayo-go/rayo/internal/gen

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/devicehook"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/op"
)

// Batch records operations. It belongs to one goroutine. One recording is
// executed or compiled once or more often; Reset begins the next.
type Batch struct {
	dev *device.Device
	eng *engine.Engine

	g    graph.Graph
	refs []engine.Ref
	bufs map[*engine.Buffer]int32
	// used marks the nodes whose values an operation or store consumes.
	used []bool
	kept []graph.ID
	dsts []dest
	memo memo
	gen  uint32 // counts recordings, to recognise values of old ones
	err  error

	ran     bool
	pending *device.Pending // result of ExecuteAsync
	results map[graph.ID][]byte
}

// dest is a result that ReadInto writes directly to the user's memory.
type dest struct {
	id  graph.ID
	dst []byte
}

// Value is a value of a recording: an operand or the result of an operation.
// It is immutable, and valid until the batch is reset. The zero Value is None.
type Value struct {
	b   *Batch
	id  graph.ID
	gen uint32
}

// None stands for an optional operand that is absent. For example, this is a product without a bias:
//
//	y := b.MatMul(x, w, batch.None)
var None Value

// New returns an empty batch for a device.
func New(dev *device.Device) *Batch {
	b := &Batch{dev: dev, bufs: make(map[*engine.Buffer]int32)}
	if dev == nil {
		b.fail(fmt.Errorf("nil device: %w", device.ErrNoDevice))
		return b
	}
	b.eng = devicehook.Engine(dev)
	b.unusable()
	return b
}

// Device returns the device that the batch is for.
func (b *Batch) Device() *device.Device { return b.dev }

// Reset forgets the recording and its results, so that the batch can record
// again. Values of the old recording are no longer valid; slices that Read
// returned are the caller's.
func (b *Batch) Reset() {
	clear(b.refs)
	clear(b.bufs)
	clear(b.dsts)
	b.g = graph.Graph{Nodes: b.g.Nodes[:0]}
	b.refs, b.used, b.kept, b.dsts = b.refs[:0], b.used[:0], b.kept[:0], b.dsts[:0]
	b.gen++
	b.ran, b.results, b.pending, b.err = false, nil, nil, nil
	b.unusable()
}

// Err returns the first mistake of the recording, or nil.
func (b *Batch) Err() error { return b.err }

// Len returns the number of recorded nodes: operands, operations and stores.
func (b *Batch) Len() int { return len(b.g.Nodes) }

// fail keeps the first mistake, with the place of the call that made it.
func (b *Batch) fail(err error) Value {
	if b.err == nil {
		b.err = fmt.Errorf("%s: %w", caller(), err)
	}
	return Value{}
}

func (b *Batch) failOp(o *op.Operation, err error, in []Value) Value {
	if b.unusable() {
		return Value{}
	}
	e := &device.OpError{Op: "nil operation", Device: b.dev.String(), Err: err}
	if o != nil {
		e.Op = o.Name()
	}
	for _, v := range in {
		var s op.Shape
		if v.b == b && v.gen == b.gen && int(v.id) < len(b.g.Nodes) {
			s = b.g.Nodes[v.id].Shape
		}
		e.Shapes = append(e.Shapes, s)
	}
	return b.fail(e)
}

// caller returns file:line of the first frame outside this package.
func caller() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "rayo/batch.") || strings.HasSuffix(f.File, "_test.go") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return "unknown place"
		}
	}
}

// unusable reports whether the batch cannot record: after an error, or if it was not made by New
// with an open device.
func (b *Batch) unusable() bool {
	if b.err == nil && b.eng == nil {
		b.fail(fmt.Errorf("the batch has no device: make it by New with an open device: %w", device.ErrNoDevice))
	}
	return b.err != nil
}

// own reports whether v is a value of this recording.
func (b *Batch) own(v Value) bool { return v.b == b && v.gen == b.gen }

// foreign returns the error for a value that is not part of this recording.
func (b *Batch) foreign(v Value) error {
	switch {
	case v.b == nil:
		return fmt.Errorf("the operand is None, the zero Value, which is not allowed here: %w", device.ErrShape)
	case v.b != b:
		return fmt.Errorf("the value belongs to another batch: record it in this batch: %w", device.ErrForeign)
	}
	return fmt.Errorf("the value was recorded before Reset: record it again: %w", device.ErrForeign)
}

// Shape returns the extents of the value. It is nil for the zero Value and for an invalid one. Do
// not change it.
func (v Value) Shape() op.Shape {
	if v.b == nil || !v.b.own(v) {
		return nil
	}
	return v.b.g.Nodes[v.id].Shape
}

// Type returns the element type of the value. It is op.InvalidType for the zero Value and for an
// invalid one.
func (v Value) Type() op.DType {
	if v.b == nil || !v.b.own(v) {
		return op.InvalidType
	}
	return v.b.g.Nodes[v.id].Type
}

// String returns the element type and the extents of the value: f32 [3 4]. Its elements
// are for [Read].
func (v Value) String() string {
	if v.b == nil || !v.b.own(v) {
		return "no value"
	}
	return fmt.Sprintf("%v %v", v.Type(), v.Shape())
}

func (b *Batch) add(n *graph.Node) Value {
	if b.ran {
		return b.fail(fmt.Errorf("the batch has been executed: call Reset before recording: %w", device.ErrExecuted))
	}
	b.used = append(b.used, false)
	return Value{b, b.g.Add(*n), b.gen}
}

// Upload records an operand in host memory. Without a shape it has one extent, the length. The
// slice is read when the batch runs, so do not change it until Execute has ended. The function
// [Upload] takes slices of other element types.
func (b *Batch) Upload(data []float32, shape ...int) Value {
	return b.upload(op.F32, engine.Bytes(data), len(data), shape)
}

// Upload records an operand of any element type, as [Batch.Upload] does for float32. It
// converts elements of int64 to i32 at once, not when the batch runs. A number that i32
// cannot hold is a [RangeError]:
//
//	ids := batch.Upload(b, []int64{101, 2023, 102})
func Upload[T Number](b *Batch, data []T, shape ...int) Value {
	if b.unusable() {
		return Value{}
	}
	raw, t, err := elements(data)
	if err != nil {
		return b.fail(fmt.Errorf("upload: %w", err))
	}
	return b.upload(t, raw, len(data), shape)
}

// UploadBlocks records an operand of a quantised type in host memory: raw holds
// its blocks, as package block defines them. shape counts elements. Otherwise
// it is as [Batch.Upload]; weights that serve more than one batch belong in
// [device.UploadBlocks].
func (b *Batch) UploadBlocks(raw []byte, t op.DType, shape ...int) Value {
	if b.unusable() {
		return Value{}
	}
	if !t.Quantized() {
		return b.fail(fmt.Errorf("upload of blocks: type %v is not quantised: use Upload: %w", t, device.ErrUnsupported))
	}
	n, err := t.Bytes(shape)
	if err == nil && n != len(raw) {
		err = fmt.Errorf("%d bytes for %v of %v: expected %d: %w", len(raw), op.Shape(shape), t, n, device.ErrShape)
	}
	if err != nil {
		return b.fail(fmt.Errorf("upload: %w", err))
	}
	s, err := b.checked(shape)
	if err != nil {
		return b.fail(fmt.Errorf("upload: %w", err))
	}
	b.refs = append(b.refs, engine.Ref{Host: raw})
	return b.add(&graph.Node{Kind: graph.Input, Type: t, Shape: s, Ref: int32(len(b.refs) - 1)})
}

func (b *Batch) upload(t op.DType, data []byte, n int, shape []int) Value {
	if b.unusable() {
		return Value{}
	}
	s, err := b.shape(n, shape)
	if err != nil {
		return b.fail(fmt.Errorf("upload: %w", err))
	}
	b.refs = append(b.refs, engine.Ref{Host: data})
	return b.add(&graph.Node{Kind: graph.Input, Type: t, Shape: s, Ref: int32(len(b.refs) - 1)})
}

// shape returns the shape of n elements, by default one extent.
func (b *Batch) shape(n int, shape []int) (op.Shape, error) {
	if len(shape) == 0 {
		return op.Shape{n}, nil
	}
	s, err := b.checked(shape)
	if err != nil {
		return nil, err
	}
	size, err := s.Size()
	if err == nil && size != n {
		err = fmt.Errorf("%d elements for %v: expected %d: %w", n, s, size, device.ErrShape)
	}
	return s, err
}

// checked returns a copy of a caller's shape, or an error if the device does not support the number
// of extents. The copy is not nil, because a nil shape means an absent operand.
func (b *Batch) checked(shape []int) (op.Shape, error) {
	if most := b.eng.Limits().MaxRank; len(shape) > most {
		return nil, fmt.Errorf("the shape has %d extents: at most %d are supported: %w", len(shape), most, device.ErrLimit)
	}
	return append(op.Shape{}, shape...), nil
}

// Const records an array of one number; without a shape it is a scalar.
// Operations on constants are computed when the batch is planned.
func (b *Batch) Const(v float32, shape ...int) Value {
	if b.unusable() {
		return Value{}
	}
	n, s := 1, op.Shape{}
	if len(shape) > 0 {
		var err error
		if s, err = b.checked(shape); err == nil {
			n, err = s.Size()
		}
		if err != nil {
			return b.fail(fmt.Errorf("const: %w", err))
		}
	}
	if n > maxConst {
		return b.Expand(b.Const(v), shape...)
	}
	c := b.add(&graph.Node{Kind: graph.Constant, Type: op.F32, Shape: s, Ref: int32(len(b.g.Data))})
	if b.err == nil {
		data := make([]byte, 4*n)
		for i := range n {
			op.F32.PutFloat64(data, i, float64(v))
		}
		b.g.Data = append(b.g.Data, data)
	}
	return c
}

// maxConst is the maximum number of elements of a constant, which becomes part of the plan. Larger
// constants are scalars that broadcast.
const maxConst = 1 << 20

// Use records an operand that is a buffer on the device. Its contents are those at this point of
// the recording: after the stores recorded before, and before later ones.
func (b *Batch) Use(buf *device.Buffer) Value {
	if b.unusable() {
		return Value{}
	}
	ref, err := b.buffer(buf)
	if err != nil {
		return b.fail(fmt.Errorf("use: %w", err))
	}
	return b.add(&graph.Node{Kind: graph.Resident, Type: buf.Type(), Shape: buf.Shape(), Ref: ref})
}

func (b *Batch) buffer(buf *device.Buffer) (int32, error) {
	var m *engine.Buffer
	if buf != nil {
		m = devicehook.Memory(buf)
	}
	if m == nil {
		return 0, fmt.Errorf("the buffer was not made by NewBuffer or Upload: %w", device.ErrForeign)
	}
	if m.Engine() != b.eng {
		return 0, b.eng.Foreign("buffer", m.Engine())
	}
	ref, ok := b.bufs[m]
	if !ok {
		ref = int32(len(b.refs))
		b.refs = append(b.refs, engine.Ref{Buf: m})
		b.bufs[m] = ref
	}
	return ref, nil
}

// Store records that v is written into buf from element off on, in row-major order. Stores happen
// in the order in which they are recorded, and always. WebGPU devices support elements of two bytes
// only for an even off.
func (b *Batch) Store(buf *device.Buffer, off int, v Value) {
	if b.unusable() {
		return
	}
	if !b.own(v) {
		b.fail(fmt.Errorf("store: %w", b.foreign(v)))
		return
	}
	ref, err := b.buffer(buf)
	if err != nil {
		b.fail(fmt.Errorf("store: %w", err))
		return
	}
	n := &b.g.Nodes[v.id]
	size, _ := n.Shape.Size()
	have, _ := buf.Shape().Size()
	if n.Type != buf.Type() {
		b.fail(fmt.Errorf("store of %v into a buffer of %v: Cast the value first: %w", n.Type, buf.Type(), device.ErrUnsupported))
		return
	}
	if off < 0 || off > have || size > have-off {
		b.fail(fmt.Errorf("store of shape %v from element %d on: the buffer has shape %v: %w", n.Shape, off, buf.Shape(), device.ErrShape))
		return
	}
	b.used[v.id] = true
	s := graph.Node{Kind: graph.Store, Type: n.Type, Shape: n.Shape, Ref: ref, NIn: 1, Off: int64(off) * int64(n.Type.Size())}
	s.In[0] = v.id
	b.add(&s)
}

// Keep makes v an output although something consumes it, so that it can be
// read after Execute.
func (b *Batch) Keep(v Value) {
	if b.unusable() {
		return
	}
	if !b.own(v) {
		b.fail(fmt.Errorf("keep: %w", b.foreign(v)))
		return
	}
	b.kept = append(b.kept, v.id)
}

// ReadInto records that the elements of v go into dst when the batch runs, which saves the
// copy of [Read] and lets the caller choose the memory. dst must have as many elements as v,
// and share no memory with the slice of another ReadInto ([device.ErrOverlap]).
//
//	y := make([]float32, 3)
//	batch.ReadInto(b, b.Relu(x), y)
//	err := b.Execute(ctx)
func ReadInto[T device.Element](b *Batch, v Value, dst []T) {
	if b.unusable() {
		return
	}
	if err := b.fits(v, device.Holds[T](v.Type()), len(dst)); err != nil {
		b.fail(fmt.Errorf("read into: %w", err))
		return
	}
	b.dsts = append(b.dsts, dest{v.id, engine.Bytes(dst)})
}

// fits checks that a slice of n elements can take v.
func (b *Batch) fits(v Value, holds bool, n int) error {
	if !b.own(v) {
		return b.foreign(v)
	}
	if !holds {
		return fmt.Errorf("the slice cannot have the elements of a value of type %v: use a slice of its type, or Cast the value: %w", v.Type(), device.ErrUnsupported)
	}
	if size, _ := v.Shape().Size(); size != n {
		return fmt.Errorf("%d elements for %v: expected %d: %w", n, v.Shape(), size, device.ErrShape)
	}
	return nil
}

// apply records an operation.
func (b *Batch) apply(o *op.Operation, a op.Attrs, in ...Value) Value {
	if b.unusable() {
		return Value{}
	}
	if o == nil || len(in) == 0 || len(in) > op.MaxInputs {
		return b.failOp(o, device.ErrUnsupported, nil)
	}
	if in[len(in)-1] == (Value{}) {
		in = given(o, in)
	}
	if err := a.Err(); err != nil {
		return b.failOp(o, err, copyOf(in))
	}
	n := graph.Node{Kind: graph.Compute, Op: o, Attrs: a, NIn: uint8(len(in))}
	plain := o.Plain() // remains true if all operands are float32 of one shape
	for i, v := range in {
		if !b.own(v) {
			if fewest, _ := o.Arity(); v.b == nil && i >= fewest {
				n.In[i] = graph.Absent
				continue
			}
			return b.failOp(o, b.foreign(v), copyOf(in))
		}
		n.In[i] = v.id
		x := &b.g.Nodes[v.id]
		if plain && (x.Type != op.F32 || i > 0 && !x.Shape.Equal(b.g.Nodes[n.In[0]].Shape)) {
			plain = false
		}
	}
	if fewest, most := o.Arity(); plain && len(in) >= fewest && len(in) <= most {
		n.Type, n.Shape = op.F32, b.g.Nodes[n.In[0]].Shape
	} else if err := b.infer(&n); err != nil {
		return b.failOp(o, err, copyOf(in))
	}
	for _, id := range n.Inputs() {
		if id != graph.Absent {
			b.used[id] = true
		}
	}
	return b.add(&n)
}

// given returns the operands without those at the end that are absent, if the operation is shaped.
func given(o *op.Operation, in []Value) []Value {
	if o.Class() == op.Shaped {
		for fewest, _ := o.Arity(); len(in) > fewest && in[len(in)-1] == (Value{}); {
			in = in[:len(in)-1]
		}
	}
	return in
}

// copyOf copies the operands for an error, so that the operands of successful calls stay on the stack.
func copyOf(in []Value) []Value { return append([]Value(nil), in...) }

// Map records an elementwise operation, a built-in or a user's one, with its default parameters. An
// operation with a parameter that has no default, such as the factor of scale, is
// [op.ErrUnsupported]: call its own method instead.
func (b *Batch) Map(o *op.Operation, in ...Value) Value {
	if o == nil || o.Class() != op.Elementwise {
		return b.failOp(o, fmt.Errorf("not an elementwise operation: %w", device.ErrUnsupported), copyOf(in))
	}
	if err := o.CheckDefaults(); err != nil {
		return b.failOp(o, err, copyOf(in))
	}
	return b.apply(o, o.Defaults(), in...)
}
