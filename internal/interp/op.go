package interp

import "github.com/rayo-go/rayo/internal/ir"

// opKind says how an op runs.
type opKind uint8

const (
	opPlane     opKind = iota // fn over operands
	opSetMasked               // d = a where the lane is active

	opLoad    // planes from elements at index a
	opLoadOne // the element at the uniform index a
	opLoadRow // planes from consecutive elements: index a grows by 1 a lane
	opStore   // elements at index a from planes
	opStoreRow
	opAtomic
	opUniformLoad

	opBarrier
	opReduce // subgroup operations
	opScan
	opShuffle
	opShuffleXor
	opFirst

	opIf // on a plane
	opElse
	opEndIf
	opIfOne // on a uniform condition
	opJump
	opEndOne
	opFor
	opEndFor
	opForOne
	opEndForOne
	opLoop
	opEndLoop
	opBreak
	opContinue
	opReturn
)

// op is one step of a compiled kernel. Registers are byte offsets into the
// register file.
type op struct {
	kind   opKind
	blocks int // of a plane function
	fn     planeFunc
	d      uintptr
	arg    [3]uintptr
	stride [3]uintptr // bytes from one block of an operand to the next
	imm    uint32
	jump   int // where to go instead of on
	outer  int // where to go if no lane is active: the end of the block around
	frame  int
	mem    *access
	fold   laneFunc // how a subgroup operation combines lanes
	value  ir.Value
}

// access describes the memory access of an op.
type access struct {
	shared bool
	slot   int // of the binding or workgroup array
	width  int
	half   bool // elements have 16 bits
	signed bool
	comp   [4]uintptr // the components of the value
	op     uint8      // the atomic operation
	result bool       // an atomic operation has a value
}

// reg is a register before places are given out: n is a plane, ^n a uniform
// block.
type reg int32

func (r reg) uniform() bool { return r < 0 }
