// Package ptx writes PTX, the assembly language of NVIDIA's GPUs, from Go: a
// kernel is a Go function that calls a [Kernel], and what comes out is text that
// the driver takes. It needs no toolkit and no GPU.
//
//	m := ptx.NewModule(ptx.SM80)
//	m.Kernel("relu", func(k *ptx.Kernel) {
//		x, y := ptx.GlobalParam[ptx.F32](k, "x"), ptx.GlobalParam[ptx.F32](k, "y")
//		n := ptx.Param[ptx.U32](k, "n")
//		i := k.Special(ptx.CtaidX).MulAdd(k.Special(ptx.NtidX), k.Special(ptx.TidX))
//		k.If(i.Lt(n), func() {
//			y.At(i).Store(x.At(i).Load().Max(ptx.F(0)))
//		})
//	})
//	text, err := m.PTX()
//
// # Values
//
// [U32], [S32], [B32], [F32], [F16], [F16x2], [Pred] and their like are registers
// of a thread: handles, small and passed by value. An operation that a type
// lacks does not compile, and neither do types that do not fit. The zero of each
// type is the number 0, and [U], [S], [F] and their like make constants. A value
// never changes; [Var] is a register that does. Constants fold, and so does
// arithmetic that changes nothing.
//
// # Control flow
//
// Go code runs while the kernel is built: a Go loop unrolls. [Kernel.If],
// [Kernel.For], [Kernel.While] and [Kernel.Loop] run on the device, [Kernel.When]
// predicates single instructions, and [Label] is there for the rest.
//
// # Memory
//
// [Global] and [Shared] point to elements of a type, [Remote] to those of another
// block of the cluster. A constant offset costs no instruction, and [Global.Hint]
// says how the caches are to be used. [SharedArray] is sized by the kernel,
// [DynamicShared] by the launch, which [Kernel.SharedBytes] tells how much.
//
// # Tensor cores and copies that do not wait
//
// [LoadMatrix4] and the Mma methods are for one warp, from sm_75 or sm_80 on;
// [NewTile] and the Wgmma methods for four, on sm_90a. [CopyAsync] brings tiles on
// sm_80, [TensorLoad] and [BulkLoad] on sm_90, where an [MBarrier] tells when they
// are there. [Kernel.Raw] writes what has no name here.
//
// # Targets
//
// A module is made for a [Target]. An instruction that the target lacks is a
// mistake at the line that asks for it; the text declares the lowest version of
// PTX that has everything in it, so that old drivers take it.
//
// # Mistakes
//
// The first mistake of a module is kept, with the author's file and line, and
// returned by [Module.PTX]; what follows is ignored. [Module.Verify] finds what
// single calls cannot show: registers read before they are written, barriers that
// not all threads reach, products of warpgroups that are not waited for. It tells
// lines after [Module.RecordPositions]. [Module.Apply] runs single passes, those
// that rewrite among them: none of them runs unless asked for.
//
// The same calls give the same bytes, always. A module belongs to one goroutine.
package ptx

//go:generate go run ./internal/gen
