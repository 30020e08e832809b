package ir

import (
	"errors"

	"github.com/rayo-go/rayo/internal/fmt"
)

// ErrProgram is wrapped by the errors of [Verify].
var ErrProgram = errors.New("program is not well formed")

// Limits that [Verify] enforces. Code that relies on them needs no checks for
// overflow.
const (
	maxLocal      = 1 << 16 // lanes of a workgroup
	maxArrayBytes = 1 << 24 // of workgroup memory
	maxUniforms   = 1 << 16 // bytes of the parameter block
	maxCode       = 1 << 24
)

// Verify checks that a program is well formed: that blocks nest, operands come
// before their use in a block that is still open, and types, flags and places
// fit the comments of the codes. Printers and the interpreter rely on it. It
// does not check the behaviour of the program at run time.
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
			return fmt.Errorf("local size %v", p.Local[:])
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

// instr returns the fault of instruction i, or "".
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
