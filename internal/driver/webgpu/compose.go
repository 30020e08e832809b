package webgpu

import (
	"encoding/binary"
	"errors"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// An operation that cannot be divided into rows is composed of other requests, over arrays of the
// user and temporary arrays. These requests are computed like any other, and divided if they are
// too large.

// pieces computes an operation without an epilogue that has a single row, or that needs a whole
// array which is too large.
func (w *windows) pieces() error {
	switch w.r.Op {
	case op.Gather:
		return w.gather()
	case op.Transpose:
		return w.transpose()
	case op.MatMul:
		return w.matMul()
	case op.MatVec:
		return w.matVec()
	case op.MatMulQ:
		return w.matMulQ()
	case op.Conv2D:
		return w.conv2D()
	case op.Attention:
		return w.attention()
	}
	return w.tooLarge
}

// byReference reports whether the reference computes an operation that cannot be divided. It does
// so for operations with linear time, because downloading the operands also takes linear time.
// Other operations return an error with their size.
func byReference(o *op.Operation) bool {
	return o.Class() == op.Reduction || o.Class() == op.Row || o == op.TopK
}

// located is an array of a request and its memory.
type located struct {
	portable.Array
	at arrayRef
}

// operand is an operand of an elementwise program and its memory.
type operand struct {
	portable.Operand
	at arrayRef
}

// given returns operand i of the request.
func (w *windows) given(i int) located { return located{w.r.In[i], w.in[i]} }

// has reports whether the request has an operand.
func (w *windows) has(i int) bool { return i < len(w.r.In) && w.r.In[i].Shape != nil }

// result returns a result of the request.
func (w *windows) result(i int) located { return located{w.r.Out[i], w.out[i]} }

// reserve returns a temporary array.
func (w *windows) reserve(t op.DType, s op.Shape) (located, error) {
	n, err := s.Size()
	if err != nil {
		return located{}, err
	}
	return located{portable.Array{Type: t, Shape: s}, w.Reserve(int64(n) * int64(t.Size()))}, nil
}

// shaped returns an array with the same elements and another shape.
func (a located) shaped(s ...int) located {
	a.Shape, a.Layout = s, nil
	return a
}

// rows returns n rows of an array. The first extent is the number of rows.
//
//go:noinline
func (a located) rows(from, n int) located {
	bytes := a.at.bytes / int64(max(a.Shape[0], 1))
	a.Shape = append(op.Shape{n}, a.Shape[1:]...)
	a.at = a.at.part(int64(from)*bytes, int64(n)*bytes)
	return a
}

func (a located) rowBytes() int64 { return a.at.bytes / int64(max(a.Shape[0], 1)) }

// spread returns an array as an operand of broadcast kind s, which the caller has checked.
func (a located) spread(s op.BroadcastKind) operand {
	n, _ := a.Shape.Size()
	return operand{portable.Operand{Type: a.Type, Broadcast: s, N: n}, a.at}
}

// integer returns a constant as an operand, so that one kernel serves all constants.
func (w *windows) integer(v int) operand {
	return operand{portable.Operand{Type: op.I32, Broadcast: op.Scalar, N: 1}, w.Constant(binary.NativeEndian.AppendUint32(nil, uint32(int32(v))))}
}

// large reports whether an array exceeds the binding limit.
func (w *windows) large(a located) bool { return a.at.bytes > w.d.limits.Binding }

// request computes an operation, and post, if given, from its result followed by more operands.
// Without an operation, post is computed from the operands alone.
func (w *windows) request(o *op.Operation, attrs op.Attrs, in, out []located, post *ir.Node, with ...operand) error {
	sub := &portable.Request{Op: o, Attrs: attrs, Target: w.r.Target, Tuning: w.r.Tuning}
	var from, to []arrayRef
	for _, a := range in {
		if a.Shape != nil {
			var err error
			if a.at, err = w.alignedOr(a.at); err != nil {
				return err
			}
		}
		sub.In, from = append(sub.In, a.Array), append(from, a.at)
	}
	if post != nil {
		sub.Post = &portable.Epilogue{Exprs: []*ir.Node{post}}
		for _, x := range with {
			at, err := w.alignedOr(x.at)
			if err != nil {
				return err
			}
			sub.Post.In, from = append(sub.Post.In, x.Operand), append(from, at)
		}
	}
	for _, a := range out {
		sub.Out, to = append(sub.Out, a.Array), append(to, a.at)
	}
	return w.window(sub, from, to)
}

// alignedOr is aligned for arrays that may be too large to be bound, and are divided later.
func (w *windows) alignedOr(a arrayRef) (arrayRef, error) {
	if a.off%4 != 0 {
		return a, errHalfWord
	}
	if a.bytes > w.d.limits.Binding {
		return a, nil
	}
	return w.aligned(a)
}

// program computes an expression of operands.
func (w *windows) program(out located, e *ir.Node, in ...operand) error {
	return w.request(nil, op.Attrs{}, nil, []located{out}, e, in...)
}

// unfused computes an operation and then its epilogue.
func (w *windows) unfused() error {
	r := w.r
	if r.Op.Results() > 1 {
		return errNoKernel // as without division
	}
	made, results, err := r.Results()
	if err != nil {
		return err
	}
	if made[0] == op.F16 && r.Out[0].Type == op.F32 {
		return errHalfWord // an intermediate half float would be rounded
	}
	y, err := w.reserve(made[0], results[0])
	if err != nil {
		return err
	}
	bare := *r
	bare.Post, bare.Out = nil, []portable.Array{y.Array}
	if err := w.window(&bare, w.in[:len(r.In):len(r.In)], []arrayRef{y.at}); err != nil {
		return err
	}
	behind := portable.Request{Post: &portable.Epilogue{Exprs: r.Post.Exprs}, Target: r.Target, Tuning: r.Tuning, Out: r.Out}
	behind.Post.In = append([]portable.Operand{y.spread(op.Full).Operand}, r.Post.In...)
	return w.window(&behind, append([]arrayRef{y.at}, w.in[len(r.In):]...), w.out)
}

// errHalfWord is the error of a request that can be divided for float32 but not for half floats:
// parts of arrays would begin inside a word, or partial results would be rounded.
var errHalfWord = errors.New("half floats cannot be divided here")

// widened converts a request on half floats to float32, because parts of float32 arrays can be
// copied.
func (w *windows) widened() error {
	sub := *w.r
	same := ir.NewArg(0, ir.F32)
	widen := func(t op.DType, at arrayRef) (op.DType, arrayRef, error) {
		if t != op.F16 {
			return t, at, nil
		}
		n := int(at.bytes) / t.Size()
		wide, err := w.reserve(op.F32, op.Shape{n})
		if err == nil {
			err = w.program(wide, same, operand{portable.Operand{Type: t, Broadcast: op.Full, N: n}, at})
		}
		return op.F32, wide.at, err
	}
	var in, out []arrayRef
	sub.In, sub.Out = nil, nil
	halves := false
	for i, a := range w.r.In {
		at := w.in[i]
		if a.Shape != nil {
			halves = halves || a.Type == op.F16
			var err error
			if a.Type, at, err = widen(a.Type, at); err != nil {
				return err
			}
		}
		sub.In, in = append(sub.In, a), append(in, at)
	}
	if w.r.Post != nil {
		sub.Post = &portable.Epilogue{Exprs: w.r.Post.Exprs}
		for i, o := range w.r.Post.In {
			halves = halves || o.Type == op.F16
			t, at, err := widen(o.Type, w.in[len(w.r.In)+i])
			if err != nil {
				return err
			}
			o.Type = t
			sub.Post.In, in = append(sub.Post.In, o), append(in, at)
		}
	}
	wide := make([]located, len(w.r.Out)) // float32 arrays for results of half floats
	for i, a := range w.r.Out {
		at := w.out[i]
		if a.Type == op.F16 {
			halves = true
			var err error
			if wide[i], err = w.reserve(op.F32, a.Shape); err != nil {
				return err
			}
			a.Type, at = op.F32, wide[i].at
		}
		sub.Out, out = append(sub.Out, a), append(out, at)
	}
	if !halves {
		return w.tooLarge
	}
	if err := w.compute(&sub, in, out); err != nil {
		return err
	}
	for i, a := range w.r.Out {
		if a.Type == op.F16 {
			if err := w.program(w.result(i), same, wide[i].spread(op.Full)); err != nil {
				return err
			}
		}
	}
	return nil
}

// node returns an expression. It panics if the types of args are wrong, which would be an error of this package.
func node(c ir.Code, args ...*ir.Node) *ir.Node {
	n, err := ir.New(c, args...)
	if err != nil {
		panic(fmt.Sprintf("webgpu: %v", err))
	}
	return n
}

// arg returns float32 operand i of an expression.
func arg(i int) *ir.Node { return ir.NewArg(i, ir.F32) }
