package ir

import "slices"

// shape is type and width of a value.
type shape struct {
	t Type
	w uint8
}

var (
	noShape   = shape{}
	oneBool   = shape{Bool, 1}
	oneU32    = shape{U32, 1}
	oneI32    = shape{I32, 1}
	twoFloats = shape{F32, 2}
)

// typing is an instruction with the shapes of its operands and of its value.
type typing struct {
	p  *Program
	in *Instr
	a  []shape
	is shape
}

// types reports whether the operands, the type and the flag of an instruction
// fit its code.
func (v *verifier) types(in *Instr, args []Value) bool {
	var a [4]shape
	for k, x := range args {
		a[k] = shape{v.p.Code[x].Type, v.p.Code[x].Width}
	}
	t := typing{p: v.p, in: in, a: a[:len(args)], is: shape{in.Type, in.Width}}
	if in.Code < numCodes {
		return expressionTypes(in.Code, t.is, t.a)
	}
	return typeRules[in.Code-BuiltIn](&t)
}

// typeRules are the rules of types for each code of instructions.
var typeRules = [numInstrCodes - BuiltIn]func(t *typing) bool{
	0:                         func(t *typing) bool { return t.is == oneU32 && int(t.in.Flag) < len(BuiltInNames) },
	Param32 - BuiltIn:         (*typing).param,
	Len - BuiltIn:             func(t *typing) bool { return int(t.in.Imm) < len(t.p.Bindings) && t.is == oneU32 },
	Load - BuiltIn:            (*typing).buffer,
	Store - BuiltIn:           (*typing).buffer,
	AtomicOp - BuiltIn:        (*typing).buffer,
	LoadShared - BuiltIn:      (*typing).shared,
	UniformLoad - BuiltIn:     (*typing).shared,
	StoreShared - BuiltIn:     (*typing).shared,
	AtomicOpShared - BuiltIn:  (*typing).shared,
	LoadVar - BuiltIn:         func(t *typing) bool { return t.hasVar() && t.is == t.variable() },
	StoreVar - BuiltIn:        func(t *typing) bool { return t.is == noShape && t.hasVar() && t.a[0] == t.variable() },
	Splat - BuiltIn:           func(t *typing) bool { return t.is.w > 1 && t.a[0] == shape{t.is.t, 1} },
	Compose - BuiltIn:         func(t *typing) bool { return t.is.w > 1 && t.all(shape{t.is.t, 1}) },
	Extract - BuiltIn:         func(t *typing) bool { return t.is == shape{t.a[0].t, 1} && t.in.Flag < t.a[0].w },
	Dot - BuiltIn:             (*typing).dot,
	IDiv - BuiltIn:            (*typing).integers,
	IMod - BuiltIn:            (*typing).integers,
	CountOnes - BuiltIn:       (*typing).integers,
	LeadingZeros - BuiltIn:    (*typing).integers,
	TrailingZeros - BuiltIn:   (*typing).integers,
	ReverseBits - BuiltIn:     (*typing).integers,
	MulHigh - BuiltIn:         func(t *typing) bool { return t.is.t == U32 && t.all(t.is) },
	Dot4I8 - BuiltIn:          func(t *typing) bool { return t.from(oneI32, oneU32, oneU32, oneI32) },
	Dot4U8 - BuiltIn:          func(t *typing) bool { return t.from(oneU32, oneU32, oneU32, oneU32) },
	PackHalf - BuiltIn:        func(t *typing) bool { return t.from(oneU32, twoFloats) },
	UnpackHalf - BuiltIn:      func(t *typing) bool { return t.from(twoFloats, oneU32) },
	PackI8 - BuiltIn:          func(t *typing) bool { return t.from(oneU32, shape{I32, 4}) },
	UnpackI8 - BuiltIn:        func(t *typing) bool { return t.from(shape{I32, 4}, oneU32) },
	UnpackU8 - BuiltIn:        func(t *typing) bool { return t.from(shape{U32, 4}, oneU32) },
	SubgroupOp - BuiltIn:      (*typing).reduce,
	SubgroupScan - BuiltIn:    func(t *typing) bool { return t.is == t.a[0] && t.is.t != Bool && t.in.Flag == ReduceAdd },
	SubgroupShuffle - BuiltIn: func(t *typing) bool { return t.is == t.a[0] && t.a[1] == oneU32 },
	SubgroupXor - BuiltIn: func(t *typing) bool {
		return t.is == t.a[0] && t.in.Imm != 0 && t.in.Imm&(t.in.Imm-1) == 0 && t.in.Imm < 128
	},
	SubgroupFirst - BuiltIn: func(t *typing) bool { return t.is == t.a[0] },
	If - BuiltIn:            func(t *typing) bool { return t.from(noShape, oneBool) },
	For - BuiltIn: func(t *typing) bool {
		return t.is.t.Integer() && t.is.w == 1 && t.all(t.is) && t.in.Flag <= Bounded
	},
	Loop - BuiltIn:     func(t *typing) bool { return t.is == noShape && t.in.Flag <= Bounded },
	Barrier - BuiltIn:  func(t *typing) bool { return t.from(noShape) },
	Else - BuiltIn:     func(t *typing) bool { return t.from(noShape) },
	End - BuiltIn:      func(t *typing) bool { return t.from(noShape) },
	Break - BuiltIn:    func(t *typing) bool { return t.from(noShape) },
	Continue - BuiltIn: func(t *typing) bool { return t.from(noShape) },
	Return - BuiltIn:   func(t *typing) bool { return t.from(noShape) },
}

// from reports whether a value of one shape has operands of others.
func (t *typing) from(is shape, operands ...shape) bool {
	return t.is == is && slices.Equal(t.a, operands)
}

// all reports whether all operands have a shape.
func (t *typing) all(s shape) bool {
	for _, x := range t.a {
		if x != s {
			return false
		}
	}
	return true
}

func (t *typing) param() bool {
	return int(t.in.Imm) < len(t.p.Uniforms) && t.is == shape{t.p.Uniforms[t.in.Imm].Type, 1}
}

func (t *typing) hasVar() bool { return int(t.in.Imm) < len(t.p.Vars) }

func (t *typing) variable() shape {
	v := t.p.Vars[t.in.Imm]
	return shape{v.Type, v.Width}
}

// buffer is the type rule of instructions that access bindings.
func (t *typing) buffer() bool {
	if int(t.in.Imm) >= len(t.p.Bindings) || t.a[0] != oneU32 {
		return false
	}
	b := &t.p.Bindings[t.in.Imm]
	switch e := (shape{b.Type, b.Width}); t.in.Code {
	case Load:
		return t.is == e && (b.Access == ReadOnly || b.Access == ReadWrite)
	case Store:
		return t.is == noShape && t.a[1] == e && (b.Access == WriteOnly || b.Access == ReadWrite)
	default:
		return b.Access == Atomic && t.atomic(e)
	}
}

// shared is the type rule of instructions that access workgroup arrays.
func (t *typing) shared() bool {
	if int(t.in.Imm) >= len(t.p.Shared) || t.a[0] != oneU32 {
		return false
	}
	b := &t.p.Shared[t.in.Imm]
	switch e := (shape{b.Type, b.Width}); t.in.Code {
	case StoreShared:
		return !b.Atomic && t.is == noShape && t.a[1] == e
	case AtomicOpShared:
		return b.Atomic && t.atomic(e)
	default:
		return !b.Atomic && t.is == e
	}
}

// atomic is the rule of atomic operations on elements of a shape.
func (t *typing) atomic(e shape) bool {
	if t.in.Flag > AtomicCompareExchange {
		return false
	}
	for _, x := range t.a[1:] {
		if x != e {
			return false
		}
	}
	if t.in.Flag == AtomicStore {
		return t.is == noShape
	}
	return t.is == e
}

func (t *typing) dot() bool {
	x := t.a[0]
	return x == t.a[1] && x.w > 1 && (x.t == F32 || x.t == F16) && t.is == shape{x.t, 1}
}

// integers is the rule of integers from integers of the same shape.
func (t *typing) integers() bool { return t.is.t.Integer() && t.all(t.is) }

// reduce is the type rule of instructions that combine the values of a subgroup.
func (t *typing) reduce() bool {
	switch t.in.Flag {
	case ReduceAdd, ReduceMin, ReduceMax:
		return t.is == t.a[0] && t.is.t != Bool
	case ReduceAnd, ReduceOr:
		return t.is == t.a[0] && onLogic.has(t.is.t)
	}
	return false
}

// expressionTypes is types for the codes of expressions.
func expressionTypes(c Code, is shape, a []shape) bool {
	switch c {
	case Const:
		return is.t != Invalid && is.w == 1
	case Select:
		return a[0] == shape{Bool, is.w} && a[1] == is && a[2] == is && is.t != Invalid
	case Convert:
		return is.t != Invalid && a[0].w == is.w
	case Bitcast:
		return onNum.has(is.t) && onNum.has(a[0].t) && a[0].w == is.w
	}
	for _, x := range a {
		if x != a[0] {
			return false
		}
	}
	if !codes[c].on.has(plain(a[0].t)) {
		return false
	}
	switch c {
	case Eq, Ne, Lt, Le:
		return is == shape{Bool, a[0].w}
	}
	return is == a[0]
}
