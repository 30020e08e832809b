// Package kernel is a small structured language for kernels, embedded in Go. A
// kernel is a Go function that is called once to build a program; the program
// prints as WGSL, lowers to PTX and runs on the CPU, where a checking mode
// finds races, accesses out of bounds and reads of what was never written.
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
// # Values
//
// [F32], [I32], [U32], [Bool], [F16] and the vectors [Vec2F] ... [Vec4B] are
// values on the device: handles of instructions, small and passed by value.
// Types that do not fit do not compile. The zero of each type is the number 0
// (false), and [F], [I], [U], [N], [B] and [H] make constants; neither needs
// a builder. Constants fold, and equal computations are done once.
//
// # Control flow
//
// Go code runs while the kernel is built: a Go loop unrolls, a Go if chooses
// code, a Go variable names a value. [Builder.If], [Builder.For],
// [Builder.While] and [Builder.Loop] run on the device. What a value computed
// within one of their functions is may not be used outside; a [Var] carries
// values out of blocks and around loops. Private arrays are Go slices of Var:
// see [NewVars].
//
// # Memory
//
// Buffers are bound in the order of [Input], [Output], [InOut] and [Atomic];
// [Shared] and [SharedAtomic] are arrays of a workgroup. Parameters are the
// fields of a Go struct, named by pointer. An index is in elements and must be
// within bounds: what happens otherwise is not defined beyond that no other
// buffer is touched.
//
// # Specialisation
//
// A build function closes over what it is specialised by; [Family] keeps one
// kernel for each value of a comparable type.
//
// # Mistakes
//
// A mistake never panics: the first one sticks, with the author's file and
// line, and [Kernel.Err] and every use of the kernel report it as an [*Error].
package kernel

//go:generate go run ./internal/gen
