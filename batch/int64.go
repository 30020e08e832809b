package batch

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/op"
)

// Number is an element type of slices that [Upload], [BindInput] and [Read] take: the element
// types of devices, and int64. No device computes with int64. Upload and BindInput convert int64
// to i32, or fail with a [RangeError]. Read converts i32, u32 and bool to int64.
type Number interface{ device.Element | int64 }

// RangeError reports an int64 that i32 cannot hold. It wraps [device.ErrUnsupported].
type RangeError struct {
	Index int   // of the first such element of the slice
	Value int64 // the element
}

// Error names the element and the range of i32.
func (e *RangeError) Error() string {
	return fmt.Sprintf("element %d is %d: i32 has the numbers from %d to %d", e.Index, e.Value, math.MinInt32, math.MaxInt32)
}

// Unwrap returns [device.ErrUnsupported].
func (e *RangeError) Unwrap() error { return device.ErrUnsupported }

// elements returns the memory of a slice and the type of its elements: a copy as i32 of
// a slice of int64.
func elements[T Number](data []T) ([]byte, op.DType, error) {
	switch d := any(data).(type) {
	case []int64:
		narrow, err := narrowed(d)
		return engine.Bytes(narrow), op.I32, err
	case []int32:
		return engine.Bytes(d), op.I32, nil
	case []uint32:
		return engine.Bytes(d), op.U32, nil
	case []uint8:
		return d, op.U8, nil
	case []int8:
		return engine.Bytes(d), op.I8, nil
	case []op.Float16:
		return engine.Bytes(d), op.F16, nil
	case []op.BFloat16:
		return engine.Bytes(d), op.BF16, nil
	case []float32:
		return engine.Bytes(d), op.F32, nil
	}
	return nil, op.InvalidType, device.ErrUnsupported
}

func narrowed(data []int64) ([]int32, error) {
	if data == nil {
		return nil, nil
	}
	y := make([]int32, len(data))
	for i, v := range data {
		if y[i] = int32(v); int64(y[i]) != v {
			return nil, &RangeError{i, v}
		}
	}
	return y, nil
}

// viewed returns results of type t as a slice of T, or false if T does not hold them.
func viewed[T Number](data []byte, t op.DType) ([]T, bool) {
	var y any
	holds := false
	switch any(*new(T)).(type) {
	case int64:
		y, holds = widened(data, t), t == op.I32 || t == op.U32 || t == op.Bool
	case int32:
		y, holds = engine.View[int32](data), device.Holds[int32](t)
	case uint32:
		y, holds = engine.View[uint32](data), device.Holds[uint32](t)
	case uint8:
		y, holds = engine.View[uint8](data), device.Holds[uint8](t)
	case int8:
		y, holds = engine.View[int8](data), device.Holds[int8](t)
	case op.Float16:
		y, holds = engine.View[op.Float16](data), device.Holds[op.Float16](t)
	case op.BFloat16:
		y, holds = engine.View[op.BFloat16](data), device.Holds[op.BFloat16](t)
	case float32:
		y, holds = engine.View[float32](data), device.Holds[float32](t)
	}
	if !holds {
		return nil, false
	}
	return y.([]T), true
}

// widened returns integers of 32 bits as int64.
func widened(data []byte, t op.DType) []int64 {
	if t.Size() != 4 || t.Float() {
		return nil
	}
	bits := engine.View[uint32](data)
	y := make([]int64, len(bits))
	for i, v := range bits {
		y[i] = int64(v)
		if t == op.I32 {
			y[i] = int64(int32(v))
		}
	}
	return y
}
