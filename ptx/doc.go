// Package ptx generates PTX, the assembly language of NVIDIA GPUs, from Go. A kernel is a
// Go function that calls the methods of a [Kernel]; the result is text for the CUDA
// driver. The package needs neither the CUDA toolkit nor a GPU.
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
// [U32], [S32], [B32], [F32], [F16], [F16x2], [Pred] and similar types are registers of a thread.
// They are small handles and are passed by value. The Go compiler rejects operations that a type
// does not have, and operands of different types. The zero value of each type is the number 0; [U],
// [S], [F] and similar functions make constants. A value never changes; [Var] is a register that
// can change. Operations on constants and operations without effect are folded.
//
// # Control flow
//
// Go code runs while the kernel is built, so that a Go loop unrolls. [Kernel.If],
// [Kernel.For], [Kernel.While] and [Kernel.Loop] generate control flow of the device.
// [Kernel.When] predicates single instructions, and [Label] allows any other branch.
//
// # Memory
//
// [Global] and [Shared] point to elements of a type in global and shared memory, and
// [Remote] points to shared memory of another block of the cluster. A constant offset
// costs no instruction. [Global.Hint] sets the cache policy. The kernel sets the size of a
// [SharedArray]; the launch sets the size of [DynamicShared], and [Kernel.SharedBytes]
// reports the size that the launch has to pass.
//
// # Tensor cores and asynchronous copies
//
// [LoadMatrix4] and the Mma methods work in one warp, from sm_75 or sm_80 on. [NewTile]
// and the Wgmma methods work in four warps, on sm_90a. [CopyAsync] copies tiles on sm_80;
// [TensorLoad] and [BulkLoad] do so on sm_90 and signal completion through an [MBarrier].
// [Kernel.Raw] writes instructions for which the package has no method.
//
// # Targets
//
// A module is built for a [Target]. An instruction that the target does not have is a
// mistake, reported with the line that uses it. The text declares the lowest PTX version
// that has all its instructions, so that old drivers accept it.
//
// # Mistakes
//
// A module keeps the first mistake, with the author's file and line, ignores all later
// calls, and returns the mistake from [Module.PTX]. [Module.Verify] finds mistakes that
// single calls cannot show: registers read before they are written, barriers that not all
// threads reach, warpgroup products without a wait. It reports lines after
// [Module.RecordPositions]. [Module.Apply] runs single passes. Passes that rewrite a kernel
// run only on request.
//
// The same calls always give the same bytes. A module must not be used by several
// goroutines at the same time.
package ptx

//go:generate go run ./internal/gen
