package wgsl

import (
	"sync"

	"github.com/rayo-go/rayo/internal/incomparable"
	"github.com/rayo-go/rayo/internal/ir"
)

// The printer replaces built-in functions that may have large errors by functions that compute the
// expansion of package ir, which is accurate to a few units in the last place. The language allows
// an error of 3+2|x| units for exp, an absolute error of 2^-11 for sin, and 1e-5 for tanh, and some
// functions have no stated accuracy. Only inverseSqrt, with an error of two units, is used
// directly.

// native reports whether the built-in function for a code is accurate enough.
func native(c ir.Code) bool { return c == ir.Round || c == ir.Recip || c == ir.Rsqrt }

// nativeNear is native for targets with Approximate.
func nativeNear(c ir.Code) bool {
	return native(c) || c == ir.Exp2Approx || c == ir.RecipApprox || c == ir.FmaUnit
}

// composition is a function that computes an expansion, for each width.
type composition struct {
	_ incomparable.Type

	text [3]string
	fns  [3][numFns]uint8 // the functions that they call
}

// compositions returns the compositions of a code: the first for any operand and, for targets with
// Approximate, one for operands in each known range, in the order of [ir.Narrows].
func compositions(c ir.Code, t *Target) []*composition {
	switch {
	case t.Unfused:
		return unfusedCompositions.of(c)
	case t.Approximate:
		return nearCompositions.of(c)
	}
	return fusedCompositions.of(c)
}

var (
	fusedCompositions   compositionTable
	unfusedCompositions = compositionTable{target: Target{Unfused: true}}
	nearCompositions    = compositionTable{target: Target{Approximate: true}}
)

// compositionTable has the compositions for a target. Each is made when a kernel first needs it.
type compositionTable struct {
	target Target
	mu     sync.Mutex
	made   map[ir.Code][]*composition
}

func (m *compositionTable) of(c ir.Code) []*composition {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made[c] == nil {
		if m.made == nil {
			m.made = make(map[ir.Code][]*composition)
		}
		m.made[c] = composeCode(c, &m.target)
	}
	return m.made[c]
}

func composeCode(c ir.Code, t *Target) []*composition {
	if c == ir.Sin || c == ir.Cos {
		return []*composition{composeTrig(c, t)}
	}
	list := []*composition{compose(expansion(c, t), c.Arity(), composedName(c), t)}
	if t.Approximate {
		for i, r := range ir.Narrows(c) {
			list = append(list, compose(ir.LowerNarrow(c, r.Operand, nativeNear), 1, reductionName(c, i+1), t))
		}
	}
	return list
}

// composedCodes lists the codes that are printed as calls of compositions.
func composedCodes() []ir.Code {
	var cs []ir.Code
	for _, c := range ir.Codes() {
		if codeTable[c].form == composed {
			cs = append(cs, c)
		}
	}
	return cs
}

// composedName returns the name of the composition. The suffix distinguishes it from the built-in
// function, which often has the same name.
func composedName(c ir.Code) string { return c.String() + "_f" }

// reductionName returns the name of composition number mode of a code. Number 0 is for any operand.
func reductionName(c ir.Code, mode int) string {
	if mode == 0 {
		return composedName(c)
	}
	return c.String() + "_" + ir.Narrows(c)[mode-1].Name + "_f"
}

func composedNames() []string {
	var s []string
	for _, c := range composedCodes() {
		s = append(s, composedName(c))
		for i := range ir.Narrows(c) {
			s = append(s, reductionName(c, i+1))
		}
		if c == ir.Sin || c == ir.Cos {
			s = append(s, nearName(c), turnedName(c))
		}
	}
	return s
}

// expansion returns the arithmetic expansion of a code.
func expansion(c ir.Code, t *Target) *ir.Node {
	args := []*ir.Node{ir.NewArg(0, ir.F32), ir.NewArg(1, ir.F32)}[:c.Arity()]
	n, err := ir.New(c, args...)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	if t.Approximate && ir.ApproxUnits(c) > 0 {
		return ir.Lower(n, nativeNear)
	}
	if t.Unfused {
		n = withoutMagic(ir.Lower(n, func(c ir.Code) bool { return native(c) || c == ir.Unfused }))
		return withoutAssociation(withoutFma(n))
	}
	return withoutAssociation(withoutMagic(ir.Lower(n, native)))
}

// withoutFma replaces each Fma whose product may be rounded by a product and a sum.
func withoutFma(n *ir.Node) *ir.Node {
	return ir.Map(n, func(n *ir.Node) *ir.Node {
		if n.Code != ir.Fma || !ir.RoundsProduct(n) {
			return n
		}
		product := &ir.Node{Code: ir.Mul, Type: n.Type, Args: [3]*ir.Node{n.Args[0], n.Args[1]}}
		return &ir.Node{Code: ir.Add, Type: n.Type, Args: [3]*ir.Node{product, n.Args[2]}}
	})
}

// withoutAssociation multiplies a sum by a computed 1 if an expression uses the rounding of the
// sum, as (x+y)-x does. Otherwise Mesa's and NVIDIA's compilers simplify the expression to y, and
// the rounding error to 0.
func withoutAssociation(n *ir.Node) *ir.Node {
	same := func(a, b *ir.Node) bool {
		return a == b || a.Code == ir.Const && b.Code == ir.Const && a.Type == b.Type && a.Value == b.Value
	}
	// of reports whether n is a sum with the term x, or a difference with x as its first operand.
	of := func(n, x *ir.Node) bool {
		return n.Code == ir.Add && (same(n.Args[0], x) || same(n.Args[1], x)) || n.Code == ir.Sub && same(n.Args[0], x)
	}
	// hidden returns a sum times the minimum of 1 and a number with a high bit set.
	hidden := func(sum *ir.Node) *ir.Node {
		bits := &ir.Node{Code: ir.Bitcast, Type: ir.U32, Args: [3]*ir.Node{sum}}
		large := &ir.Node{Code: ir.Or, Type: ir.U32, Args: [3]*ir.Node{bits, ir.NewConst(1<<31, ir.U32)}}
		least := &ir.Node{Code: ir.Min, Type: ir.U32, Args: [3]*ir.Node{large, ir.NewConst(1, ir.U32)}}
		return &ir.Node{Code: ir.Mul, Type: ir.F32, Args: [3]*ir.Node{sum, ir.NewConvert(least, ir.F32)}}
	}
	return ir.Map(n, func(n *ir.Node) *ir.Node {
		if n.Code != ir.Sub || n.Type != ir.F32 {
			return n
		}
		a, b := n.Args[0], n.Args[1]
		switch {
		case of(a, b):
			a = hidden(a)
		case of(b, a):
			b = hidden(b)
		default:
			return n
		}
		return &ir.Node{Code: ir.Sub, Type: ir.F32, Args: [3]*ir.Node{a, b}}
	})
}

// withoutMagic replaces the expansions' way to round a number by the function round. The expansions
// add 1.5·2^23 and subtract it again, or use the bits of the sum. A compiler that treats sums as
// associative, as Metal's and Direct3D's may, would remove the rounding.
func withoutMagic(n *ir.Node) *ir.Node {
	magic := ir.ExpansionConstants().Magic
	isMagic := func(n *ir.Node) bool { return n.Code == ir.Const && n.Value == magic }
	// rounded returns round(x) if t is the sum of x and magic.
	rounded := func(t *ir.Node) *ir.Node {
		switch {
		case t.Code == ir.Add && isMagic(t.Args[1]):
			return &ir.Node{Code: ir.Round, Type: ir.F32, Args: [3]*ir.Node{t.Args[0]}}
		case t.Code == ir.Fma && isMagic(t.Args[2]):
			mul := &ir.Node{Code: ir.Mul, Type: ir.F32, Args: [3]*ir.Node{t.Args[0], t.Args[1]}}
			return &ir.Node{Code: ir.Round, Type: ir.F32, Args: [3]*ir.Node{mul}}
		}
		return nil
	}
	return ir.Map(n, func(n *ir.Node) *ir.Node {
		switch {
		case n.Code == ir.Sub && isMagic(n.Args[1]):
			if r := rounded(n.Args[0]); r != nil {
				return r
			}
		case n.Code == ir.Bitcast:
			// The bits of the sum are the bits of magic plus the integer, and the expansions shift
			// the bits of magic out.
			if r := rounded(n.Args[0]); r != nil {
				return ir.NewConvert(r, ir.I32)
			}
		}
		return n
	})
}

// compose prints the function of the given name that computes an expansion.
func compose(expansion *ir.Node, arity int, name string, t *Target) *composition {
	list, _ := ir.Flatten(expansion)
	k := &composition{}
	for n := range widthSuffix {
		p, first := listing(list, uint8(1<<n))
		w := &printer{}
		w.reset(p, t)
		w.composing = true
		w.s("fn " + name + widthSuffix[n] + "(")
		for i, name := range []string{"x", "y"}[:arity] {
			if i > 0 {
				w.s(", ")
			}
			w.s(name + ": " + typeNames[ir.F32][n])
		}
		w.s(") -> " + typeNames[ir.F32][n] + " {\n")
		if err := w.survey(); err != nil {
			panic("BUG: " + err.Error())
		}
		last := ir.Value(len(p.Code) - 1)
		w.values[last].uses = 1
		w.count()
		for i := 1; i < first; i++ {
			w.values[i].how, w.values[i].name = asName, uint8(nameX+i)
		}
		w.indent = 1
		w.code(first)
		w.begin(1)
		w.s("return ")
		w.expr(last, anything)
		w.s(";\n}")
		k.text[n] = string(w.buf[:w.n])
		k.fns[n] = w.fns
	}
	return k
}

// listing converts flattened nodes to instructions on numbers of a width. The operands come first,
// as loads of placeholder variables. first is the index of the first instruction after them.
func listing(list []*ir.Node, width uint8) (p *ir.Program, first int) {
	p = &ir.Program{Name: "expansion", Local: [3]uint32{1, 1, 1}, Code: make([]ir.Instr, 1, len(list)+3)}
	at := make(map[*ir.Node]ir.Value, len(list))
	arity := 0
	for _, n := range list {
		if n.Code == ir.Arg {
			arity = max(arity, n.Index+1)
		}
	}
	for i := range arity {
		p.Vars = append(p.Vars, ir.Var{Name: shortNames[nameX+i], Type: ir.F32, Width: width})
		p.Code = append(p.Code, ir.Instr{Code: ir.LoadVar, Type: ir.F32, Width: width, Imm: uint32(i)})
	}
	first = len(p.Code)
	for _, n := range list {
		if n.Code == ir.Arg {
			at[n] = ir.Value(1 + n.Index)
			continue
		}
		in := ir.Instr{Code: n.Code, Type: n.Type, Width: width}
		switch n.Code {
		case ir.Const:
			in.Width, in.Imm = 1, n.Bits()
		case ir.Convert:
			in.Flag = inRange
		}
		for i, a := range n.Operands() {
			in.Args[i] = at[a]
		}
		p.Code = append(p.Code, in)
		if n.Code == ir.Const && width > 1 {
			p.Code = append(p.Code, ir.Instr{Code: ir.Splat, Type: n.Type, Width: width, Args: [3]ir.Value{ir.Value(len(p.Code) - 1)}})
		}
		at[n] = ir.Value(len(p.Code) - 1)
	}
	return p, first
}

// inRange is the Flag of a Convert whose operand is known to fit. Programs do not contain it.
const inRange = 0x80

// composedList returns composedCodes, computed once.
var composedList = sync.OnceValue(composedCodes)
