package ptxkernels

import "github.com/rayo-go/rayo/op"

// A rowRule is the schedule of rows of some lengths, for some operations and operands.
type rowRule struct {
	ops          rowOpSet
	operands     rowOperandSet
	above, limit int  // vectors of a row: more than above, up to limit
	lanes        int  // threads of a row
	blocks       int  // minimum number of blocks on a multiprocessor, which bounds the registers; 0: the assembler decides
	packed       bool // a register holds two 16-bit elements
	registers    int  // vectors a thread holds in registers, the rest in shared memory; 0: all in registers
	shared       int  // bytes of shared memory that the device must have
}

// rowOpSet is a set of operations on rows.
type rowOpSet uint8

const (
	reduceRows rowOpSet = 1 << iota // and every operation that is not listed below
	normRows
	softmaxRows
	logSoftmaxRows

	anySoftmax = softmaxRows | logSoftmaxRows
	notLog     = reduceRows | normRows | softmaxRows
	notNorm    = reduceRows | anySoftmax
	anyRows    = reduceRows | normRows | anySoftmax
)

// rowOpsOf returns the set of one operation.
func rowOpsOf(o *op.Operation) rowOpSet {
	switch {
	case isNorm(o):
		return normRows
	case o == op.Softmax:
		return softmaxRows
	case o == op.LogSoftmax:
		return logSoftmaxRows
	}
	return reduceRows
}

// rowOperandSet is a set of combinations of alignment and number of weights: rows are even if
// each begins with a vector of 16 bytes, and ragged otherwise.
type rowOperandSet uint8

const (
	even0 rowOperandSet = 1 << iota
	even1
	even2
	ragged0
	ragged1
	ragged2

	anyEven     = even0 | even1 | even2
	anyRagged   = ragged0 | ragged1 | ragged2
	ragged12    = ragged1 | ragged2 // weights must be shifted to the alignment of the row
	noWeights   = even0 | ragged0
	someWeights = even1 | even2 | ragged12
	twoWeights  = even2 | ragged2
	notShifted  = anyEven | ragged0
	anyOperands = anyEven | anyRagged
)

// rowOperandsOf returns the set of one combination.
func rowOperandsOf(ragged bool, weights int) rowOperandSet {
	if ragged {
		return ragged0 << min(weights, 2)
	}
	return even0 << min(weights, 2)
}

// fits reports whether the rule is for rows of n vectors.
func (r *rowRule) fits(o *op.Operation, ragged bool, weights, n int, d *Device) bool {
	return r.ops&rowOpsOf(o) != 0 && r.operands&rowOperandsOf(ragged, weights) != 0 && n > r.above && n <= r.limit && d.Shared >= r.shared
}

// schedule returns w with the settings of the rule for rows of n vectors.
func (r *rowRule) schedule(w rowSchedule, n int) rowSchedule {
	w = w.by(r.lanes, r.blocks, n)
	w.Packed = r.packed
	if r.registers > 0 && w.Registers > r.registers {
		w.Registers, w.Shared = r.registers, w.Registers-r.registers
	}
	return w
}

// The rules below were the fastest of many on an H200 (measured from 2026-11-21 to 2026-11-23). The
// first rule that fits decides; rows without a rule are streamed. A schedule is fast if a
// multiprocessor has enough loads in flight: from several resident blocks, or from one that reads
// the next row while it processes this one. The minimum of blocks is set where the assembler would
// otherwise use more registers than it needs: for example, a log_softmax of 8191 float32 reaches
// 63% of the speed of a copy without it, and 96% with it.

// floatRowRules are the schedules of rows of float32.
var floatRowRules = []rowRule{
	// Code that selects shifted weights needs registers, so few vectors for each lane leave room
	// for more blocks.
	{ops: anyRows, operands: ragged12, limit: 32 * 8, lanes: 32},
	{ops: anyRows, operands: ragged12, limit: 32 * 9, lanes: 32, blocks: 6},
	{ops: anyRows, operands: ragged12, limit: 128 * 5, lanes: 128, blocks: 10},
	{ops: anyRows, operands: ragged12, limit: 128 * 9, lanes: 128, blocks: 7},
	{ops: anyRows, operands: ragged12, limit: 256 * 5, lanes: 256, blocks: 5},
	{ops: anyRows, operands: ragged12, limit: 256 * 7, lanes: 256, blocks: 4},
	{ops: anyRows, operands: ragged2, above: 256 * 8, limit: 384 * 6, lanes: 384, blocks: 3},
	{ops: anyRows, operands: ragged12, limit: 256 * 9, lanes: 256},
	{ops: anyRows, operands: ragged1, above: 512 * 8, limit: 512 * 9, lanes: 512, blocks: 2},
	// Shared memory takes space from L1, but one vector for each thread does no harm.
	{ops: anyRows, operands: ragged2, above: 512 * 8, limit: 256 * 20, lanes: 256, blocks: 2, registers: 19},

	{ops: anyRows, operands: anyOperands, limit: 1, lanes: 1},
	{ops: anyRows, operands: anyOperands, limit: 2, lanes: 2},
	{ops: anyRows, operands: anyOperands, limit: 4, lanes: 4},
	{ops: anyRows, operands: anyOperands, limit: 8, lanes: 8},
	{ops: anyRows, operands: anyOperands, limit: 16, lanes: 16},
	{ops: anyRows, operands: anyOperands, limit: 32, lanes: 32},
	// Many lanes of a whole warp would be idle.
	{ops: logSoftmaxRows, operands: anyOperands, limit: 40, lanes: 16, blocks: 10},
	{ops: softmaxRows, operands: anyRagged, limit: 40, lanes: 16, blocks: 10},
	{ops: softmaxRows, operands: anyEven, limit: 40, lanes: 16},
	{ops: anyRows, operands: twoWeights, limit: 40, lanes: 16},

	{ops: logSoftmaxRows, operands: anyOperands, limit: 32 * 2, lanes: 32},
	{ops: logSoftmaxRows, operands: anyOperands, limit: 32 * 3, lanes: 32, blocks: 10},
	{ops: logSoftmaxRows, operands: anyOperands, limit: 32 * 5, lanes: 32, blocks: 8},
	{ops: logSoftmaxRows, operands: anyOperands, limit: 32*8 + 1, lanes: 32, blocks: 6},
	{ops: logSoftmaxRows, operands: anyOperands, limit: 128 * 3, lanes: 128, blocks: 10},
	{ops: logSoftmaxRows, operands: anyOperands, limit: 128 * 5, lanes: 128, blocks: 8},
	{ops: logSoftmaxRows, operands: anyOperands, limit: 256 * 3, lanes: 256, blocks: 5},
	{ops: logSoftmaxRows, operands: anyOperands, limit: 256 * 5, lanes: 256, blocks: 4},
	{ops: logSoftmaxRows, operands: anyOperands, limit: 256*8 + 1, lanes: 256, blocks: 3},
	{ops: softmaxRows, operands: anyRagged, limit: 32 * 2, lanes: 32},
	{ops: softmaxRows, operands: anyRagged, limit: 32 * 3, lanes: 32, blocks: 10},
	{ops: softmaxRows, operands: anyRagged, limit: 32 * 5, lanes: 32, blocks: 8},
	{ops: softmaxRows, operands: anyRagged, limit: 32*8 + 1, lanes: 32, blocks: 6},
	{ops: softmaxRows, operands: anyRagged, limit: 128 * 3, lanes: 128, blocks: 10},
	{ops: softmaxRows, operands: anyRagged, limit: 128 * 5, lanes: 128, blocks: 8},
	{ops: softmaxRows, operands: anyRagged, limit: 256 * 3, lanes: 256, blocks: 5},
	{ops: softmaxRows, operands: anyRagged, limit: 256 * 5, lanes: 256, blocks: 4},
	{ops: softmaxRows, operands: anyRagged, limit: 256*8 + 1, lanes: 256, blocks: 3},
	{ops: anyRows, operands: anyOperands, limit: 32*8 + 1, lanes: 32},
	{ops: anyRows, operands: anyOperands, limit: 128 * 5, lanes: 128},
	{ops: anyRows, operands: twoWeights, limit: 256 * 3, lanes: 256, blocks: 5},
	{ops: anyRows, operands: twoWeights, above: 256 * 5, limit: 256*8 + 1, lanes: 256, blocks: 3},
	{ops: anyRows, operands: anyOperands, limit: 256*8 + 1, lanes: 256},

	{ops: anyRows, operands: anyOperands, limit: 512 * 8, lanes: 512, blocks: 2},
	{ops: anyRows, operands: twoWeights, limit: 512 * 9, lanes: 512, blocks: 2},
	{ops: normRows, operands: noWeights, limit: 512 * 10, lanes: 512, blocks: 2},
	{ops: anySoftmax, operands: anyOperands, above: 512 * 10, limit: 512 * 11, lanes: 512, blocks: 2},
	{ops: anySoftmax, operands: anyRagged, above: 512 * 11, limit: 256 * 23, lanes: 256, blocks: 2, registers: 16},
	{ops: logSoftmaxRows, operands: anyRagged, above: 512 * 11, limit: 256 * 28, lanes: 256, blocks: 2, registers: 16},
	// With a part of the row in shared memory, two blocks fit again.
	{ops: anyRows, operands: noWeights, limit: 512 * 10, lanes: 512, blocks: 2, registers: 8},
	{ops: anyRows, operands: anyOperands, limit: 512 * 16, lanes: 512},
}

// halfRowRules are the schedules of rows of 16-bit elements. Packed elements need half the
// registers. Converting them two or three times costs less than having fewer blocks, except for
// operations that compute exponentials.
var halfRowRules = []rowRule{
	// Aligned rows with weights for which the assembler uses too many registers, or a warp has too
	// little work.
	{ops: anyRows, operands: even1, above: 16, limit: 8 * 3, lanes: 8},
	{ops: anyRows, operands: even1, above: 8 * 3, limit: 32, lanes: 16},
	{ops: anyRows, operands: even1, above: 32, limit: 16 * 3, lanes: 16, blocks: 6, packed: true},
	{ops: anyRows, operands: even2, above: 16, limit: 17, lanes: 8},
	{ops: anyRows, operands: even2, above: 17, limit: 4 * 5, lanes: 4},
	{ops: anyRows, operands: even2, above: 4 * 5, limit: 8 * 3, lanes: 8},
	{ops: anyRows, operands: even2, above: 8 * 3, limit: 4 * 7, lanes: 4},
	{ops: anyRows, operands: even2, above: 4 * 7, limit: 32, lanes: 8},
	{ops: anyRows, operands: even2, above: 32, limit: 8 * 5, lanes: 8, blocks: 6, packed: true},
	{ops: anyRows, operands: even2, above: 8 * 5, limit: 8 * 7, lanes: 8, blocks: 5, packed: true},
	{ops: anyRows, operands: even2, above: 8 * 7, limit: 16 * 5, lanes: 16, blocks: 6, packed: true},
	{ops: anyRows, operands: even2, above: 32 * 4, limit: 32 * 5, lanes: 32, blocks: 6, packed: true},
	{ops: anyRows, operands: even2, above: 32 * 5, limit: 32 * 6, lanes: 32, blocks: 5, packed: true},
	{ops: anyRows, operands: even2, above: 32 * 9, limit: 32 * 11, lanes: 32, blocks: 4},
	{ops: anyRows, operands: even2, above: 128 * 3, limit: 128 * 4, lanes: 128, blocks: 8},

	{ops: anySoftmax, operands: anyEven, above: 16, limit: 8 * 3, lanes: 8}, // many of 32 lanes would be idle
	{ops: anySoftmax, operands: anyEven, above: 32, limit: 16 * 3, lanes: 16},
	{ops: anyRows, operands: notShifted, limit: 1, lanes: 1},
	{ops: anyRows, operands: notShifted, limit: 2, lanes: 2},
	{ops: anyRows, operands: notShifted, limit: 4, lanes: 4},
	{ops: anyRows, operands: notShifted, limit: 8, lanes: 8},
	{ops: anyRows, operands: notShifted, limit: 16, lanes: 16},
	{ops: anyRows, operands: notShifted, limit: 32, lanes: 32},

	{ops: anyRows, operands: ragged2, limit: 16 * 4, lanes: 16, blocks: 6},
	{ops: anyRows, operands: ragged2, limit: 16 * 6, lanes: 16, blocks: 6, packed: true},
	{ops: anyRows, operands: ragged2, limit: 16 * 8, lanes: 16, blocks: 5, packed: true},
	{ops: anyRows, operands: ragged12, limit: 16 * 4, lanes: 16, blocks: 4},
	{ops: anyRows, operands: ragged12, limit: 16 * 9, lanes: 16, blocks: 4, packed: true},
	{ops: anyRows, operands: ragged12, limit: 32 * 9, lanes: 32, blocks: 5, packed: true},
	{ops: anyRows, operands: ragged12, limit: 32 * 13, lanes: 32, blocks: 4, packed: true},

	{ops: normRows | anySoftmax, operands: anyRagged, limit: 16 * 9, lanes: 16, blocks: 5, packed: true},
	{ops: anySoftmax, operands: anyRagged, limit: 32 * 9, lanes: 32, blocks: 5, packed: true},
	{ops: anyRows, operands: anyOperands, limit: 32 * 9, lanes: 32},
	{ops: logSoftmaxRows, operands: anyRagged, limit: 32 * 11, lanes: 32, blocks: 5, packed: true},
	{ops: softmaxRows, operands: anyRagged, limit: 32 * 11, lanes: 32},

	{ops: logSoftmaxRows, operands: anyOperands, above: 128 * 3, limit: 128 * 5, lanes: 128, blocks: 8, packed: true},
	{ops: logSoftmaxRows, operands: anyOperands, above: 128 * 3, limit: 128 * 8, lanes: 128, blocks: 5, packed: true},
	{ops: softmaxRows, operands: anyRagged, above: 128 * 3, limit: 128 * 5, lanes: 128, blocks: 8, packed: true},
	{ops: softmaxRows, operands: anyRagged, above: 128 * 3, limit: 128 * 8, lanes: 128, blocks: 5, packed: true},
	{ops: anyRows, operands: anyOperands, limit: 128 * 4, lanes: 128},
	{ops: anyRows, operands: even2, above: 128 * 6, limit: 128*8 - 1, lanes: 128, blocks: 7, packed: true}, // there are too few registers for eight blocks
	{ops: anyRows, operands: someWeights, limit: 128 * 8, lanes: 128, blocks: 8, packed: true},
	{ops: anyRows, operands: anyOperands, limit: 128 * 7, lanes: 128},
	{ops: anyRows, operands: ragged12, limit: 128 * 13, lanes: 128, blocks: 6, packed: true},
	{ops: anyRows, operands: ragged2, limit: 128 * 18, lanes: 128, blocks: 5, packed: true},
	{ops: anyRows, operands: ragged12, above: 256 * 10, limit: 128 * 24, lanes: 128, blocks: 4, packed: true},
	{ops: anyRows, operands: ragged12, above: 256 * 10, limit: 128 * 33, lanes: 128, blocks: 3, packed: true},

	{ops: normRows, operands: anyEven, above: 256 * 8, limit: 256 * 20, lanes: 256, blocks: 2, packed: true},
	{ops: normRows, operands: ragged12, limit: 256 * 4, lanes: 256, packed: true},
	{ops: normRows, operands: anyOperands, limit: 256 * 4, lanes: 256},
	{ops: normRows, operands: anyOperands, limit: 256 * 5, lanes: 256, blocks: 4, packed: true},
	{ops: normRows, operands: anyOperands, limit: 256 * 10, lanes: 256, blocks: 3, packed: true},
	{ops: anySoftmax, operands: anyOperands, above: 256 * 4, limit: 256 * 5, lanes: 256, blocks: 4, packed: true},
	{ops: notLog, operands: ragged12, above: 256 * 4, limit: 256 * 6, lanes: 256, packed: true},
	{ops: notLog, operands: anyOperands, limit: 256 * 6, lanes: 256},
	{ops: anyRows, operands: anyOperands, limit: 256 * 9, lanes: 256, blocks: 3, packed: true},
	{ops: anyRows, operands: anyOperands, limit: 512*8 + 1, lanes: 512, blocks: 2, packed: true},
	{ops: notNorm, operands: anyOperands, limit: 256 * 20, lanes: 256, blocks: 2, packed: true},
	{ops: normRows, operands: anyEven, limit: 512 * 16, lanes: 512, packed: true},

	// With half of the row in shared memory, two blocks fit.
	{ops: anyRows, operands: ragged2, limit: maxHalves, lanes: 256, blocks: 2, packed: true, registers: 12, shared: twoHalfRows},
	{ops: anyRows, operands: anyRagged, limit: maxHalves, lanes: 256, blocks: 2, packed: true, registers: 16, shared: twoHalfRows},
	{ops: anyRows, operands: anyEven, limit: maxHalves, lanes: 512, blocks: 2, packed: true, registers: 8, shared: twoHalfRows},
}

// twoHalfRows is the shared memory in bytes of two blocks that keep half of the longest row each.
const twoHalfRows = 2 * (9<<13 + 1<<10)
