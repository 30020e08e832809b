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
//   - Structured control flow becomes branches; Continue, Break and Return leave
//     blocks wherever they stand. Counted loops end where the sum of counter and
//     step overflows, and loops that are not known to end have a budget.
//   - A subgroup is a warp of 32 lanes, in which lanes exchange values by
//     shuffles. The last warp of a workgroup may have fewer lanes.
//   - Arithmetic is rounded as the codes say: products and sums are never fused,
//     division and square root are correctly rounded, Min and Max give NaN where
//     an operand is NaN, subnormal numbers count. Other functions are the
//     expansions of package ir, with the numbers that its [ir.Lower] states; Sin
//     and Cos hold for all numbers.
//   - Half floats are computed in float32 and rounded, which gives what half
//     arithmetic gives; Fma is the instruction for half floats.
//
// A buffer is an address and, where the program asks for it or indices are checked, a length; each
// parameter is one of the kernel's. The text depends only on the program and the options.
package ptxgen
