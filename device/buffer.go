package device

import (
	"context"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/op"
)

// Element is an element type of slices: float32, int32, uint32, uint8, int8, or the bits of
// half floats as [op.Float16] and [op.BFloat16]. Arrays of Bool are read and
// written as uint32 of 0 and 1, those of quantised types as bytes: see
// [UploadBlocks].
type Element interface {
	float32 | int32 | uint32 | uint8 | int8 | op.Float16 | op.BFloat16
}

// TypeOf returns the element type of T.
func TypeOf[T Element]() op.DType {
	var v T
	switch any(v).(type) {
	case float32:
		return op.F32
	case int32:
		return op.I32
	case uint32:
		return op.U32
	case uint8:
		return op.U8
	case int8:
		return op.I8
	case op.Float16:
		return op.F16
	}
	return op.BF16
}

// Holds reports whether slices of T can hold arrays of type d.
func Holds[T Element](d op.DType) bool {
	t := TypeOf[T]()
	return d == t || d == op.Bool && t == op.U32
}

// Buffer is an array that stays on a device until it is closed, for example weights, a cache, or
// state between batches. Batches read it with Use and write it with Store. It is safe for
// concurrent use: if one of several submissions that share it writes it, they run one after the
// other. Methods return [ErrForeign] for the zero Buffer.
type Buffer struct {
	dev *Device
	buf *engine.Buffer
}

// NewBuffer returns an array of zeros on the device. For a quantised type, all bytes of the blocks
// are 0.
//
// # Errors
//   - [ErrShape] for a negative extent or a size that overflows.
//   - [ErrLimit] and [ErrOutOfMemory] if the array is too large for the device.
func (d *Device) NewBuffer(ctx context.Context, t op.DType, shape ...int) (*Buffer, error) {
	b, err := d.engine().NewBuffer(t, shape)
	if err != nil {
		return nil, d.wrapAs(err, alloc, shape)
	}
	buf := &Buffer{d, b}
	if err := buf.clear(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return buf, nil
}

// alloc and copying are the operation names in errors of calls that are not operations of the catalogue.
const (
	alloc   = "new buffer"
	copying = "copy"
)

// Upload copies a slice to the device. Without a shape, the buffer has one extent, the length of
// the slice.
func Upload[T Element](ctx context.Context, d *Device, data []T, shape ...int) (*Buffer, error) {
	if d == nil {
		return nil, errNilDevice
	}
	s := op.Shape(shape)
	if len(s) == 0 {
		s = op.Shape{len(data)}
	}
	if n, err := s.Size(); err != nil || n != len(data) {
		if err == nil {
			err = fmt.Errorf("%d elements for %v: expected %d: %w", len(data), s, n, ErrShape)
		}
		return nil, d.wrapAs(err, copying, s)
	}
	b, err := d.engine().NewBuffer(TypeOf[T](), s)
	if err != nil {
		return nil, d.wrapAs(err, alloc, s)
	}
	buf := &Buffer{d, b}
	if err := buf.write(ctx, engine.Bytes(data)); err != nil {
		b.Close()
		return nil, err
	}
	return buf, nil
}

// Write replaces the contents of b by data, which must have the element type and the length of b.
func Write[T Element](ctx context.Context, b *Buffer, data []T) error {
	if err := matches[T](b, len(data)); err != nil {
		return err
	}
	return b.write(ctx, engine.Bytes(data))
}

// Read copies the contents of b to dst, which must have the element type and the length of b.
func Read[T Element](ctx context.Context, dst []T, b *Buffer) error {
	if err := matches[T](b, len(dst)); err != nil {
		return err
	}
	return b.read(ctx, engine.Bytes(dst))
}

func matches[T Element](b *Buffer, n int) error {
	if err := b.made(); err != nil {
		return err
	}
	if !Holds[T](b.Type()) {
		return b.dev.wrapAs(fmt.Errorf("the slice has elements of type %v, and the buffer has type %v: %w", TypeOf[T](), b.Type(), ErrUnsupported), copying, b.Shape())
	}
	if size, _ := b.Shape().Size(); size != n {
		return b.dev.wrapAs(fmt.Errorf("the slice has %d elements; it must have as many as the buffer: %w", n, ErrShape), copying, b.Shape())
	}
	return nil
}

// made returns an error unless NewBuffer or Upload made the buffer.
func (b *Buffer) made() error {
	if b == nil || b.buf == nil {
		return fmt.Errorf("the buffer was not made by NewBuffer or Upload: %w", ErrForeign)
	}
	return nil
}

var errNilDevice = fmt.Errorf("nil device: %w", ErrNoDevice)

// Type returns the element type. For the zero Buffer it is op.InvalidType.
func (b *Buffer) Type() op.DType {
	if b.made() != nil {
		return op.InvalidType
	}
	return b.buf.Type()
}

// Shape returns the extents, which must not be changed. For the zero Buffer it is nil.
func (b *Buffer) Shape() op.Shape {
	if b.made() != nil {
		return nil
	}
	return b.buf.Shape()
}

// String returns the element type, the extents and the device: f32 [3 4] on cpu. It does not
// read the elements.
func (b *Buffer) String() string {
	if b.made() != nil {
		return "no buffer"
	}
	return fmt.Sprintf("%v %v on %v", b.Type(), b.Shape(), b.dev)
}

// Device returns the device of the array, or nil for the zero Buffer.
func (b *Buffer) Device() *Device {
	if b.made() != nil {
		return nil
	}
	return b.dev
}

// Close frees the memory as soon as no submission uses it. Later uses of the buffer return
// ErrClosed; later calls of Close do nothing.
func (b *Buffer) Close() error {
	if err := b.made(); err != nil {
		return err
	}
	return b.buf.Close()
}

// Transfers are graphs like other work: a graph stores an input in the buffer, returns the buffer
// as an output, or stores a constant.

func (b *Buffer) node(k graph.Kind) graph.Node {
	if b.Type().Quantized() {
		return graph.Node{Kind: k, Type: op.U32, Shape: op.Shape{int(b.buf.Bytes() / 4)}}
	}
	return graph.Node{Kind: k, Type: b.Type(), Shape: b.Shape()}
}

func (b *Buffer) write(ctx context.Context, data []byte) error {
	g := &graph.Graph{}
	in := g.Add(b.node(graph.Input))
	s := b.node(graph.Store)
	s.Ref, s.NIn, s.In[0] = 1, 1, in
	g.Add(s)
	return b.run(ctx, g, []engine.Ref{{Host: data}, {Buf: b.buf}}, nil)
}

func (b *Buffer) clear(ctx context.Context) error {
	s := b.node(graph.Store)
	g := &graph.Graph{Data: [][]byte{make([]byte, s.Type.Size())}}
	zero := graph.Node{Kind: graph.Constant, Type: s.Type, Shape: op.Shape{}}
	z := g.Add(zero)
	s.NIn, s.In[0] = 1, z
	g.Add(s)
	return b.run(ctx, g, []engine.Ref{{Buf: b.buf}}, nil)
}

func (b *Buffer) read(ctx context.Context, dst []byte) error {
	g := &graph.Graph{}
	g.Outputs = []graph.ID{g.Add(b.node(graph.Resident))}
	return b.run(ctx, g, []engine.Ref{{Buf: b.buf}}, [][]byte{dst})
}

func (b *Buffer) run(ctx context.Context, g *graph.Graph, refs []engine.Ref, outs [][]byte) error {
	programs.use()
	p, err := b.dev.engine().Compile(ctx, g)
	if err == nil {
		err = p.Run(ctx, refs, outs, nil)
	}
	return b.dev.wrapAs(err, copying, b.Shape())
}

// Alloc returns a slice of n zeros in memory that is aligned to 64 bytes. Large slices use huge
// pages if the system has them, and are then read and written up to 1.5 times as fast as memory
// from make. The garbage collector manages the memory as usual. Alloc returns nil if n is negative
// or exceeds the address space.
func Alloc(n int) []float32 {
	x, err := memory.Floats(n)
	if err != nil {
		return nil
	}
	return x
}
