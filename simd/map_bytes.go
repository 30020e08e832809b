package simd

import (
	"math"
	"unsafe"
)

// Conversions between elements of one byte and elements of 32 bits. The pointers to bytes
// point to packed elements. The kernels in assembly convert whole vectors, and these
// functions convert the tail.

// converted runs a kernel of whole vectors, and applies f to the tail.
func converted[To, From any](kernel MapFunc, lanes int, dst, x *float32, n int, f func(From) To) {
	k := whole(kernel, lanes, dst, x, n)
	d := unsafe.Slice((*To)(unsafe.Pointer(dst)), n)
	for i, v := range unsafe.Slice((*From)(unsafe.Pointer(x)), n)[k:] {
		d[k+i] = f(v)
	}
}

func u8ToU32(kernel MapFunc, lanes int, dst, x *float32, n int) {
	converted(kernel, lanes, dst, x, n, func(v uint8) uint32 { return uint32(v) })
}

func u8ToF32(kernel MapFunc, lanes int, dst, x *float32, n int) {
	converted(kernel, lanes, dst, x, n, func(v uint8) float32 { return float32(v) })
}

func i8ToI32(kernel MapFunc, lanes int, dst, x *float32, n int) {
	converted(kernel, lanes, dst, x, n, func(v int8) int32 { return int32(v) })
}

func i8ToF32(kernel MapFunc, lanes int, dst, x *float32, n int) {
	converted(kernel, lanes, dst, x, n, func(v int8) float32 { return float32(v) })
}

func u32ToU8(kernel MapFunc, lanes int, dst, x *float32, n int) {
	converted(kernel, lanes, dst, x, n, func(v uint32) uint8 { return uint8(v) })
}

func i32ToI8(kernel MapFunc, lanes int, dst, x *float32, n int) {
	converted(kernel, lanes, dst, x, n, func(v int32) int8 { return int8(v) })
}

func f32ToU8(kernel MapFunc, lanes int, dst, x *float32, n int) {
	converted(kernel, lanes, dst, x, n, func(v float32) uint8 { return uint8(limited(v, 0, math.MaxUint8)) })
}

func f32ToI8(kernel MapFunc, lanes int, dst, x *float32, n int) {
	converted(kernel, lanes, dst, x, n, func(v float32) int8 { return int8(limited(v, math.MinInt8, math.MaxInt8)) })
}

// limited truncates v and saturates it to [lo, hi]. It returns 0 for NaN.
func limited(v, lo, hi float32) int32 {
	if v != v {
		return 0
	}
	return int32(max(lo, min(hi, v)))
}

func u8ToU32Generic(dst, x, _, _ *float32, n int, _ *float32) { u8ToU32(nil, 1, dst, x, n) }
func u8ToF32Generic(dst, x, _, _ *float32, n int, _ *float32) { u8ToF32(nil, 1, dst, x, n) }
func i8ToI32Generic(dst, x, _, _ *float32, n int, _ *float32) { i8ToI32(nil, 1, dst, x, n) }
func i8ToF32Generic(dst, x, _, _ *float32, n int, _ *float32) { i8ToF32(nil, 1, dst, x, n) }
func u32ToU8Generic(dst, x, _, _ *float32, n int, _ *float32) { u32ToU8(nil, 1, dst, x, n) }
func i32ToI8Generic(dst, x, _, _ *float32, n int, _ *float32) { i32ToI8(nil, 1, dst, x, n) }
func f32ToU8Generic(dst, x, _, _ *float32, n int, _ *float32) { f32ToU8(nil, 1, dst, x, n) }
func f32ToI8Generic(dst, x, _, _ *float32, n int, _ *float32) { f32ToI8(nil, 1, dst, x, n) }
