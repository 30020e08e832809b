package ir

// ExpandMath returns p with every function that a target does not have replaced
// by arithmetic, as [Lower] does for expressions: the same arithmetic with the
// same errors, on vectors by component, and on half floats in float32, rounded
// once. native is as for Lower; nil means none. p, which must be well
// formed, is not changed, and returned if there is nothing to replace.
func ExpandMath(p *Program, native func(Code) bool) *Program {
	e := expander{p: p, native: native}
	needed := false
	for i := range p.Code {
		needed = needed || e.expands(p.Code[i].Code)
	}
	if !needed {
		return p
	}
	return e.run()
}

type expander struct {
	p      *Program
	native func(Code) bool
	bodies [numCodes][]*Node // of the expansions that were needed

	code []Instr
	pos  []uintptr
	at   uintptr // position of the instruction that is replaced
}

func (e *expander) expands(c Code) bool {
	return c < numCodes && expansionOf(c) != nil && (e.native == nil || !e.native(c))
}

func (e *expander) emit(in Instr) Value {
	e.code = append(e.code, in)
	if e.p.Pos != nil {
		e.pos = append(e.pos, e.at)
	}
	return Value(len(e.code) - 1)
}

func (e *expander) run() *Program {
	p := e.p
	place := make([]Value, len(p.Code)) // of each old instruction
	for i, in := range p.Code {
		if p.Pos != nil {
			e.at = p.Pos[i]
		}
		_, n := in.Operands()
		for k := range min(n, 3) {
			in.Args[k] = place[in.Args[k]]
		}
		if n == 4 {
			in.Imm = uint32(place[in.Imm])
		}
		if e.expands(in.Code) {
			place[i] = e.expand(in)
		} else {
			place[i] = e.emit(in)
		}
	}
	for i, in := range p.Code {
		switch in.Code {
		case If, Else, For, Loop, End, Break, Continue:
			e.code[place[i]].Imm = uint32(place[in.Imm])
		}
	}
	q := *p
	q.Code, q.Pos = e.code, e.pos
	return &q
}

// expand emits what computes in and returns its value.
func (e *expander) expand(in Instr) Value {
	n := in.Code.Arity()
	if in.Type == F16 {
		for k := range n {
			in.Args[k] = e.emit(Instr{Code: Convert, Type: F32, Width: in.Width, Args: [3]Value{in.Args[k]}})
		}
	}
	body := e.bodies[in.Code]
	if body == nil {
		args := make([]*Node, n)
		for k := range args {
			args[k] = NewArg(k, F32)
		}
		body, _ = Flatten(Lower(node(in.Code, args...), e.native))
		e.bodies[in.Code] = body
	}
	v := e.inline(body, in.Width, in.Args[:n])
	if in.Type == F16 {
		v = e.emit(Instr{Code: Convert, Type: F16, Width: in.Width, Args: [3]Value{v}})
	}
	return v
}

// inline emits the nodes of a list that Flatten made, on vectors of width, and
// returns the value of the last.
func (e *expander) inline(body []*Node, width uint8, args []Value) Value {
	at := make(map[*Node]Value, len(body))
	for _, n := range body {
		switch n.Code {
		case Arg:
			at[n] = args[n.Index]
		case Const:
			v := e.emit(Instr{Code: Const, Type: n.Type, Width: 1, Imm: n.Bits()})
			if width > 1 {
				v = e.emit(Instr{Code: Splat, Type: n.Type, Width: width, Args: [3]Value{v}})
			}
			at[n] = v
		default:
			in := Instr{Code: n.Code, Type: n.Type, Width: width}
			for k, a := range n.Operands() {
				in.Args[k] = at[a]
			}
			at[n] = e.emit(in)
		}
	}
	return at[body[len(body)-1]]
}
