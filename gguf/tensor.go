package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/blockdecode"
)

// Tensor is one array of a file. Its methods read from the file at each call, so it must not be
// used after the file is closed. All methods are safe for concurrent use.
type Tensor struct {
	Name string
	Type block.Format
	// Dims are the extents in the order of the file: Dims[0] is the length of a row, and the
	// elements of a row are adjacent. A tensor without Dims has one element.
	Dims []int64

	offset, size int64 // relative to the first tensor of the part, in bytes
	at           int64 // the byte offset of the description in its file
	part         *part
}

// Size returns the number of bytes of the tensor.
func (t *Tensor) Size() int64 { return t.size }

// Offset returns the byte offset of the tensor in its file.
func (t *Tensor) Offset() int64 { return t.part.data + t.offset }

// Elements returns the number of elements.
func (t *Tensor) Elements() int64 {
	return t.size / int64(t.Type.Bytes()) * int64(t.Type.Elements())
}

// Row returns the length of a row and the number of rows.
func (t *Tensor) Row() (length, rows int64) {
	length, rows = 1, 1
	for i, d := range t.Dims {
		if i == 0 {
			length = d
		} else {
			rows *= d
		}
	}
	return length, rows
}

// Shape returns the extents in the order of package device: the length of a row is the
// last one.
func (t *Tensor) Shape() []int {
	s := make([]int, len(t.Dims))
	for i, d := range t.Dims {
		s[len(s)-1-i] = int(d)
	}
	return s
}

// ReadAt reads bytes of the tensor in little-endian order, from byte off on. It implements
// [io.ReaderAt].
func (t *Tensor) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 || off > t.size {
		return 0, fmt.Errorf("gguf: tensor %q: offset %d is outside its %d bytes: %w", t.Name, off, t.size, ErrLimit)
	}
	var end error
	if int64(len(b)) > t.size-off {
		b, end = b[:t.size-off], io.EOF
	}
	n, err := len(b), error(nil)
	if t.swapped() {
		err = t.readSwapped(b, off)
	} else {
		n, err = t.read(b, off)
	}
	if err == nil {
		err = end
	}
	return n, err
}

// swapped reports whether the bytes of words are reversed in the file.
func (t *Tensor) swapped() bool {
	return t.part.order == binary.BigEndian && len(t.Type.Layout().Words) > 0
}

// read reads the bytes of the file.
func (t *Tensor) read(b []byte, off int64) (int, error) {
	n, err := t.part.r.ReadAt(b, t.Offset()+off)
	switch {
	case n == len(b):
		return n, nil
	case err == nil || errors.Is(err, io.EOF):
		err = ErrTruncated
	}
	return n, &FormatError{File: t.part.name, Field: fmt.Sprintf("tensor %q", shortened(t.Name)), Offset: t.Offset() + off + int64(n), Err: err}
}

// readSwapped reads the whole blocks that contain the requested bytes and swaps the bytes of their
// words.
func (t *Tensor) readSwapped(b []byte, off int64) error {
	l := t.Type.Layout()
	size := int64(l.Bytes)
	buf := make([]byte, max(1, 64<<10/l.Bytes)*l.Bytes)
	for len(b) > 0 {
		from := off / size * size
		part := buf[:min(int64(len(buf)), t.size-from)]
		if _, err := t.read(part, from); err != nil {
			return err
		}
		for one := range slices.Chunk(part, l.Bytes) {
			reverseWords(one, l.Words)
		}
		n := copy(b, part[off-from:])
		b, off = b[n:], off+int64(n)
	}
	return nil
}

// reverseWords reverses the bytes of the words of a block.
func reverseWords(b []byte, words []block.Word) {
	for _, w := range words {
		for i := range w.Count {
			slices.Reverse(b[w.At+i*w.Stride:][:w.Size])
		}
	}
}

// Open returns a reader of the bytes of the tensor.
func (t *Tensor) Open() *io.SectionReader { return io.NewSectionReader(t, 0, t.size) }

// Bytes returns the bytes of the tensor as a view of the file, without a copy. Do not change the
// bytes, and do not use them after Close. The error is ErrNotMapped if the file was not opened with
// [Mapped] or [NewBytes], and ErrByteOrder for a big-endian file. If the file is truncated, access to
// the missing part is a fault: see [Tensor.View].
func (t *Tensor) Bytes() ([]byte, error) {
	switch {
	case t.part.closed.Load():
		return nil, ErrClosed
	case t.part.view == nil && t.size > 0:
		return nil, fmt.Errorf("gguf: tensor %q: %w: open it with Mapped", t.Name, ErrNotMapped)
	case t.swapped():
		return nil, fmt.Errorf("gguf: tensor %q: %w", t.Name, ErrByteOrder)
	case t.size == 0:
		return nil, nil
	}
	return t.part.view[t.Offset():][:t.size:t.size], nil
}

// View calls f with the bytes of the tensor: the view that Bytes returns, or a copy if there is no
// view. If f faults because the file was truncated, View returns ErrTruncated, provided that f
// reads the bytes in its own goroutine.
func (t *Tensor) View(f func(b []byte) error) error {
	b, err := t.Bytes()
	if err == nil {
		return guard(t, b, f)
	}
	if errors.Is(err, ErrClosed) {
		return err
	}
	// Opening the file has checked the size against the file.
	b = make([]byte, t.size)
	if _, err := t.ReadAt(b, 0); err != nil {
		return err
	}
	return f(b)
}

// buffers are temporary memory for blocks.
var buffers = sync.Pool{New: func() any { b := make([]byte, 64<<10); return &b }}

// Dequantize decodes len(dst) elements, from element first on, to dst. The error is a
// [block.SizeError] if first or len(dst) is not a whole number of blocks, and ErrLimit if the
// elements end beyond the tensor. Large parts of a view (see [Tensor.Bytes]) are decoded on all
// cores.
func (t *Tensor) Dequantize(dst []float32, first int64) error {
	view, err := t.Bytes()
	if err == nil && len(dst) >= spreadElements {
		return t.dequantizeView(dst, view, first)
	}
	return t.blocks(int64(len(dst)), first, func(b []byte, at int64) error {
		return t.decode(dst[at:][:len(b)/t.Type.Bytes()*t.Type.Elements()], b, len(dst))
	})
}

// decode decodes whole blocks, which are a part of a call for total elements.
func (t *Tensor) decode(dst []float32, b []byte, total int) error {
	if blockdecode.Dequantize == nil {
		return t.Type.Dequantize(dst, b)
	}
	blockdecode.Dequantize(uint8(t.Type), dst, b, total)
	return nil
}

// A goroutine decodes spreadPart elements at a time, a multiple of every block length. For fewer than
// spreadElements elements, several goroutines are not faster.
const (
	spreadElements = 1 << 20
	spreadPart     = 1 << 16
)

// dequantizeView is Dequantize for the bytes of the whole tensor.
func (t *Tensor) dequantizeView(dst []float32, view []byte, first int64) error {
	if err := t.within(int64(len(dst)), first); err != nil {
		return err
	}
	per, size := t.Type.Elements(), t.Type.Bytes()
	view = view[first/int64(per)*int64(size):][:len(dst)/per*size]
	parts := (len(dst) + spreadPart - 1) / spreadPart
	var next atomic.Int64
	errs := make([]error, min(parts, runtime.GOMAXPROCS(0)))
	run := func(i int) {
		errs[i] = guard(t, view, func(b []byte) error {
			for {
				at := int(next.Add(1)-1) * spreadPart
				if at >= len(dst) {
					return nil
				}
				end := min(at+spreadPart, len(dst))
				if err := t.decode(dst[at:end], b[at/per*size:end/per*size], len(dst)); err != nil {
					return err
				}
			}
		})
	}
	var wg sync.WaitGroup
	for i := range len(errs) - 1 {
		wg.Go(func() { run(i) })
	}
	run(len(errs) - 1)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Check returns a [block.RangeError] if numbers of the tensor may not be finite.
func (t *Tensor) Check() error {
	return t.blocks(t.Elements(), 0, func(b []byte, at int64) error {
		err := t.Type.Check(b)
		var r *block.RangeError
		if errors.As(err, &r) {
			r.Block += int(at / int64(t.Type.Elements()))
		}
		return err
	})
}

// blocks reads the bytes of n elements from element first on. It calls f with a part of them at
// a time, and with the index of the part's first element, counted from first.
func (t *Tensor) blocks(n, first int64, f func(b []byte, at int64) error) error {
	if err := t.within(n, first); err != nil {
		return err
	}
	per, size := int64(t.Type.Elements()), int64(t.Type.Bytes())
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	whole := int64(len(*buf)) / size * size
	for at := int64(0); at < n; {
		b := (*buf)[:min(whole, (n-at)/per*size)]
		if _, err := t.ReadAt(b, (first+at)/per*size); err != nil {
			return err
		}
		if err := f(b, at); err != nil {
			return err
		}
		at += int64(len(b)) / size * per
	}
	return nil
}

// within returns an error if n elements from element first on are not whole blocks of the tensor.
func (t *Tensor) within(n, first int64) error {
	per := int64(t.Type.Elements())
	switch {
	case n%per != 0:
		return &block.SizeError{Format: t.Type, Elements: int(n), Bytes: -1}
	case first%per != 0:
		return &block.SizeError{Format: t.Type, Elements: int(first), Bytes: -1}
	case first < 0 || first > t.Elements() || n > t.Elements()-first:
		return fmt.Errorf("gguf: tensor %q: %d elements from element %d on are outside its %d elements: %w", t.Name, n, first, t.Elements(), ErrLimit)
	}
	return nil
}
