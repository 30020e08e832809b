// Package interp runs programs of package ir on the CPU: fast, as the CPU
// device does for users' kernels, or with checks, as tests do for every kernel.
//
//	k, err := interp.Compile(program, interp.Limits{})
//	err = k.Run(ctx, interp.Launch{Grid: grid, Buffers: memory, Params: params, Runner: interp.Goroutines(8)})
//	findings, err := k.Check(ctx, launch, interp.Checks{})
//
// # How it runs
//
// A workgroup is run by one goroutine, all its lanes in step. Vectors are taken apart; each
// component of a value is a register, a plane with 4 bytes for each lane, and an instruction is one
// loop over planes. Registers are allocated by lifetime so that the registers of a workgroup stay
// in the first- or second-level cache. Uniform values (parameters, indices in the grid, counters of
// loops with uniform bounds, and values computed or loaded from them) are computed once. Arithmetic
// also runs for inactive lanes, because their results are not used; memory and variables use masks,
// which cost nothing while all lanes are active. Consecutive elements are copied together. Small
// workgroups whose lanes do not interact run several at a time.
//
// Results equal those of package ir bit for bit: every instruction rounds to float32, Fma once, and
// those of F16 once more to half. Functions (exp, tanh, erf and others) are computed in float64 and
// are within 0.6 units of the last place. Counts of shifts are taken modulo 32. Variables and
// workgroup memory read as 0 before they are written. The lanes of an instruction store in order,
// the highest last.
//
// # Memory
//
// A lane sees its own stores at once, the other lanes of its workgroup see them after a barrier,
// and other workgroups after the launch. Atomic operations on buffers are atomic between all
// workgroups and do not order other accesses. Workgroups may run in any order and at the same time;
// kernels in which a workgroup waits for another one hang on some devices, and here end by their loop
// budget. For a kernel with races, Run computes one of the possible results.
//
// For every program, Run and Check access only the given buffers, within their bounds, return when ctx
// ends, and never panic. An index
// out of bounds, a loop beyond its budget, and a barrier or subgroup operation
// that not all lanes reach end a launch with a [*Finding].
//
// # Findings of the checker
//
// Check runs the lanes of a workgroup a few at a time, in several orders and,
// for kernels that use subgroups, with several sizes of them. It reports
//
//   - [Race]: two lanes use an element, one of them writes it, and they belong to
//     different workgroups or no barrier lies between the accesses. Lockstep
//     within a subgroup does not order accesses, and it is a race even if both
//     lanes write the same value. Atomic operations do not race with each other,
//     except that in workgroup memory an atomic store races with operations of
//     other lanes on the element.
//   - [OutOfBounds], and [IndexOverflow]: an index that is in bounds only because
//     a sum, product or shift in its computation wrapped around. A number that
//     wraps and comes back (x - 1 + 1) gives no finding, nor does a number that
//     was masked, shifted right or taken modulo another, as in hashes.
//   - [Uninitialised]: reads of variables, workgroup memory, and buffers that the
//     caller marks, before they are written.
//   - [DivergentBarrier], [DivergentSubgroup], [NotUniform], [ShuffleRange].
//   - [Budget], [CounterOverflow], [Aliased], and on request [OrderDependent].
//
// The checker finds races and uninitialised reads from accesses, not from values: one run finds a
// race with any order of lanes. It cannot find defects in code that the operands of the run do not reach,
// so launches in tests should have awkward sizes. Nor can it find results that depend on the order of
// atomic operations, except with Checks.Deterministic, or effects of hardware outside of this model, such as
// flushing subnormal numbers. Check also runs dead code, which Run removes. A workgroup cannot read a buffer
// without atomics that another workgroup writes with them, because a Program declares a whole buffer as
// atomic or not.
//
// Checking costs some 10 to 50 ns for each instruction and lane, and some 50
// bytes for each component of memory that is touched.
package interp
