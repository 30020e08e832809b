// Package portable holds the operations of package op as portable kernels, written
// in package kernel: one definition that prints as WGSL, lowers to PTX and runs
// on the CPU. [For] returns the launches that compute an operation.
//
// A file here is one family of operations. It enters itself ([register]) with a
// plan, which turns a request into launches, and a table of variants: the
// literals that its kernels are specialised by, each with the sizes and devices
// that it is for. Adding an operation is adding a file.
//
// # Guarantees of the kernels
//
// Results do not depend on the number or order of running workgroups: the order of a sum depends
// only on the sizes, the variant and the subgroup size. Results meet the tolerances of package op.
// Kernels test for NaN and infinities by their bits, because compilers for GPUs may assume that
// there are none. Grids may have any number of workgroups: beyond 65,535 they are folded into two
// dimensions.
package portable
