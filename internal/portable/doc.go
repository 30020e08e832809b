// Package portable holds the operations of package op as portable kernels, written
// in package kernel: one definition that prints as WGSL, lowers to PTX and runs
// on the CPU. [For] returns the launches that compute an operation.
//
// A file here is one family of operations. It enters itself ([register]) with a
// plan, which turns a request into launches, and a table of variants: the
// literals that its kernels are specialised by, each with the sizes and devices
// that it is for. Adding an operation is adding a file.
//
// # What the kernels keep
//
// Results do not depend on how many workgroups a device runs at once, nor on
// which ends first: sums are made in an order that follows from the sizes, the
// variant and the subgroup size alone. They meet the tolerances of package op.
// NaN and infinities are told by their bits where an operation gives them a
// meaning, as compilers for GPUs may assume that there are none. Grids may have
// any number of workgroups: beyond 65,535 they are folded into two dimensions.
package portable
