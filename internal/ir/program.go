package ir

import "github.com/rayo-go/rayo/internal/incomparable"

// Program is a kernel: structured code that every lane of every workgroup of a
// grid runs, over bound buffers. Package kernel builds programs; package wgsl
// prints them, package ptx lowers them and internal/interp runs them.
//
// The code is a flat list in order of execution. The number of an instruction is its index
// ([Value]); its operands come before it, in its own block or an enclosing one. [For], [Loop],
// [If], [Else] and [End] delimit blocks. The list contains no pointers, so building and printing
// are cheap, and equal programs have equal bytes.
type Program struct {
	Name  string
	Local [3]uint32 // lanes of a workgroup along x, y and z; all at least 1

	// PreferRegisters is a hint: lanes get all registers that they need, even if fewer lanes can
	// run at a time.
	PreferRegisters bool

	Bindings []Binding // storage buffers, in the order in which they are bound
	Uniforms []Uniform // scalar parameters, in the order of their offsets
	Shared   []Array   // workgroup memory
	Vars     []Var     // variables of a lane

	// Code[0] is a placeholder, so that Value 0 means no value.
	Code []Instr

	// Budget is the maximum number of iterations of a loop that is not marked Bounded, each time
	// that it is entered. The loop then ends as if by Break, which is a finding if findings are
	// reported.
	Budget uint32

	// Pos, if not nil, has the program counter of the author's call for each
	// instruction: see [Position].
	Pos []uintptr

	// Text, if not nil, replaces Code, which is then empty.
	Text *Text
}

// Value is the number of an instruction of a program, and denotes the value that it computes. 0
// means no value.
type Value uint32

// Instr is an instruction. Code determines which fields are used.
type Instr struct {
	Code  Code
	Type  Type  // type of the value, Invalid if there is none
	Width uint8 // components of the value: 1, 2 or 4
	Flag  uint8
	Args  [3]Value
	Imm   uint32
}

// Binding is a storage buffer: an array of vectors of Width elements of Type. Its length is that of
// the bound array.
type Binding struct {
	_ incomparable.Type

	Name   string
	Type   Type // F32, I32, U32 or F16
	Width  uint8
	Access Access
}

// Access says how a kernel uses a buffer.
type Access uint8

// The ways to use a buffer.
const (
	ReadOnly  Access = iota + 1
	WriteOnly        // never read by the kernel; elements that it does not write keep their values
	ReadWrite
	Atomic // only used by AtomicOp; Type is U32 or I32
)

// Uniform is a scalar parameter: F32, I32 or U32, four bytes at Offset of the
// parameter block.
type Uniform struct {
	Name   string
	Type   Type
	Offset uint32
}

// Array is an array in workgroup memory. Its elements are undefined until they are written.
type Array struct {
	_ incomparable.Type

	Name   string
	Type   Type
	Width  uint8
	Len    uint32 // number of vectors of Width elements
	Atomic bool
}

// Var is a variable of a lane. It is undefined until it is written. Lanes have no arrays: the
// builder replaces them by variables with the same name.
type Var struct {
	_ incomparable.Type

	Name  string
	Type  Type
	Width uint8
}

// The codes of instructions, in addition to those of expressions. The latter have the same meaning
// in programs, and work on vectors by component. (Arg and Param do not occur. A Const has its bits
// in Imm, in float32 also for F16, and Width 1.)
const (
	// Values that a lane gets.

	// BuiltIn is the U32 value that Flag names ([BuiltInLocalX] ...).
	BuiltIn Code = numCodes + 32 + iota
	// Param32 is Uniforms[Imm].
	Param32
	// Len is the number of elements of Bindings[Imm], a U32.
	Len

	// Memory. Loads are ordered with stores and barriers.

	Load        // Bindings[Imm][Args[0]]
	Store       // Bindings[Imm][Args[0]] = Args[1]
	LoadShared  // Shared[Imm][Args[0]]
	StoreShared // Shared[Imm][Args[0]] = Args[1]
	LoadVar     // Vars[Imm]
	StoreVar    // Vars[Imm] = Args[0]
	// AtomicOp applies Flag ([AtomicAdd] ...) to element Args[0] of Bindings[Imm] with Args[1].
	// AtomicCompareExchange stores Args[2] if the element equals Args[1]. The value is the old
	// element; AtomicStore has no value.
	AtomicOp
	AtomicOpShared // likewise for Shared[Imm]
	// UniformLoad is Shared[Imm][Args[0]], with the same index in every lane, after a barrier and
	// before another one. Its value is known to be uniform.
	UniformLoad

	// Vectors.

	Splat   // Width components equal to Args[0]
	Compose // Width 2: Args[0], Args[1]; 4: and Args[2], Value(Imm)
	Extract // component Flag of Args[0]
	Dot     // sum of the products of the components of F32 or F16 vectors

	// Integers.

	IDiv // Args[0] / Args[1] towards 0; x/0 is x, and the least I32 / -1 is itself
	IMod // Args[0] - Args[1]*IDiv; 0 where Args[1] is 0 or IDiv overflows
	CountOnes
	LeadingZeros
	TrailingZeros
	ReverseBits
	MulHigh // upper half of the 64-bit product of two U32

	Dot4I8     // I32: sum of the products of the 4 signed bytes of two U32, plus I32 Args[2]
	Dot4U8     // U32: likewise unsigned, plus U32 Args[2]
	PackHalf   // U32 from F32 vec2, first in the low half, rounded to nearest even
	UnpackHalf // F32 vec2 from U32
	PackI8     // U32 from I32 vec4, the low byte of each, first lowest
	UnpackI8   // I32 vec4 from U32, sign extended
	UnpackU8   // U32 vec4 from U32

	// Subgroups. A target without subgroups has subgroups of one lane, for which reductions and
	// shuffles are the identity. Kernels must be correct for any size that is a power of two up to
	// 128. All lanes of the workgroup must be active.

	SubgroupOp      // reduction by Flag ([ReduceAdd] ...), the same in every lane of the subgroup
	SubgroupScan    // exclusive prefix by Flag (ReduceAdd only)
	SubgroupShuffle // Args[0] of lane Args[1] of the subgroup
	SubgroupXor     // Args[0] of the lane whose number differs by Imm, a power of two
	SubgroupFirst   // Args[0] of the lowest lane

	// Statements.

	// Barrier waits for all lanes of the workgroup, and makes their stores to workgroup memory and
	// buffers visible to each other. It must be in uniform control flow.
	Barrier
	// If runs the block up to its Else or End if Args[0], a Bool, is true. Imm is the index of the
	// Else or End.
	If
	// Else begins the other block. Imm is the index of the End.
	Else
	// For runs its block for i = Args[0], Args[0]+Args[2] ... while i < Args[1]. The three operands
	// are evaluated once. Its value is i, of type I32 or U32. Imm is the index of the End, and Flag
	// is Bounded or 0. A sum that overflows ends the loop.
	For
	// Loop repeats its block until Break or Return. Imm is the index of the End, and Flag is
	// Bounded or 0.
	Loop
	// End closes a block. Imm is the index of the If, For or Loop.
	End
	Break    // leaves the innermost loop; Imm is its index
	Continue // continues with the next iteration of the innermost loop; Imm is its index
	Return   // ends the lane

	numInstrCodes
)

// Bounded marks a For or Loop that is known to end.
const Bounded = 1

// Loose marks an Fma that may round the product on devices without a fused instruction, and a Min
// or Max whose operands are never NaN.
const Loose = 1

// The values of Flag of a BuiltIn. X, Y and Z are consecutive.
const (
	BuiltInLocalX uint8 = iota // position in the workgroup
	BuiltInLocalY
	BuiltInLocalZ
	BuiltInGroupX // position of the workgroup in the grid
	BuiltInGroupY
	BuiltInGroupZ
	BuiltInGroupsX // size of the grid in workgroups
	BuiltInGroupsY
	BuiltInGroupsZ
	BuiltInLane         // x + Local[0]*(y + Local[1]*z) in the workgroup
	BuiltInSubgroupSize // lanes of a subgroup
	BuiltInSubgroupLane // Lane % SubgroupSize
	BuiltInSubgroup     // Lane / SubgroupSize
)

// The values of Flag of an atomic operation.
const (
	AtomicLoad uint8 = iota
	AtomicStore
	AtomicAdd
	AtomicSub
	AtomicMin
	AtomicMax
	AtomicAnd
	AtomicOr
	AtomicXor
	AtomicExchange
	AtomicCompareExchange
)

// The values of Flag of a SubgroupOp. The order of a floating-point sum is fixed for a device and a
// subgroup size, but otherwise undefined.
const (
	ReduceAdd uint8 = iota
	ReduceMin
	ReduceMax
	ReduceAnd // integers and Bool
	ReduceOr  // integers and Bool
)
