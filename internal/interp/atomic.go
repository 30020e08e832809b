package interp

import "github.com/rayo-go/rayo/internal/ir"

const (
	atomicLoad  = ir.AtomicLoad
	atomicStore = ir.AtomicStore
	atomicAdd   = ir.AtomicAdd
)

// atomicResult returns the value that an atomic operation stores in place of old.
func atomicResult(op uint8, signed bool, old, x, y uint32) uint32 {
	switch op {
	case ir.AtomicStore, ir.AtomicExchange:
		return x
	case ir.AtomicAdd:
		return old + x
	case ir.AtomicSub:
		return old - x
	case ir.AtomicMin:
		if less(x, old, signed) {
			return x
		}
	case ir.AtomicMax:
		if less(old, x, signed) {
			return x
		}
	case ir.AtomicAnd:
		return old & x
	case ir.AtomicOr:
		return old | x
	case ir.AtomicXor:
		return old ^ x
	case ir.AtomicCompareExchange:
		// The operands are the value to compare with and the new one.
		if old == x {
			return y
		}
	}
	return old
}
