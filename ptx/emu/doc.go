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
// [Machine.Launch] returns [Findings], each with kind, instruction, thread, and
// the author's line where positions were recorded ([Build] does).
//
//   - [Race]: two threads use a byte, one writes, and no chain of barriers, mbarriers,
//     bar.warp.sync, or fence, strong access and fence orders them. That the lanes of a warp
//     run in step orders nothing, unless they store the same with one instruction. Vector
//     clocks judge what was accessed, not what came out, so that nearly always one
//     run finds a race whatever the order; of the accesses to a word, the last two writes and
//     two reads are remembered.
//   - [OutOfBounds], [Misaligned]: no array in shared memory lies next to another, none
//     begins at 0, and nothing is aligned better than declared.
//   - [Uninitialised]: loads of memory that nobody wrote, and uses of registers that
//     matter: addresses, conditions, and what is stored. Computing with an undefined
//     register and throwing the result away is no mistake.
//   - [DivergentBarrier], [DivergentWarp], [Deadlock], [Budget].
//   - [MissingWait]: a use of what an asynchronous instruction writes or reads
//     before it was waited for, and memory that the async proxy reads with no
//     fence.proxy.async since it was written.
//   - [BadOperand]: what the device leaves undefined or refuses.
//   - [StackOverflow]: calls so deep that a thread needs more than 512 KiB. A device has 1 KiB for each
//     thread unless it is told otherwise.
//
// Local memory and the parameters of functions are as registers: what nobody wrote there may be
// loaded, and its use is found.
//
// A launch goes on after a finding, but not for long: some seconds.
//
// [Stats] counts instructions, requests and 32-byte sectors of global memory, and
// passes and bank conflicts of shared memory, altogether and for each line.
//
// # Limits
//
// The emulator does not measure speed or occupancy, and does not check whether ptxas accepts the text. It does not
// produce values that only a weak memory model allows: it reports the race instead. Launch returns an error for
// unsupported features: textures, printf and other calls of the device runtime, copies to several blocks of a cluster,
// and clusters that do not lie along x. Race checking takes 48 bytes for each accessed word of 4 bytes.
package emu
