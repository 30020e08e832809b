package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
)

// kernel is one function to write: an expression applied to every element.
type kernel struct {
	name  string   // name for lookup: relu, code.sub.vs, i32.add
	names []string // name and its aliases, which compute the same
	root  *ir.Node // not yet lowered
	// vector reports whether the kernel has assembly; otherwise it is plain Go only.
	vector bool
}

// symbol returns the name as a Go identifier: CodeSubVS.
func (k *kernel) symbol() string { return camel(k.name) }

// trig reports whether the kernel is sin, cos or tan, whose expansions are valid only up to
// ir.TrigLimit.
func (k *kernel) trig() bool {
	return k.root.Code == ir.Sin || k.root.Code == ir.Cos || k.name == op.Tan.Name()
}

// integerScalar reports whether the kernel has a scalar operand that is an integer. The module for WebAssembly has none of these:
// a block of equal elements serves instead, and calls are few there.
func (k *kernel) integerScalar() bool {
	return k.root.Type.Integer() && slices.ContainsFunc(k.root.Operands(), func(n *ir.Node) bool { return n.Code == ir.Bitcast && n.Args[0].Code == ir.Param })
}

// tailed reports whether AVX-512 has a faster kernel for x that is not far below 0. It has one if
// the argument of a normal distribution function is x itself.
func (k *kernel) tailed() bool {
	list, _ := ir.Flatten(k.root)
	for _, n := range list {
		if n.Code == ir.NormCDF && n.Args[0].Code == ir.Arg && n.Args[0].Index == 0 {
			return true
		}
	}
	return false
}

// formula returns the definition for a comment.
func (k *kernel) formula() string { return ir.Format(k.root, []string{"x", "y", "z"}, nil) }

func camel(name string) string {
	var b strings.Builder
	for _, w := range strings.FieldsFunc(name, func(r rune) bool { return r == '_' || r == '.' }) {
		switch w {
		case "vs", "sv":
			b.WriteString(strings.ToUpper(w))
		default:
			b.WriteString(strings.ToUpper(w[:1]) + w[1:])
		}
	}
	return b.String()
}

// kernels returns the functions to write: every elementwise operation of the catalogue, every code
// over float32 and Bool, the binary codes also with a scalar operand, and the integer kernels that
// the catalogue allows.
func kernels() []*kernel {
	l := &list{byKey: map[string]*kernel{}}
	for _, o := range op.Catalogue() {
		if o.Class() == op.Elementwise && o != op.Cast {
			l.operation(o, "", op.F32)
		}
	}
	for _, c := range ir.Codes() {
		l.code(c)
	}
	l.add("copy", ir.NewArg(0, ir.U32))
	l.add("fill", ir.NewParam(0))
	for _, d := range []op.DType{op.I32, op.U32} {
		for _, o := range op.Catalogue() {
			if o.Class() == op.Elementwise && o != op.Cast {
				l.operation(o, d.String()+".", d)
			}
		}
	}
	l.integerScalars()
	types := []op.DType{op.F32, op.I32, op.U32, op.Bool}
	for _, from := range types {
		for _, to := range types {
			if from != to {
				x := ir.NewArg(0, irhook.Register(uint8(from)))
				l.add(fmt.Sprintf("cast.%v.%v", from, to), ir.NewConvert(x, irhook.Register(uint8(to))))
			}
		}
	}
	l.rounded()
	return l.kernels
}

type list struct {
	kernels []*kernel
	byKey   map[string]*kernel
}

func (l *list) add(name string, root *ir.Node) {
	root = lanes(root)
	key := ir.Key(root)
	if k, ok := l.byKey[key]; ok {
		k.names = append(k.names, name)
		return
	}
	k := &kernel{name: name, names: []string{name}, root: root, vector: vectorial(root)}
	l.byKey[key] = k
	l.kernels = append(l.kernels, k)
}

// operation adds the kernel of an operation on operands of type d, if the operation supports d.
func (l *list) operation(o *op.Operation, prefix string, d op.DType) {
	n, _ := o.Arity()
	in := make([]op.DType, n)
	for i := range in {
		in[i] = d
	}
	a := o.Defaults()
	if o == op.Where {
		in[0] = op.Bool
	}
	root, err := irhook.Expression(o, &a, in)
	if err != nil || root.Code == ir.Bitcast { // a bitcast is a copy
		return
	}
	l.add(prefix+o.Name(), root)
}

// code adds the kernel of a code over F32, or over Bool if the code does not take F32.
func (l *list) code(c ir.Code) {
	switch c {
	case ir.Convert, ir.Bitcast, ir.Shl, ir.Shr:
		return
	}
	t := ir.F32
	switch c {
	case ir.And, ir.Or, ir.Xor, ir.Not:
		t = ir.Bool
	}
	var args []*ir.Node
	for i := range c.Arity() {
		args = append(args, ir.NewArg(i, t))
	}
	if c == ir.Select {
		args[0] = ir.NewArg(0, ir.Bool)
	}
	l.add("code."+c.String(), build(c, args...))
	if c.Arity() == 2 && t == ir.F32 {
		x, p := ir.NewArg(0, t), ir.NewParam(0)
		l.add("code."+c.String()+".vs", build(c, x, p))
		l.add("code."+c.String()+".sv", build(c, p, x))
	}
}

// integerScalars adds the kernels of integers with a scalar operand, whose bits are the parameter.
func (l *list) integerScalars() {
	for _, d := range []op.DType{op.I32, op.U32} {
		for _, k := range []struct {
			o *op.Operation
			c ir.Code
		}{{op.Add, ir.Add}, {op.Sub, ir.Sub}, {op.Mul, ir.Mul}, {op.Minimum, ir.Min}, {op.Maximum, ir.Max}} {
			t := ir.I32
			if d == op.U32 && (k.c == ir.Min || k.c == ir.Max) {
				t = ir.U32
			}
			x, p := ir.NewArg(0, t), ir.NewBitcast(ir.NewParam(0), t)
			l.add(d.String()+"."+k.o.Name()+".vs", build(k.c, x, p))
			if !k.c.Commutes() {
				l.add(d.String()+"."+k.o.Name()+".sv", build(k.c, p, x))
			}
		}
	}
}

func build(c ir.Code, args ...*ir.Node) *ir.Node {
	n, err := ir.New(c, args...)
	check(err)
	return n
}

// lanes returns root with operands that are only moved retyped as U32, so that every machine passes
// their bits unchanged, also the bits of NaN.
func lanes(root *ir.Node) *ir.Node {
	if root.Code != ir.Select || root.Args[1].Code != ir.Arg || root.Args[2].Code != ir.Arg {
		return root
	}
	return build(ir.Select, root.Args[0], ir.NewArg(root.Args[1].Index, ir.U32), ir.NewArg(root.Args[2].Index, ir.U32))
}

// longest is the largest number of nodes of an integer expression that gets assembly. Integer
// powers have 200 nodes and few callers.
const longest = 150

// vectorial reports whether all back ends have instructions for root. AVX2 lacks conversions
// between floats and unsigned integers.
func vectorial(root *ir.Node) bool {
	list, _ := ir.Flatten(root)
	if root.Type.Integer() && len(list) > longest {
		return false
	}
	for _, n := range list {
		if n.Code != ir.Convert {
			continue
		}
		if from, to := n.Args[0].Type, n.Type; from == ir.U32 && to == ir.F32 || from == ir.F32 && to == ir.U32 {
			return false
		}
	}
	return true
}
