// Package safetensors reads and writes safetensors files, in which models are published before they
// are quantised: named arrays of plain numbers. It has the interface of package gguf.
//
// The package does not trust files: it checks lengths, shapes and offsets against the size of the
// file before it allocates memory. A malformed file gives a [FormatError] that names the tensor.
package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/bits"
	"os"
	"slices"

	"github.com/rayo-go/rayo/gguf/block"
)

// The errors. The package returns them wrapped, with details.
var (
	ErrFormat    = errors.New("malformed file")
	ErrTruncated = errors.New("the file ends too early")
	ErrType      = errors.New("numbers of a type that is not converted")
	ErrRange     = errors.New("out of range")
)

// FormatError says which tensor or part of the header is wrong, and where.
type FormatError struct {
	Field  string
	Offset int64 // in the file
	Err    error
}

// Error names the field, its byte and the mistake.
func (e *FormatError) Error() string {
	return fmt.Sprintf("safetensors: %s (byte %d): %v", e.Field, e.Offset, e.Err)
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

func fail(field string, at int64, err error, format string, args ...any) error {
	return &FormatError{field, at, fmt.Errorf("%w: "+format, append([]any{err}, args...)...)}
}

// DType is the type of a tensor's numbers, as files name it: F32, BF16, I64.
type DType string

// dtypes has the bytes of a number of each type, and the format that converts
// it, if there is one.
var dtypes = map[DType]struct {
	size   int
	format block.Format
}{
	"BOOL": {1, block.Invalid}, "U8": {1, block.Invalid}, "I8": {1, block.I8}, "F8_E4M3": {1, block.Invalid}, "F8_E5M2": {1, block.Invalid},
	"F8_E8M0": {1, block.Invalid}, "I16": {2, block.I16}, "U16": {2, block.Invalid}, "F16": {2, block.F16}, "BF16": {2, block.BF16},
	"I32": {4, block.I32}, "U32": {4, block.Invalid}, "F32": {4, block.F32}, "F64": {8, block.F64}, "I64": {8, block.I64}, "U64": {8, block.Invalid},
}

// Format returns the type in the terms of package gguf, or block.Invalid if gguf does not have it.
func (d DType) Format() block.Format { return dtypes[d].format }

// Size returns the bytes of a number, 0 for an invalid type.
func (d DType) Size() int { return dtypes[d].size }

// TensorInfo describes a tensor.
type TensorInfo struct {
	Name  string
	Type  DType
	Shape []int64 // elements along the last extent are adjacent
}

// Elements returns the number of elements, Size the bytes. The error is ErrFormat for an invalid
// type, a negative extent, or a number that overflows an int64.
func (t TensorInfo) Elements() (int64, error) {
	n, err := t.Size()
	return n / int64(max(1, t.Type.Size())), err
}

// Size returns the bytes of the tensor: see Elements.
func (t TensorInfo) Size() (int64, error) {
	n := uint64(t.Type.Size())
	if n == 0 {
		return 0, fmt.Errorf("safetensors: tensor %q: %w: no type is called %q", t.Name, ErrFormat, string(t.Type))
	}
	for _, d := range t.Shape {
		hi, lo := bits.Mul64(n, uint64(d))
		if d < 0 || hi != 0 || lo > 1<<62 {
			return 0, fmt.Errorf("safetensors: tensor %q: %w: the shape is %v, expected no negative extents and less than 2^62 bytes", t.Name, ErrFormat, t.Shape)
		}
		n = lo
	}
	return int64(n), nil
}

// Tensor is one array of a file. It reads from the file whenever it is asked.
// All methods are safe for concurrent use.
type Tensor struct {
	TensorInfo
	offset, size int64 // in the file
	r            io.ReaderAt
}

// Size returns the bytes of the tensor.
func (t *Tensor) Size() int64 { return t.size }

// Elements returns the number of elements.
func (t *Tensor) Elements() int64 { return t.size / int64(t.Type.Size()) }

// Offset returns where in the file the tensor begins.
func (t *Tensor) Offset() int64 { return t.offset }

// ReadAt reads bytes of the tensor. It implements [io.ReaderAt].
func (t *Tensor) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 || off > t.size {
		return 0, fmt.Errorf("safetensors: tensor %q: reading from byte %d on, expected 0 to %d: %w", t.Name, off, t.size, ErrRange)
	}
	var end error
	if int64(len(b)) > t.size-off {
		b, end = b[:t.size-off], io.EOF
	}
	n, err := t.r.ReadAt(b, t.offset+off)
	if n == len(b) {
		return n, end
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = ErrTruncated
	}
	return n, &FormatError{fmt.Sprintf("tensor %q", t.Name), t.offset + off + int64(n), err}
}

// Open returns a reader of the bytes of the tensor.
func (t *Tensor) Open() *io.SectionReader { return io.NewSectionReader(t, 0, t.size) }

// Float32 reads len(dst) elements, beginning with element first, into dst. The error is ErrType for
// a type without a Format, and ErrRange for elements beyond the end.
func (t *Tensor) Float32(dst []float32, first int64) error {
	f := t.Type.Format()
	switch {
	case !f.Valid():
		return fmt.Errorf("safetensors: tensor %q has type %s, which is not converted to float32: read its bytes with ReadAt: %w", t.Name, t.Type, ErrType)
	case first < 0 || first > t.Elements() || int64(len(dst)) > t.Elements()-first:
		return fmt.Errorf("safetensors: tensor %q: reading %d elements from element %d on, but the tensor has %d: %w", t.Name, len(dst), first, t.Elements(), ErrRange)
	}
	b := make([]byte, min(64<<10, len(dst)*f.Bytes()))
	for part := range slices.Chunk(dst, max(1, len(b)/f.Bytes())) {
		b = b[:len(part)*f.Bytes()]
		if _, err := t.ReadAt(b, first*int64(f.Bytes())); err != nil {
			return err
		}
		if err := f.Dequantize(part, b); err != nil {
			return err
		}
		first += int64(len(part))
	}
	return nil
}

// File is an open file.
type File struct {
	meta    []keyValue
	tensors []*Tensor
	byName  map[string]*Tensor
	close   func() error
}

type keyValue struct{ key, value string }

// Open opens a file.
func Open(path string) (*File, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := r.Stat()
	var f *File
	if err == nil {
		f, err = NewReader(r, s.Size())
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.close = r.Close
	return f, nil
}

// maxHeader is how long a header may be, as other readers have it.
const maxHeader = 100_000_000

// NewReader reads a file of so many bytes. The error is [ErrFormat] for a nil reader
// or a size below 0.
func NewReader(r io.ReaderAt, size int64) (*File, error) {
	if r == nil || size < 0 {
		return nil, fmt.Errorf("safetensors: a reader that is nil: %v, of %d bytes: %w", r == nil, size, ErrFormat)
	}
	var head [8]byte
	if n, err := r.ReadAt(head[:], 0); n < len(head) {
		if err == nil || errors.Is(err, io.EOF) {
			err = ErrTruncated
		}
		return nil, &FormatError{"header length", int64(n), err}
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > uint64(size-8) || n > maxHeader {
		return nil, fail("header length", 0, ErrTruncated, "%d bytes, but the file has %d more, and at most %d are supported", n, size-8, maxHeader)
	}
	b := make([]byte, n)
	if k, err := r.ReadAt(b, 8); k < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			err = ErrTruncated
		}
		return nil, &FormatError{"header", 8 + int64(k), err}
	}
	f := &File{byName: map[string]*Tensor{}, close: func() error { return nil }}
	p := parser{f: f, r: r, data: 8 + int64(n), size: size}
	if err := p.header(b); err != nil {
		return nil, err
	}
	return f, p.places()
}

// Close closes the file, if Open opened it.
func (f *File) Close() error {
	if f.close == nil {
		return nil
	}
	return f.close()
}

// Metadata returns the texts that the file has about itself.
func (f *File) Metadata() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, kv := range f.meta {
			if !yield(kv.key, kv.value) {
				return
			}
		}
	}
}

// Tensors returns the tensors in the order of the header.
func (f *File) Tensors() iter.Seq[*Tensor] { return slices.Values(f.tensors) }

// NumTensors returns the number of tensors.
func (f *File) NumTensors() int { return len(f.tensors) }

// Tensor returns the tensor of a name, or nil.
func (f *File) Tensor(name string) *Tensor { return f.byName[name] }
