//go:build !js || !nowebgpu

package portable

import (
	"math"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
)

// maxElements limits the number of elements of an array: indices have 32 bits, and the indices of
// lanes in the last workgroups exceed the number of elements.
const maxElements = math.MaxInt32

// For returns the launches that compute r. The error wraps [op.ErrShape] if op rejects the shapes,
// and [op.ErrUnsupported] if there is no portable kernel for the operation, its element types, its
// sizes or the target.
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

// request is a checked Request with defaults filled in.
type request struct {
	Request
	family   *family
	types    []op.DType // types of the results of Op
	shapes   []op.Shape // shapes of the results of Op
	epilogue *epilogue  // activation and Post, or nil
}

func (q *request) name() string {
	if q.Op == nil {
		return "elementwise"
	}
	return q.Op.Name()
}

// plan returns the plan of the request. The plan is empty if there is nothing to write.
func (q *request) plan() (*Plan, error) {
	for i := range q.Out {
		if size(q.Out[i].Shape) > 0 {
			return q.family.plan(q)
		}
	}
	return &Plan{}, nil
}

// checkArray checks that kernels can use an array: its type, its size and its layout.
func (q *request) checkArray(a Array) error {
	if a.Shape == nil {
		return nil
	}
	if err := q.Target.storable(a.Type); err != nil && !(q.family.quantised && a.Type.Quantized()) {
		return err
	}
	if n, err := a.Shape.Size(); err != nil {
		return err
	} else if n > maxElements {
		return unsupported("an array has %d elements; kernels support at most %d", n, maxElements)
	}
	if a.Layout == nil {
		return nil
	}
	return checkLayout(Operand{Type: a.Type, N: a.N, Layout: a.Layout}, size(a.Shape))
}

// check checks r against its operation and returns it as a request.
func check(r *Request) (*request, error) {
	q := &request{Request: *r}
	q.Target = q.Target.withDefaults()
	fail := func(err error) (*request, error) { return nil, fmt.Errorf("%s: %w", q.name(), err) }
	if r.Op == nil && r.Post == nil {
		return fail(unsupported("the request has neither an operation nor an epilogue: set Op or Post"))
	}
	if q.family = familyOf(r.Op); q.family == nil {
		return fail(unsupported("the operation has no portable kernel"))
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
			if err := q.checkArray(a); err != nil {
				return fail(err)
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

// checkLayouts returns an ErrUnsupported if an array has a layout that the kernels of the operation
// cannot address.
func (q *request) checkLayouts() error {
	if q.Op == nil {
		return nil // elementwise programs have layouts in Operand
	}
	for i, a := range q.In {
		if a.Layout != nil && !Reads(q.Op, i, a.Shape, a.Layout) {
			return unsupported("kernels cannot read operand %d in the layout %v", i, a.Layout)
		}
	}
	for i, a := range q.Out {
		if a.Layout != nil && (q.Post != nil || !Writes(q.Op, a.Shape, a.Layout)) {
			return unsupported("kernels cannot write result %d in the layout %v", i, a.Layout)
		}
	}
	return nil
}

// checkOut compares Request.Out with the results of the operation.
func (q *request) checkOut() error {
	want := make([]Array, 0, 4)
	if q.Op != nil {
		for i, t := range q.types {
			want = append(want, Array{Type: t, Shape: q.shapes[i]})
		}
	}
	if q.Post != nil {
		if len(want) > 1 {
			return fmt.Errorf("%s: %w", q.name(), unsupported("the operation has %d results; an epilogue needs exactly one", len(want)))
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
			if irhook.Register(uint8(w.Type)) != e.Type {
				w.Type = op.InvalidType
			}
			want = append(want, w)
		}
	}
	if q.Post != nil && len(q.Post.Exprs) != len(q.Out) {
		return fmt.Errorf("%s: the epilogue has %d expressions; expected %d, one for each array to write: %w", q.name(), len(q.Post.Exprs), len(q.Out), op.ErrShape)
	}
	if len(want) != len(q.Out) {
		return fmt.Errorf("%s: the request has %d arrays to write; expected %d, one for each result: %w", q.name(), len(q.Out), len(want), op.ErrShape)
	}
	for i, w := range want {
		o := q.Out[i]
		if n, err := o.Shape.Size(); err != nil || n != size(w.Shape) {
			return fmt.Errorf("%s: the array for result %d has shape %v; the result has shape %v: %w", q.name(), i, o.Shape, w.Shape, op.ErrShape)
		}
		if o.Type != w.Type {
			return fmt.Errorf("%s: %w", q.name(), unsupported("result %d cannot be written as type %v", i, o.Type))
		}
	}
	return nil
}

// allows returns an ErrUnsupported if the target cannot run stage s.
func (t *Target) allows(p *ir.Program, s *Stage) error {
	if n := int(p.Local[0] * p.Local[1] * p.Local[2]); n > t.Lanes {
		return unsupported("a workgroup has %d lanes; the device allows at most %d", n, t.Lanes)
	}
	bytes := 0
	for _, a := range p.Shared {
		bytes += int(a.Len) * int(a.Width) * 4
	}
	if bytes > t.Shared {
		return unsupported("a workgroup needs %d bytes of workgroup memory; the device has %d", bytes, t.Shared)
	}
	if n := len(p.Bindings); n > t.Buffers {
		return unsupported("a kernel binds %d buffers; the device allows at most %d", n, t.Buffers)
	}
	for _, n := range s.Grid {
		if int64(n) > int64(t.Groups) {
			return unsupported("the grid has %v workgroups; the device allows at most %d along each dimension", s.Grid[:], t.Groups)
		}
	}
	return nil
}

// size returns the number of elements of a checked shape.
func size(s op.Shape) int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}
