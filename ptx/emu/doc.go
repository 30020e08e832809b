// Package emu runs PTX on the CPU and reports defects that a GPU does not report. Use it to test
// kernels without a GPU.
//
//	k, err := emu.Build(ptx.SM80, "relu", relu) // or Load(module), Parse(text)
//	m := emu.NewMachine(emu.Config{})
//	x, err := m.Floats("x", data)
//	y, err := m.Alloc("y", 4*len(data))
//	err = m.Launch(ctx, k, emu.Dim{X: blocks}, emu.Dim{X: 128}, 0, x, y, uint32(len(data)))
//	out, err := m.ReadFloats(y, len(data))
//
// It runs PTX text: the builder's text, exactly as the driver gets it, or the output of a CUDA C
// compiler. It supports functions, recursion, indirect calls, local memory, generic addresses, and
// arrays of the module in global and constant memory ([Machine.Variable] has their addresses). The
// launch of an unsupported kernel returns an error ([Kernel.Err] has the reason); other kernels of
// its module run.
//
// # How it runs
//
// A warp is 32 lanes in step; a register is an array of 32 numbers, and an instruction one loop
// over arrays, decoded when the kernel is loaded. After a divergent branch, the lanes at the lowest
// position in the text run first, and lanes reconverge when they reach the same position. A warp
// runs until it waits. Blocks run one after the other, but interleaved if one waits for another or
// sleeps. [Config] has other valid orders. Every run is deterministic.
//
// Arithmetic follows PTX bit for bit, except where PTX does not define the result: approximate
// functions are computed in float64 and rounded once, and so are the sums of tensor cores, whose
// order is not documented. A division of integers by 0 gives all ones, a remainder the dividend.
//
// Asynchronous operations complete as late as possible: copies (cp.async, bulk copies, tensor
// copies) complete when a thread waits for them or no warp can continue, and products of warpgroups
// are computed when a warp waits for them.
//
// # Findings
//
// [Machine.Launch] returns [Findings]. Each has a kind, the instruction, the thread, and the
// author's line if positions were recorded, as [Build] does.
//
//   - [Race]: two threads access a byte, one of them writes, and no chain of barriers, mbarriers, bar.warp.sync, or
//     fence, strong access and fence orders the accesses. That the lanes of a warp run in lockstep orders nothing,
//     unless they store the same value with one instruction. The check uses vector clocks, so that nearly always a
//     single run finds a race, whatever the order. It remembers the last two writes and two reads of each word.
//   - [OutOfBounds], [Misaligned]: in shared memory there are gaps between arrays, no array begins at 0, and none is
//     aligned better than declared.
//   - [Uninitialised]: loads of memory that was never written, and uses of undefined registers as addresses,
//     conditions, or stored values. Other computations with undefined registers are allowed.
//   - [DivergentBarrier], [DivergentWarp], [Deadlock], [Budget].
//   - [MissingWait]: a use of memory that an asynchronous instruction writes or reads, before the wait for it; and
//     memory that the async proxy reads without a fence.proxy.async after the write.
//   - [BadOperand]: an operand for which the device's behaviour is undefined or an error.
//   - [StackOverflow]: nested calls for which a thread needs more than 512 KiB. A device has 1 KiB for each thread by
//     default.
//
// Local memory and parameters of functions are treated like registers: undefined values may be
// loaded, and their use is a finding.
//
// A launch continues after a finding, but only for some seconds.
//
// [Stats] counts instructions, requests and 32-byte sectors of global memory, and passes and bank
// conflicts of shared memory, for the launch and for each line.
//
// # Limits
//
// The emulator does not measure speed or occupancy, and does not check whether ptxas accepts the text. It does not
// produce values that only a weak memory model allows: it reports the race instead. Launch returns an error for
// unsupported features: textures, printf and other calls of the device runtime, copies to several blocks of a cluster,
// and clusters that do not lie along x. Race checking takes 48 bytes for each accessed word of 4 bytes.
package emu
