package device

import (
	"context"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
)

// UploadBlocks copies quantised weights to the device without unpacking them: raw holds the blocks
// of an array of quantised type t, in the format of package block and of GGUF files. shape counts
// elements; each row, along the last axis, must consist of whole blocks.
//
// # Errors
//   - [ErrUnsupported] if t is not a quantised type.
//   - [ErrShape] if rows are not whole blocks, or if raw does not have the length that follows from the shape.
//   - [ErrLimit] and [ErrOutOfMemory] if the array is too large for the device.
func UploadBlocks(ctx context.Context, d *Device, raw []byte, t op.DType, shape ...int) (*Buffer, error) {
	if d == nil {
		return nil, errNilDevice
	}
	s := op.Shape(shape)
	if err := blocksFit(raw, t, s); err != nil {
		return nil, d.wrapAs(err, copying, s)
	}
	b, err := d.engine().NewBuffer(t, s)
	if err != nil {
		return nil, d.wrapAs(err, alloc, s)
	}
	buf := &Buffer{d, b}
	if err := buf.write(ctx, words(raw, b.Bytes())); err != nil {
		b.Close()
		return nil, err
	}
	return buf, nil
}

// ReadBlocks copies the blocks of an array of a quantised type to dst, which
// must have their length.
func ReadBlocks(ctx context.Context, dst []byte, b *Buffer) error {
	if err := b.made(); err != nil {
		return err
	}
	if err := blocksFit(dst, b.Type(), b.Shape()); err != nil {
		return b.dev.wrapAs(err, copying, b.Shape())
	}
	w := words(dst, b.buf.Bytes())
	err := b.read(ctx, w)
	if err == nil && len(dst) > 0 && unsafe.SliceData(w) != unsafe.SliceData(dst) {
		copy(dst, w)
	}
	return err
}

// blocksFit returns an error unless raw is the blocks of an array of type t
// and shape s.
func blocksFit(raw []byte, t op.DType, s op.Shape) error {
	if !t.Quantized() {
		return fmt.Errorf("type %v is not quantised: %w", t, ErrUnsupported)
	}
	n, err := t.Bytes(s)
	if err == nil && n != len(raw) {
		err = fmt.Errorf("%d bytes for %v of %v: expected %d: %w", len(raw), s, t, n, ErrShape)
	}
	return err
}

// words returns raw, or a copy, as n bytes where 32-bit words may lie.
func words(raw []byte, n int64) []byte {
	if int64(len(raw)) == n && uintptr(unsafe.Pointer(unsafe.SliceData(raw)))%4 == 0 {
		return raw
	}
	w := make([]uint32, (n+3)/4)
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), n)
	copy(b, raw)
	return b
}
