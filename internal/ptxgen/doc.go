// Package ptxgen lowers programs ([ir.Program]) to PTX through package ptx. The programs come from
// package kernel and from the portable library, which also makes programs from elementwise
// expressions.
//
//	m := ptx.NewModule(ptx.SM80)
//	e, err := ptxgen.Lower(m, "saxpy", program, ptxgen.Options{})
//	text, err := m.PTX()
//	args := e.Args(nil, addresses, lengths, params)
//
// How the codes of a program become instructions:
//
//   - A value is one register for each component; variables are registers too.
//     Loads and stores of vectors are single accesses.
//   - Structured control flow becomes branches; Continue, Break and Return may be
//     anywhere in a block. Counted loops end if the sum of counter and step
//     overflows, and loops that are not known to end have a budget.
//   - A subgroup is a warp of 32 lanes, in which lanes exchange values by
//     shuffles. The last warp of a workgroup may have fewer lanes.
//   - Arithmetic is rounded as the codes define: products and sums are never fused,
//     division and square root are correctly rounded, Min and Max return NaN if an
//     operand is NaN, and subnormal numbers are kept. Other functions are the
//     expansions of package ir, with the errors that [ir.Lower] states; Sin and Cos
//     are correct for all numbers.
//   - Half floats are computed in float32 and rounded, with the same results as
//     half arithmetic; Fma is the instruction for half floats.
//
// A buffer is an address and, if the program uses it or indices are checked, a length. Each
// parameter of the program is a parameter of the kernel. The text depends only on the program and
// the options.
package ptxgen
