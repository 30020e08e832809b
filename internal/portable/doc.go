// Package portable holds the operations of package op as portable kernels, written
// in package kernel: one definition that prints as WGSL, lowers to PTX and runs
// on the CPU. [For] returns the launches that compute an operation.
//
// Each file is one family of operations. It registers a plan, which turns a request into launches,
// and a table of variants. A variant gives the constants that specialise its kernels, and the sizes
// and devices that it suits. To add an operation, add a file.
//
// # Guarantees of the kernels
//
// Results do not depend on the number of workgroups or on the order in which they run: the order of
// a sum depends only on the sizes, the variant and the subgroup size. Results meet the tolerances
// of package op. Kernels test for NaN and infinities by their bits, because compilers for GPUs may
// assume that no number is NaN or infinite. A grid may have any number of workgroups: above 65,535
// it is folded into two dimensions.
// dimensions.
package portable
