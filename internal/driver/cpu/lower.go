package cpu

import (
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
)

// register returns the type in which elements of type t are computed.
func register(t op.DType) op.DType {
	if t.Quantized() {
		return t
	}
	return ofIR(irhook.Register(uint8(t)))
}

// ofIR returns the element type of register type t.
func ofIR(t ir.Type) op.DType {
	switch t {
	case ir.I32:
		return op.I32
	case ir.U32:
		return op.U32
	case ir.Bool:
		return op.Bool
	}
	return op.F32
}

// apply adds an instruction over operands of the given types in memory and
// returns its value.
//
// A built-in operation has a kernel that computes all of it. A user's operation has no kernel, and
// is lowered to the codes of its expression. A simple operation with a scalar operand is lowered
// too, because the codes have kernels for that case.
func (b *builder) apply(in *driver.Instr, args []int, types []op.DType) (int, error) {
	if err := in.Op.Err(); err != nil {
		return 0, err
	}
	if in.Op == op.Cast {
		if _, err := in.Op.Types(&in.Attrs, types); err != nil {
			return 0, err
		}
		if to := op.DType(in.Attrs.I[0]); !to.Storage() {
			return b.cast(args[0], types[0], to), nil
		} else if to != types[0] {
			return b.narrow(in, args[0], types[0], to)
		}
		return args[0], nil
	}
	e, err := irhook.Expression(in.Op, &in.Attrs, types)
	if err != nil {
		return 0, err
	}
	if v, ok := b.parametric(in.Op, args); ok {
		return v, nil
	}
	mixed := false
	for _, a := range args {
		mixed = mixed || b.vals[a].when != block
	}
	mixed = mixed && b.changes(args) == block
	if in.Op.ID() >= 0 && !(mixed && simple(e)) {
		name := in.Op.Name()
		if t := register(types[len(types)-1]); t != op.F32 {
			name = t.String() + "." + name
		}
		if fn := kernelNamed(name); fn != nil {
			return b.emit(name, fn, ofIR(e.Type), b.params(&in.Attrs, in.Op), kernelNS(name), args...), nil
		}
	}
	return b.expression(e, &in.Attrs, args), nil
}

// parametric applies an operation whose parameter is its last operand, one number for all elements:
// the kernel takes its address.
func (b *builder) parametric(o *op.Operation, args []int) (int, bool) {
	f, last := o.Fixed(), len(args)-1
	if f == nil || len(f.Params()) != 1 || b.vals[args[last]].when != once {
		return 0, false
	}
	fn := kernelNamed(f.Name())
	if fn == nil {
		return 0, false
	}
	return b.emit(f.Name(), fn, op.F32, args[last], kernelNS(f.Name()), args[:last]...), true
}

// simple reports whether e is one code over operands and numbers.
func simple(e *ir.Node) bool {
	for _, a := range e.Operands() {
		if a.Code.Arity() > 0 {
			return false
		}
	}
	return true
}

// params returns the value whose address is the parameters' address in kernel calls, or -1.
func (b *builder) params(a *op.Attrs, o *op.Operation) int {
	n := len(o.Params())
	if n == 0 {
		return -1
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = a.Float(i)
	}
	return b.constant(v...)
}

// expression adds the codes of e.
func (b *builder) expression(e *ir.Node, a *op.Attrs, args []int) int {
	params := make([]int, 0, len(a.F))
	list, _ := ir.Flatten(e)
	for _, n := range list {
		for n.Code == ir.Param && len(params) <= n.Index {
			params = append(params, b.constant(a.Float(len(params))))
		}
	}
	return b.expressions([]*ir.Node{e}, args, params)[0]
}

// expressions adds the codes of expressions, and shared subexpressions only once.
func (b *builder) expressions(roots []*ir.Node, args, params []int) []int {
	list, at := ir.Flatten(roots...)
	place := make(map[*ir.Node]int, len(list))
	if last := len(list) - 1; last > 0 {
		// A root that is also a part of another root is needed twice.
		if k := slices.IndexFunc(list[:last], func(n *ir.Node) bool { return *n == *list[last] }); k >= 0 {
			list = list[:last]
			for i := range at {
				if at[i] == last {
					at[i] = k
				}
			}
		}
	}
	for _, n := range list {
		switch n.Code {
		case ir.Arg:
			place[n] = args[n.Index]
		case ir.Param:
			place[n] = params[n.Index]
		case ir.Const:
			place[n] = b.number(n.Value, n.Type)
		default:
			vs := make([]int, n.Code.Arity())
			for j, o := range n.Operands() {
				vs[j] = place[o]
			}
			place[n] = b.code(n, vs)
		}
	}
	results := make([]int, len(at))
	for i, k := range at {
		results[i] = place[list[k]]
	}
	return results
}

// number returns the value of the constant v of type t.
func (b *builder) number(v float64, t ir.Type) int {
	var x int
	switch t {
	case ir.F32:
		x = b.constant(float32(v))
	default:
		x = b.constant(math.Float32frombits(uint32(int64(v))))
	}
	b.vals[x].typ = ofIR(t)
	return x
}

// integerCodes are the operations that compute what a code does with integers, so that their
// kernels serve the code too. Shifts are excluded: a code takes the shift count modulo 32, an
// operation does not.
var integerCodes = map[ir.Code]*op.Operation{
	ir.Add: op.Add, ir.Sub: op.Sub, ir.Mul: op.Mul, ir.Neg: op.Neg, ir.Abs: op.Abs, ir.Min: op.Minimum, ir.Max: op.Maximum,
	ir.Eq: op.Equal, ir.Ne: op.NotEqual, ir.Lt: op.Less, ir.Le: op.LessEqual,
	ir.And: op.And, ir.Or: op.Or, ir.Xor: op.Xor, ir.Not: op.Not, ir.Select: op.Where,
}

// code adds one code over values.
func (b *builder) code(n *ir.Node, args []int) int {
	typ := ofIR(n.Type)
	name := "code." + n.Code.String()
	// The kernel of a selection or comparison of integers depends on the type of the operands.
	if t := ofIR(n.Operands()[n.Code.Arity()-1].Type); t == op.I32 || t == op.U32 {
		name = t.String() + "." + name
		if o := integerCodes[n.Code]; o != nil && kernelNamed(name) == nil {
			name = t.String() + "." + o.Name()
		}
	}
	switch n.Code {
	case ir.Convert:
		return b.cast(args[0], ofIR(n.Args[0].Type), typ)
	case ir.Bitcast:
		return b.emit("copy", kernelNamed("copy"), typ, -1, kernelNS("copy"), args[0])
	}
	if len(args) == 2 && b.changes(args) == block {
		x, y := args[0], args[1]
		switch {
		case b.vals[y].when != block:
			if fn := kernelNamed(name + ".vs"); fn != nil {
				return b.emit(name+".vs", fn, typ, y, kernelNS(name), x)
			}
		case b.vals[x].when != block:
			if n.Code.Commutes() {
				if fn := kernelNamed(name + ".vs"); fn != nil {
					return b.emit(name+".vs", fn, typ, x, kernelNS(name), y)
				}
			}
			if fn := kernelNamed(name + ".sv"); fn != nil {
				return b.emit(name+".sv", fn, typ, x, kernelNS(name), y)
			}
		}
	}
	fn := kernelNamed(name)
	if fn == nil {
		fn, name = evaluated(n), "reference "+name
	}
	return b.emit(name, fn, typ, -1, kernelNS(name), args...)
}

// evaluated returns a slow kernel that evaluates the code of n in float64, for the few codes
// without a kernel.
func evaluated(n *ir.Node) kernel {
	leaf := *n
	types := make([]ir.Type, n.Code.Arity())
	for i, a := range n.Operands() {
		types[i] = a.Type
		leaf.Args[i] = ir.NewArg(i, a.Type)
	}
	pool := sync.Pool{New: func() any { return ir.NewEvaluator(&leaf) }}
	out := n.Type
	return func(dst, x, y, z *float32, n int, _ *float32) {
		e := pool.Get().(*ir.Evaluator)
		defer pool.Put(e)
		in := [3]*float32{x, y, z}
		var args [3]float64
		d := words(dst, n)
		for i := range d {
			for j, t := range types {
				args[j] = numeral(words(in[j], n)[i], t)
			}
			d[i] = bitsOf(e.Eval(args[:len(types)], nil), out)
		}
	}
}

func numeral(bits uint32, t ir.Type) float64 {
	switch t {
	case ir.F32:
		return float64(math.Float32frombits(bits))
	case ir.I32:
		return float64(int32(bits))
	}
	return float64(bits)
}

func bitsOf(v float64, t ir.Type) uint32 {
	switch t {
	case ir.F32:
		return math.Float32bits(float32(v))
	case ir.I32:
		return uint32(int32(int64(v)))
	}
	return uint32(int64(v))
}

// words returns the bits of the n elements at p.
func words(p *float32, n int) []uint32 { return unsafe.Slice((*uint32)(unsafe.Pointer(p)), n) }

// narrow adds a conversion to a storage type. If the result is stored, the store converts x
// directly, because the kernels that store elements of one byte include the conversion.
func (b *builder) narrow(in *driver.Instr, x int, from, to op.DType) (int, error) {
	e, err := irhook.Expression(in.Op, &in.Attrs, []op.DType{from})
	if err != nil {
		return 0, err
	}
	y := b.expression(e, &in.Attrs, []int{x})
	if b.unrounded == nil {
		b.unrounded = make(map[int]unrounded)
	}
	if t := register(from); y != x && (t == op.F32 || t == register(to)) {
		b.unrounded[y] = unrounded{x, to}
	}
	return y, nil
}

// cast adds a conversion between element types, in registers. Elements of one byte are converted by
// the load, if there is a kernel for both.
func (b *builder) cast(x int, from, to op.DType) int {
	memory := from
	if from, to = register(from), register(to); from == to {
		return x
	}
	if load := len(b.insts) - 1; memory.Storage() && to == op.F32 && load >= 0 && b.insts[load].dst == x && b.insts[load].when == block {
		if in := b.insts[load]; in.name == "cast."+memory.String()+"."+from.String() {
			in.name, in.fn = castKernel(memory, to)
			in.ns, in.dst = kernelNS(in.name), b.add(value{typ: to, when: block, at: -1, wide: -1})
			b.insts = append(b.insts, in)
			return in.dst
		}
	}
	name, fn := castKernel(from, to)
	return b.emit(name, fn, to, -1, kernelNS(name), x)
}

// roundings has the codes that round to 16-bit types.
var roundings = map[op.DType]ir.Code{op.F16: ir.RoundF16, op.BF16: ir.RoundBF16}

// round adds the rounding of a float32 to a type of 16 bits. If package simd has a kernel that
// computes and rounds x, it adds a call of that kernel: if only one of the two results is used,
// prune removes the other.
func (b *builder) round(x int, t op.DType) int {
	y := -1
	if n := len(b.insts); n > 0 && b.insts[n-1].dst == x {
		in := b.insts[n-1]
		if fn := kernelNamed(in.name + "." + t.String()); fn != nil {
			v := b.vals[x]
			y = b.add(value{typ: op.F32, when: v.when, at: -1, wide: -1})
			in.name, in.fn, in.dst = in.name+"."+t.String(), fn, y
			b.insts = append(b.insts, in)
		}
	}
	if y < 0 {
		name := "code." + roundings[t].String()
		y = b.emit(name, kernelNamed(name), op.F32, -1, kernelNS(name), x)
	}
	if b.unrounded == nil {
		b.unrounded = make(map[int]unrounded)
	}
	b.unrounded[y] = unrounded{x, t}
	return y
}

// castKernel returns the kernel that converts elements, and its name. Package
// simd has one for each pair.
func castKernel(from, to op.DType) (string, kernel) {
	name := "cast." + from.String() + "." + to.String()
	return name, kernelNamed(name)
}
