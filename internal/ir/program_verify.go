package ir

import (
	"errors"
	"fmt"
)

// ErrProgram is wrapped by the errors of [Verify].
var ErrProgram = errors.New("program is not well formed")

// Bounds of what [Verify] accepts: what follows them needs no checks of its own
// for overflow.
const (
	maxLocal      = 1 << 16 // lanes of a workgroup
	maxArrayBytes = 1 << 24 // of workgroup memory
	maxUniforms   = 1 << 16 // bytes of the parameter block
	maxCode       = 1 << 24
)

// Verify checks that a program is well formed: that blocks nest, operands come
// before their use in a block that is still open, and types, flags and places
// fit the comments of the codes. Printers and the interpreter rely on it. It
// says nothing of what a program does when it runs.
func Verify(p *Program) error {
	if p == nil {
		return fmt.Errorf("ir: nil: %w", ErrProgram)
	}
	if p.Text != nil {
		return fmt.Errorf("ir: program %s is a text of %v: %w", p.Name, p.Text.Language, ErrProgram)
	}
	if err := verifyHead(p); err != nil {
		return fmt.Errorf("ir: program %s: %v: %w", p.Name, err, ErrProgram)
	}
	v := verifier{p: p, visible: make([]bool, len(p.Code))}
	for i := 1; i < len(p.Code); i++ {
		if why := v.instr(Value(i)); why != "" {
			at := ""
			if f, l := Position(p.Pos, Value(i)); f != "" {
				at = fmt.Sprintf("%s:%d: ", f, l)
			}
			return fmt.Errorf("ir: program %s: %sinstruction %d, %v: %s: %w", p.Name, at, i, p.Code[i].Code, why, ErrProgram)
		}
	}
	if len(v.open) > 0 {
		return fmt.Errorf("ir: program %s: block %d does not end: %w", p.Name, v.open[len(v.open)-1].at, ErrProgram)
	}
	return nil
}

func verifyHead(p *Program) error {
	lanes := uint64(1)
	for _, n := range p.Local {
		if lanes *= uint64(n); n == 0 || lanes > maxLocal {
			return fmt.Errorf("local size %v", p.Local)
		}
	}
	if len(p.Code) == 0 || len(p.Code) > maxCode || p.Code[0] != (Instr{}) {
		return errors.New("no empty instruction 0")
	}
	if p.Pos != nil && len(p.Pos) != len(p.Code) {
		return fmt.Errorf("%d positions for %d instructions", len(p.Pos), len(p.Code))
	}
	memory := func(t Type) bool { return t == F32 || t == F16 || t.Integer() }
	for _, b := range p.Bindings {
		if !memory(b.Type) || !vectorWidth(b.Width) || b.Access < ReadOnly || b.Access > Atomic ||
			b.Access == Atomic && (b.Width != 1 || !b.Type.Integer()) {
			return fmt.Errorf("buffer %s", b.Name)
		}
	}
	end := uint32(0)
	for _, u := range p.Uniforms {
		if u.Type != F32 && !u.Type.Integer() || u.Offset%4 != 0 || u.Offset < end || u.Offset >= maxUniforms {
			return fmt.Errorf("parameter %s", u.Name)
		}
		end = u.Offset + 4
	}
	bytes := uint64(0)
	for _, a := range p.Shared {
		bytes += uint64(a.Len) * uint64(a.Width) * 4
		if !memory(a.Type) && a.Type != Bool || !vectorWidth(a.Width) || a.Len == 0 || bytes > maxArrayBytes ||
			a.Atomic && (a.Width != 1 || !a.Type.Integer()) {
			return fmt.Errorf("workgroup array %s", a.Name)
		}
	}
	for _, v := range p.Vars {
		if v.Type == Invalid || v.Type > F16 || !vectorWidth(v.Width) {
			return fmt.Errorf("variable %s", v.Name)
		}
	}
	return nil
}

func vectorWidth(w uint8) bool { return w == 1 || w == 2 || w == 4 }

// verifier walks over the code of a program.
type verifier struct {
	p       *Program
	visible []bool // values whose block is still open
	open    []openBlock
	ended   bool // the block has had its Break, Continue or Return
}

type openBlock struct {
	at, head Value // its If, Else, For or Loop; the If of an Else
}

// instr returns what is wrong with instruction i, or "".
func (v *verifier) instr(i Value) string {
	in := &v.p.Code[i]
	if in.Code == None || in.Code == Arg || in.Code == Param || in.Code > lastCode && in.Code < BuiltIn || in.Code >= numInstrCodes {
		return "not a code of programs"
	}
	if v.ended && in.Code != Else && in.Code != End {
		return "nothing comes here"
	}
	if in.Type > F16 || in.Type == Invalid && in.Width != 0 || in.Type != Invalid && !vectorWidth(in.Width) {
		return fmt.Sprintf("type %v of width %d", in.Type, in.Width)
	}
	args, n := in.Operands()
	for k, a := range args[:n] {
		if a == 0 || a >= i || !v.visible[a] {
			return fmt.Sprintf("operand %d is not visible", k)
		}
	}
	if why := v.block(i, in); why != "" {
		return why
	}
	v.visible[i] = in.Type != Invalid
	if !v.types(in, args[:n]) {
		return "operands, type and flag do not fit"
	}
	return ""
}

// block follows the structure of the code.
func (v *verifier) block(i Value, in *Instr) string {
	switch in.Code {
	case If, For, Loop:
		if in.Imm <= uint32(i) || uint64(in.Imm) >= uint64(len(v.p.Code)) {
			return "no end"
		}
		v.open = append(v.open, openBlock{i, i})
	case Else, End:
		if len(v.open) == 0 {
			return "no block is open"
		}
		b := v.open[len(v.open)-1]
		if v.p.Code[b.at].Imm != uint32(i) {
			return fmt.Sprintf("block %d does not end here", b.at)
		}
		clear(v.visible[b.at:i])
		v.ended = false
		v.open = v.open[:len(v.open)-1]
		if in.Code == End {
			if in.Imm != uint32(b.head) {
				return fmt.Sprintf("the end of %d, not of %d", b.head, in.Imm)
			}
			break
		}
		if v.p.Code[b.at].Code != If || in.Imm <= uint32(i) || uint64(in.Imm) >= uint64(len(v.p.Code)) {
			return "not within an if, or no end"
		}
		v.open = append(v.open, openBlock{i, b.at})
	case Break, Continue:
		v.ended = true
		for k := len(v.open) - 1; k >= 0; k-- {
			if c := v.p.Code[v.open[k].at].Code; c == For || c == Loop {
				if in.Imm != uint32(v.open[k].at) {
					return "not of the innermost loop"
				}
				return ""
			}
		}
		return "outside of a loop"
	case Return:
		v.ended = true
	}
	return ""
}

// shape is type and width of a value.
type shape struct {
	t Type
	w uint8
}

// types reports whether the operands, the type and the flag of an instruction
// fit its code.
func (v *verifier) types(in *Instr, args []Value) bool {
	var a [4]shape
	for k, x := range args {
		a[k] = shape{v.p.Code[x].Type, v.p.Code[x].Width}
	}
	is := shape{in.Type, in.Width}
	var (
		none = shape{}
		u32  = shape{U32, 1}
	)
	if in.Code < numCodes {
		return expressionTypes(in.Code, is, a[:len(args)])
	}
	switch in.Code {
	case BuiltIn:
		return is == u32 && int(in.Flag) < len(BuiltInNames)
	case Param32:
		return int(in.Imm) < len(v.p.Uniforms) && is == shape{v.p.Uniforms[in.Imm].Type, 1}
	case Len:
		return int(in.Imm) < len(v.p.Bindings) && is == u32
	case Load, Store, AtomicOp:
		if int(in.Imm) >= len(v.p.Bindings) || a[0] != u32 {
			return false
		}
		b := &v.p.Bindings[in.Imm]
		switch e := (shape{b.Type, b.Width}); in.Code {
		case Load:
			return is == e && (b.Access == ReadOnly || b.Access == ReadWrite)
		case Store:
			return is == none && a[1] == e && (b.Access == WriteOnly || b.Access == ReadWrite)
		default:
			return b.Access == Atomic && atomicTypes(in, is, e, a[:len(args)])
		}
	case LoadShared, UniformLoad, StoreShared, AtomicOpShared:
		if int(in.Imm) >= len(v.p.Shared) || a[0] != u32 {
			return false
		}
		b := &v.p.Shared[in.Imm]
		switch e := (shape{b.Type, b.Width}); in.Code {
		case StoreShared:
			return !b.Atomic && is == none && a[1] == e
		case AtomicOpShared:
			return b.Atomic && atomicTypes(in, is, e, a[:len(args)])
		default:
			return !b.Atomic && is == e
		}
	case LoadVar:
		return int(in.Imm) < len(v.p.Vars) && is == shape{v.p.Vars[in.Imm].Type, v.p.Vars[in.Imm].Width}
	case StoreVar:
		return is == none && int(in.Imm) < len(v.p.Vars) && a[0] == shape{v.p.Vars[in.Imm].Type, v.p.Vars[in.Imm].Width}
	case Splat:
		return in.Width > 1 && a[0] == shape{in.Type, 1}
	case Compose:
		for _, x := range a[:len(args)] {
			if x != (shape{in.Type, 1}) {
				return false
			}
		}
		return in.Width > 1
	case Extract:
		return is == shape{a[0].t, 1} && in.Flag < a[0].w
	case Dot:
		return a[0] == a[1] && a[0].w > 1 && (is.t == F32 || is.t == F16) && is == shape{a[0].t, 1}
	case IDiv, IMod:
		return in.Type.Integer() && a[0] == is && a[1] == is
	case CountOnes, LeadingZeros, TrailingZeros, ReverseBits:
		return in.Type.Integer() && a[0] == is
	case MulHigh:
		return in.Type == U32 && a[0] == is && a[1] == is
	case Dot4I8:
		return is == shape{I32, 1} && a[0] == u32 && a[1] == u32 && a[2] == is
	case Dot4U8:
		return is == u32 && a[0] == u32 && a[1] == u32 && a[2] == u32
	case PackHalf:
		return is == u32 && a[0] == shape{F32, 2}
	case UnpackHalf:
		return is == shape{F32, 2} && a[0] == u32
	case PackI8:
		return is == u32 && a[0] == shape{I32, 4}
	case UnpackI8:
		return is == shape{I32, 4} && a[0] == u32
	case UnpackU8:
		return is == shape{U32, 4} && a[0] == u32
	case SubgroupOp:
		switch in.Flag {
		case ReduceAdd, ReduceMin, ReduceMax:
			return is == a[0] && in.Type != Bool
		case ReduceAnd, ReduceOr:
			return is == a[0] && onLogic.has(in.Type)
		}
		return false
	case SubgroupScan:
		return is == a[0] && in.Type != Bool && in.Flag == ReduceAdd
	case SubgroupShuffle:
		return is == a[0] && a[1] == u32
	case SubgroupXor:
		return is == a[0] && in.Imm != 0 && in.Imm&(in.Imm-1) == 0 && in.Imm < 128
	case SubgroupFirst:
		return is == a[0]
	case If:
		return is == none && a[0] == shape{Bool, 1}
	case For:
		return in.Type.Integer() && in.Width == 1 && a[0] == is && a[1] == is && a[2] == is && in.Flag <= Bounded
	case Loop:
		return is == none && in.Flag <= Bounded
	}
	return is == none // Barrier, Else, End, Break, Continue, Return
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

func atomicTypes(in *Instr, is, e shape, a []shape) bool {
	if in.Flag > AtomicCompareExchange {
		return false
	}
	for _, x := range a[1:] {
		if x != e {
			return false
		}
	}
	if in.Flag == AtomicStore {
		return is == shape{}
	}
	return is == e
}
