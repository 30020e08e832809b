// Package ptxkernels holds kernels written in PTX. They use features of NVIDIA's GPUs that the
// kernels of package portable cannot use, or cannot use fast enough: tensor cores, asynchronous
// bulk copies, rows that stay in registers.
//
// [For] takes the same request as [portable.For] and returns the launches that compute it. If no
// native kernel supports the request, or none is faster than the portable kernel, the error wraps
// [op.ErrUnsupported]; use the portable kernel then.
//
// Each file registers one family of operations: the supported sizes, the choice of a variant for a
// device, and the code. Tests run every variant in the emulator, with its checks on, and compare
// with the reference of package op.
package ptxkernels
