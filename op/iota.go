package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/irhook"
)

// defIota makes consecutive integers. [IotaOf] makes its parameter.
var defIota = Operation{define: func() *definition {
	return add(&definition{name: "iota", class: Shaped, selfTest: &irhook.SelfTest{Attrs: IotaOf(67), Shapes: [][]int{{1}}, Start: true}, doc: "n consecutive integers, from a start that is an operand",
		formula: "start + i", inputs: []string{"start"}, arity: [2]int{1, 1},
		shapes: "start of u32, of one element; gives [n]",
		types:  iotaTypes, shape: iotaShape, ref: iotaReference, special: "Wraps at 2^32."})
}}

// IotaOf returns the parameter of [Iota]: the number of integers.
func IotaOf(n int) Attrs { return Attrs{I: [8]int{n}} }

func iotaTypes(_ *Attrs, in []DType) ([]DType, error) {
	return same(in, func(d DType) bool { return d == U32 })
}

func iotaShape(a *Attrs, in []Shape) ([]Shape, error) {
	if n := int64(a.I[0]); n < 0 || n > math.MaxUint32 {
		return nil, mismatch("%d numbers: expected 0 to 2^32-1", n)
	}
	if n, err := in[0].Size(); err != nil || n != 1 {
		return nil, mismatch("start has shape %v: expected one element", in[0])
	}
	return []Shape{{a.I[0]}}, nil
}

func iotaReference(_ *Attrs, in, out []*Array) {
	start := uint32(in[0].Data[0])
	for i := range out[0].Data {
		out[0].Data[i] = float64(start + uint32(i))
	}
}
