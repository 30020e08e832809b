package device

import (
	"context"
	"io"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/op"
)

// uploadPiece is how many bytes of a reader are copied at a time; a multiple of every element's size.
const uploadPiece = 4 << 20

// UploadFrom copies an array of type t from r to the device. r delivers the elements in row-major order,
// little-endian, or the blocks of a quantised type t, as model files store tensors. UploadFrom needs memory for
// two pieces of a few MiB: it copies one while it reads the next. Without a shape the array has one element.
//
//	f, err := os.Open("weights.bin")
//	...
//	w, err := device.UploadFrom(ctx, dev, f, op.F16, 4096, 4096)
//
// # Errors
//   - [ErrUnsupported] if t is op.Bool, or no type of elements.
//   - [ErrShape] for a shape whose rows are not whole blocks, or whose size overflows.
//   - [ErrLimit] and [ErrOutOfMemory] if the array is too large for the device.
//   - [io.ErrUnexpectedEOF] if r ends too early, and its errors.
func UploadFrom(ctx context.Context, d *Device, r io.Reader, t op.DType, shape ...int) (*Buffer, error) {
	if d == nil {
		return nil, errNilDevice
	}
	s := op.Shape(shape)
	if t == op.Bool || t == op.InvalidType {
		return nil, d.wrapAs(fmt.Errorf("elements of type %v from a reader: expected numbers or quantised blocks: %w", t, ErrUnsupported), copying, s)
	}
	n, err := t.Bytes(s)
	if err != nil {
		return nil, d.wrapAs(err, copying, s)
	}
	b, err := d.engine().NewBuffer(t, s)
	if err != nil {
		return nil, d.wrapAs(err, alloc, s)
	}
	buf := &Buffer{d, b}
	if err := buf.fill(ctx, r, n); err != nil {
		b.Close()
		return nil, err
	}
	return buf, nil
}

// piece is one piece of the data.
type piece struct {
	data []byte
	err  error
}

// fill writes n bytes of r.
func (b *Buffer) fill(ctx context.Context, r io.Reader, n int) error {
	size := min(n, uploadPiece)
	free, full := make(chan []byte, 2), make(chan piece, 3) // an error may follow two pieces
	for range min(2, (n+uploadPiece-1)/uploadPiece) {
		x, err := memory.Floats((size + 3) / 4)
		if err != nil {
			return b.dev.wrapAs(err, copying, b.Shape())
		}
		free <- engine.Bytes(x)
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	defer func() { cancel(); <-done }() // nobody reads r afterwards
	go func() {
		defer close(done)
		readPieces(ctx, r, n, b.node(graph.Input).Type.Size(), free, full)
	}()
	for at := 0; at < n; {
		p := <-full
		if p.err != nil {
			return b.dev.wrapAs(p.err, copying, b.Shape())
		}
		if err := b.writeAt(ctx, int64(at), p.data); err != nil {
			return err
		}
		at += len(p.data)
		free <- p.data[:cap(p.data)]
	}
	return ctx.Err()
}

// readPieces reads n bytes; the last piece has zeros up to a whole unit behind them.
func readPieces(ctx context.Context, r io.Reader, n, unit int, free <-chan []byte, full chan<- piece) {
	for at := 0; at < n; {
		var p piece
		select {
		case p.data = <-free:
		case <-ctx.Done():
			full <- piece{err: ctx.Err()}
			return
		}
		k := min(n-at, uploadPiece)
		p.data = p.data[:(k+unit-1)/unit*unit]
		clear(p.data[k:])
		if _, p.err = io.ReadFull(r, p.data[:k]); p.err == io.EOF {
			p.err = io.ErrUnexpectedEOF
		}
		full <- p
		if p.err != nil {
			return
		}
		at += k
	}
}

// writeAt writes words from byte at on.
func (b *Buffer) writeAt(ctx context.Context, at int64, data []byte) error {
	node := b.node(graph.Input)
	node.Shape = op.Shape{len(data) / node.Type.Size()}
	g := &graph.Graph{}
	in := g.Add(node)
	node.Kind, node.Off, node.Ref, node.NIn, node.In[0] = graph.Store, at, 1, 1, in
	g.Add(node)
	return b.run(ctx, g, []engine.Ref{{Host: data}, {Buf: b.buf}}, nil)
}
