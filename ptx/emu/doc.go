// Package emu runs PTX on the CPU, as a GPU would, and finds what is wrong with
// it: kernels are tested without a GPU, and on one they are as silent about their
// mistakes as this package is talkative.
//
//	k, err := emu.Build(ptx.SM80, "relu", relu) // or Load(module), Parse(text)
//	m := emu.NewMachine(emu.Config{})
//	x, err := m.Floats("x", data)
//	y, err := m.Alloc("y", 4*len(data))
//	err = m.Launch(ctx, k, emu.Dim{X: blocks}, emu.Dim{X: 128}, 0, x, y, uint32(len(data)))
//	out, err := m.ReadFloats(y, len(data))
//
// What runs is text: that of the builder, byte for byte what the driver gets, or
// what a compiler of CUDA C writes: functions, recursion, calls of addresses, local memory, generic
// addresses, and arrays of the module in global and constant memory ([Machine.Variable] has their
// addresses). A kernel that cannot be read is refused when it is launched ([Kernel.Err] has the
// reason); the others of its module run.
//
// # How it runs
//
// A warp is 32 lanes in step; a register is an array of 32 numbers, and an
// instruction one loop over arrays, decoded when the kernel is loaded. Lanes that
// went different ways run the lowest place of the text first, and join where they
// meet. A warp runs until it waits; blocks run one after the other, and at the
// same time where one waits for another, or sleeps. [Config] has other orders, of
// which all are right. Everything is deterministic.
//
// Arithmetic is that of PTX to the bit, but for what PTX leaves open: approximate
// functions are computed in float64 and rounded once, and so are the sums of tensor
// cores, whose order no device states. A division of integers by 0 gives all ones,
// a remainder the dividend.
//
// What is asynchronous happens as late as it may: copies (cp.async, bulk copies,
// tensor copies) land when somebody waits for them or nobody can go on, and
// products of warpgroups are computed when they are waited for.
//
// # What it finds
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
// # What it does not do
//
// It is no judge of speed, of occupancy, or of what ptxas accepts, and it shows no
// value that only weak memory brings about: it reports the race instead. Textures,
// printf and what else the device runs by itself are not supported, nor are copies to several blocks of
// a cluster, and clusters that do not lie along x: Launch says so. Memory of 4 bytes takes 48 more where races are looked
// for, once it was used.
package emu
