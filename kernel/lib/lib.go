package lib

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Array is the form of an array in memory. An absent operand has a nil Shape.
type Array struct {
	Type  op.DType
	Shape op.Shape
	// Layout, if not nil, says where the elements are in memory of N elements, for
	// operands and results that the kernels of the operation find there: see
	// [AttentionPlaces]. Without it elements lie row by row.
	Layout *op.Layout
	N      int
}

// Request is one use of an operation on a device.
type Request struct {
	// Op is nil for an elementwise program alone: that is Post then, over its
	// own operands.
	Op    *op.Operation
	Attrs op.Attrs
	In    []Array // the operands of Op
	// Post, if not nil, computes what is stored from the first result of Op.
	Post *Epilogue
	// Out are the arrays to write: the results of Op, or those of Post in the
	// place of the first.
	Out []Array
	// Inner, if not 0, says of the operand of a reduction along rows that the elements of
	// a row stand so many apart: see [op.Layout.Columns].
	Inner int
	// InPlace says that the first operand of an update or a scatter is where the result is.
	InPlace bool
	Target  Target
	// Variant names the variant to use, which must fit; "" stands for the one
	// that Tuning names and else the first of [Variants] that fits.
	Variant string
	Tuning  Tuning
}

// Results returns the element types and the shapes of what Op gives, before Post, or
// the operation's error for operands that it does not take.
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

// Epilogue is an elementwise program: one expression for each array that is
// stored. Arg 0 is the first result of the operation, and Arg i+1 is In[i];
// without an operation Arg i is In[i]. Expressions have no Param.
type Epilogue struct {
	In    []Operand
	Exprs []*ir.Node
}

// Operand is an operand of an elementwise program: N elements that are laid
// over the result.
type Operand struct {
	Type   op.DType
	Spread op.Spread
	N      int
	Layout *op.Layout // where they are over the result, if Spread is Strided
}

// Plan is the launches that compute a request, one after the other: a stage sees
// what those before it have written.
type Plan struct {
	Scratch   []int64  // bytes of each temporary; nothing is known of what it holds at first
	Constants [][]byte // arrays that stages read, in the byte order of the machine
	Stages    []Stage  // none if there is nothing to compute
	Variant   string   // what was chosen, "" where there is no choice
}

// Stage is one launch.
type Stage struct {
	Kernel *kernel.Kernel
	Grid   [3]uint32
	Params []byte
	// Bind says what each buffer of the kernel is: exactly its bytes, as
	// kernels ask how long a buffer is. Results overlap neither operands nor
	// each other.
	Bind []Ref
}

// Ref names an array of a request, or a temporary of its plan.
type Ref struct {
	Kind  RefKind
	Index int
}

// RefKind says among what a [Ref] counts.
type RefKind uint8

// The arrays that stages use.
const (
	InputRef    RefKind = iota // Request.In, and behind them Request.Post.In
	OutputRef                  // Request.Out
	ScratchRef                 // Plan.Scratch
	ConstantRef                // Plan.Constants
)

// String returns the reference as in0, out0, scratch0, constant0.
func (r Ref) String() string {
	return fmt.Sprintf("%s%d", [...]string{"in", "out", "scratch", "constant"}[r.Kind&3], r.Index)
}

// maxElements bounds the elements of one array: indices have 32 bits, and the
// lanes of the last workgroups count beyond the end.
const maxElements = math.MaxInt32

// For returns the launches that compute r. The error wraps [op.ErrShape] where
// op says so, and [op.ErrUnsupported] where there is no portable kernel for the
// operation, its element types, its sizes or the target.
func For(r *Request) (*Plan, error) {
	q, err := check(r)
	if err != nil {
		return nil, err
	}
	p, err := q.plan()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.name(), err)
	}
	for i := range p.Stages {
		s := &p.Stages[i]
		prog, err := s.Kernel.Program()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.name(), err)
		}
		if err := q.Target.allows(prog, s); err != nil {
			return nil, fmt.Errorf("%s: %w", q.name(), err)
		}
	}
	return p, nil
}

// request is a Request that has been checked, with defaults filled in.
type request struct {
	Request
	family   *family
	types    []op.DType // of the results of Op
	shapes   []op.Shape // likewise
	epilogue *epilogue  // activation and Post, or nil
}

func (q *request) name() string {
	if q.Op == nil {
		return "elementwise"
	}
	return q.Op.Name()
}

// plan makes the plan: of nothing to write, none.
func (q *request) plan() (*Plan, error) {
	for i := range q.Out {
		if size(q.Out[i].Shape) > 0 {
			return q.family.plan(q)
		}
	}
	return &Plan{}, nil
}

// check returns r checked against its operation.
func check(r *Request) (*request, error) {
	q := &request{Request: *r}
	q.Target = q.Target.withDefaults()
	fail := func(err error) (*request, error) { return nil, fmt.Errorf("%s: %w", q.name(), err) }
	if r.Op == nil && r.Post == nil {
		return fail(unsupported("a request without operation and epilogue"))
	}
	if q.family = familyOf(r.Op); q.family == nil {
		return fail(unsupported("no portable kernel"))
	}
	if r.Op != nil {
		types, shapes := make([]op.DType, len(r.In)), make([]op.Shape, len(r.In))
		for i, a := range r.In {
			types[i], shapes[i] = a.Type, a.Shape
			if a.Shape == nil {
				types[i] = op.InvalidType
			}
		}
		var err error
		if q.types, err = r.Op.Types(&r.Attrs, types); err != nil {
			return fail(err)
		}
		if q.shapes, err = r.Op.Shapes(&r.Attrs, shapes); err != nil {
			return fail(err)
		}
	}
	for _, list := range [][]Array{r.In, r.Out} {
		for _, a := range list {
			if a.Shape == nil {
				continue
			}
			if err := q.Target.storable(a.Type); err != nil && !(q.family.quantised && a.Type.Quantized()) {
				return fail(err)
			}
			if n, err := a.Shape.Size(); err != nil {
				return fail(err)
			} else if n > maxElements {
				return fail(unsupported("%d elements in one array; the most is %d", n, maxElements))
			}
			if a.Layout != nil {
				if err := checkLayout(Operand{Type: a.Type, N: a.N, Layout: a.Layout}, size(a.Shape)); err != nil {
					return fail(err)
				}
			}
		}
	}
	if r.Post != nil {
		for _, x := range r.Post.In {
			if err := q.Target.storable(x.Type); err != nil {
				return fail(err)
			}
		}
	}
	if err := q.checkLayouts(); err != nil {
		return fail(err)
	}
	if err := q.fuse(); err != nil {
		return fail(err)
	}
	return q, q.checkOut()
}

// checkLayouts returns an ErrUnsupported where the kernels of the operation do not
// find the elements of an array that does not lie row by row.
func (q *request) checkLayouts() error {
	if q.Op == nil {
		return nil // Operand has those
	}
	for i, a := range q.In {
		if a.Layout != nil && !Reads(q.Op, i, a.Shape, a.Layout) {
			return unsupported("operand %d in the layout %v", i, a.Layout)
		}
	}
	for i, a := range q.Out {
		if a.Layout != nil && (q.Post != nil || !Writes(q.Op, a.Shape, a.Layout)) {
			return unsupported("result %d in the layout %v", i, a.Layout)
		}
	}
	return nil
}

// checkOut compares what is to be written with what the operation gives.
func (q *request) checkOut() error {
	want := make([]Array, 0, 4)
	if q.Op != nil {
		for i, t := range q.types {
			want = append(want, Array{Type: t, Shape: q.shapes[i]})
		}
	}
	if q.Post != nil {
		if len(want) > 1 {
			return fmt.Errorf("%s: %w", q.name(), unsupported("an epilogue of an operation with %d results", len(want)))
		}
		want = want[:0]
		for i, e := range q.Post.Exprs {
			if i >= len(q.Out) {
				break
			}
			w := Array{Type: q.Out[i].Type, Shape: q.Out[0].Shape}
			if q.Op != nil {
				w.Shape = q.shapes[0]
			}
			if op.Register(w.Type) != e.Type {
				w.Type = op.InvalidType
			}
			want = append(want, w)
		}
	}
	if len(want) != len(q.Out) || q.Post != nil && len(q.Post.Exprs) != len(q.Out) {
		return fmt.Errorf("%s: %d arrays to write, not %d: %w", q.name(), len(q.Out), len(want), op.ErrShape)
	}
	for i, w := range want {
		o := q.Out[i]
		if n, err := o.Shape.Size(); err != nil || n != size(w.Shape) {
			return fmt.Errorf("%s: result %d of shape %v, not %v: %w", q.name(), i, o.Shape, w.Shape, op.ErrShape)
		}
		if o.Type != w.Type {
			return fmt.Errorf("%s: %w", q.name(), unsupported("result %d of type %v", i, o.Type))
		}
	}
	return nil
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, op.ErrUnsupported)...)
}

// size returns the elements of a shape that has been checked.
func size(s op.Shape) int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}
