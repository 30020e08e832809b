//go:build js

package bridge

import (
	"errors"
	"fmt"
	"math"
	"syscall/js"
	"unsafe"

	"github.com/rayo-go/rayo/internal/memory"
)

// Element is a type of numbers that JavaScript has typed arrays of.
type Element interface {
	int8 | uint8 | int16 | uint16 | int32 | uint32 | float32 | float64
}

// ErrDetached means that the memory of a typed array was transferred to a Worker, or that it
// belonged to a WebAssembly.Memory that has grown.
var ErrDetached = errors.New("the ArrayBuffer of the typed array is detached: use an array with its own memory, and transfer copies made by slice()")

// ErrType means that a value is not a typed array of the expected type.
var ErrType = errors.New("wrong type of array")

// ErrLength means that an array does not have the expected length.
var ErrLength = errors.New("wrong length of array")

// nameOf returns the name of the constructor of typed arrays.
func nameOf[T Element]() string {
	var zero T
	switch any(zero).(type) {
	case int8:
		return "Int8Array"
	case uint8:
		return "Uint8Array"
	case int16:
		return "Int16Array"
	case uint16:
		return "Uint16Array"
	case int32:
		return "Int32Array"
	case uint32:
		return "Uint32Array"
	case float32:
		return "Float32Array"
	}
	return "Float64Array"
}

// bytesOf returns the memory of x.
func bytesOf[T Element](x []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(zero)))
}

// view returns the bytes that a typed array covers, which may be a part of its
// ArrayBuffer, as a Uint8Array, and the number of its elements.
func view[T Element](v js.Value) (bytes js.Value, n int, err error) {
	want := nameOf[T]()
	got := v.Type().String()
	if v.Type() == js.TypeObject {
		got = js.Global().Get("Object").Get("prototype").Get("toString").Call("call", v).String()
		got = got[len("[object ") : len(got)-1]
	}
	if got != want && !(want == "Uint8Array" && got == "Uint8ClampedArray") {
		return js.Undefined(), 0, fmt.Errorf("%w: the value is a %s, expected a %s", ErrType, got, want)
	}
	// A typed array whose buffer is detached has length 0, and the constructor throws for that buffer.
	if try(func() {
		bytes = js.Global().Get("Uint8Array").New(v.Get("buffer"), v.Get("byteOffset"), v.Get("byteLength"))
	}) != nil {
		return js.Undefined(), 0, ErrDetached
	}
	return bytes, v.Length(), nil
}

// Slice returns a copy of a typed array, which may be a part of an ArrayBuffer. The array must be a
// Float32Array for float32, and so on. For uint8 it may also be a Uint8ClampedArray, which ImageData
// uses.
//
// # Errors
//   - [ErrType] for any other value, such as an Array of numbers or a typed array of another type.
//   - [ErrDetached] if its buffer is detached.
//   - device.ErrOutOfMemory if the page has no room for the copy.
func Slice[T Element](v js.Value) ([]T, error) {
	bytes, n, err := view[T](v)
	if err != nil {
		return nil, err
	}
	x, err := memory.Slice[T](n)
	if err != nil {
		return nil, err
	}
	js.CopyBytesToGo(bytesOf(x), bytes)
	return x, nil
}

// CopyToGo copies a typed array into a slice of the same length.
//
// # Errors
//   - those of [Slice].
//   - [ErrLength] if the lengths differ; nothing is copied then.
func CopyToGo[T Element](dst []T, src js.Value) error {
	bytes, n, err := view[T](src)
	if err != nil {
		return err
	}
	if n != len(dst) {
		return fmt.Errorf("%w: the typed array has %d elements, expected %d as in the slice", ErrLength, n, len(dst))
	}
	js.CopyBytesToGo(bytesOf(dst), bytes)
	return nil
}

// CopyToJS copies a slice into a typed array of the same length.
//
// # Errors
//   - those of [CopyToGo].
func CopyToJS[T Element](dst js.Value, src []T) error {
	bytes, n, err := view[T](dst)
	if err != nil {
		return err
	}
	if n != len(src) {
		return fmt.Errorf("%w: the typed array has %d elements, expected %d as in the slice", ErrLength, n, len(src))
	}
	js.CopyBytesToJS(bytes, bytesOf(src))
	return nil
}

// TypedArray returns a new typed array with the numbers of x. It returns an error if the page
// refuses the memory.
func TypedArray[T Element](x []T) (js.Value, error) {
	v := js.Undefined()
	if err := try(func() { v = js.Global().Get(nameOf[T]()).New(len(x)) }); err != nil {
		return v, fmt.Errorf("allocating %d bytes for a %s: %w", len(bytesOf(x)), nameOf[T](), err)
	}
	return v, CopyToJS(v, x)
}

// Int returns a number of JavaScript as an int. It returns an error if v is not an integer that fits
// an int.
func Int(v js.Value) (int, error) {
	if v.Type() != js.TypeNumber {
		return 0, fmt.Errorf("the value is of type %v, expected a number", v.Type())
	}
	f := v.Float()
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, fmt.Errorf("%v is not an integer of at most 2^53", f)
	}
	return int(f), nil
}
