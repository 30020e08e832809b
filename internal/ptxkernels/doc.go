// Package ptxkernels holds kernels that are written in PTX, for what NVIDIA's GPUs
// can do and the portable kernels of package portable cannot say or do not say fast
// enough: tensor cores, copies by the hardware, rows that stay in registers.
//
// [For] takes the same request as [portable.For] and returns the launches that compute it. If there
// are none, or none that is faster than the portable kernel, its error wraps [op.ErrUnsupported];
// use the portable kernel then.
//
// Each file registers one family of operations: the supported sizes, the choice of a variant for a
// device, and the code. Tests run every variant in the emulator, with its checks on, and compare
// with the reference of package op.
package ptxkernels
