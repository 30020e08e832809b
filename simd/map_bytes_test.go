package simd

import (
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/op"
)

// byteTypes are the types of elements in the names of conversions.
var byteTypes = map[string]op.DType{"f32": op.F32, "i32": op.I32, "u32": op.U32, "u8": op.U8, "i8": op.I8}

// TestBytes compares the conversions from and to elements of one byte with those of
// package op, whose integers saturate: of them, the operands are low bytes.
func TestBytes(t *testing.T) {
	for _, name := range []string{"cast.u8.u32", "cast.u8.f32", "cast.i8.i32", "cast.i8.f32", "cast.u32.u8", "cast.i32.i8", "cast.f32.u8", "cast.f32.i8"} {
		part := strings.Split(name, ".")
		from, to := byteTypes[part[1]], byteTypes[part[2]]
		in, wrapped := byteOperands(from, to)
		n := len(wrapped)
		out := make([]uint32, n)
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), 4*n)
		for _, level := range Supported() {
			for _, m := range append(mapLengths(true), n) {
				m = min(m, n)
				for i := range bytes {
					bytes[i] = 0xa5
				}
				MapAt(level, name)((*float32)(unsafe.Pointer(&out[0])), (*float32)(unsafe.Pointer(&in[0])), nil, nil, m, nil)
				for i, v := range wrapped[:m] {
					if got, want := to.Float64(bytes, i), to.Round(v); got != want {
						t.Fatalf("%v %s of %v is %v, want %v", level, name, from.Float64(in, i), got, want)
					}
				}
				for i, b := range bytes[m*to.Size():] {
					if b != 0xa5 {
						t.Fatalf("%v %s of %d elements wrote byte %d behind the last", level, name, m, i)
					}
				}
			}
		}
	}
}

// byteOperands returns elements in memory and, for each, the number that a conversion
// rounds.
func byteOperands(from, to op.DType) (memory []byte, wrapped []float64) {
	values := []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 1e20, -1e20, 0x1p-149, -0x1p-149, 254.99998, 255.00002, -128.99998, 127.99999, math.MaxInt32, math.MinInt32, math.MaxUint32}
	for i := -700; i <= 700; i++ {
		values = append(values, float64(i)/2)
	}
	memory = make([]byte, (len(values)+1)*4)
	for i, v := range values {
		from.PutFloat64(memory, i, v)
		v = from.Float64(memory, i)
		switch {
		case from.Float() || from.Storage():
		case to == op.I8:
			v = float64(int8(int64(v)))
		default:
			v = float64(uint8(int64(v)))
		}
		wrapped = append(wrapped, v)
	}
	return memory, wrapped
}
