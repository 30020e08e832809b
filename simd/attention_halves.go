package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/op"
)

// Halves has the keys and values of an [Attention] as numbers of 16 bits, in place of K
// and V. The attention converts them to float32 block by block.
type Halves struct {
	Half             op.DType // op.F16 or op.BF16, or the zero value for float32
	KHalves, VHalves []uint16
}

// elements returns the number of elements of an operand, which is x, or y if there are Halves.
func (h *Halves) elements(x []float32, y []uint16) int {
	if h.Half != op.InvalidType {
		return len(y)
	}
	return len(x)
}

// read returns rows of an operand, from element at on, and their stride. It returns rows of x in place,
// and converts rows of y to scratch.
func (h *Halves) read(scratch *[]float32, x []float32, y []uint16, at, rows, stride, dim int) ([]float32, int) {
	if h.Half == op.InvalidType {
		return rowsOf(x, at, rows, stride, dim), stride
	}
	*scratch = resized(*scratch, rows*dim)
	dst, name := *scratch, "cast.f16.f32"
	if h.Half == op.BF16 {
		name = "cast.bf16.f32"
	}
	widen := VectorMap(name)
	if len(dst) == 0 {
		return nil, dim
	}
	n, each := rows, dim
	if stride == dim {
		n, each = 1, rows*dim
	}
	for i := range n {
		row := y[at+i*stride:][:each]
		widen(&dst[i*each], (*float32)(unsafe.Pointer(&row[0])), nil, nil, each, nil)
	}
	return dst, dim
}
