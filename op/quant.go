package op

import (
	"math"

	"github.com/rayo-go/rayo/gguf/block"
)

// QuantTypes returns every quantised element type.
func QuantTypes() []DType {
	types := make([]DType, 0, lastQuant-Q4_0+1)
	for d := Q4_0; d <= lastQuant; d++ {
		types = append(types, d)
	}
	return types
}

// lastQuant is the last of the quantised types, which follow one another.
const lastQuant = Q2_0

// QuantType returns the element type of a block format, or InvalidType.
func QuantType(f block.Format) DType {
	for _, d := range QuantTypes() {
		if d.Block() == f {
			return d
		}
	}
	return InvalidType
}

// Block returns the format of a quantised type's blocks, and block.Invalid of
// other types.
func (d DType) Block() block.Format {
	if int(d) < len(dtypes) {
		return dtypes[d].block
	}
	return block.Invalid
}

// Quantized reports whether d is a quantised type.
func (d DType) Quantized() bool { return d >= Q4_0 && d <= lastQuant }

// Bytes returns the bytes that an array of shape s takes in memory, or an
// ErrShape: for a shape that [Shape.Size] refuses, and for a quantised type
// if rows are not whole blocks. The size of InvalidType is 0.
func (d DType) Bytes(s Shape) (int, error) {
	n, err := s.Size()
	if err != nil || !d.Quantized() {
		return n * d.Size(), err
	}
	if err := d.rows(s); err != nil {
		return 0, err
	}
	bytes, err := d.Block().Size(n)
	if err != nil {
		return 0, mismatch("%v of %v: %v", s, d, err)
	}
	return bytes, nil
}

// rows returns an ErrShape if the rows of an array of quantised type d are not
// whole blocks.
func (d DType) rows(s Shape) error {
	if _, cols := s.Rows(); cols%d.Block().Elements() != 0 {
		return mismatch("rows of %v are not whole blocks of %d elements of %v", s, d.Block().Elements(), d)
	}
	return nil
}

// element returns element i of an array of quantised type d.
func (d DType) element(memory []byte, i int) float64 {
	f := d.Block()
	var v [maxBlock]float32
	k := f.Elements()
	_ = f.Dequantize(v[:k], memory[i/k*f.Bytes():][:f.Bytes()]) // cannot fail for a whole block
	return float64(v[i%k])
}

// maxBlock is the largest number of elements of a block.
const maxBlock = 256

// Array returns the array of shape s and type d at the start of memory, in float64, or an ErrShape.
// For a quantised type, Mag is the sum of the magnitudes of the terms that an element consists of:
// |q·s| + |m| for a scale s and a minimum m. Errors of results computed from the elements are
// relative to Mag.
func (d DType) Array(s Shape, memory []byte) (*Array, error) {
	bytes, err := d.Bytes(s)
	if err != nil {
		return nil, err
	}
	if len(memory) < bytes {
		return nil, mismatch("%d bytes for %v of %v: expected %d", len(memory), s, d, bytes)
	}
	a := NewArray(s)
	if !d.Quantized() {
		for i := range a.Data {
			a.Data[i] = d.Float64(memory, i)
		}
		return a, nil
	}
	a.Mag = make([]float64, len(a.Data))
	f := d.Block()
	var v [maxBlock]float32
	for i, k := 0, f.Elements(); i < len(a.Data); i += k {
		b := memory[i/k*f.Bytes():][:f.Bytes()]
		if err := f.Dequantize(v[:k], b); err != nil {
			return nil, err
		}
		for j, e := range v[:k] {
			a.Data[i+j] = float64(e)
		}
		if err := f.Magnitudes(v[:k], b); err != nil {
			return nil, err
		}
		for j, e := range v[:k] {
			a.Mag[i+j] = float64(e)
			if e-e != 0 {
				a.Mag[i+j] = math.Inf(1) // a damaged scale: the elements are undefined
			}
		}
	}
	return a, nil
}
