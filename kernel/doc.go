// Package kernel is a small structured language for kernels, embedded in Go. A kernel is a Go
// function that is called once to build a program. Devices run the program as WGSL or PTX, or on
// the CPU, where a checking mode finds races, accesses out of bounds and reads of unwritten memory.
//
//	type params struct {
//		N     uint32
//		Scale float32
//	}
//
//	var saxpy = kernel.New("saxpy", func(b *kernel.Builder, p *params) {
//		b.LocalSize(256, 1, 1)
//		x := kernel.Input[kernel.F32](b, "x")
//		y := kernel.InOut[kernel.F32](b, "y")
//		i := b.Index()
//		b.If(i.Lt(b.U32(&p.N)), func() {
//			y.Set(i, x.At(i).Fma(b.F32(&p.Scale), y.At(i)))
//		})
//	})
//
// A device of package device compiles the kernel and runs it:
//
//	k, err := dev.Kernel(ctx, saxpy)
//	err = k.Run(ctx, k.GridFor(len(x)), params{uint32(len(x)), 2}, device.In(x), device.InOut(y))
//
// Its method Check runs the kernel in this checking mode.
//
// # Values
//
// [F32], [I32], [U32], [Bool], [F16] and the vectors [Vec2F] ... [Vec4B] are values on the device.
// They are small handles of instructions and are passed by value. The Go compiler rejects operands
// of different types. The zero value of each type is the number 0 (or false); [F], [I], [U], [N],
// [B] and [H] make constants. Zero values and constants need no builder. Operations on constants
// are folded, and equal computations are done once.
//
// # Control flow
//
// Go code runs while the kernel is built: a Go loop unrolls, a Go if chooses code, and a Go
// variable names a value. [Builder.If], [Builder.For], [Builder.While] and [Builder.Loop] run on
// the device. A value that is computed in the function of such a block must not be used outside the
// block. Use a [Var] to carry values out of blocks and from one iteration to the next. Private
// arrays are Go slices of Var: see [NewVars].
//
// # Memory
//
// [Input], [Output], [InOut] and [Atomic] declare buffers, in the order in which a launch binds
// them. [Shared] and [SharedAtomic] declare arrays of a workgroup. Parameters are the fields of a
// Go struct, named by pointer. An index counts elements and must be within bounds. The result of an
// access out of bounds is undefined, but the access never touches another buffer.
//
// # Specialisation
//
// A build function may use variables of the surrounding Go code to specialise a
// kernel. A [Family] keeps one kernel for each value of a comparable type.
//
// # Mistakes
//
// Errors in a kernel never panic. The builder keeps the first error, with the author's file and
// line. [Kernel.Err] and every use of the kernel return it as an [*Error].
package kernel

//go:generate go run ./internal/gen
