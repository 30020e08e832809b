// Package block holds the block formats in which language models store their
// weights: what the bytes of a block mean, and how numbers become blocks. The
// layouts are those of ggml, byte for byte, as GGUF files hold them.
//
// A block is a run of neighbours in one row that share a scale, or a scale and
// a minimum, which are binary16. Rows are whole blocks: a matrix of n columns
// has n/Elements blocks in each row, one after another, and nothing between
// rows. All bytes are little-endian.
package block

import (
	"errors"
	"fmt"
	"math"
)

// Format is a block format.
type Format uint8

// The formats. Those ending in _K hold 256 elements as groups of 16 or 32,
// whose own scales are small integers.
const (
	Invalid Format = iota
	Q4_0           // 4 bits: q·d for q in -8 … 7
	Q5_0           // 5 bits: q·d for q in -16 … 15
	Q8_0           // 8 bits: q·d for q in -127 … 127
	Q4_K           // 4 bits: q·s - m for q in 0 … 15, s and m of 32 elements
	Q5_K           // 5 bits: q·s - m for q in 0 … 31, s and m of 32 elements
	Q6_K           // 6 bits: q·s for q in -32 … 31, s of 16 elements
)

// layout is what the package knows of a format.
type layout struct {
	name            string
	id              uint32 // ggml's number of the type
	elements, bytes int    // of a block
	scales          []int  // where a block has its binary16 scales
	dequantize      func(dst []float32, src []byte)
	quantize        func(dst []byte, src []float32)
}

var layouts = [...]layout{
	Invalid: {name: "invalid"},
	Q4_0:    {"Q4_0", 2, shortElements, q4_0Bytes, []int{0}, dequantizeQ4_0, quantizeQ4_0},
	Q5_0:    {"Q5_0", 6, shortElements, q5_0Bytes, []int{0}, dequantizeQ5_0, quantizeQ5_0},
	Q8_0:    {"Q8_0", 8, shortElements, q8_0Bytes, []int{0}, dequantizeQ8_0, quantizeQ8_0},
	Q4_K:    {"Q4_K", 12, superElements, q4_KBytes, []int{0, 2}, dequantizeQ4_K, quantizeQ4_K},
	Q5_K:    {"Q5_K", 13, superElements, q5_KBytes, []int{0, 2}, dequantizeQ5_K, quantizeQ5_K},
	Q6_K:    {"Q6_K", 14, superElements, q6_KBytes, []int{q6_KBytes - 2}, dequantizeQ6_K, quantizeQ6_K},
}

// Elements and bytes of blocks.
const (
	shortElements = 32
	superElements = 256

	q4_0Bytes = 2 + 16            // d, low and high halves of bytes
	q5_0Bytes = 2 + 4 + 16        // d, fifth bits, the others as in Q4_0
	q8_0Bytes = 2 + 32            // d, signed bytes
	q4_KBytes = 4 + 12 + 128      // d, dmin, scales and minima, halves of bytes
	q5_KBytes = 4 + 12 + 32 + 128 // d, dmin, scales and minima, fifth bits, the others
	q6_KBytes = 128 + 64 + 16 + 2 // low halves, high pairs of bits, scales, d

	maxBytes = q6_KBytes // of a block
)

// ErrFormat is the error of a Format that is none of the constants.
var ErrFormat = errors.New("not a block format")

// SizeError is the error of a number of elements that is not a whole number
// of blocks, or of elements and bytes that do not go together.
type SizeError struct {
	Format   Format
	Elements int
	Bytes    int // what was given for them, or -1 if only Elements are wrong
}

// Error says which size is wrong.
func (e *SizeError) Error() string {
	if e.Bytes >= 0 {
		return fmt.Sprintf("%v: %d bytes for %d elements", e.Format, e.Bytes, e.Elements)
	}
	return fmt.Sprintf("%v: %d elements are not blocks of %d", e.Format, e.Elements, e.Format.Elements())
}

// RangeError is the error of a block whose scale is not finite: it was damaged
// in a file, or numbers that are not finite or too large for a binary16 scale
// were to become a block.
type RangeError struct {
	Format Format
	Block  int // its place
}

// Error says which block it is.
func (e *RangeError) Error() string {
	return fmt.Sprintf("%v: the scale of block %d is not finite", e.Format, e.Block)
}

// Formats returns every format.
func Formats() []Format {
	var fs []Format
	for f := Invalid + 1; int(f) < len(layouts); f++ {
		fs = append(fs, f)
	}
	return fs
}

// ByID returns the format that ggml gives this number, or Invalid.
func ByID(id uint32) Format {
	for f := Invalid + 1; int(f) < len(layouts); f++ {
		if layouts[f].id == id {
			return f
		}
	}
	return Invalid
}

// ByName returns the format of that name, or Invalid.
func ByName(name string) Format {
	for f := Invalid + 1; int(f) < len(layouts); f++ {
		if layouts[f].name == name {
			return f
		}
	}
	return Invalid
}

func (f Format) layout() *layout {
	if int(f) < len(layouts) {
		return &layouts[f]
	}
	return &layouts[Invalid]
}

// String returns ggml's name: Q4_0.
func (f Format) String() string {
	if int(f) < len(layouts) {
		return layouts[f].name
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// ID returns ggml's number of the type, as GGUF files hold it; 0 for Invalid.
func (f Format) ID() uint32 { return f.layout().id }

// Elements returns the number of elements of a block, 0 for Invalid.
func (f Format) Elements() int { return f.layout().elements }

// Bytes returns the number of bytes of a block, 0 for Invalid.
func (f Format) Bytes() int { return f.layout().bytes }

// Valid reports whether f is one of the formats.
func (f Format) Valid() bool { return f.Elements() > 0 }

// Size returns the bytes that n elements take: whole blocks, else a
// [SizeError]. That is also the error of more bytes than an int counts.
func (f Format) Size(n int) (int, error) {
	l := f.layout()
	if l.elements == 0 {
		return 0, ErrFormat
	}
	if n < 0 || n%l.elements != 0 || n/l.elements > math.MaxInt/l.bytes {
		return 0, &SizeError{f, n, -1}
	}
	return n / l.elements * l.bytes, nil
}

// check returns an error unless blocks of f with n elements take size bytes.
func (f Format) check(n, size int) error {
	want, err := f.Size(n)
	if err == nil && want != size {
		err = &SizeError{f, n, size}
	}
	return err
}

// Dequantize writes the numbers that the blocks of src stand for to dst. dst
// has the elements of all of src, which is whole blocks, or nothing is done
// and the error is a [SizeError]. Scales that are not finite give numbers that
// are not; [Format.Check] finds them.
func (f Format) Dequantize(dst []float32, src []byte) error {
	if err := f.check(len(dst), len(src)); err != nil {
		return err
	}
	f.layout().dequantize(dst, src)
	return nil
}

// Quantize writes the blocks that come near the numbers of src to dst: the
// same bytes on every machine. dst has the size of all of src, which is whole
// blocks, or nothing is done and the error is a [SizeError]. A [RangeError]
// names the first block with numbers that are not finite or, at some 2^20 and
// more, too large; what dst then holds is not defined.
func (f Format) Quantize(dst []byte, src []float32) error {
	if err := f.check(len(src), len(dst)); err != nil {
		return err
	}
	l := f.layout()
	for i, v := range src {
		if v-v != 0 {
			return &RangeError{f, i / l.elements}
		}
	}
	l.quantize(dst, src)
	return f.Check(dst)
}

// Check returns a [RangeError] that names the first block of src with a scale
// that is not finite, or a [SizeError] if src is not whole blocks.
func (f Format) Check(src []byte) error {
	l := f.layout()
	if l.elements == 0 {
		return ErrFormat
	}
	if len(src)%l.bytes != 0 {
		return &SizeError{f, len(src) / l.bytes * l.elements, len(src)}
	}
	for i := 0; i < len(src); i += l.bytes {
		for _, at := range l.scales {
			if src[i+at+1]&0x7c == 0x7c {
				return &RangeError{f, i / l.bytes}
			}
		}
	}
	return nil
}

// Row returns the bytes of row i of a matrix of cols columns that src begins
// with, or a [SizeError].
func (f Format) Row(src []byte, cols, i int) ([]byte, error) {
	size, err := f.Size(cols)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, nil
	}
	if i < 0 || i >= len(src)/size {
		return nil, &SizeError{f, cols, len(src)}
	}
	return src[i*size:][:size:size], nil
}

// DequantizeRow writes the numbers of row i of a matrix of len(dst) columns
// that src begins with to dst, or returns a [SizeError].
func (f Format) DequantizeRow(dst []float32, src []byte, i int) error {
	row, err := f.Row(src, len(dst), i)
	if err != nil {
		return err
	}
	f.layout().dequantize(dst, row)
	return nil
}
