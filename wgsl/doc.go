// Package wgsl prints kernels as WGSL, the shading language of WebGPU. Two compilers accept the
// text: naga, the compiler of wgpu, and Tint, the compiler of browsers.
//
//	src, err := wgsl.Kernel(saxpy, wgsl.Target{Consumer: wgsl.Tint})
//
// [Kernel] prints a kernel of package kernel. The text is meant to be read: buffers, parameters and
// variables keep the names that the author gave them. A value that is used once is printed at its
// use; every other value has the number that listings of the program give it. Equal programs give
// equal texts.
//
// A [Source] is a kernel that a user wrote in WGSL. Method Kernel of a WebGPU device prepares it
// for running. The package parses its declarations to find its bindings; [Source.Interface] returns
// them.
//
// # Guarantees
//
// The printed text guarantees the following, which WGSL alone does not:
//
//   - Min and Max return NaN if an operand is NaN, and x != x detects NaN, even with
//     compilers that assume that NaN does not occur. Both inspect bits.
//   - The conversion of a float to an integer saturates; NaN becomes 0.
//   - NaN is unequal to every value.
//   - Constants may be infinite, NaN or -0.
//   - The compiler computes no constant expression. An overflow or a division by 0
//     happens when the kernel runs, with the same result as for other operands.
//   - A counted loop ends if the sum of counter and step overflows. A loop without a
//     known end has a budget of iterations.
//   - exp, log, tanh, erf, sin, pow and similar functions are computed by the
//     expansions of package ir, because the built-in functions may be off by hundreds
//     of units in the last place. A target with Approximate gets shorter expansions;
//     whether a device qualifies has to be measured.
//   - The text does not assume that workgroup memory and variables start at 0, because
//     some implementations do not clear them.
//   - Compare-and-exchange fails only if the element differs.
//   - Integer division by 0 returns the dividend, and the remainder is 0. The least i32
//     divided by -1 is itself. WGSL defines both, and compilers guard divisors that are
//     not constant.
//
// # Limits of accuracy
//
// The following depends on the device or the compiler:
//
//   - Division may be off by 2.5 units in the last place, inverseSqrt by 2, and sqrt by
//     as much as its inverse.
//   - Fma may round twice on a device without a fused instruction. The expansions then
//     lose accuracy: exp is off by up to 8 units and erfc by up to 40. Target.Unfused
//     selects expansions within the bounds of ir.Lower, and prints each Fma that must not round
//     its product as some fifteen operations. MulAdd may always round twice.
//   - Subnormal numbers may be treated as 0, in operands and in results.
//   - Compilers may reassociate sums: those of Metal and Direct3D do so by default, and
//     those of Mesa and NVIDIA replace (x+1)-1 by x. Compensated sums then lose their
//     compensation. The expansions hide the two cases that they need, rounding to an
//     integer and the rounding error of a sum with 1, from the compiler.
//   - Compilers may replace x - x by 0, even if x is infinite.
//   - Comparisons other than of a float with itself, and subgroup reductions, may treat
//     NaN as any number.
//   - An index out of bounds is a mistake in the kernel. Compilers may or may not clamp it.
//   - The subgroup of a lane is the number of the lane divided by the subgroup size. WGSL
//     does not promise it; devices do it if the size of the workgroup along x is a
//     multiple of the subgroup size.
//
// For [NagaGo] the text avoids countLeadingZeros and countTrailingZeros, which that compiler
// translates incorrectly. For both versions of naga it avoids the upper half of pack2x16float,
// because Mesa's lavapipe 22.3 drops it.
package wgsl
