package portable

import (
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Array describes an array in memory. An absent operand has a nil Shape.
type Array struct {
	Type  op.DType
	Shape op.Shape
	// Layout, if not nil, says where the elements lie in a memory of N elements. Only some
	// operations support it for their operands and results: see [AttentionPlaces]. Without a
	// layout, the array is contiguous.
	Layout *op.Layout
	N      int
}

// Request is one use of an operation on a device.
type Request struct {
	// Op is nil for an elementwise program, which is Post with its own operands.
	Op    *op.Operation
	Attrs op.Attrs
	In    []Array // the operands of Op
	// Post, if not nil, computes the stored results from the first result of Op.
	Post *Epilogue
	// Out are the arrays to write: the results of Op, with the results of Post in place of the
	// first.
	Out []Array
	// Inner, if not 0, means that consecutive elements of a row of a reduction's operand are this
	// many elements apart: see [op.Layout.Columns].
	Inner int
	// InPlace says that the first operand of an update or a scatter is where the result is.
	InPlace bool
	Target  Target
	// Variant names the variant to use, which must fit; "" means the one
	// that Tuning names and else the first of [Variants] that fits.
	Variant string
	Tuning  Tuning
}

// Results returns the element types and the shapes of the results of Op, before Post. The error is
// the operation's error for operands that it does not accept.
func (r *Request) Results() ([]op.DType, []op.Shape, error) {
	types, shapes := make([]op.DType, len(r.In)), make([]op.Shape, len(r.In))
	for i, a := range r.In {
		if a.Shape != nil {
			types[i], shapes[i] = a.Type, a.Shape
		}
	}
	made, err := r.Op.Types(&r.Attrs, types)
	if err != nil {
		return nil, nil, err
	}
	results, err := r.Op.Shapes(&r.Attrs, shapes)
	return made, results, err
}

// Epilogue is an elementwise program with one expression for each stored array. Arg 0 is the first
// result of the operation, and Arg i+1 is In[i]. Without an operation, Arg i is In[i]. Expressions
// have no Param.
type Epilogue struct {
	In    []Operand
	Exprs []*ir.Node
}

// Operand is an operand of an elementwise program: N elements that are broadcast over the result.
type Operand struct {
	Type      op.DType
	Broadcast op.BroadcastKind
	N         int
	Layout    *op.Layout // layout over the result if Broadcast is Strided
}

// Plan is the list of launches that compute a request, in this order. A stage can read the results
// of earlier stages.
type Plan struct {
	Scratch   []int64  // bytes of each temporary; its initial contents are undefined
	Constants [][]byte // arrays that stages read, in the byte order of the machine
	Stages    []Stage  // empty if there is nothing to compute
	Variant   string   // the chosen variant, "" if there is only one
}

// Stage is one launch.
type Stage struct {
	Kernel *kernel.Kernel
	Grid   [3]uint32
	Params []byte
	// Bind lists the arrays for the buffers of the kernel. Each binding must have exactly the size
	// of its array, because kernels use the length of a buffer. Results must not overlap operands
	// or other results.
	Bind []Ref
}

// Ref names an array of a request, or a temporary of its plan.
type Ref struct {
	Kind  RefKind
	Index int
}

// RefKind is the list that a [Ref] indexes.
type RefKind uint8

// The arrays that stages use.
const (
	InputRef    RefKind = iota // Request.In, followed by Request.Post.In
	OutputRef                  // Request.Out
	ScratchRef                 // Plan.Scratch
	ConstantRef                // Plan.Constants
)

// String returns the reference in the form in0, out0, scratch0 or constant0.
func (r Ref) String() string {
	return fmt.Sprintf("%s%d", [...]string{"in", "out", "scratch", "constant"}[r.Kind&3], r.Index)
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, op.ErrUnsupported)...)
}
