package ir

// Program is a kernel: structured code that every lane of every workgroup of a
// grid runs, over bound buffers. Package kernel builds programs; package wgsl
// prints them, package ptx lowers them and internal/interp runs them.
//
// The code is one flat list in order of execution. An instruction is named by
// its place ([Value]); its operands come before it, in its own block or one
// around it. Blocks are bracketed by [For], [Loop], [If], [Else] and [End]. There
// are no pointers in it, so building and printing cost little, and equal
// programs are equal bytes.
type Program struct {
	Name  string
	Local [3]uint32 // lanes of a workgroup along x, y and z; all at least 1

	// PreferRegisters is a hint: lanes get all registers that they need, although fewer run
	// at a time then.
	PreferRegisters bool

	Bindings []Binding // storage buffers, in the order in which they are bound
	Uniforms []Uniform // scalar parameters, in the order of their offsets
	Shared   []Array   // workgroup memory
	Vars     []Var     // variables of a lane

	// Code[0] is an instruction without meaning, so that Value 0 is none.
	Code []Instr

	// Budget is how often a loop that is not marked Bounded may turn for each
	// time that it is entered; it then ends as if by Break, and where findings
	// are reported, this is one.
	Budget uint32

	// Pos, if not nil, has the program counter of the author's call for each
	// instruction: see [Position].
	Pos []uintptr

	// Text, if not nil, stands in the place of Code, which is empty then.
	Text *Text
}

// Value names an instruction of a program, and the value that it computes. 0
// is none.
type Value uint32

// Instr is one instruction. Which fields mean something depends on Code.
type Instr struct {
	Code  Code
	Type  Type  // of the value, Invalid if there is none
	Width uint8 // components of the value: 1, 2 or 4
	Flag  uint8
	Args  [3]Value
	Imm   uint32
}

// Binding is a storage buffer: an array of elements of Type in vectors of
// Width, as many as are bound.
type Binding struct {
	Name   string
	Type   Type // F32, I32, U32 or F16
	Width  uint8
	Access Access
}

// Access tells how a kernel uses a buffer.
type Access uint8

// The ways to use a buffer.
const (
	ReadOnly  Access = iota + 1
	WriteOnly        // never read by the kernel; what it does not write keeps its value
	ReadWrite
	Atomic // only by AtomicOp, Type is U32 or I32
)

// Uniform is a scalar parameter: F32, I32 or U32, four bytes at Offset of the
// parameter block.
type Uniform struct {
	Name   string
	Type   Type
	Offset uint32
}

// Array is an array in workgroup memory, undefined until written.
type Array struct {
	Name   string
	Type   Type
	Width  uint8
	Len    uint32 // elements (vectors of Width)
	Atomic bool
}

// Var is a variable of a lane, undefined until written. Arrays of a lane do not
// exist: the builder unrolls them into variables, which have the same name.
type Var struct {
	Name  string
	Type  Type
	Width uint8
}

// The codes of instructions beyond those of expressions, which mean the same
// here and work on vectors by component. (Arg and Param do not occur; a Const
// has its bits in Imm, float32 bits for F16 too, and Width 1.)
const (
	// Values that a lane is given.

	// BuiltIn is what Flag names ([BuiltInLocalX] ...), a U32.
	BuiltIn Code = numCodes + 32 + iota
	// Param32 is Uniforms[Imm].
	Param32
	// Len is the number of elements of Bindings[Imm], a U32.
	Len

	// Memory. Loads are in order with stores and barriers.

	Load        // Bindings[Imm][Args[0]]
	Store       // Bindings[Imm][Args[0]] = Args[1]
	LoadShared  // Shared[Imm][Args[0]]
	StoreShared // Shared[Imm][Args[0]] = Args[1]
	LoadVar     // Vars[Imm]
	StoreVar    // Vars[Imm] = Args[0]
	// AtomicOp applies Flag ([AtomicAdd] ...) to element Args[0] of
	// Bindings[Imm] with Args[1], and for AtomicCompareExchange stores Args[2] if
	// the element equals Args[1]. The value is the one before; AtomicStore has
	// none.
	AtomicOp
	AtomicOpShared // likewise Shared[Imm]
	// UniformLoad is Shared[Imm][Args[0]], the same index in every lane, after
	// a barrier and before another: its value is known to be uniform.
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

	// Subgroups. A target without them has subgroups of one lane: reductions
	// and shuffles are the identity there. Kernels must hold for any size that
	// is a power of two up to 128. All lanes of the workgroup must be active.

	SubgroupOp      // reduction by Flag ([ReduceAdd] ...), the same in every lane of the subgroup
	SubgroupScan    // exclusive prefix by Flag (ReduceAdd only)
	SubgroupShuffle // Args[0] of lane Args[1] of the subgroup
	SubgroupXor     // Args[0] of the lane whose number differs by Imm, a power of two
	SubgroupFirst   // Args[0] of the lowest lane

	// Statements.

	// Barrier waits for all lanes of the workgroup and makes their stores to
	// workgroup memory and to buffers visible to each other. It stands in
	// uniform control flow.
	Barrier
	// If runs the block up to its Else or End where Args[0], a Bool, holds. Imm is
	// the place of that Else or End.
	If
	// Else begins the other block. Imm is the place of the End.
	Else
	// For runs its block with its own value, of type I32 or U32, at Args[0],
	// Args[0]+Args[2] ... while less than Args[1] (all evaluated once, before).
	// Imm is the place of the End. Flag is Bounded or 0. A sum that overflows ends the loop.
	For
	// Loop repeats its block until Break or Return. Imm is the place of the End. Flag is
	// Bounded or 0.
	Loop
	// End closes a block. Imm is the place of the If, For or Loop.
	End
	Break    // leaves the innermost loop; Imm is its place
	Continue // goes on with the next turn of the innermost loop; Imm is its place
	Return   // ends the lane

	numInstrCodes
)

// Bounded marks a For or Loop that is known to end.
const Bounded = 1

// Loose marks an Fma that may round the product too, on devices that would have to make
// up for it, and a Min or Max of which no operand is NaN.
const Loose = 1

// The values of Flag of a BuiltIn. X, Y and Z follow each other.
const (
	BuiltInLocalX uint8 = iota // place in the workgroup
	BuiltInLocalY
	BuiltInLocalZ
	BuiltInGroupX // place of the workgroup in the grid
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

// The values of Flag of a SubgroupOp. The order of a floating-point sum is not
// defined beyond being fixed for a device and a subgroup size.
const (
	ReduceAdd uint8 = iota
	ReduceMin
	ReduceMax
	ReduceAnd // integers and Bool
	ReduceOr  // likewise
)
