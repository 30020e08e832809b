package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// kernelRequest has the arguments for which a kernel is chosen.
type kernelRequest struct {
	Sizes   string `placeholder:"SIZES" help:"Shapes of the operands, such as 1024x4096,4096; typical ones by default."`
	Type    string `placeholder:"TYPE" help:"Element type: f32, f16 or bf16; for matmul_q and matmul_experts the type of the weights, such as q4_k."`
	Variant string `placeholder:"NAME" help:"Variant of a portable kernel."`
}

// typical has the shapes for which an operation is shown. Other operations are shown for
// arrays of 1M elements, or rows of 4096.
var typical = map[*op.Operation]string{
	op.Attention:       "16x2048x128,16x2048x128,16x2048x128",
	op.Gather:          "32000x4096,512",
	op.TopK:            "64x4096",
	op.Sort:            "64x4096",
	op.Conv2D:          "8x64x56x56,64x64x3x3",
	op.Transpose:       "2048x2048",
	op.MatMul:          "4096x4096,4096x4096",
	op.MatVec:          "4096x4096,4096",
	op.MatMulQ:         "1x4096,4096x4096",
	op.MatMulExperts:   "1x1024,32x1024x1024,1x8",
	op.Rope:            "1024x32x128",
	op.LayerNorm:       "4096x4096,4096,4096",
	op.RMSNorm:         "4096x4096,4096",
	op.SliceAt:         "4096x128,1",
	op.Update:          "4096x128,1,16x128",
	op.Iota:            "1",
	op.Cholesky:        "1000x32x32",
	op.SolveTriangular: "1000x32x32,1000x32x4",
	op.LU:              "1000x32x32",
	op.Solve:           "1000x32x32,1000x32x4",
	op.QR:              "1000x32x32",
	op.Eigh:            "1000x32x32",
	op.SVD:             "1000x32x32",
	op.Scatter:         "32000x256,4096,4096x256",
}

// shapes returns the shapes of the operands of o.
func (r *kernelRequest) shapes(o *op.Operation) ([]op.Shape, error) {
	text := r.Sizes
	if text == "" {
		text = typical[o]
	}
	if text == "" {
		least, _ := o.Arity()
		one := "1048576"
		if o.Class() == op.Row {
			one = "4096x4096"
		}
		text = strings.TrimSuffix(strings.Repeat(one+",", least), ",")
	}
	var all []op.Shape
	for _, s := range strings.Split(text, ",") {
		var shape op.Shape
		for _, n := range strings.Split(s, "x") {
			v, err := strconv.Atoi(strings.TrimSpace(n))
			if err != nil || v < 0 {
				return nil, fmt.Errorf("%q is not a size: write sizes as 1024x4096,4096", s)
			}
			shape = append(shape, v)
		}
		all = append(all, shape)
	}
	return all, nil
}

// build returns the request for one operation that is not elementwise.
func (r *kernelRequest) build(o *op.Operation, target portable.Target) (*portable.Request, error) {
	shapes, err := r.shapes(o)
	if err != nil {
		return nil, err
	}
	d, weights := op.F32, op.Q4_K
	if r.Type != "" {
		t := typeNamed(r.Type)
		switch {
		case t == op.InvalidType:
			return nil, fmt.Errorf("unknown type %q", r.Type)
		case t.Quantized():
			weights = t
		default:
			d = t
		}
	}
	attrs := o.Defaults()
	switch {
	case o == op.TopK:
		attrs = op.TopKOpts{K: 8}.Attrs()
	case o == op.SliceAt:
		attrs = op.SliceAtOf(0, min(16, shapes[0][0]))
	case o == op.Iota:
		attrs = op.IotaOf(1 << 20)
	case o.Class() == op.Reduction && len(shapes[0]) > 1:
		attrs = attrs.Rows()
	}
	types := make([]op.DType, len(shapes))
	req := &portable.Request{Op: o, Attrs: attrs, Target: target, Variant: r.Variant}
	for i, s := range shapes {
		types[i] = d
		switch {
		case i > 0 && slices.Contains([]string{"ids", "positions", "at", "lengths"}, o.Inputs()[i]):
			types[i] = op.I32
		case o == op.Iota:
			types[i] = op.U32
		case (o == op.MatMulQ || o == op.MatMulExperts) && i == 1:
			types[i] = weights
		}
		req.In = append(req.In, portable.Array{Type: types[i], Shape: s})
	}
	made, err := o.Types(&attrs, types)
	if err != nil {
		return nil, err
	}
	results, err := o.Shapes(&attrs, shapes)
	if err != nil {
		return nil, err
	}
	for i, s := range results {
		req.Out = append(req.Out, portable.Array{Type: made[i], Shape: s})
	}
	return req, nil
}

// usualType returns the first element type that an operation accepts for all operands,
// or f32.
func usualType(o *op.Operation) op.DType {
	attrs := o.Defaults()
	for _, d := range op.DTypes() {
		if _, err := o.Types(&attrs, slices.Repeat([]op.DType{d}, len(o.Inputs()))); err == nil {
			return d
		}
	}
	return op.F32
}

func typeNamed(name string) op.DType {
	for _, t := range append(op.DTypes(), op.QuantTypes()...) {
		if strings.EqualFold(t.String(), name) {
			return t
		}
	}
	return op.InvalidType
}

// first returns the shape and the type of the values that the elementwise operations of ops take. If
// the first operation is not elementwise, it removes it from ops and sets its request.
func (r *kernelRequest) first(req **portable.Request, ops *[]*op.Operation, target portable.Target) (op.Shape, op.DType, error) {
	o := (*ops)[0]
	if o.Class() == op.Elementwise {
		shapes, err := r.shapes(o)
		if err != nil {
			return nil, op.InvalidType, err
		}
		d := usualType(o)
		if r.Type != "" {
			if d = typeNamed(r.Type); d == op.InvalidType || d.Quantized() {
				return nil, op.InvalidType, fmt.Errorf("unknown type of elements %q", r.Type)
			}
		}
		return shapes[0], d, nil
	}
	var err error
	if *req, err = r.build(o, target); err != nil {
		return nil, op.InvalidType, err
	}
	out := (*req).Out
	if len(out) != 1 {
		return nil, op.InvalidType, fmt.Errorf("%v has %d results: only an operation with one result can be fused with others", o, len(out))
	}
	*ops = (*ops)[1:]
	return out[0].Shape, out[0].Type, nil
}

// fused returns the request for operations joined by plus signs. All but the first must
// be elementwise. The first operand of each is the result of the previous one, and its
// other operands are in memory.
func (r *kernelRequest) fused(ops []*op.Operation, target portable.Target) (*portable.Request, error) {
	req := &portable.Request{Target: target, Variant: r.Variant}
	f := &driver.Fused{}
	shape, d, err := r.first(&req, &ops, target)
	if err != nil {
		return nil, err
	}
	n, err := shape.Size()
	if err != nil {
		return nil, err
	}
	// The operands come first, in the order in which they are used.
	total := 1
	for _, o := range ops {
		if o.Class() != op.Elementwise {
			return nil, fmt.Errorf("%v is not elementwise: only the first of several operations need not be elementwise", o)
		}
		_, k := o.Arity()
		total += k - 1
	}
	if total > 16 {
		return nil, fmt.Errorf("the operations have %d operands: one kernel has at most 16", total)
	}
	for range total {
		f.In = append(f.In, driver.Operand{Type: d, Broadcast: op.Full, N: n})
	}
	t, err := r.body(f, ops)
	if err != nil {
		return nil, err
	}
	exprs, err := f.Expressions()
	if err != nil {
		return nil, err
	}
	req.Post = &portable.Epilogue{Exprs: exprs}
	for i, x := range f.In {
		if i > 0 || req.Op == nil {
			req.Post.In = append(req.Post.In, portable.Operand{Type: x.Type, Broadcast: x.Broadcast, N: x.N, Layout: x.Layout})
		}
	}
	req.Out = []portable.Array{{Type: t, Shape: shape}}
	return req, nil
}

// body appends the operations to a program that has all its operands. It returns the type of the result.
func (r *kernelRequest) body(f *driver.Fused, ops []*op.Operation) (op.DType, error) {
	next, last := 1, 0
	d := f.In[0].Type
	t := d
	for i, o := range ops {
		_, k := o.Arity()
		args, types := []int{last}, []op.DType{t}
		for range k - 1 {
			args, types = append(args, next), append(types, d)
			next++
		}
		if o == op.Where && t != op.Bool {
			if i > 0 || r.Type != "" {
				return 0, fmt.Errorf("where needs the result of a comparison as its first operand")
			}
			f.In[0].Type, types[0] = op.Bool, op.Bool
		}
		attrs := o.Defaults()
		made, err := o.Types(&attrs, types)
		if err != nil {
			return 0, fmt.Errorf("%v: %w", o, err)
		}
		t, last = made[0], len(f.In)+i
		f.Body = append(f.Body, driver.Instr{Op: o, Attrs: attrs, Args: args, Type: t})
	}
	f.Out = []int{last}
	return t, nil
}

// named returns the request for a name: an operation, or several operations joined by
// plus signs. list is the command that lists the operations.
func (r *kernelRequest) named(name string, target portable.Target, list string) (*portable.Request, error) {
	var ops []*op.Operation
	for _, n := range strings.Split(strings.ToLower(name), "+") {
		o := op.Lookup(n)
		if o == nil {
			return nil, fmt.Errorf("unknown operation %q%s; %s lists the operations", n, similar(n), list)
		}
		ops = append(ops, o)
	}
	if len(ops) == 1 && ops[0].Class() != op.Elementwise {
		return r.build(ops[0], target)
	}
	return r.fused(ops, target)
}

// portable returns the kernels of the portable library for a request.
func (r *kernelRequest) portable(req *portable.Request) (*portable.Plan, error) {
	p, err := portable.For(req)
	if names := portable.Variants(req.Op); err != nil && r.Variant != "" && names != nil {
		return nil, fmt.Errorf("%w (variants: %s)", err, strings.Join(names, " "))
	}
	return p, err
}

// kernelBase returns the name of a kernel for operations joined by plus signs.
func kernelBase(name string) string { return strings.ReplaceAll(strings.ToLower(name), "+", "_") }

// describe writes the operands of a request.
func describe(r *portable.Request) string {
	var s []string
	array := func(a portable.Array) {
		if a.Shape != nil {
			s = append(s, fmt.Sprintf("%v%v", a.Type, a.Shape))
		}
	}
	for _, a := range r.In {
		array(a)
	}
	if r.Post != nil {
		for _, x := range r.Post.In {
			s = append(s, fmt.Sprintf("%v[%d]", x.Type, x.N))
		}
	}
	return strings.Join(s, " ")
}

func stageName(base string, i, n int) string {
	if n == 1 {
		return base
	}
	return fmt.Sprintf("%s_%d", base, i+1)
}

// writeWrapped writes words in indented lines that fit a terminal.
func writeWrapped(w io.Writer, words []string) {
	line := " "
	for _, word := range words {
		if len(line)+len(word) > 98 {
			fmt.Fprintln(w, line)
			line = " "
		}
		line += " " + word
	}
	fmt.Fprintln(w, line)
}
