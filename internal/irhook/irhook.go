// Package irhook lets the packages of this module use what packages op and kernel do with
// expressions. These are no exported functions, because expressions are of internal types,
// which users cannot name. Packages op and kernel set the variables when they are initialised;
// what is any has the type of op or kernel that the comment names.
package irhook

import "github.com/rayo-go/rayo/internal/ir"

var (
	// Register returns the type in which elements of an op.DType are computed, ir.Invalid
	// for blocks.
	Register func(dtype uint8) ir.Type

	// Expression returns the expression of an elementwise *op.Operation with an *op.Attrs, over operands
	// of the types in an []op.DType: Arg i is operand i in the register type of its type, and Param i
	// is Attrs.F[i].
	Expression func(operation, attrs, types any) (*ir.Node, error)

	// SelfTestOf returns the case with which a device tests its kernels of an *op.Operation that is neither
	// a reduction nor of class row, or nil if there is none.
	SelfTestOf func(operation any) *SelfTest

	// Inline computes expressions in a kernel of a *kernel.Builder: operand i is args[i] of
	// a []kernel.Dynamic, parameter i is params[i] of a []kernel.F32, and the result is a
	// []kernel.Dynamic. The operands are all scalars or all vectors of one width; the
	// results are as wide. Equal nodes are computed once. No component of a floating-point
	// operand is NaN or larger than size, which saves the handling of NaN in minima and
	// maxima; size NaN means that nothing is guaranteed.
	Inline func(b any, roots []*ir.Node, args, params any, size float64) any
)

// Verify is [ir.Verify] in programs that have users' kernels, otherwise nil. Pages do not load it for the library's own
// kernels, which tests verify. Package wgsl calls it.
var Verify func(p *ir.Program) error

// Operations has the methods that the functions below call. The linker keeps a method only in programs
// that call its function, which it could not do for a variable that package op sets.
var Operations any

// Widen returns the interval that holds the results of an operation with an
// op.Tolerance whose true results are in v: of type dtype, of sums of magnitude mag.
func Widen(tolerance any, v ir.Interval, mag float64, dtype uint8) ir.Interval {
	return Operations.(interface {
		Widen(tolerance any, v ir.Interval, mag float64, dtype uint8) ir.Interval
	}).Widen(tolerance, v, mag, dtype)
}

// Range returns the function from ranges of the operands to the range of the results that a device
// may compute in float32, for an elementwise *op.Operation with an *op.Attrs, over operands of the
// types in an []op.DType. That is the range of the expression's values over the operands' ranges,
// widened by the operation's tolerance. The function is not safe for concurrent use.
func Range(operation, attrs, types any) (func(in []ir.Interval) ir.Interval, error) {
	return Operations.(interface {
		Range(operation, attrs, types any) (func(in []ir.Interval) ir.Interval, error)
	}).Range(operation, attrs, types)
}

// Reducer returns the definition of a reduction or scan, an *op.Operation, of elements of an
// op.DType, or nil if the operation has none.
func Reducer(operation any, dtype uint8) *ir.Reducer {
	return Operations.(interface {
		Reducer(operation any, dtype uint8) *ir.Reducer
	}).Reducer(operation, dtype)
}

// SelfTest is a case of an operation: operands of float32, but for those that a field describes.
type SelfTest struct {
	Attrs    any     // an op.Attrs; nil for none
	Shapes   [][]int // of the operands
	Index    int     // the operand of i32 indices below the extent of axis 0 of operand 0; 0 if there is none
	Blocks   int     // the operand of a quantised type; 0 if there is none
	Product  bool    // the operands are matrices, of sizes that the engine chooses
	Start    bool    // the operand is a u32 close to the greatest
	Large    bool    // some elements are outside of the range of i32
	Dominant bool    // operand 0 has a dominant diagonal: positive definite, and no pivot is in doubt
}
