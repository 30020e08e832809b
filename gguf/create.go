package gguf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// FileWriter writes a file, or the parts of a split one. Close gives it the final name: until then
// no file, or the previous file, has that name.
type FileWriter struct {
	parts []*outPart
	now   int // the index of the part that is being written
	done  bool
}

// outPart is a file that is being written.
type outPart struct {
	path, temp string
	meta       *Metadata
	tensors    []TensorInfo
	file       *os.File
	buf        *bufio.Writer
	w          *Writer
}

// CreateOption changes how a file is written.
type CreateOption func(*createOptions)

type createOptions struct{ split int64 }

// SplitAt splits a file into parts. The tensors of a part have at most the given number of bytes,
// unless the part has only one tensor. [PartName] returns the names of the parts.
func SplitAt(bytes int64) CreateOption {
	return func(o *createOptions) { o.split = bytes }
}

// Create starts a new file. It writes to temporary files in the same folder, which Close renames
// when everything is written; Abort removes them. A nil meta means no metadata.
//
//	w, err := gguf.Create(path, meta, tensors)
//	if err != nil { ... }
//	defer w.Abort()
//	for _, t := range tensors {
//		dst, err := w.Tensor(t.Name)
//		... // write all bytes of the tensor to dst
//	}
//	return w.Close()
func Create(path string, meta *Metadata, tensors []TensorInfo, opts ...CreateOption) (*FileWriter, error) {
	var o createOptions
	for _, f := range opts {
		f(&o)
	}
	f := &FileWriter{}
	groups, err := divide(tensors, o.split)
	if err != nil {
		return nil, err
	}
	if len(groups) > maxParts {
		return nil, fmt.Errorf("gguf: %s: the model would be split into %d parts; at most %d are allowed: %w", path, len(groups), maxParts, ErrLimit)
	}
	for i, group := range groups {
		p := &outPart{path: path, meta: meta.Clone(), tensors: group}
		for _, key := range []string{keySplitNo, keySplitCount, keySplitTensors} {
			p.meta.Delete(key)
		}
		if len(groups) > 1 {
			p.path = filepath.Join(filepath.Dir(path), PartName(filepath.Base(path), i, len(groups)))
			p.number(i, len(groups), len(tensors))
		}
		f.parts = append(f.parts, p)
	}
	if err := f.parts[0].open(); err != nil {
		f.Abort()
		return nil, err
	}
	return f, nil
}

// number sets the keys of a split file in the metadata of a part. All parts but the first keep
// only these keys.
func (p *outPart) number(i, n, tensors int) {
	if i > 0 {
		alignment, ok := p.meta.Get(keyAlignment)
		p.meta = &Metadata{}
		if ok {
			_ = p.meta.Set(keyAlignment, alignment)
		}
	}
	_ = p.meta.Set(keySplitNo, NewValue(uint16(i)))
	_ = p.meta.Set(keySplitCount, NewValue(uint16(n)))
	_ = p.meta.Set(keySplitTensors, NewValue(int32(tensors)))
}

// divide groups neighbouring tensors into parts.
func divide(tensors []TensorInfo, limit int64) (groups [][]TensorInfo, err error) {
	if limit <= 0 {
		return [][]TensorInfo{tensors}, nil
	}
	from, sum := 0, int64(0)
	for i, t := range tensors {
		n, err := t.Size()
		if err != nil {
			return nil, err
		}
		if i > from && n > limit-sum {
			groups = append(groups, tensors[from:i])
			from, sum = i, 0
		}
		sum += min(n, limit)
	}
	return append(groups, tensors[from:]), nil
}

// createTemp creates a new file beside path, with the mode that os.Create gives.
func createTemp(path string) (*os.File, error) {
	for {
		name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+strconv.FormatUint(rand.Uint64(), 36))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, os.ErrExist) {
			return f, err
		}
	}
}

func (p *outPart) open() (err error) {
	if p.file, err = createTemp(p.path); err != nil {
		return err
	}
	p.temp = p.file.Name()
	p.buf = bufio.NewWriterSize(p.file, 1<<20)
	p.w, err = NewWriter(p.buf, p.meta, p.tensors)
	return err
}

// finish writes the end of a part and closes it.
func (p *outPart) finish() error {
	err := p.w.Close()
	if err == nil {
		err = p.buf.Flush()
	}
	if err == nil {
		err = p.file.Sync()
	}
	if err != nil {
		return err
	}
	return p.file.Close()
}

// Tensor returns the writer of the next tensor: see [Writer.Tensor].
func (f *FileWriter) Tensor(name string) (io.Writer, error) {
	if f.done {
		return nil, ErrClosed
	}
	p := f.parts[f.now]
	for p.w.next == len(p.tensors) && f.now+1 < len(f.parts) {
		if err := p.finish(); err != nil {
			return nil, err
		}
		f.now++
		p = f.parts[f.now]
		if err := p.open(); err != nil {
			return nil, err
		}
	}
	return p.w.Tensor(name)
}

// Paths returns the final names of the parts.
func (f *FileWriter) Paths() (names []string) {
	for _, p := range f.parts {
		names = append(names, p.path)
	}
	return names
}

// Close completes the file and gives it its final name. If tensors are missing or an
// operation fails, it removes the file as Abort does and returns the error.
func (f *FileWriter) Close() error {
	if f.done {
		return ErrClosed
	}
	defer f.Abort()
	if f.now+1 < len(f.parts) {
		return fmt.Errorf("gguf: %d of %d parts were written: %w", f.now+1, len(f.parts), errOrder)
	}
	if err := f.parts[f.now].finish(); err != nil {
		return err
	}
	// The first part is renamed last: readers need it to find the model.
	for i := len(f.parts) - 1; i >= 0; i-- {
		p := f.parts[i]
		if err := os.Rename(p.temp, p.path); err != nil {
			return err
		}
		p.temp = ""
	}
	return nil
}

// Abort removes the files written so far, unless Close has succeeded.
func (f *FileWriter) Abort() {
	f.done = true
	for _, p := range f.parts {
		if p.temp != "" {
			p.file.Close()
			os.Remove(p.temp)
			p.temp = ""
		}
	}
}
