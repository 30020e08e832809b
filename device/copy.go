package device

import (
	"context"
	"errors"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/memory"
)

// Copy copies the contents of src to dst, which must have the same element type and number of
// elements, and returns when the copy is complete. The buffers may be on different devices. Two
// GPUs with peer access copy directly; otherwise Copy allocates a host buffer of the same size and
// copies through it.
//
// # Errors
//   - [ErrShape] for different numbers of elements, [ErrUnsupported] for
//     different element types.
//   - [ErrForeign] for a nil or zero Buffer, [ErrClosed] for a closed one.
//   - [ErrOutOfMemory] if the host has no room.
func Copy(ctx context.Context, dst, src *Buffer) error {
	for _, b := range []*Buffer{dst, src} {
		if err := b.made(); err != nil {
			return fmt.Errorf("copy: %w", err)
		}
	}
	if dst.Type() != src.Type() {
		return dst.dev.wrapAs(fmt.Errorf("the source has type %v, and the destination %v: %w", src.Type(), dst.Type(), ErrUnsupported), copying, src.Shape(), dst.Shape())
	}
	from, _ := src.Shape().Size()
	if to, _ := dst.Shape().Size(); from != to {
		return dst.dev.wrapAs(fmt.Errorf("the source has %d elements, and the destination %d: %w", from, to, ErrShape), copying, src.Shape(), dst.Shape())
	}
	if dst.dev.engine() == src.dev.engine() {
		g := &graph.Graph{}
		s := dst.node(graph.Store)
		s.Ref, s.NIn, s.In[0] = 1, 1, g.Add(src.node(graph.Resident))
		g.Add(s)
		return dst.run(ctx, g, []engine.Ref{{Buf: src.buf}, {Buf: dst.buf}}, nil)
	}
	if err := engine.Copy(ctx, dst.buf, src.buf); !errors.Is(err, ErrUnsupported) {
		return dst.dev.wrapAs(err, copying, src.Shape(), dst.Shape())
	}
	words, err := memory.Slice[uint32](int((src.buf.Bytes() + 3) / 4))
	if err != nil {
		return dst.dev.wrapAs(fmt.Errorf("%w: %w", err, ErrOutOfMemory), copying, src.Shape(), dst.Shape())
	}
	host := engine.Bytes(words)[:src.buf.Bytes()]
	if err := src.read(ctx, host); err != nil {
		return err
	}
	return dst.write(ctx, host)
}
