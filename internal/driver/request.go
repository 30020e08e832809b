package driver

import (
	"encoding/binary"
	"math"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// Arrays is the interface of a device for preparing steps with library kernels. An A identifies an
// array.
type Arrays[A any] interface {
	// At returns where an operand is, which has a slot.
	At(o Operand) A
	// Reserve returns temporary memory of the step.
	Reserve(bytes int64) A
	// Constant returns where data is while the program runs.
	Constant(data []byte) A
	// StorageType returns the type in which kernels are given the elements of an
	// operand: its own or, where they do not read that, one of 32 bits.
	StorageType(o Operand) op.DType
	// Widen adds the conversion of the elements of o, at src, to the storage type, and
	// Narrow that of the storage type to what they are.
	Widen(dst, src A, o Operand) error
	Narrow(dst, src A, o Operand) error
}

// Request is a request of a library together with where its arrays are. It is put
// together from operands and results: those in a type that kernels do not have are
// widened before, and narrowed after.
type Request[A any] struct {
	portable.Request
	From   []A // the operands, followed by the operands of the epilogue
	To     []A // the results
	narrow []narrowing[A]
	made   portable.Array // the first result of the operation
}

// narrowing is a result that is to be brought to its place.
type narrowing[A any] struct {
	dst, src A
	o        Operand
}

// operand returns an operand as kernels take it.
func operand[A any](a Arrays[A], x Operand) (op.DType, A, error) {
	t, at := a.StorageType(x), a.At(x)
	if t == x.Type {
		return t, at, nil
	}
	wide := a.Reserve(int64(x.N) * int64(t.Size()))
	return t, wide, a.Widen(wide, at, x)
}

// Operation adds the operation of a step to r, without the epilogue.
func (r *Request[A]) Operation(a Arrays[A], s *Step) error {
	if s.Pre != nil {
		return fmt.Errorf("%d prologues: %w", len(s.Pre), ErrUnsupported)
	}
	types, shapes, err := s.Results()
	if err != nil {
		return err
	}
	r.Op, r.Attrs, r.made = s.Op, s.Attrs, portable.Array{Type: types[0], Shape: shapes[0]}
	for i, x := range s.In {
		var array portable.Array
		var at A
		if x.Slot >= 0 {
			if x.Layout != nil && s.Op.Class() == op.Reduction {
				// All elements, in the order of memory.
				if s.Attrs.I[0] == op.AlongRows {
					_, r.Inner, _ = x.Layout.Columns(s.Dims[i].Rows())
				}
				x.Broadcast, x.Layout = op.Full, nil
			}
			if x.Layout != nil {
				array.Layout, array.N = x.Layout.Filled(x.Type, a.StorageType(x)), x.N
				x.Broadcast, x.Layout = op.Full, nil // of the memory
			}
			if array.Type, at, err = operand(a, x); err == nil && array.Type != op.F32 && s.mixed() {
				array.Type, at = op.F32, a.Reserve(4*int64(x.N))
				err = a.Widen(at, a.At(x), x)
			}
			if err != nil {
				return err
			}
			array.Shape = Present(s.Dims[i])
		}
		r.In, r.From = append(r.In, array), append(r.From, at)
	}
	r.results(a, s.Out, shapes...)
	r.InPlace = (s.Op == op.Update || s.Op == op.Scatter) && s.In[0].Slot == s.Out[0].Slot && a.StorageType(s.Out[0]) == s.Out[0].Type
	return nil
}

// mixed reports whether the step is a product of float32 and of 16-bit weights, which
// kernels of products do not take together.
func (s *Step) mixed() bool {
	return (s.Op == op.MatMul || s.Op == op.MatVec) && s.In[0].Type != s.In[1].Type
}

// Program makes r an elementwise program with results out: exprs, over the operands
// of f and, behind them, scalars of float32. If first is not nil, it is where operand
// 0 is, in a type that kernels have.
func (r *Request[A]) Program(a Arrays[A], f *Fused, exprs []*ir.Node, first *A, scalars []A, out []Operand) error {
	r.Post = &portable.Epilogue{Exprs: exprs}
	for i, x := range f.In {
		if i > 0 || first == nil {
			if err := r.add(a, x); err != nil {
				return err
			}
			continue
		}
		r.Post.In, r.From = append(r.Post.In, portable.Operand{Type: x.Type, Broadcast: x.Broadcast, N: x.N, Layout: x.Layout}), append(r.From, *first)
	}
	for _, at := range scalars {
		r.Post.In, r.From = append(r.Post.In, portable.Operand{Type: op.F32, Broadcast: op.Scalar, N: 1}), append(r.From, at)
	}
	r.results(a, out, f.Shape)
	return nil
}

// add adds an operand of the epilogue.
func (r *Request[A]) add(a Arrays[A], x Operand) error {
	t, at, err := operand(a, x)
	o := portable.Operand{Type: t, Broadcast: x.Broadcast, N: x.N}
	if x.Layout != nil {
		o.Layout = x.Layout.Filled(x.Type, t)
	}
	r.Post.In, r.From = append(r.Post.In, o), append(r.From, at)
	return err
}

// results adds the results, of the given shapes or of the one that is given.
func (r *Request[A]) results(a Arrays[A], out []Operand, shapes ...op.Shape) {
	for i, o := range out {
		t, at := a.StorageType(o), a.At(o)
		if t != o.Type {
			wide := a.Reserve(int64(o.N) * int64(t.Size()))
			memory := o
			memory.Broadcast, memory.Layout = op.Full, nil
			r.narrow = append(r.narrow, narrowing[A]{at, wide, memory})
			at = wide
		}
		array := portable.Array{Type: t, Shape: Present(shapes[min(i, len(shapes)-1)])}
		if o.Layout != nil {
			array.Layout, array.N = o.Layout, o.N
		}
		r.Out, r.To = append(r.Out, array), append(r.To, at)
	}
}

// Narrow brings the results to their places, behind what computes them.
func (r *Request[A]) Narrow(a Arrays[A]) error {
	for _, n := range r.narrow {
		if err := a.Narrow(n.dst, n.src, n.o); err != nil {
			return err
		}
	}
	return nil
}

// With returns the request with the epilogue of its step.
func (r *Request[A]) With(a Arrays[A], post *Fused) (*Request[A], error) {
	exprs, err := post.Expressions()
	if err != nil {
		return nil, err
	}
	w := *r
	w.From = r.From[:len(r.From):len(r.From)]
	w.Post = &portable.Epilogue{Exprs: exprs}
	for _, x := range post.In[1:] {
		if err := w.add(a, x); err != nil {
			return nil, err
		}
	}
	return &w, nil
}

// Unfused splits With for an operation whose kernels cannot run the epilogue: it returns the
// request of the operation, whose result is a temporary, and the epilogue as a program with this
// temporary as first operand.
func (r *Request[A]) Unfused(a Arrays[A], post *Fused) (*Request[A], *Fused, error) {
	shape := r.made.Shape
	n, err := shape.Size()
	if err != nil {
		return nil, nil, err
	}
	t := a.StorageType(Operand{Type: r.made.Type, N: n})
	alone := *r
	alone.Out, alone.narrow = []portable.Array{{Type: t, Shape: shape}}, nil
	alone.To = []A{a.Reserve(int64(n) * int64(t.Size()))}
	f := *post
	f.In = append([]Operand(nil), post.In...)
	if f.In[0].Type = t; t == f.Round {
		f.Round = op.InvalidType // storing it has rounded it
	}
	return &alone, &f, nil
}

// Copied reports whether an elementwise program copies an operand into out unchanged, and which. If
// first is not nil, it is the array of operand 0.
func Copied[A any](a Arrays[A], f *Fused, first *A, out []Operand) (src A, is bool) {
	if len(f.Out) != 1 || f.Out[0] >= len(f.In) {
		return src, false
	}
	x := f.In[f.Out[0]]
	if x.Type != out[0].Type || x.Broadcast != op.Full || x.N != out[0].N {
		return src, false
	}
	if f.Out[0] == 0 && first != nil {
		return *first, true
	}
	return a.At(x), true
}

// Scalars returns where parameters are as constants.
func Scalars[A any](a Arrays[A], params []float32) []A {
	var at []A
	for _, v := range params {
		at = append(at, a.Constant(binary.NativeEndian.AppendUint32(nil, math.Float32bits(v))))
	}
	return at
}

// Bound returns the arrays of the buffers of each stage of a plan: operands and results of its
// request, and its own temporaries and constants.
func Bound[A any](a Arrays[A], p *portable.Plan, from, to []A) [][]A {
	temporary, constant := make([]A, len(p.Scratch)), make([]A, len(p.Constants))
	for i, n := range p.Scratch {
		temporary[i] = a.Reserve(n)
	}
	for i, c := range p.Constants {
		constant[i] = a.Constant(c)
	}
	among := [...][]A{portable.InputRef: from, portable.OutputRef: to, portable.ScratchRef: temporary, portable.ConstantRef: constant}
	stages := make([][]A, len(p.Stages))
	for i := range p.Stages {
		for _, r := range p.Stages[i].Bind {
			stages[i] = append(stages[i], among[r.Kind][r.Index])
		}
	}
	return stages
}
