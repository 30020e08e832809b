package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Writer writes a file from its beginning to its end.
type Writer struct {
	w       io.Writer
	tensors []TensorInfo
	sizes   []int64
	next    int
	left    int64
	err     error
}

var errOrder = errors.New("write whole tensors, in the order of the header")

// NewWriter writes the header of a file. meta may be nil.
func NewWriter(w io.Writer, meta map[string]string, tensors []TensorInfo) (*Writer, error) {
	f := &Writer{w: w, tensors: tensors}
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	if len(meta) > 0 {
		if err := member(&b, metadataKey, meta); err != nil {
			return nil, err
		}
	}
	at := int64(0)
	names := map[string]bool{metadataKey: true}
	for _, t := range tensors {
		n, err := t.Size()
		if err == nil && (names[t.Name] || n > 1<<62-at) {
			err = fmt.Errorf("safetensors: tensor %q: %w: two tensors have this name, or the file has more than 2^62 bytes", t.Name, ErrFormat)
		}
		if err != nil {
			return nil, err
		}
		names[t.Name] = true
		f.sizes = append(f.sizes, n)
		shape := t.Shape
		if shape == nil {
			shape = []int64{}
		}
		err = member(&b, t.Name, struct {
			Type    DType    `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{t.Type, shape, [2]int64{at, at + n}})
		if err != nil {
			return nil, err
		}
		at += n
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	if b.Len()-8 > maxHeader {
		return nil, fmt.Errorf("safetensors: a header of %d bytes, at most %d are possible: %w", b.Len()-8, maxHeader, ErrFormat)
	}
	binary.LittleEndian.PutUint64(b.Bytes(), uint64(b.Len()-8))
	_, err := w.Write(b.Bytes())
	return f, err
}

// member appends a key and its value to an object.
func member(b *bytes.Buffer, key string, v any) error {
	k, err := json.Marshal(key)
	if err != nil {
		return err
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if b.Len() > 9 {
		b.WriteByte(',')
	}
	b.Write(k)
	b.WriteByte(':')
	b.Write(text)
	return nil
}

// Tensor returns the writer of the next tensor, which must have the given name. Write all its
// bytes, little-endian, before the next call of Tensor.
func (f *Writer) Tensor(name string) (io.Writer, error) {
	switch {
	case f.err != nil:
		return nil, f.err
	case f.left > 0:
		return nil, fmt.Errorf("safetensors: tensor %q: %d bytes are missing before it: %w", name, f.left, errOrder)
	case f.next >= len(f.tensors):
		return nil, fmt.Errorf("safetensors: tensor %q: all %d tensors of the header are written: %w", name, f.next, errOrder)
	case f.tensors[f.next].Name != name:
		return nil, fmt.Errorf("safetensors: tensor %q: the next one is %q: %w", name, f.tensors[f.next].Name, errOrder)
	}
	f.left = f.sizes[f.next]
	f.next++
	return tensorWriter{f}, nil
}

type tensorWriter struct{ f *Writer }

// Write writes bytes of the tensor.
func (w tensorWriter) Write(b []byte) (int, error) {
	f := w.f
	if int64(len(b)) > f.left {
		return 0, fmt.Errorf("safetensors: %d bytes for a tensor that lacks %d: %w", len(b), f.left, ErrRange)
	}
	if f.err != nil {
		return 0, f.err
	}
	n, err := f.w.Write(b)
	f.left -= int64(n)
	f.err = err
	return n, err
}

// Close returns an error if a tensor is missing or something could not be
// written. It does not close the underlying writer.
func (f *Writer) Close() error {
	if f.err == nil && (f.left > 0 || f.next < len(f.tensors)) {
		return fmt.Errorf("safetensors: %d of %d tensors were written, and the last of them lacks %d bytes: %w", f.next, len(f.tensors), f.left, errOrder)
	}
	return f.err
}
