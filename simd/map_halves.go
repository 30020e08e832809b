package simd

import (
	"unsafe"

	"github.com/rayo-go/rayo/op"
)

// Conversions between float32 and the types of 16 bits. The pointers point to
// packed elements of 16 bits. The kernels in assembly convert whole vectors, and
// these functions convert the tail.

func halves(p *float32, n int) []uint16 { return unsafe.Slice((*uint16)(unsafe.Pointer(p)), n) }

// whole runs a kernel on the largest multiple of lanes elements up to n, and returns
// their number.
func whole(kernel MapFunc, lanes int, dst, x *float32, n int) int {
	if kernel == nil {
		return 0
	}
	n -= n % lanes
	kernel(dst, x, nil, nil, n, nil)
	return n
}

func widenF16(kernel MapFunc, lanes int, dst, x *float32, n int) {
	k := whole(kernel, lanes, dst, x, n)
	d := unsafe.Slice(dst, n)
	for i, v := range halves(x, n)[k:] {
		d[k+i] = op.F16ToFloat32(v)
	}
}

func narrowF16(kernel MapFunc, lanes int, dst, x *float32, n int) {
	k := whole(kernel, lanes, dst, x, n)
	d := halves(dst, n)
	for i, v := range unsafe.Slice(x, n)[k:] {
		d[k+i] = op.F16FromFloat32(v)
	}
}

func widenBF16(kernel MapFunc, lanes int, dst, x *float32, n int) {
	k := whole(kernel, lanes, dst, x, n)
	d := unsafe.Slice(dst, n)
	for i, v := range halves(x, n)[k:] {
		d[k+i] = op.BF16ToFloat32(v)
	}
}

func narrowBF16(kernel MapFunc, lanes int, dst, x *float32, n int) {
	k := whole(kernel, lanes, dst, x, n)
	d := halves(dst, n)
	for i, v := range unsafe.Slice(x, n)[k:] {
		d[k+i] = op.BF16FromFloat32(v)
	}
}

func widenF16Generic(dst, x, _, _ *float32, n int, _ *float32)   { widenF16(nil, 1, dst, x, n) }
func narrowF16Generic(dst, x, _, _ *float32, n int, _ *float32)  { narrowF16(nil, 1, dst, x, n) }
func widenBF16Generic(dst, x, _, _ *float32, n int, _ *float32)  { widenBF16(nil, 1, dst, x, n) }
func narrowBF16Generic(dst, x, _, _ *float32, n int, _ *float32) { narrowBF16(nil, 1, dst, x, n) }
