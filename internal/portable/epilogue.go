//go:build !js || !nowebgpu

package portable

import (
	"strconv"
	"strings"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// epilogue is the computation on a kernel's first result before the store: the activation of the
// operation, then the program of the request.
type epilogue struct {
	in    []Operand  // Arg i+1 is in[i]
	exprs []*ir.Node // Arg 0 is the result
	out   []op.DType
	key   string // equal epilogues have equal keys
}

// fuse sets the epilogue of q from its activation and its Post.
func (q *request) fuse() error {
	if q.Op == nil {
		return nil
	}
	p, err := finish(&q.Request, q.types, size(q.shapes[0]))
	if p == nil || err != nil {
		return err
	}
	f := &epilogue{in: p.In, exprs: p.Exprs}
	for _, o := range q.Out {
		f.out = append(f.out, o.Type)
	}
	f.setKey()
	q.epilogue = f
	return nil
}

// Finish returns the computation on the first result of an operation before it is stored, for
// callers that compute the result without this package: the activation of the attributes, then
// Post. It is nil if the result is stored unchanged.
func Finish(r *Request) (*Epilogue, error) {
	made, results, err := r.Results()
	if err != nil {
		return nil, err
	}
	n, err := results[0].Size()
	if err != nil {
		return nil, err
	}
	return finish(r, made, n)
}

// finish is [Finish] for an operation whose results have the given types and whose first result has
// n elements.
func finish(r *Request, types []op.DType, n int) (*Epilogue, error) {
	act, attrs := r.Attrs.Activation()
	if act == nil && r.Post == nil {
		return nil, nil
	}
	result := ir.NewArg(0, irhook.Register(uint8(types[0])))
	if act != nil {
		e, err := irhook.Expression(act, &attrs, types[:1])
		if err != nil {
			return nil, err
		}
		var params []*ir.Node
		for i := range attrs.F {
			params = append(params, ir.NewConst(float64(attrs.Float(i)), ir.F32))
		}
		result = ir.Substitute(e, []*ir.Node{result}, params)
	}
	f := &Epilogue{Exprs: []*ir.Node{result}}
	if r.Post == nil {
		return f, nil
	}
	args := []*ir.Node{result}
	for i, in := range r.Post.In {
		if err := CheckBroadcast(in, n); err != nil {
			return nil, err
		}
		args = append(args, ir.NewArg(i+1, irhook.Register(uint8(in.Type))))
	}
	f.In, f.Exprs = r.Post.In, nil
	for _, e := range r.Post.Exprs {
		if err := checkExpr(e, args); err != nil {
			return nil, err
		}
		f.Exprs = append(f.Exprs, ir.Substitute(e, args, nil))
	}
	return f, nil
}

func (f *epilogue) setKey() {
	var b strings.Builder
	for _, in := range f.in {
		b.WriteByte(byte(in.Type))
		b.WriteByte(byte(in.Broadcast))
		if in.Broadcast == op.Strided {
			b.WriteString(in.Layout.String())
			if in.N%4 == 0 {
				b.WriteByte(4) // 4 marks operands that are read in vectors: see inVectors
			}
		}
	}
	b.WriteByte(0xff)
	for i, e := range f.exprs {
		b.WriteString(f.out[i].String())
		b.WriteString(ir.Key(e))
		b.WriteByte(0xff)
	}
	f.key = b.String()
}

// checkExpr returns an ErrUnsupported if e is not an expression over args.
func checkExpr(e *ir.Node, args []*ir.Node) error {
	if e == nil {
		return unsupported("an expression is nil")
	}
	list, _ := ir.Flatten(e)
	for _, n := range list {
		switch {
		case n.Code == ir.Param:
			return unsupported("an expression has a parameter; epilogues have none")
		case n.Code == ir.Arg && (n.Index >= len(args) || n.Type != args[n.Index].Type):
			return unsupported("an expression refers to operand %d; there are %d operands", n.Index, len(args))
		}
	}
	return nil
}

// result declares the outputs of a kernel: the first result of an operation, of type t, or, if e is
// not nil, the results and the operands of e. It returns a function that stores element i. Plans
// bind [request.outputs] to these buffers.
func (e *epilogue) result(b *kernel.Builder, t op.DType) func(i kernel.U32, v kernel.Dynamic) {
	return e.resultOf(b, t, 1)
}

// resultOf is result for vectors with width elements, 1 or 4.
func (e *epilogue) resultOf(b *kernel.Builder, t op.DType, width int) func(i kernel.U32, v kernel.Dynamic) {
	if e == nil {
		return vectorOutput(b, "out", t, width).set
	}
	ys := make([]sink, len(e.out))
	for i, t := range e.out {
		ys[i] = vectorOutput(b, "out"+strconv.Itoa(i), t, width)
	}
	xs := make([]source, len(e.in))
	for i, in := range e.in {
		xs[i] = vectorInput(b, "with"+strconv.Itoa(i), in, width, ys[0].n)
	}
	return func(i kernel.U32, v kernel.Dynamic) {
		args := []kernel.Dynamic{v}
		for _, x := range xs {
			args = append(args, x.at(i))
		}
		for j, r := range Inline(b, e.exprs, args, nil) {
			ys[j].set(i, r)
		}
	}
}

// bits is like result for values that the operation only moves: the returned function takes their
// bits, as [inputBits] returns them.
func (e *epilogue) bits(b *kernel.Builder, t op.DType) func(i, v kernel.U32) {
	if e == nil && t != op.F16 {
		return kernel.Output[kernel.U32](b, "out").Set
	}
	put := e.result(b, t)
	return func(i, v kernel.U32) { put(i, fromBits(v, t)) }
}

// result4 is like result for vectors of four elements: the returned function takes the index of the
// vector. The operands of e must satisfy [epilogue.vectors] or [alignedOperands].
func (e *epilogue) result4(b *kernel.Builder, t op.DType) func(i kernel.U32, v kernel.Dynamic) {
	return e.resultOf(b, t, 4)
}

// vectors reports whether [epilogue.result4] can store a result with rows of n elements. n is a
// multiple of four.
func (e *epilogue) vectors(n int) bool {
	if e == nil {
		return true
	}
	for _, in := range e.in {
		if in.Broadcast == op.Tiled && in.N%4 != 0 {
			return false
		}
		if in.Broadcast == op.Repeated || in.Broadcast == op.Strided {
			return false
		}
	}
	return n%4 == 0
}

// units is result for units of one or four elements: the returned function stores unit i.
func (e *epilogue) units(b *kernel.Builder, t op.DType, unit int) func(i kernel.U32, vs []kernel.F32) {
	if unit == 1 {
		put := e.result(b, t)
		return func(i kernel.U32, vs []kernel.F32) { put(i, kernel.Dyn(vs[0])) }
	}
	put := e.result4(b, t)
	return func(i kernel.U32, vs []kernel.F32) { put(i, kernel.Dyn(b.Vec4F(vs[0], vs[1], vs[2], vs[3]))) }
}

// alignedOperands reports whether kernels can read the operands in vectors of four if the operands
// are laid over n elements.
func alignedOperands(in []Operand, n int) bool {
	for _, x := range in {
		switch x.Broadcast {
		case op.Tiled:
			if x.N%4 != 0 {
				return false
			}
		case op.Repeated:
			if n/x.N%4 != 0 {
				return false
			}
		case op.Strided:
			if _, _, ok := inVectors(&x); !ok {
				return false
			}
		}
	}
	return n%4 == 0
}
