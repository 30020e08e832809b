package wgsl

import (
	"sync"

	"github.com/rayo-go/rayo/internal/ir"
)

// fn is a function that is added to texts, because the language lacks it or does not guarantee its
// accuracy.
type fn uint8

const (
	fnNone fn = iota
	fnFromBits
	fnIsNaN
	fnMin
	fnMinWith
	fnMax
	fnMaxWith
	fnFma
	fnFmaAny
	fnToI32
	fnToU32
	fnMulHigh
	fnLeadingZeros
	fnTrailingZeros
	fnDot4I8
	fnDot4U8
	fnPackHalf
	fnPackHalfBits
	fnUnpackHalf
	fnPackI8
	fnUnpackI8
	fnUnpackU8
	fnReduceAngle
	fnClip
	fnMinOrdered
	fnMaxOrdered
	fnClipOrdered
	fnKeepNaN

	numFns
)

// functions has their names and texts. $T, $I, $U and $B stand for the types of the width, for
// example f32 or vec4f, and $N for the suffix of the width in names.
var functions = [numFns]struct {
	name, text string
	uses       fn // a function that it calls
}{
	fnNone: {name: "main"},
	// This is a function because compilers reject a bitcast of a constant to an infinity or a NaN.
	fnFromBits: {"from_bits", `fn from_bits$N(bits: $U) -> $T {
  return bitcast<$T>(bits);
}`, 0},
	// Compilers may assume that there is no NaN, and may compile x != x to false.
	fnIsNaN: {"is_nan", `fn is_nan$N(x: $T) -> $B {
  return (bitcast<$U>(x) & $U(0x7fffffffu)) > $U(0x7f800000u);
}`, 0},
	// The built-in functions return either operand if one is NaN. The sum of the magnitudes is NaN
	// exactly if one of them is.
	fnMin: {"min_nan", `fn min_nan$N(x: $T, y: $T) -> $T {
  let sizes = abs(x) + abs(y);
  return select(min(x, y), sizes, bitcast<$U>(sizes) > $U(0x7f800000u));
}`, 0},
	fnMinWith: {"min_with", `fn min_with$N(x: $T, constant: $T) -> $T {
  return select(min(x, constant), x, is_nan$N(x));
}`, fnIsNaN},
	fnMax: {"max_nan", `fn max_nan$N(x: $T, y: $T) -> $T {
  let sizes = abs(x) + abs(y);
  return select(max(x, y), sizes, bitcast<$U>(sizes) > $U(0x7f800000u));
}`, 0},
	fnMaxWith: {"max_with", `fn max_with$N(x: $T, constant: $T) -> $T {
  return select(max(x, constant), x, is_nan$N(x));
}`, fnIsNaN},
	// The minimum of the upper bound and the maximum of x and the lower bound.
	fnClip: {"clip", `fn clip$N(x: $T, lower: $T, upper: $T) -> $T {
  return select(min(max(x, lower), upper), x, is_nan$N(x));
}`, fnIsNaN},
	// Software computes comparisons as IEEE 754 does: they are false for NaN.
	fnMinOrdered: {"min_ordered", `fn min_ordered$N(x: $T, constant: $T) -> $T {
  return select(x, constant, x >= constant);
}`, 0},
	fnMaxOrdered: {"max_ordered", `fn max_ordered$N(x: $T, constant: $T) -> $T {
  return select(x, constant, x <= constant);
}`, 0},
	fnClipOrdered: {"clip_ordered", `fn clip_ordered$N(x: $T, lower: $T, upper: $T) -> $T {
  let above = select(x, lower, x <= lower);
  return select(above, upper, above >= upper);
}`, 0},
	// This ends a chain: see carry.
	fnKeepNaN: {"keep_nan", `fn keep_nan$N(x: $T, sizes: $T) -> $T {
  return select(x, sizes, bitcast<$U>(sizes) > $U(0x7f800000u));
}`, 0},
	// The rounding error of the product, from halves of the factors whose products are exact, plus
	// the rounding error of the sum. If something overflows, the result is s. The lower half of a
	// factor below 2^-103 may be subnormal, and devices may flush it to 0: the error is less than
	// 2^-126 of the other factor.
	fnFma: {"fma_split", `fn fma_split$N(x: $T, y: $T, z: $T) -> $T {
  let xh = bitcast<$T>(bitcast<$U>(x) & $U(0xfffff000u));
  let yh = bitcast<$T>(bitcast<$U>(y) & $U(0xfffff000u));
  let xl = x - xh;
  let yl = y - yh;
  let p = x * y;
  let rest = (((xh * yh - p) + xh * yl) + xl * yh) + xl * yl;
  let s = p + z;
  let b = s - p;
  let lost = (p - (s - b)) + (z - b);
  let exact = s + (lost + rest);
  return select(s, exact, (bitcast<$U>(exact) & $U(0x7fffffffu)) < $U(0x7f800000u));
}`, 0},
	// A factor that is less than 2^-60 of the other is multiplied by 2^48, and the other by 2^-48,
	// which does not change the product. Then both factors have their lower halves, or the loss
	// does not matter, as follows. Let the exponents be m and n, with m < n-59. The smaller factor,
	// unless the device has flushed it to 0, becomes at least 2^(48-126), so that its lower half is
	// not flushed, and at most 2^(127-59+48), which does not overflow. The larger factor loses its
	// lower half if n-48 < -103. In this case m < -114, and the error is at most 2^-126 times
	// 2^(m+49), less than 2^-191. Factors that are closer to each other are not scaled: if the
	// smaller factor has lost its lower half (m < -103), the other is below 2^-41, and the error is
	// less than 2^-167. If the device flushes |y|·2^-60 to 0, then n < -66, and the device also
	// flushes a product with a factor that has lost bits. Infinities stay infinite, and a factor of
	// an infinity may become infinite.
	//
	// If the sum is not finite: a product of finite numbers that overflows does not overflow when
	// divided by 16. Bits distinguish the other cases, because compilers may assume that there are
	// no infinities.
	fnFmaAny: {"fma_any", `fn fma_any$N(x: $T, y: $T, z: $T) -> $T {
  let infinite = $U(0x7f800000u);
  let size = $U(0x7fffffffu);
  let one = $T(1.0f);
  let raise = $T(281474976710656.0f);
  let lower = $T(3.5527137e-15f);
  let little = $T(8.6736174e-19f);
  let x_small = abs(x) < abs(y) * little;
  let y_small = abs(y) < abs(x) * little;
  let u = x * select(select(one, lower, y_small), raise, x_small);
  let v = y * select(select(one, lower, x_small), raise, y_small);
  let s = fma_split$N(u, v, z);
  let scaled = fma_split$N(u * $T(0.0625f), v, z * $T(0.0625f)) * $T(16.0f);
  let p = x * y;
  let z_bits = bitcast<$U>(z);
  let z_finite = (z_bits & size) < infinite;
  let nan = bitcast<$T>(z_bits | $U(0x7fc00000u));
  let of_infinities = select(nan, p, z_finite | (bitcast<$U>(p) == z_bits));
  let of_numbers = select(z, scaled, z_finite);
  let numbers = ((bitcast<$U>(x) & size) < infinite) & ((bitcast<$U>(y) & size) < infinite);
  return select(select(of_infinities, of_numbers, numbers), s, (bitcast<$U>(s) & size) < infinite);
}`, fnFma},
	// 2147483520 and 4294967040 are the greatest f32 below 2^31 and 2^32.
	fnToI32: {"to_i32", `fn to_i32$N(x: $T) -> $I {
  let inside = $I(clamp(x, $T(-2147483648.0f), $T(2147483520.0f)));
  return select(select(inside, $I(2147483647), x >= $T(2147483648.0f)), $I(0), is_nan$N(x));
}`, fnIsNaN},
	fnToU32: {"to_u32", `fn to_u32$N(x: $T) -> $U {
  let inside = $U(clamp(x, $T(0.0f), $T(4294967040.0f)));
  return select(select(inside, $U(4294967295u), x >= $T(4294967296.0f)), $U(0u), is_nan$N(x));
}`, fnIsNaN},
	fnMulHigh: {"mul_high", `fn mul_high$N(x: $U, y: $U) -> $U {
  let low = $U(0xffffu);
  let half = $U(16u);
  let a = (x & low) * (y & low);
  let b = (x >> half) * (y & low) + (a >> half);
  let c = (x & low) * (y >> half) + (b & low);
  return (x >> half) * (y >> half) + (b >> half) + (c >> half);
}`, 0},
	fnLeadingZeros: {"leading_zeros", `fn leading_zeros$N(x: $U) -> $U {
  var y = x | (x >> $U(1u));
  y |= y >> $U(2u);
  y |= y >> $U(4u);
  y |= y >> $U(8u);
  y |= y >> $U(16u);
  return countOneBits(~y);
}`, 0},
	fnTrailingZeros: {"trailing_zeros", `fn trailing_zeros$N(x: $U) -> $U {
  return countOneBits(~x & (x - $U(1u)));
}`, 0},
	fnDot4I8: {"dot4_i8", `fn dot4_i8(x: u32, y: u32) -> i32 {
  let a = bitcast<vec4<i32>>(vec4<u32>(x) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
  let b = bitcast<vec4<i32>>(vec4<u32>(y) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
  return dot(a, b);
}`, 0},
	fnDot4U8: {"dot4_u8", `fn dot4_u8(x: u32, y: u32) -> u32 {
  let a = (vec4<u32>(x) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
  let b = (vec4<u32>(y) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
  return dot(a, b);
}`, 0},
	// Mesa's lavapipe 22.3 loses the upper half of pack2x16float.
	fnPackHalf: {"pack_half", `fn pack_half(x: vec2f) -> u32 {
  return (pack2x16float(vec2f(x.x, 0.0f)) & 0xffffu) | (pack2x16float(vec2f(x.y, 0.0f)) << 16u);
}`, 0},
	// SwiftShader converts an infinity to NaN in both directions.
	fnPackHalfBits: {"pack_half_bits", `fn pack_half_bits(x: vec2f) -> u32 {
  let b = bitcast<vec2<u32>>(x);
  let m = b & vec2<u32>(0x7fffffffu);
  let small = bitcast<vec2<u32>>(bitcast<vec2<f32>>(m) + vec2f(0.5f)) - vec2<u32>(0x3f000000u);
  var h = (m - vec2<u32>(0x38000000u) + vec2<u32>(0xfffu) + ((m >> vec2<u32>(13u)) & vec2<u32>(1u))) >> vec2<u32>(13u);
  h = select(h, small, m < vec2<u32>(0x38800000u));
  h = select(h, vec2<u32>(0x7c00u), m >= vec2<u32>(0x477ff000u));
  h = select(h, vec2<u32>(0x7e00u), m > vec2<u32>(0x7f800000u));
  h |= (b >> vec2<u32>(16u)) & vec2<u32>(0x8000u);
  return h.x | (h.y << 16u);
}`, 0},
	fnUnpackHalf: {"unpack_half", `fn unpack_half(x: u32) -> vec2f {
  let h = vec2<u32>(x & 0xffffu, x >> 16u);
  let m = h & vec2<u32>(0x7fffu);
  let small = bitcast<vec2<u32>>(vec2f(m) * 5.9604645e-8f);
  let other = (m << vec2<u32>(13u)) + select(vec2<u32>(0x38000000u), vec2<u32>(0x70000000u), m >= vec2<u32>(0x7c00u));
  let bits = select(other, small, m < vec2<u32>(0x400u));
  return bitcast<vec2<f32>>(bits | ((h & vec2<u32>(0x8000u)) << vec2<u32>(16u)));
}`, 0},
	fnPackI8: {"pack_i8", `fn pack_i8(x: vec4i) -> u32 {
  let y = (bitcast<vec4<u32>>(x) & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
  return y.x | y.y | y.z | y.w;
}`, 0},
	fnUnpackI8: {"unpack_i8", `fn unpack_i8(x: u32) -> vec4i {
  return bitcast<vec4<i32>>(vec4<u32>(x) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
}`, 0},
	fnUnpackU8: {"unpack_u8", `fn unpack_u8(x: u32) -> vec4u {
  return (vec4<u32>(x) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
}`, 0},
	fnReduceAngle: {"reduce_angle", reduceText(), fnMulHigh},
}

// widthIndex numbers the widths 1, 2 and 4; widthSuffix has the suffixes of names.
func widthIndex(n uint8) int { return int(n >> 1) }

var (
	widthSuffix = [3]string{"", "_2", "_4"}
	typeNames   = [6][3]string{
		ir.F32:  {"f32", "vec2f", "vec4f"},
		ir.I32:  {"i32", "vec2i", "vec4i"},
		ir.U32:  {"u32", "vec2u", "vec4u"},
		ir.Bool: {"bool", "vec2<bool>", "vec4<bool>"},
		ir.F16:  {"f16", "vec2h", "vec4h"},
	}
)

func typeName(t ir.Type, width uint8) string { return typeNames[t][widthIndex(width)] }

// library returns the texts of all functions for each width.
var library = sync.OnceValue(func() (texts [numFns][3]string) {
	for f := range functions {
		for n, suffix := range widthSuffix {
			texts[f][n] = substitute(functions[f].text, "$T", typeNames[ir.F32][n], "$I", typeNames[ir.I32][n], "$U", typeNames[ir.U32][n],
				"$B", typeNames[ir.Bool][n], "$N", suffix)
		}
	}
	return texts
})

// need records that the text calls f for numbers of a width, and prints its name and the opening
// parenthesis.
func (w *printer) need(f fn, width uint8) {
	w.require(f, width)
	w.s(functions[f].name)
	w.s(widthSuffix[widthIndex(width)])
	w.c('(')
}

func (w *printer) require(f fn, width uint8) {
	w.fns[f] |= 1 << widthIndex(width)
	if u := functions[f].uses; u != 0 {
		w.fns[u] |= 1 << widthIndex(width)
	}
}
