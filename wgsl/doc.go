// Package wgsl prints kernels as WGSL, the language of WebGPU, for the compilers
// that read it: naga, which wgpu has, and Tint, which browsers have.
//
//	src, err := wgsl.Kernel(saxpy, wgsl.Target{Consumer: wgsl.Tint})
//
// [Kernel] prints a kernel of package kernel, [Print] its program. The text is meant to be read: buffers,
// parameters and variables have the names that the author gave them, a value
// that is used once stands where it is used, and others are called by the number
// that listings of the program give them. Equal programs give equal texts.
//
// A [Source] goes the other way: WGSL that a user wrote, to be run on a device.
// Its declarations are read for what it binds; [Source.Interface] tells.
//
// # What holds everywhere
//
// The text makes the following hold, though the language does not promise it.
//
//   - Min and Max give NaN where an operand is NaN, and x != x tells NaN, also
//     from compilers that assume there is none: both look at bits.
//   - A float converted to an integer saturates; NaN gives 0.
//   - NaN is unequal to everything.
//   - Infinities, NaN and -0 as constants arrive as they are.
//   - Nothing constant is computed while the text is compiled: what overflows or
//     divides by 0 does so when the kernel runs, as it does elsewhere.
//   - A counted loop ends where the sum of counter and step overflows, and a loop
//     that is not known to end has a budget of turns.
//   - exp, log, tanh, erf, sin, pow and the like are computed by the expansions
//     of package ir. Those of the language may be off by hundreds of units. A target
//     with Near, which is measured, gets shorter ones.
//   - Workgroup memory and variables are not taken to be 0: some implementations
//     do not clear them.
//   - Compare and exchange fails only where the element differs.
//   - Integer division by 0 gives the dividend, and 0 remains; the least i32
//     divided by -1 is itself. The language defines this, and the compilers guard
//     divisors that are not constant.
//
// # What does not
//
//   - Division may be off by 2.5 units in the last place, inverseSqrt by 2, and
//     sqrt by as much as its inverse is.
//   - Fma may be rounded twice where the device has no fused one, and the
//     expansions then lose some of their accuracy: exp is off by 8 units and erfc
//     by 40. Target.Unfused makes up for it, at some fifteen operations for each, but
//     for MulAdd, which leaves it to the device.
//   - Subnormal numbers may be taken for 0, in operands and in results.
//   - Compilers may reassociate sums (Metal's and Direct3D's by default, and
//     Mesa's and NVIDIA's take (x+1)-1 for x): then sums that keep track of their own
//     rounding lose that. What the expansions cannot do without, rounding to an
//     integer and what a sum with 1 has lost, is written so that they do not see it.
//   - Compilers may take x - x for 0, also where x is infinite.
//   - Comparisons other than a float with itself, and reductions of subgroups,
//     may take NaN for any number.
//   - An index out of bounds is the kernel's mistake: compilers may or may not
//     bound it.
//   - The subgroup of a lane is its number divided by the size of subgroups, which
//     the language does not promise; devices do it where a workgroup is a multiple
//     of the size along x.
//
// For [NagaGo] the text avoids countLeadingZeros and countTrailingZeros, which
// that compiler gets wrong, and for both nagas the upper half of pack2x16float,
// which Mesa's lavapipe 22.3 loses.
package wgsl
