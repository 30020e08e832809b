//go:build !js || !nowebgpu

package portable

import "github.com/rayo-go/rayo/kernel"

// Floating-point numbers are compared by keys: unsigned integers in the order of the numbers. NaN
// has the greatest key, and both zeros have the same key. Integers compare alike on every device,
// while compilers for GPUs may assume that no number is NaN.
const (
	infBits = 0x7f800000 // bits of +Inf as float32
	nanBits = 0x7fc00000 // bits of the NaN that kernels use

	nanKey  = 0xffffffff
	infKey  = 0xff800000 // key of +Inf
	ninfKey = 0x007fffff // key of -Inf
)

// keyOf returns the key of the float32 with the bits u.
func keyOf(u kernel.U32) kernel.U32 {
	magnitude := u.And(kernel.U(0x7fffffff))
	negative := u.Shr(kernel.U(31)).Ne(kernel.U(0)).And(magnitude.Ne(kernel.U(0)))
	key := kernel.Select(negative, u.Not(), magnitude.Or(kernel.U(0x80000000)))
	return kernel.Select(isNaN(u), kernel.U(nanKey), key)
}

// orderOf is a cheaper keyOf: -0 may be less than 0, and the key of NaN is arbitrary.
func orderOf(u kernel.U32) kernel.U32 {
	return u.Xor(u.I32().Shr(kernel.U(31)).U32().Or(kernel.U(0x80000000)))
}

// numberOf returns the float32 with key k.
func numberOf(k kernel.U32) kernel.F32 {
	positive := k.Ge(kernel.U(0x80000000))
	u := kernel.Select(positive, k.And(kernel.U(0x7fffffff)), k.Not())
	return kernel.Select(k.Eq(kernel.U(nanKey)), nan(), u.AsF32())
}

// isNaN reports whether u is the bits of a NaN.
func isNaN(u kernel.U32) kernel.Bool {
	return u.And(kernel.U(0x7fffffff)).Gt(kernel.U(infBits))
}

// reverseKey reverses the order of keys. NaN keeps the greatest key.
func reverseKey(k kernel.U32) kernel.U32 {
	return kernel.Select(k.Eq(kernel.U(nanKey)), k, k.Not())
}
