package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/rayo-go/rayo/gguf/block"
)

// The parts of a GGUF file of importances: each matrix has two tensors, whose names end in these suffixes.
const (
	keyType       = "general.type"
	typeImatrix   = "imatrix"
	sumsSuffix    = ".in_sum2"
	countsSuffix  = ".counts"
	minImportance = 4 + 1 + 4 + 4 + 4 // bytes of the shortest entry of an older file
	maxImportance = 1 << 28           // importances of a tensor: a limit of this package
)

// ReadImportance reads the importances that llama.cpp's llama-imatrix writes, for [QuantizeOptions]: a GGUF file
// whose general.type is imatrix, or a file of the older format (--output-format dat). The importance of a column is the
// mean square of the inputs that the column was multiplied by. A mixture of experts has the columns of
// one expert after the other. An expert that no input reached has importances of 1.
//
// Errors about the contents are of type [FormatError]. The error is [ErrFormat] for a nil reader or a negative size.
func ReadImportance(r io.ReaderAt, size int64) (map[string][]float32, error) {
	if r == nil || size < 0 {
		return nil, fmt.Errorf("gguf: ReadImportance needs a reader and a size of 0 or more: the reader is nil: %v, the size is %d: %w", r == nil, size, ErrFormat)
	}
	first := make([]byte, min(size, int64(len(magic))))
	if n, err := r.ReadAt(first, 0); n < len(first) && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("gguf: reading importances: %w", err)
	}
	if string(first) != magic {
		return readOldImportance(r, size)
	}
	f, err := NewReader(r, size, BigEndian())
	if err != nil {
		return nil, err
	}
	return f.importance()
}

// importance returns the importances of a GGUF file.
func (f *File) importance() (map[string][]float32, error) {
	if kind, _ := f.meta.Text(keyType); kind != typeImatrix {
		return nil, fail(strconv.Quote(keyType), f.places[keyType], ErrFormat, "%q, expected %q: the file has no importances", shortened(kind), typeImatrix)
	}
	all := map[string][]float32{}
	for _, t := range f.tensors {
		if name, ok := strings.CutSuffix(t.Name, countsSuffix); ok && f.Tensor(name+sumsSuffix) == nil {
			return nil, t.wrong("the file has no tensor %q", shortened(name+sumsSuffix))
		}
		name, ok := strings.CutSuffix(t.Name, sumsSuffix)
		if !ok {
			continue
		}
		counts := f.Tensor(name + countsSuffix)
		if counts == nil {
			return nil, t.wrong("the file has no tensor %q", shortened(name+countsSuffix))
		}
		x, err := meanSquares(t, counts)
		if err != nil {
			return nil, err
		}
		all[name] = x
	}
	if len(all) == 0 {
		return nil, fail("tensors", f.end, ErrFormat, "no name ends in %q", sumsSuffix)
	}
	return all, nil
}

// wrong returns the error of a tensor's description.
func (t *Tensor) wrong(format string, args ...any) error {
	return fail(fmt.Sprintf("tensor %q", shortened(t.Name)), t.at, ErrFormat, format, args...)
}

// meanSquares divides the sums of squares of each matrix by its number of inputs.
func meanSquares(sums, counts *Tensor) ([]float32, error) {
	for _, t := range []*Tensor{sums, counts} {
		if t.Type != block.F32 {
			return nil, t.wrong("the type is %v, expected F32", t.Type)
		}
	}
	n, matrices := sums.Elements(), counts.Elements()
	if n == 0 || matrices == 0 || n%matrices != 0 {
		return nil, sums.wrong("%d sums for %d matrices, expected at least one and as many for each matrix", n, matrices)
	}
	if n > maxImportance {
		return nil, fail(fmt.Sprintf("tensor %q", shortened(sums.Name)), sums.at, ErrLimit, "%d sums, expected at most %d", n, maxImportance)
	}
	x, c := make([]float32, n), make([]float32, matrices)
	if err := errors.Join(sums.Dequantize(x, 0), counts.Dequantize(c, 0)); err != nil {
		return nil, err
	}
	columns := int(n / matrices)
	for i, count := range c {
		if !(count >= 0 && count <= math.MaxFloat32) {
			return nil, counts.wrongNumber(i, count)
		}
		for j := i * columns; j < (i+1)*columns; j++ {
			mean := float32(1)
			if count > 0 {
				mean = x[j] / count
			}
			if !(mean >= 0 && mean <= math.MaxFloat32) {
				return nil, sums.wrongNumber(j, x[j])
			}
			x[j] = mean
		}
	}
	return x, nil
}

// wrongNumber returns the error of element i of a tensor of float32.
func (t *Tensor) wrongNumber(i int, v float32) error {
	return fail(fmt.Sprintf("tensor %q element %d", shortened(t.Name), i), t.Offset()+4*int64(i), ErrFormat, notImportance, v)
}

const notImportance = "%v, expected a finite number of 0 or more"

// oldReader reads a file of the older format, which is little-endian and has no magic.
type oldReader struct {
	r        *bufio.Reader
	at, size int64
}

// readOldImportance reads a file of the older format: the number of entries, then for each the length of the name, the
// name, the number of calls, the number of values and the values, which are to be divided by the number of calls. Data after
// the entries, which name the text, are ignored.
func readOldImportance(r io.ReaderAt, size int64) (map[string][]float32, error) {
	o := &oldReader{r: bufio.NewReaderSize(io.NewSectionReader(r, 0, size), 64<<10), size: size}
	entries, err := o.count("number of entries", 1, minImportance)
	if err != nil {
		return nil, err
	}
	all := map[string][]float32{}
	for i := range entries {
		at := o.at
		name, x, err := o.entry(fmt.Sprintf("entry %d", i))
		if err != nil {
			return nil, err
		}
		if _, twice := all[name]; twice {
			return nil, fail(fmt.Sprintf("entry %d (%q)", i, shortened(name)), at, ErrFormat, "two entries have this name, expected different names")
		}
		all[name] = x
	}
	return all, nil
}

func (o *oldReader) entry(field string) (string, []float32, error) {
	at := o.at
	n, err := o.count(field+" name length", 1, 1)
	if err != nil {
		return "", nil, err
	}
	if n > maxName {
		return "", nil, fail(field+" name length", at, ErrLimit, "%d bytes, expected at most %d", n, maxName)
	}
	b := make([]byte, n)
	if err := o.read(b, field+" name"); err != nil {
		return "", nil, err
	}
	name := string(b)
	field = fmt.Sprintf("%s (%q)", field, shortened(name))
	calls, err := o.count(field+" number of calls", 0, 0)
	if err != nil {
		return "", nil, err
	}
	at = o.at
	if n, err = o.count(field+" number of values", 1, 4); err != nil {
		return "", nil, err
	}
	if n > maxImportance {
		return "", nil, fail(field+" number of values", at, ErrLimit, "%d, expected at most %d", n, maxImportance)
	}
	x, err := o.values(field, n, float32(max(1, calls)))
	return name, x, err
}

// values returns the next n numbers, divided by calls.
func (o *oldReader) values(field string, n int, calls float32) ([]float32, error) {
	x := make([]float32, n)
	var buf [4096]byte
	for from := 0; from < n; {
		at, b := o.at, buf[:min(len(buf), 4*(n-from))]
		if err := o.read(b, field+" values"); err != nil {
			return nil, err
		}
		for i := 0; i < len(b); i += 4 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))
			if !(v >= 0 && v <= math.MaxFloat32) {
				return nil, fail(fmt.Sprintf("%s value %d", field, from), at+int64(i), ErrFormat, notImportance, v)
			}
			x[from] = v / calls
			from++
		}
	}
	return x, nil
}

// count returns the next integer: a number, at least least, of items of at least each bytes.
func (o *oldReader) count(field string, least, each int64) (int, error) {
	at := o.at
	var b [4]byte
	if err := o.read(b[:], field); err != nil {
		return 0, err
	}
	n := int64(int32(binary.LittleEndian.Uint32(b[:])))
	if n < least {
		return 0, fail(field, at, ErrFormat, "%d, expected at least %d", n, least)
	}
	if left := o.size - o.at; each > 0 && n > left/each {
		return 0, fail(field, at, ErrTruncated, "%d of at least %d bytes each, but the file has %d more bytes", n, each, left)
	}
	return int(n), nil
}

// read fills b with the next bytes.
func (o *oldReader) read(b []byte, field string) error {
	n, err := io.ReadFull(o.r, b)
	o.at += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fail(field, o.at, ErrTruncated, "expected %d more bytes", len(b)-n)
	}
	if err != nil {
		return &FormatError{Field: field, Offset: o.at, Err: err}
	}
	return nil
}
