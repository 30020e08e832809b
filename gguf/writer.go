package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/rayo-go/rayo/gguf/block"
)

// TensorInfo describes a tensor to be written: see [Tensor].
type TensorInfo struct {
	Name string
	Type block.Format
	Dims []int64
}

// Info returns the description of the tensor.
func (t *Tensor) Info() TensorInfo { return TensorInfo{t.Name, t.Type, t.Dims} }

// Size returns the number of bytes of the tensor. The error is ErrFormat for an invalid type
// and for rows that are not whole blocks, and ErrLimit if the number overflows an int64.
func (t TensorInfo) Size() (int64, error) {
	if !t.Type.Valid() {
		return 0, fmt.Errorf("gguf: tensor %q: %w: %v is not a type", t.Name, ErrFormat, t.Type)
	}
	for _, d := range t.Dims {
		if d < 0 {
			return 0, fmt.Errorf("gguf: tensor %q: %w: dimensions %v must not be negative", t.Name, ErrFormat, t.Dims)
		}
	}
	n, err := sizeOf(t.Type, t.Dims)
	if err != nil {
		return 0, fmt.Errorf("gguf: tensor %q: dimensions %v of %v: %w", t.Name, t.Dims, t.Type, err)
	}
	return n, nil
}

// Writer writes a file from its beginning to its end: all metadata and the
// descriptions of all tensors first, then the tensors one after another.
type Writer struct {
	w         io.Writer
	tensors   []TensorInfo
	sizes     []int64
	alignment int64
	next      int   // the index of the next tensor
	left      int64 // the number of missing bytes of the tensor before it
	at        int64 // the number of bytes written
	err       error
}

// NewWriter writes the part of a little-endian version 3 file before the tensors. The alignment of
// tensors is taken from the metadata; the default is 32. A nil meta stands for no metadata.
func NewWriter(w io.Writer, meta *Metadata, tensors []TensorInfo) (*Writer, error) {
	if meta == nil {
		meta = new(Metadata)
	}
	b, sizes, alignment, err := encodeHeader(meta, tensors)
	if err != nil {
		return nil, err
	}
	f := &Writer{w: w, tensors: tensors, sizes: sizes, alignment: alignment}
	if _, err := f.write(b); err != nil {
		return nil, err
	}
	return f, f.pad()
}

// encodeHeader returns the bytes before the tensors, without padding, the sizes of the
// tensors, and their alignment.
func encodeHeader(meta *Metadata, tensors []TensorInfo) (b []byte, sizes []int64, alignment int64, err error) {
	alignment, err = alignmentOf(meta, 0)
	if err != nil {
		return nil, nil, 0, err
	}
	offsets := make([]int64, len(tensors))
	sizes = make([]int64, len(tensors))
	names := map[string]bool{}
	at := int64(0)
	for i, t := range tensors {
		n, err := t.Size()
		switch {
		case err != nil:
			return nil, nil, 0, err
		case len(t.Name) > maxName || names[t.Name] || len(t.Dims) > maxDims:
			return nil, nil, 0, fmt.Errorf("gguf: tensor %q with %d dimensions: %w: a name is there once and has at most %d bytes, dimensions are at most %d",
				shortened(t.Name), len(t.Dims), ErrFormat, maxName, maxDims)
		case n > math.MaxInt64-maxHeader-at:
			return nil, nil, 0, fmt.Errorf("gguf: tensor %q: the file: %w", t.Name, ErrLimit)
		}
		names[t.Name] = true
		offsets[i], sizes[i] = at, n
		at = align(at+n, alignment)
	}
	return appendHeader(3, meta, tensors, offsets), sizes, alignment, nil
}

// appendHeader returns the bytes of a header.
func appendHeader(version uint32, meta *Metadata, tensors []TensorInfo, offsets []int64) []byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte(magic), version)
	b = le.AppendUint64(b, uint64(len(tensors)))
	b = le.AppendUint64(b, uint64(meta.Len()))
	for k, v := range meta.All() {
		b = NewValue(k).append(b)
		b = v.append(le.AppendUint32(b, uint32(v.kind)))
	}
	for i, t := range tensors {
		b = NewValue(t.Name).append(b)
		b = le.AppendUint32(b, uint32(len(t.Dims)))
		for _, d := range t.Dims {
			b = le.AppendUint64(b, uint64(d))
		}
		b = le.AppendUint32(b, t.Type.ID())
		b = le.AppendUint64(b, uint64(offsets[i]))
	}
	return b
}

func (f *Writer) write(b []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	n, err := f.w.Write(b)
	f.at += int64(n)
	f.err = err
	return n, err
}

// pad writes zeros up to the next multiple of the alignment.
func (f *Writer) pad() error {
	_, err := f.write(make([]byte, align(f.at, f.alignment)-f.at))
	return err
}

// errOrder is the error of tensors that are not written completely and in order.
var errOrder = errors.New("write whole tensors, in the order of the header")

// Tensor returns the writer of the next tensor, which must have the given name. Write all its bytes
// before the next call of Tensor.
func (f *Writer) Tensor(name string) (io.Writer, error) {
	switch {
	case f.err != nil:
		return nil, f.err
	case f.left > 0:
		return nil, fmt.Errorf("gguf: tensor %q: %d bytes are missing before it: %w", name, f.left, errOrder)
	case f.next >= len(f.tensors):
		return nil, fmt.Errorf("gguf: tensor %q: all %d tensors of the header are written: %w", name, f.next, errOrder)
	case f.tensors[f.next].Name != name:
		return nil, fmt.Errorf("gguf: tensor %q: the next one is %q: %w", name, f.tensors[f.next].Name, errOrder)
	}
	f.left = f.sizes[f.next]
	f.next++
	return tensorWriter{f}, f.err
}

type tensorWriter struct{ f *Writer }

// Write writes bytes of the tensor, and the padding after its last byte.
func (w tensorWriter) Write(b []byte) (int, error) {
	f := w.f
	if int64(len(b)) > f.left {
		return 0, fmt.Errorf("gguf: Write got %d bytes; the tensor needs only %d more: %w", len(b), f.left, ErrLimit)
	}
	n, err := f.write(b)
	f.left -= int64(n)
	if err == nil && f.left == 0 && n > 0 {
		err = f.pad()
	}
	return n, err
}

// Close returns an error if a tensor is incomplete or a write has failed. It does
// not close the underlying writer.
func (f *Writer) Close() error {
	if f.err != nil {
		return f.err
	}
	if f.left > 0 || f.next < len(f.tensors) {
		return fmt.Errorf("gguf: %d of %d tensors were written, and the last of them lacks %d bytes: %w", f.next, len(f.tensors), f.left, errOrder)
	}
	return nil
}
