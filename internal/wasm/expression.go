package wasm

import (
	"math"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// Expression is a scalar expression of package ir, prepared to be written as instructions
// on vectors of four lanes. A Bool in a register has all bits of its lane set, or none.
type Expression struct {
	root  *ir.Node
	list  []*ir.Node
	uses  map[*ir.Node]int
	exact bool // each Fma is rounded once
}

// Lower prepares an expression of float32, int32, uint32 and Bool. It returns an error if
// there are no instructions for one of its codes.
func Lower(root *ir.Node) (*Expression, error) {
	exact := false
	before, _ := ir.Flatten(root)
	for _, n := range before {
		exact = exact || n.Code == ir.Fma
	}
	return expression(ir.Lower(ir.Map(root, roundedNaN), func(c ir.Code) bool { return c == ir.CopySign || c == ir.Round || c == ir.Unfused }), exact)
}

// fewCodes is the number of codes up to which an expression counts as an Fma of the user, which
// must be rounded once. In longer expressions only the Fma that expansions need are rounded once.
const fewCodes = 3

// roundedNaN makes a rounding to a type of 16 bits clear the bits of a NaN that the type does not
// have.
func roundedNaN(n *ir.Node) *ir.Node {
	mask := uint32(0xffff0000)
	switch n.Code {
	case ir.RoundF16:
		mask = 0xffffe000
	case ir.RoundBF16:
	default:
		return n
	}
	x, word := n.Args[0], func(w uint32) *ir.Node { return ir.NewConst(float64(w), ir.U32) }
	quiet := node(ir.And, node(ir.Or, ir.NewBitcast(x, ir.U32), word(1<<22)), word(mask))
	return node(ir.Select, node(ir.Eq, x, x), n, ir.NewBitcast(quiet, ir.F32))
}

func node(c ir.Code, args ...*ir.Node) *ir.Node {
	n, err := ir.New(c, args...)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return n
}

// Expanded prepares an expression in which all codes have instructions. Products of its Fma
// may be rounded. It panics if a code has no instructions, which is a bug of the caller.
func Expanded(root *ir.Node) *Expression {
	e, err := expression(root, false)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return e
}

func expression(root *ir.Node, exact bool) (*Expression, error) {
	e := &Expression{uses: map[*ir.Node]int{}}
	e.list, _ = ir.Flatten(root)
	e.exact = exact && e.Len() <= fewCodes
	e.root = e.list[len(e.list)-1]
	e.uses[e.root]++
	for _, n := range e.list {
		if !known(n) {
			return nil, fmt.Errorf("wasm: no instructions for %v of %v", n.Code, n.Type)
		}
		for _, a := range n.Operands() {
			e.uses[a]++
		}
	}
	return e, nil
}

// Type returns the type of the result.
func (e *Expression) Type() ir.Type { return e.root.Type }

// Params returns the number of parameters up to the last one that is used.
func (e *Expression) Params() int {
	n := 0
	for _, m := range e.list {
		if m.Code == ir.Param {
			n = max(n, m.Index+1)
		}
	}
	return n
}

// Uses reports whether operand i is used.
func (e *Expression) Uses(i int) bool {
	for _, n := range e.list {
		if n.Code == ir.Arg && n.Index == i {
			return true
		}
	}
	return false
}

// Len returns the number of codes, by which loops choose how often to unroll their body.
func (e *Expression) Len() (n int) {
	for _, m := range e.list {
		if m.Code.Arity() > 0 {
			n++
		}
	}
	return n
}

var floatOps = map[ir.Code]Op{ir.Add: F32x4Add, ir.Sub: F32x4Sub, ir.Mul: F32x4Mul, ir.Div: F32x4Div, ir.Min: F32x4Min, ir.Max: F32x4Max,
	ir.Neg: F32x4Neg, ir.Abs: F32x4Abs, ir.Sqrt: F32x4Sqrt, ir.Floor: F32x4Floor, ir.Ceil: F32x4Ceil, ir.Trunc: F32x4Trunc,
	ir.Round: F32x4Nearest, ir.Eq: F32x4Eq, ir.Ne: F32x4Ne, ir.Lt: F32x4Lt, ir.Le: F32x4Le}

var signedOps = map[ir.Code]Op{ir.Add: I32x4Add, ir.Sub: I32x4Sub, ir.Mul: I32x4Mul, ir.Min: I32x4MinS, ir.Max: I32x4MaxS,
	ir.Neg: I32x4Neg, ir.Abs: I32x4Abs, ir.Eq: I32x4Eq, ir.Ne: I32x4Ne, ir.Lt: I32x4LtS, ir.Le: I32x4LeS, ir.Shl: I32x4Shl, ir.Shr: I32x4ShrS}

var unsignedOps = map[ir.Code]Op{ir.Add: I32x4Add, ir.Sub: I32x4Sub, ir.Mul: I32x4Mul, ir.Min: I32x4MinU, ir.Max: I32x4MaxU,
	ir.Neg: I32x4Neg, ir.Eq: I32x4Eq, ir.Ne: I32x4Ne, ir.Lt: I32x4LtU, ir.Le: I32x4LeU, ir.Shl: I32x4Shl, ir.Shr: I32x4ShrU}

var logicOps = map[ir.Code]Op{ir.And: V128And, ir.Or: V128Or, ir.Xor: V128Xor, ir.Not: V128Not}

// opOf returns the instruction of a code over operands of a type.
func opOf(c ir.Code, t ir.Type) (Op, bool) {
	if op, ok := logicOps[c]; ok {
		return op, true
	}
	var ops map[ir.Code]Op
	switch t {
	case ir.F32:
		ops = floatOps
	case ir.I32:
		ops = signedOps
	case ir.U32:
		ops = unsignedOps
	}
	op, ok := ops[c]
	return op, ok
}

// known reports whether there are instructions for n.
func known(n *ir.Node) bool {
	switch n.Code {
	case ir.Arg, ir.Param, ir.Const, ir.Bitcast, ir.Fma, ir.CopySign, ir.Select, ir.Convert:
		return true
	case ir.Shl, ir.Shr:
		return n.Args[1].Code == ir.Const
	}
	_, ok := opOf(n.Code, n.Args[0].Type)
	return ok
}

// Body is an expression in a function. Begin loads its constants and parameters into variables,
// and Emit appends the code for one vector.
type Body struct {
	f     *Func
	e     *Expression
	fixed map[*ir.Node]Local
	bits  map[uint32]Local
	free  []Local // variables for values that are used more than once
	begun bool    // all constants are in variables
}

// Begin appends code that loads constants, and parameters from the address in p, into variables.
func (e *Expression) Begin(f *Func, p Local) *Body {
	b := &Body{f: f, e: e, fixed: map[*ir.Node]Local{}, bits: map[uint32]Local{}}
	for _, n := range e.list {
		switch n.Code {
		case ir.Const:
			if !e.counts(n) {
				b.fixed[n] = b.constant(constBits(n))
			}
		case ir.Param:
			l := f.Local(V128)
			f.Get(p)
			f.Load(V128Load32Splat, 4*n.Index)
			f.Set(l)
			b.fixed[n] = l
		case ir.CopySign:
			b.constant(signBit ^ math.MaxUint32)
		case ir.Convert:
			b.constant(0)
			b.constant(1)
		}
	}
	for _, n := range e.list { // Bool is stored as 1 and loaded as a mask
		if n.Type == ir.Bool && (n.Code == ir.Arg || n == e.root) {
			b.constant(0)
			b.constant(1)
		}
	}
	if e.exact {
		b.constant(0)
	}
	b.begun = true
	return b
}

const signBit = 1 << 31

// counts reports whether all uses of n are as the count of a shift.
func (e *Expression) counts(n *ir.Node) bool {
	for _, m := range e.list {
		for i, a := range m.Operands() {
			if a == n && !((m.Code == ir.Shl || m.Code == ir.Shr) && i == 1) {
				return false
			}
		}
	}
	return n != e.root
}

func constBits(n *ir.Node) uint32 {
	switch {
	case n.Type == ir.F32:
		return math.Float32bits(float32(n.Value))
	case n.Type == ir.Bool && n.Value != 0:
		return math.MaxUint32
	}
	return uint32(int64(n.Value))
}

// constant returns a variable with a constant in all lanes.
func (b *Body) constant(w uint32) Local {
	l, ok := b.bits[w]
	if !ok {
		if b.begun {
			panic("BUG: a constant is not loaded before its loop")
		}
		l = b.f.Local(V128)
		b.f.Splat(w)
		b.f.Set(l)
		b.bits[w] = l
	}
	return l
}

// Emit appends code that leaves the value of the expression on the stack. load pushes
// operand i.
func (b *Body) Emit(load func(i int)) {
	p := &printer{Body: b, load: load, done: map[*ir.Node]Local{}, left: map[*ir.Node]int{}}
	for n, u := range b.e.uses {
		p.left[n] = u
	}
	p.value(b.e.root)
	b.free = append(b.free, p.taken...)
}

// EmitWord is Emit for a result that is stored in memory: a Bool is 1 or 0.
func (b *Body) EmitWord(load func(i int)) {
	b.Emit(load)
	if b.e.root.Type == ir.Bool {
		b.f.Get(b.constant(1))
		b.f.Op(V128And)
	}
}

// A printer appends the code of a body for one vector.
type printer struct {
	*Body
	load  func(i int)
	done  map[*ir.Node]Local
	left  map[*ir.Node]int // the number of uses that are still to be printed
	taken []Local
}

func (p *printer) local() Local {
	var l Local
	if k := len(p.free); k > 0 {
		l, p.free = p.free[k-1], p.free[:k-1]
	} else {
		l = p.f.Local(V128)
	}
	p.taken = append(p.taken, l)
	return l
}

// value pushes n.
func (p *printer) value(n *ir.Node) {
	if l, ok := p.fixed[n]; ok {
		p.f.Get(l)
		return
	}
	if l, ok := p.done[n]; ok {
		p.f.Get(l)
		return
	}
	p.compute(n)
	if p.e.uses[n] > 1 {
		l := p.local()
		p.f.Tee(l)
		p.done[n] = l
	}
}

func (p *printer) operands(n *ir.Node) {
	for _, a := range n.Operands() {
		p.value(a)
	}
}

// compute pushes the value of a node that is not in a variable.
func (p *printer) compute(n *ir.Node) {
	f := p.f
	switch n.Code {
	case ir.Arg:
		p.load(n.Index)
		if n.Type == ir.Bool {
			f.Get(p.constant(0))
			f.Op(I32x4Ne)
		}
	case ir.Bitcast:
		p.value(n.Args[0])
	case ir.Fma:
		p.fma(n)
	case ir.CopySign:
		p.operands(n)
		f.Get(p.constant(signBit ^ math.MaxUint32))
		f.Op(V128Bitselect)
	case ir.Select:
		p.choose(n)
	case ir.Convert:
		p.convert(n)
	case ir.Shl, ir.Shr:
		op, _ := opOf(n.Code, n.Args[0].Type)
		p.value(n.Args[0])
		f.Int(int32(n.Args[1].Value))
		f.Op(op)
	case ir.Min, ir.Max:
		p.extreme(n)
	default:
		p.operands(n)
		op, _ := opOf(n.Code, n.Args[0].Type)
		f.Op(op)
	}
}

// choose pushes a Select. A choice between a number and 0 is a bitwise and with the condition.
func (p *printer) choose(n *ir.Node) {
	cond, a, b := n.Args[0], n.Args[1], n.Args[2]
	switch {
	case isZero(a):
		p.value(b)
		p.value(cond)
		p.f.Op(V128AndNot)
	case isZero(b):
		p.value(a)
		p.value(cond)
		p.f.Op(V128And)
	default:
		p.value(a)
		p.value(b)
		p.value(cond)
		p.f.Op(V128Bitselect)
	}
}

// isZero reports whether n is a constant without set bits: not -0.
func isZero(n *ir.Node) bool { return n.Code == ir.Const && constBits(n) == 0 }

// extreme pushes a maximum or minimum. With a constant operand it needs one comparison, for which
// processors have an instruction. Otherwise the instruction of WebAssembly takes several of the processor.
func (p *printer) extreme(n *ir.Node) {
	op, _ := opOf(n.Code, n.Args[0].Type)
	x, c := n.Args[0], n.Args[1]
	if x.Code == ir.Const {
		x, c = c, x
	}
	if n.Type == ir.F32 && c.Code == ir.Const && c.Value == c.Value {
		op = map[ir.Code]Op{ir.Min: F32x4PMin, ir.Max: F32x4PMax}[n.Code]
	}
	p.value(x)
	p.value(c)
	p.f.Op(op)
}

// convert pushes a conversion by value.
func (p *printer) convert(n *ir.Node) {
	from, f := n.Args[0].Type, p.f
	p.value(n.Args[0])
	switch {
	case from == n.Type:
	case n.Type == ir.Bool:
		f.Get(p.constant(0))
		f.Op(map[bool]Op{true: F32x4Ne, false: I32x4Ne}[from == ir.F32])
	case from == ir.Bool:
		f.Get(p.constant(1))
		f.Op(V128And)
		if n.Type == ir.F32 {
			f.Op(F32x4ConvertS)
		}
	case n.Type == ir.F32:
		f.Op(map[bool]Op{true: F32x4ConvertS, false: F32x4ConvertU}[from == ir.I32])
	case from == ir.F32:
		f.Op(map[bool]Op{true: I32x4TruncSatS, false: I32x4TruncSatU}[n.Type == ir.I32])
	}
}

// fma pushes a·b + c. There is no instruction for it: either the product is rounded
// too, or product and sum are computed in float64.
func (p *printer) fma(n *ir.Node) {
	if !p.e.exact && ir.RoundsProduct(n) {
		to, fixed := p.fixed[n.Args[2]]
		if !fixed {
			p.value(n.Args[2])
			to = p.local()
			p.f.Set(to)
		}
		p.value(n.Args[0])
		p.value(n.Args[1])
		p.f.MulAdd(to)
		return
	}
	f := p.f
	var in [3]Local
	for i, a := range n.Args {
		p.value(a)
		in[i] = p.local()
		f.Set(in[i])
	}
	for half := range 2 {
		for i, l := range in {
			f.Get(l)
			if half == 1 {
				f.Get(l)
				f.ShuffleWords(2, 3, 2, 3)
			}
			f.Op(F64x2Promote)
			if i == 1 {
				f.Op(F64x2Mul)
			}
		}
		if p.e.exact {
			p.sumToOdd()
		} else {
			f.Op(F64x2Add)
		}
		f.Op(F32x4Demote)
	}
	f.ShuffleWords(0, 1, 4, 5)
}

// sumToOdd replaces two vectors of float64 by their sum, rounded to odd: the last bit is set
// if the sum is not exact. Rounding this sum to float32 gives the same result as one rounding
// of the exact sum.
func (p *printer) sumToOdd() {
	f := p.f
	a, c, s, t, e := p.local(), p.local(), p.local(), p.local(), p.local()
	f.Set(c)
	f.Set(a)
	sub := func(x, y Local) { f.Get(x); f.Get(y); f.Op(F64x2Sub) }
	f.Get(a)
	f.Get(c)
	f.Op(F64x2Add)
	f.Set(s)
	sub(s, a)
	f.Set(t)
	// e = (a - (s - t)) + (c - t)
	f.Get(a)
	sub(s, t)
	f.Op(F64x2Sub)
	sub(c, t)
	f.Op(F64x2Add)
	f.Set(e)
	zero := p.constant(0)
	// In each half of the vector, if the last bit of s is 0 and e is not 0: add 1 to the bits of s
	// if e has the sign of s, and -1 otherwise.
	f.Get(s)
	f.Get(e)
	f.Get(zero)
	f.Op(F64x2Lt)
	f.Get(s)
	f.Get(zero)
	f.Op(F64x2Lt, V128Xor) // -1 (all bits set) if the signs differ
	p.oddOne()
	f.Op(V128Or) // -1 or 1
	f.Get(e)
	f.Get(zero)
	f.Op(F64x2Ne, V128And) // 0 if e is 0
	f.Get(e)
	f.Get(e)
	f.Op(F64x2Sub)
	f.Get(zero)
	f.Op(F64x2Ne, V128Not, V128And) // 0 if it is not finite
	f.Get(s)
	p.oddOne()
	f.Op(V128And)
	f.Get(zero)
	f.Op(I64x2Eq, V128And) // 0 if the last bit of s is set
	f.Op(I64x2Add)
}

// oddOne pushes 1 in both halves of a vector.
func (p *printer) oddOne() {
	p.f.Int(1)
	p.f.Op(I64ExtendU, I64x2Splat)
}
