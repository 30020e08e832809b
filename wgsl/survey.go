package wgsl

import (
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// maxNesting is the maximum nesting depth of blocks. Compilers have such limits too.
const maxNesting = 64

// value is the printer's data about the value of an instruction.
type value struct {
	block  uint32 // the instruction that opened its block, or 0
	uses   uint32 // number of uses that are still to be printed
	weight uint8  // nodes of the expression that would be printed at its use
	how    how
	name   uint8 // 1 + index in shortNames, or 0 for v followed by the number
	flags  uint8
}

// how says how a value is printed where it is used.
type how uint8

const (
	asExpression how = iota // by its expression
	asName                  // by its name, or by another word that can be repeated
)

const (
	crosses  uint8 = 1 << iota // used in a block within its own block
	repeated                   // evaluated repeatedly, in a loop
	computed                   // gets a name so that compilers do not treat it as a constant
	constant                   // compilers treat its text as a constant
	zero                       // a constant divisor that may be 0
	open                       // the value opened a block that is not closed yet
	left                       // the value is a Loop, and an instruction in it leaves it
)

// survey records for each value of a well-formed program its block and how it is used, and rejects
// programs that compilers would reject.
func (w *printer) survey() error {
	p := w.p
	w.blocks = append(w.blocks[:0], 0)
	w.scopes = append(w.scopes[:0], make([]scope, len(p.Vars))...)
	w.values[0].flags = open
	block := uint32(0)
	for i := 1; i < len(p.Code); i++ {
		in := &p.Code[i]
		v := ir.Value(i)
		x := &w.values[i]
		x.block = block
		t := traits[in.Code]
		constants := constant
		if t&varying != 0 {
			args, n := in.Operands()
			for _, a := range args[:n] {
				constants &= w.operand(a, block)
			}
		} else {
			switch t & argCount {
			case 3:
				constants &= w.operand(in.Args[2], block)
				fallthrough
			case 2:
				constants &= w.operand(in.Args[1], block)
				fallthrough
			case 1:
				constants &= w.operand(in.Args[0], block)
			}
		}
		switch {
		case constants != 0 && t&isPure != 0:
			w.constants(in, x)
		case in.Code == ir.IDiv, in.Code == ir.IMod:
			w.divisor(in.Args[1])
		case t&(isFixed|surveyed) == 0:
		default:
			if err := w.surveyStatement(in, v, &block); err != nil {
				return err
			}
		}
	}
	return nil
}

// operand records a use of a in the block, and returns the flag constant if a has it.
func (w *printer) operand(a ir.Value, block uint32) uint8 {
	o := &w.values[a]
	if o.block != block {
		o.flags |= crosses
	}
	return o.flags & constant
}

// constants decides how to print an instruction without operands, or whose operands are constants.
// Compilers would compute it, and reject an overflow or NaN. They do not treat a named operand as a
// constant.
func (w *printer) constants(in *ir.Instr, x *value) {
	switch in.Code {
	case ir.Param32, ir.Len:
	case ir.BuiltIn:
		if w.literalBuiltIn(in.Flag) {
			x.flags |= constant
		}
	case ir.Const, ir.Splat, ir.Compose, ir.Extract, ir.And, ir.Or, ir.Xor, ir.Not, ir.Eq, ir.Ne, ir.Lt, ir.Le, ir.Select:
		x.flags |= constant
	case ir.IDiv, ir.IMod:
		w.divisor(in.Args[1])
		if in.Type == ir.U32 && w.values[in.Args[1]].flags&zero == 0 {
			x.flags |= constant
			break
		}
		w.values[in.Args[0]].flags |= computed
	default:
		w.values[in.Args[0]].flags |= computed
	}
}

// divisor ensures that compilers do not see a constant divisor that may be 0. Some compilers look
// through names of values, but not into variables.
func (w *printer) divisor(v ir.Value) {
	x, in := &w.values[v], &w.p.Code[v]
	if x.flags&constant == 0 || in.Code == ir.Const && in.Imm != 0 || in.Code == ir.BuiltIn && in.Flag == ir.BuiltInSubgroupSize {
		return
	}
	if in.Code == ir.Splat {
		if c := &w.p.Code[in.Args[0]]; c.Code == ir.Const && c.Imm != 0 {
			return
		}
	}
	x.flags |= computed | zero
}

// surveyStatement tracks blocks, loops, variables and arrays.
func (w *printer) surveyStatement(in *ir.Instr, v ir.Value, block *uint32) error {
	p := w.p
	switch in.Code {
	case ir.LoadVar, ir.StoreVar:
		w.scope(&w.scopes[in.Imm], in.Code, v, *block)
	case ir.LoadShared, ir.StoreShared, ir.AtomicOpShared, ir.UniformLoad:
		if i, a := &p.Code[in.Args[0]], &p.Shared[in.Imm]; i.Code == ir.Const && i.Imm >= a.Len {
			return w.fail(ir.ErrProgram, v, "index %d is out of range: workgroup array %s has %d elements", i.Imm, a.Name, a.Len)
		}
	case ir.If, ir.For, ir.Loop:
		if in.Code == ir.For {
			w.values[in.Args[1]].flags |= repeated
			w.values[in.Args[2]].flags |= repeated
			w.values[v].block = uint32(v) // only the body of the loop can use the counter
		}
		*block = uint32(v)
		w.blocks = append(w.blocks, *block)
		w.values[v].flags |= open
		if len(w.blocks) > maxNesting {
			return w.fail(op.ErrUnsupported, v, "blocks are nested deeper than %d levels", maxNesting)
		}
	case ir.Else:
		w.values[*block].flags &^= open
		*block = uint32(v)
		w.values[v].flags |= open
		w.blocks[len(w.blocks)-1] = *block
	case ir.End:
		if o := &p.Code[*block]; o.Code == ir.Loop && o.Flag == ir.Bounded && w.values[*block].flags&left == 0 {
			return w.fail(ir.ErrProgram, ir.Value(*block), "no instruction leaves the loop")
		}
		w.values[*block].flags &^= open
		w.blocks = w.blocks[:len(w.blocks)-1]
		*block = w.blocks[len(w.blocks)-1]
	case ir.Break:
		w.values[in.Imm].flags |= left
	case ir.Return:
		for _, b := range w.blocks {
			w.values[b].flags |= left
		}
	}
	return nil
}

// scope says where a variable is declared: by its first store, if all other uses come after it in
// the same block, and otherwise at the top of the function.
type scope struct {
	first ir.Value // 0 before the first use; top if declared at the top
	block uint32
}

const top = ^ir.Value(0)

// scope records that v, in the given block, loads or stores the variable.
func (w *printer) scope(s *scope, code ir.Code, v ir.Value, block uint32) {
	switch {
	case s.first == 0 && code == ir.StoreVar:
		*s = scope{v, block}
	case s.first == 0 || w.values[s.block].flags&open == 0:
		s.first = top
	}
}

// fail returns an error about instruction v that wraps err.
func (w *printer) fail(err error, v ir.Value, format string, args ...any) error {
	at := ""
	if f, l := ir.Position(w.p.Pos, v); f != "" {
		at = fmt.Sprintf("%s:%d: ", f, l)
	}
	return fmt.Errorf("wgsl: program %s: %sinstruction %d: %s: %w", w.p.Name, at, v, fmt.Sprintf(format, args...), err)
}
