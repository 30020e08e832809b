// Package ptxkernels holds kernels that are written in PTX, for what NVIDIA's GPUs
// can do and the portable kernels of package portable cannot say or do not say fast
// enough: tensor cores, copies by the hardware, rows that stay in registers.
//
// [For] takes the request that [portable.For] takes and returns the launches that
// compute it. Where it has none, or none that is faster, its error wraps
// [op.ErrUnsupported], and the portable kernel is the one to use.
//
// Each file has one family of operations and registers it: what sizes it takes,
// which variant it chooses on which device, and the code. Tests run every variant
// in the emulator, with its checks on, against the reference of op.
package ptxkernels
