package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync/atomic"
)

// File is an open GGUF file, or all parts of a split file. Its methods are safe for concurrent use,
// except Close.
type File struct {
	header
	parts  []*part
	byName map[string]*Tensor
}

// part is one of the files that a model is split into, or the only one.
type part struct {
	name   string
	r      io.ReaderAt
	size   int64
	data   int64 // the byte offset of the first tensor
	order  binary.ByteOrder
	view   []byte // the whole file, if it is in memory
	close  func() error
	closed atomic.Bool
}

type options struct{ big, mapped bool }

// Option changes how a file is opened.
type Option func(*options)

// BigEndian allows big-endian files too. Their tensors are byte-swapped when they are read, so they
// have no views.
func BigEndian() Option { return func(o *options) { o.big = true } }

// Mapped maps the file into memory, for [Tensor.Bytes]. Opening fails on systems without
// memory mappings. [Tensor.View] describes what happens if the file is truncated
// meanwhile.
func Mapped() Option { return func(o *options) { o.mapped = true } }

// Open opens a file and, if it is split, its other parts: these are in the same folder, and their
// names differ only in the number. Errors about the contents are of type [FormatError].
func Open(path string, opts ...Option) (*File, error) {
	o := choose(opts)
	return openParts(path, o, func(path string) (*part, error) { return openPart(path, o) })
}

// OpenFS opens a file of a file system. Its files must implement [io.ReaderAt], as the files of
// [os.DirFS], [os.Root] and package embed do.
func OpenFS(fsys fs.FS, name string, opts ...Option) (*File, error) {
	o := choose(opts)
	if o.mapped {
		return nil, fmt.Errorf("gguf: %s was opened from an fs.FS: %w", name, ErrNotMapped)
	}
	return openParts(name, o, func(name string) (*part, error) {
		f, err := fsys.Open(filepath.ToSlash(name))
		if err != nil {
			return nil, err
		}
		return newPart(name, f)
	})
}

// NewReader reads a file of size bytes. If the file is a part of a split one, the result has
// only the tensors of this part. The error is [ErrFormat] for a nil reader or a negative size.
func NewReader(r io.ReaderAt, size int64, opts ...Option) (*File, error) {
	if r == nil || size < 0 {
		return nil, fmt.Errorf("gguf: NewReader needs a reader and a size of 0 or more: the reader is nil: %v, the size is %d: %w", r == nil, size, ErrFormat)
	}
	return newFile(&part{r: r, size: size, close: func() error { return nil }}, choose(opts))
}

// NewBytes reads a file that is in memory. Tensors are views of b.
func NewBytes(b []byte, opts ...Option) (*File, error) {
	p := &part{r: bytesAt(b), size: int64(len(b)), view: b, close: func() error { return nil }}
	return newFile(p, choose(opts))
}

type bytesAt []byte

func (b bytesAt) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func choose(opts []Option) (o options) {
	for _, f := range opts {
		f(&o)
	}
	return o
}

func openPart(path string, o options) (*part, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p, err := newPart(path, f)
	if err != nil || !o.mapped || p.size == 0 {
		return p, err
	}
	view, unmap, err := mapFile(f, p.size)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("gguf: %s: mapping it: %w", path, err)
	}
	p.view = view
	p.close = func() error { return errors.Join(unmap(), f.Close()) }
	return p, nil
}

// newPart makes a part of an open file. If there is an error, it closes the file.
func newPart(name string, f fs.File) (*part, error) {
	s, err := f.Stat()
	if err == nil && s.IsDir() {
		err = fmt.Errorf("gguf: %s: %w: it is a folder", name, ErrFormat)
	}
	r, ok := f.(io.ReaderAt)
	if err == nil && !ok {
		err = fmt.Errorf("gguf: %s: the file is a %T, which does not implement io.ReaderAt", name, f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &part{name: name, r: r, size: s.Size(), close: f.Close}, nil
}

// newFile reads the header of a part. If there is an error, it closes the part.
func newFile(p *part, o options) (*File, error) {
	h, err := readHeader(p.r, p.size, o)
	if err != nil {
		var e *FormatError
		if errors.As(err, &e) {
			e.File = p.name
		}
		p.close()
		return nil, err
	}
	p.data, p.order = h.data, h.order
	f := &File{header: *h, parts: []*part{p}, byName: make(map[string]*Tensor, len(h.tensors))}
	for _, t := range h.tensors {
		t.part = p
		f.byName[t.Name] = t
	}
	return f, nil
}

// Close closes the file. Do not use views of the file after that.
func (f *File) Close() error {
	var errs []error
	for _, p := range f.parts {
		if p.closed.Swap(true) {
			continue
		}
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}

// Version returns the version of the format, 2 or 3.
func (f *File) Version() int { return int(f.version) }

// ByteOrder returns the byte order of the file.
func (f *File) ByteOrder() binary.ByteOrder { return f.order }

// Alignment returns the alignment of the tensors' offsets.
func (f *File) Alignment() int { return int(f.alignment) }

// Parts returns the number of files that the model is split into.
func (f *File) Parts() int { return len(f.parts) }

// Size returns the number of bytes of all parts.
func (f *File) Size() int64 {
	n := int64(0)
	for _, p := range f.parts {
		n += p.size
	}
	return n
}

// Metadata returns the keys and values. Callers must not change them; use Clone to get a
// copy.
func (f *File) Metadata() *Metadata { return f.meta }

// Tensors returns the tensors in the order of the file.
func (f *File) Tensors() iter.Seq[*Tensor] {
	return func(yield func(*Tensor) bool) {
		for _, t := range f.tensors {
			if !yield(t) {
				return
			}
		}
	}
}

// NumTensors returns the number of tensors.
func (f *File) NumTensors() int { return len(f.tensors) }

// Tensor returns the tensor with the given name, or nil if the file has no such tensor.
func (f *File) Tensor(name string) *Tensor { return f.byName[name] }
