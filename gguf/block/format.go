// Package block implements the block formats in which language models store their weights: it
// decodes blocks to numbers and encodes numbers as blocks. The layouts are the same as in ggml and
// GGUF files, byte for byte.
//
// A block is a run of neighbouring elements of a row that share a scale, or a scale and a minimum, which
// are binary16. A row consists of whole blocks: a matrix of n columns has n/Elements consecutive blocks
// in each row, without gaps between rows. All bytes are little-endian.
package block

import (
	"errors"
	"math"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Format is a block format.
type Format uint8

// The formats. The formats ending in _K have 256 elements in groups of 16 or 32, and each group has
// a small integer scale. The formats that begin with IQ take their levels from codebooks. The last
// formats are single numbers, blocks of one element.
const (
	Invalid Format = iota
	Q4_0           // 4 bits: q·d for q in -8 … 7
	Q5_0           // 5 bits: q·d for q in -16 … 15
	Q8_0           // 8 bits: q·d for q in -127 … 127
	Q4_K           // 4 bits: q·s - m for q in 0 … 15, s and m of 32 elements
	Q5_K           // 5 bits: q·s - m for q in 0 … 31, s and m of 32 elements
	Q6_K           // 6 bits: q·s for q in -32 … 31, s of 16 elements

	Q4_1    // 4 bits: q·d + m for q in 0 … 15
	Q5_1    // 5 bits: q·d + m for q in 0 … 31
	Q2_K    // 2 bits: q·s - m for q in 0 … 3, s and m of 16 elements
	Q3_K    // 3 bits: q·s for q in -4 … 3, s of 16 elements
	IQ1_S   // 8 elements in 11 bits, scales of 32 elements
	IQ1_M   // 8 elements in 12 bits, scales of 16 elements
	IQ2_XXS // 8 elements in 8 bits and 7 signs, scales of 32 elements
	IQ2_XS  // 8 elements in 9 bits and 7 signs, scales of 16 elements
	IQ2_S   // 8 elements in 10 bits and 8 signs, scales of 16 elements
	IQ3_XXS // 4 elements in 8 bits, 7 signs for 8, scales of 32 elements
	IQ3_S   // 4 elements in 9 bits and 4 signs, scales of 32 elements
	IQ4_NL  // 4 bits: 16 levels closer together near 0
	IQ4_XS  // 4 bits: as IQ4_NL, scales of 32 elements
	TQ1_0   // q·d for q in -1 … 1, five in a byte
	TQ2_0   // q·d for q in -1 … 1, four in a byte
	MXFP4   // E2M1 times a power of two
	NVFP4   // E2M1 times a number of 7 bits for 16 elements
	Q1_0    // d or -d
	Q2_0    // q·d for q in -1 … 2

	F32
	F16
	BF16
	F64
	I8
	I16
	I32
	I64
)

// Elements and bytes of blocks.
const (
	shortElements = 32
	superElements = 256

	q4_0Bytes = 2 + 16            // d, low and high halves of bytes
	q4_1Bytes = 4 + 16            // d, m, low and high halves of bytes
	q5_0Bytes = 2 + 4 + 16        // d, fifth bits, low and high halves of bytes
	q5_1Bytes = 4 + 4 + 16        // d, m, fifth bits, low and high halves of bytes
	q8_0Bytes = 2 + 32            // d, signed bytes
	q4_KBytes = 4 + 12 + 128      // d, dmin, scales and minimums, low and high halves of bytes
	q5_KBytes = 4 + 12 + 32 + 128 // d, dmin, scales and minimums, fifth bits, low and high halves of bytes
	q6_KBytes = 128 + 64 + 16 + 2 // low four bits, high two bits, scales, d

	maxBytes = q6_KBytes // the largest size of a block
)

// ErrFormat is the error for a Format that is not one of the constants.
var ErrFormat = errors.New("not a block format")

// SizeError is the error of a number of elements that is not a whole number
// of blocks, or that does not match the number of bytes.
type SizeError struct {
	Format   Format
	Elements int
	Bytes    int // the number of bytes or importances given, or -1 if only Elements is wrong
}

// Error says which size is wrong.
func (e *SizeError) Error() string {
	if e.Bytes >= 0 {
		return fmt.Sprintf("%v: %d bytes for %d elements", e.Format, e.Bytes, e.Elements)
	}
	return fmt.Sprintf("%v: %d elements are not blocks of %d", e.Format, e.Elements, e.Format.Elements())
}

// RangeError reports a block whose scale is not finite. Decoding returns it for a damaged block;
// encoding returns it for numbers that are not finite or too large for a binary16 scale.
type RangeError struct {
	Format Format
	Block  int // its index
}

// Error says which block it is.
func (e *RangeError) Error() string {
	return fmt.Sprintf("%v: the scale of block %d is not finite", e.Format, e.Block)
}

// Formats returns every format.
func Formats() []Format {
	var fs []Format
	for f := Invalid + 1; int(f) < len(basics); f++ {
		fs = append(fs, f)
	}
	return fs
}

// ByID returns the format with this number in ggml, or Invalid.
func ByID(id uint32) Format {
	for f := Invalid + 1; int(f) < len(basics); f++ {
		if basics[f].id == id {
			return f
		}
	}
	return Invalid
}

// ByName returns the format of that name, or Invalid.
func ByName(name string) Format {
	for f := Invalid + 1; int(f) < len(basics); f++ {
		if basics[f].name == name {
			return f
		}
	}
	return Invalid
}

// String returns ggml's name of the format, for example Q4_0.
func (f Format) String() string {
	if int(f) < len(basics) {
		return basics[f].name
	}
	return fmt.Sprintf("Format(%d)", uint8(f))
}

// known returns f, or Invalid if f is no format.
func (f Format) known() Format {
	if int(f) < len(basics) {
		return f
	}
	return Invalid
}

// ID returns ggml's number of the type, as GGUF files hold it; 0 for Invalid.
func (f Format) ID() uint32 { return basics[f.known()].id }

// Elements returns the number of elements of a block, 0 for Invalid.
func (f Format) Elements() int { return basics[f.known()].elements }

// Bytes returns the number of bytes of a block, 0 for Invalid.
func (f Format) Bytes() int { return basics[f.known()].bytes }

// Scalar reports whether the blocks of f are single numbers.
func (f Format) Scalar() bool { return f.Elements() == 1 }

// Layout returns the description of the format, or nil for Invalid. Callers must not
// change it.
func (f Format) Layout() *Layout {
	if !f.Valid() {
		return nil
	}
	return f.layout()
}

// Valid reports whether f is one of the formats.
func (f Format) Valid() bool { return f.Elements() > 0 }

// Size returns the number of bytes of n elements. It returns a [SizeError] if n is not a
// whole number of blocks, or if the number of bytes overflows an int.
func (f Format) Size(n int) (int, error) {
	b := &basics[f.known()]
	if b.elements == 0 {
		return 0, ErrFormat
	}
	if n < 0 || n%b.elements != 0 || n/b.elements > math.MaxInt/b.bytes {
		return 0, &SizeError{f, n, -1}
	}
	return n / b.elements * b.bytes, nil
}

// check returns an error if blocks of f with n elements do not have size bytes.
func (f Format) check(n, size int) error {
	want, err := f.Size(n)
	if err == nil && want != size {
		err = &SizeError{f, n, size}
	}
	return err
}

// Dequantize decodes the blocks of src to dst. src must consist of whole blocks, and dst must have
// the number of their elements; otherwise Dequantize writes nothing and returns a [SizeError]. A
// scale that is not finite gives numbers that are not finite; [Format.Check] finds such scales.
func (f Format) Dequantize(dst []float32, src []byte) error {
	if err := f.check(len(dst), len(src)); err != nil {
		return err
	}
	f.dequantize(dst, src)
	return nil
}

// dequantize decodes whole blocks.
func (f Format) dequantize(dst []float32, src []byte) {
	if loop := loops[f]; loop != nil {
		loop(dst, src)
		return
	}
	f.layout().dequantize(dst, src, false)
}

// Magnitudes writes the magnitude of the terms of each number of src to dst: |q·s| for formats
// without minimums, and |q·s| plus the magnitude of the minimum for formats with minimums. If a sum
// over the numbers does not round each number first, its error is relative to these magnitudes.
// Sizes are as for [Format.Dequantize].
func (f Format) Magnitudes(dst []float32, src []byte) error {
	if err := f.check(len(dst), len(src)); err != nil {
		return err
	}
	if f.Elements() > 1 {
		f.layout().dequantize(dst, src, true)
		return nil
	}
	f.dequantize(dst, src)
	for i, v := range dst {
		dst[i] = magnitude(v)
	}
	return nil
}

// Check returns a [RangeError] that names the first block of src with a scale that is not finite or
// is too large, so that its numbers may not be finite. It returns a [SizeError] if src does not
// consist of whole blocks.
func (f Format) Check(src []byte) error {
	l := f.layout()
	if l.Elements == 0 {
		return ErrFormat
	}
	if len(src)%l.Bytes != 0 {
		return &SizeError{f, len(src) / l.Bytes * l.Elements, len(src)}
	}
	bad := -1
	if at, ok := l.halves(); ok {
		bad = checkHalves(src, l.Bytes, at)
	} else if l.Scale.Encoding != NoFloat {
		bad = l.checkScales(f, src)
	}
	if bad >= 0 {
		return &RangeError{f, bad}
	}
	return nil
}

// checkHalves returns the index of the first block with a binary16 that is not finite at one of the
// byte offsets in at, or -1.
func checkHalves(src []byte, size int, at []int) int {
	for i := 0; i < len(src); i += size {
		for _, at := range at {
			if src[i+at+1]&0x7c == 0x7c {
				return i / size
			}
		}
	}
	return -1
}

// Row returns the bytes of row i of the matrix of cols columns at the start of src,
// or a [SizeError].
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

// DequantizeRow decodes row i of the matrix of len(dst) columns at the start of src to
// dst, or returns a [SizeError].
func (f Format) DequantizeRow(dst []float32, src []byte, i int) error {
	row, err := f.Row(src, len(dst), i)
	if err != nil {
		return err
	}
	f.dequantize(dst, row)
	return nil
}
