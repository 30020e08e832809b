package interp

import (
	"fmt"

	"github.com/rayo-go/rayo/internal/ir"
)

// shape is what is known of a program after it has been checked.
type shape struct {
	// subject is the type of the operands of each instruction, by which its
	// function is found.
	subject []ir.Type
	// head is the If of an Else, and the If, For or Loop of an End.
	head  []ir.Value
	depth int
}

// operands lists what an instruction takes, in order, and how many.
func operands(in *ir.Instr) (args [4]ir.Value, n int) {
	copy(args[:], in.Args[:])
	switch in.Code {
	case ir.Load, ir.LoadShared, ir.UniformLoad, ir.StoreVar, ir.Splat, ir.Extract, ir.CountOnes, ir.LeadingZeros,
		ir.TrailingZeros, ir.ReverseBits, ir.PackHalf, ir.UnpackHalf, ir.PackI8, ir.UnpackI8, ir.UnpackU8,
		ir.SubgroupOp, ir.SubgroupScan, ir.SubgroupXor, ir.SubgroupFirst, ir.If:
		n = 1
	case ir.Store, ir.StoreShared, ir.Dot, ir.IDiv, ir.IMod, ir.MulHigh, ir.SubgroupShuffle:
		n = 2
	case ir.Dot4I8, ir.Dot4U8, ir.For:
		n = 3
	case ir.AtomicOp, ir.AtomicOpShared:
		switch in.Flag {
		case ir.AtomicLoad:
			n = 1
		case ir.AtomicCompareExchange:
			n = 3
		default:
			n = 2
		}
	case ir.Compose:
		n = min(int(in.Width), 4)
		args[3] = ir.Value(in.Imm)
	case ir.BuiltIn, ir.Param32, ir.Len, ir.LoadVar, ir.Barrier, ir.Else, ir.Loop, ir.End, ir.Break, ir.Continue, ir.Return:
	default:
		n = in.Code.Arity()
	}
	return args, n
}

// verify checks a program: everything that the interpreter relies on, so that
// no program, however wrong, can make it panic or touch foreign memory.
func verify(p *ir.Program, lim Limits) (*shape, error) {
	if err := verifyHead(p, lim); err != nil {
		return nil, err
	}
	s := &shape{make([]ir.Type, len(p.Code)), make([]ir.Value, len(p.Code)), 0}
	// open has the blocks around the instruction; closed marks instructions
	// that stand in blocks which have ended.
	var open []ir.Value
	closed := make([]bool, len(p.Code))
	members := [][]ir.Value{nil}
	for i := 1; i < len(p.Code); i++ {
		in, v := &p.Code[i], ir.Value(i)
		bad := func(format string, args ...any) error {
			at := ""
			if f, l := ir.Position(p.Pos, v); f != "" {
				at = fmt.Sprintf("%s:%d: ", f, l)
			}
			return fmt.Errorf("%skernel %s: %w: %%%d: %s", at, p.Name, ErrProgram, i, fmt.Sprintf(format, args...))
		}
		args, n := operands(in)
		for k, a := range args[:n] {
			if a == 0 || a >= v || closed[a] {
				return nil, bad("operand %d is not visible", k)
			}
			if p.Code[a].Type == ir.Invalid {
				return nil, bad("operand %d has no value", k)
			}
			if w := p.Code[a].Width; w != 1 && w != 2 && w != 4 {
				return nil, bad("operand %d has width %d", k, w)
			}
		}
		if in.Type != ir.Invalid && in.Width != 1 && in.Width != 2 && in.Width != 4 || in.Type > ir.F16 {
			return nil, bad("value of type %v and width %d", in.Type, in.Width)
		}
		if why := check(p, in, args[:n], s.subject, i); why != "" {
			return nil, bad("%s", why)
		}
		// Blocks.
		switch in.Code {
		case ir.If, ir.For, ir.Loop:
			if int(in.Imm) <= i || int(in.Imm) >= len(p.Code) {
				return nil, bad("block ends at %d", in.Imm)
			}
			open = append(open, v)
			members = append(members, nil)
			s.depth = max(s.depth, len(open))
			if len(open) > lim.Depth {
				return nil, fmt.Errorf("kernel %s: %w: blocks nested deeper than %d", p.Name, ErrLimit, lim.Depth)
			}
		case ir.Else, ir.End:
			if len(open) == 0 {
				return nil, bad("no block is open")
			}
			b := open[len(open)-1]
			if p.Code[b].Imm != uint32(i) {
				return nil, bad("block %d does not end here", b)
			}
			if c := p.Code[b].Code; in.Code == ir.Else && c != ir.If {
				return nil, bad("else of %d, which is no if", b)
			}
			head := b
			if p.Code[b].Code == ir.Else {
				head = s.head[b]
			}
			if in.Code == ir.End && in.Imm != uint32(head) {
				return nil, bad("end of %d, not of %d", in.Imm, head)
			}
			for _, m := range members[len(members)-1] {
				closed[m] = true
			}
			members[len(members)-1] = nil
			if in.Code == ir.Else {
				if int(in.Imm) <= i || int(in.Imm) >= len(p.Code) {
					return nil, bad("block ends at %d", in.Imm)
				}
				s.head[i] = b
				open[len(open)-1] = v
				break
			}
			open, members = open[:len(open)-1], members[:len(members)-1]
			s.head[i] = head
		case ir.Break, ir.Continue:
			found := false
			for k := len(open) - 1; k >= 0 && !found; k-- {
				if c := p.Code[open[k]].Code; c == ir.For || c == ir.Loop {
					if in.Imm != uint32(open[k]) {
						return nil, bad("loop %d is not the innermost", in.Imm)
					}
					found = true
				}
			}
			if !found {
				return nil, bad("outside of a loop")
			}
		}
		members[len(members)-1] = append(members[len(members)-1], v)
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("kernel %s: %w: block %d does not end", p.Name, ErrProgram, open[len(open)-1])
	}
	return s, nil
}

func verifyHead(p *ir.Program, lim Limits) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("kernel %s: %w", p.Name, fmt.Errorf(format, args...))
	}
	lanes := uint64(1)
	for _, n := range p.Local {
		if n == 0 {
			return fail("%w: local size %v", ErrProgram, p.Local)
		}
		if lanes *= uint64(n); lanes > uint64(lim.Lanes) {
			return fail("%w: local size %v has more than %d lanes", ErrLimit, p.Local, lim.Lanes)
		}
	}
	if len(p.Code) > lim.Code {
		return fail("%w: %d instructions", ErrLimit, len(p.Code))
	}
	width := func(w uint8) bool { return w == 1 || w == 2 || w == 4 }
	memory := func(t ir.Type) bool { return t == ir.F32 || t == ir.I32 || t == ir.U32 || t == ir.F16 }
	for _, b := range p.Bindings {
		if !memory(b.Type) || !width(b.Width) || b.Access < ir.ReadOnly || b.Access > ir.Atomic {
			return fail("%w: buffer %s", ErrProgram, b.Name)
		}
		if b.Access == ir.Atomic && (!b.Type.Integer() || b.Width != 1) {
			return fail("%w: atomic buffer %s of %v", ErrProgram, b.Name, b.Type)
		}
	}
	for _, u := range p.Uniforms {
		if u.Type != ir.F32 && !u.Type.Integer() || u.Offset%4 != 0 || u.Offset > 1<<20 {
			return fail("%w: parameter %s", ErrProgram, u.Name)
		}
	}
	shared := uint64(0)
	for _, a := range p.Shared {
		if !(memory(a.Type) || a.Type == ir.Bool) || !width(a.Width) || a.Atomic && (!a.Type.Integer() || a.Width != 1) {
			return fail("%w: workgroup array %s", ErrProgram, a.Name)
		}
		shared += uint64(a.Len) * uint64(a.Width) * 4
		if shared > uint64(lim.Shared) {
			return fail("%w: workgroup arrays up to %s take more than %d bytes", ErrLimit, a.Name, lim.Shared)
		}
	}
	for _, v := range p.Vars {
		if v.Type == ir.Invalid || v.Type > ir.F16 || !width(v.Width) {
			return fail("%w: variable %s", ErrProgram, v.Name)
		}
	}
	return nil
}

// check returns what is wrong with the types of one instruction, and sets its subject.
func check(p *ir.Program, in *ir.Instr, args []ir.Value, subject []ir.Type, i int) string {
	typ := func(k int) ir.Type { return p.Code[args[k]].Type }
	wid := func(k int) uint8 { return p.Code[args[k]].Width }
	is := func(t ir.Type, w uint8) bool { return in.Type == t && in.Width == w }
	arg := func(k int, t ir.Type, w uint8) bool { return typ(k) == t && (wid(k) == w || wid(k) == 1) }
	index := func(k int) bool { return typ(k).Integer() && wid(k) == 1 }
	const mismatch = "types do not fit"
	ok := true
	switch in.Code {
	case ir.Arg, ir.Param, ir.None:
		return fmt.Sprintf("%v in a program", in.Code)
	case ir.Const:
		ok = in.Type != ir.Invalid
	case ir.BuiltIn:
		ok = in.Flag <= ir.BuiltInSubgroup && is(ir.U32, 1)
	case ir.Param32:
		ok = int(in.Imm) < len(p.Uniforms) && is(p.Uniforms[in.Imm].Type, 1)
	case ir.Len:
		ok = int(in.Imm) < len(p.Bindings) && is(ir.U32, 1)
	case ir.Load, ir.Store, ir.AtomicOp:
		if int(in.Imm) >= len(p.Bindings) || !index(0) {
			return mismatch
		}
		b := &p.Bindings[in.Imm]
		switch in.Code {
		case ir.Load:
			if b.Access != ir.ReadOnly && b.Access != ir.ReadWrite {
				return "read of buffer " + b.Name + ", which is not bound for that"
			}
			ok = is(b.Type, b.Width)
		case ir.Store:
			if b.Access != ir.WriteOnly && b.Access != ir.ReadWrite {
				return "write of buffer " + b.Name + ", which is not bound for that"
			}
			ok = arg(1, b.Type, b.Width)
		default:
			if b.Access != ir.Atomic {
				return "atomic operation on buffer " + b.Name + ", which is not atomic"
			}
			ok = atomicFits(in, b.Type, args, typ, wid)
		}
	case ir.LoadShared, ir.StoreShared, ir.AtomicOpShared, ir.UniformLoad:
		if int(in.Imm) >= len(p.Shared) || !index(0) {
			return mismatch
		}
		a := &p.Shared[in.Imm]
		if a.Atomic != (in.Code == ir.AtomicOpShared) && in.Code != ir.UniformLoad {
			return "operation on workgroup array " + a.Name + " does not fit whether it is atomic"
		}
		switch in.Code {
		case ir.StoreShared:
			ok = arg(1, a.Type, a.Width)
		case ir.AtomicOpShared:
			ok = atomicFits(in, a.Type, args, typ, wid)
		default:
			ok = is(a.Type, a.Width)
		}
	case ir.LoadVar:
		ok = int(in.Imm) < len(p.Vars) && is(p.Vars[in.Imm].Type, p.Vars[in.Imm].Width)
	case ir.StoreVar:
		ok = int(in.Imm) < len(p.Vars) && arg(0, p.Vars[in.Imm].Type, p.Vars[in.Imm].Width)
	case ir.Splat:
		ok = typ(0) == in.Type && wid(0) == 1
	case ir.Compose:
		ok = in.Width != 1
		for k := range args {
			ok = ok && typ(k) == in.Type && wid(k) == 1
		}
	case ir.Extract:
		ok = is(typ(0), 1) && in.Flag < wid(0)
	case ir.Dot:
		ok = in.Type == typ(0) && typ(0) == typ(1) && wid(0) == wid(1) && in.Width == 1 && (in.Type == ir.F32 || in.Type == ir.F16)
		subject[i] = in.Type
	case ir.Dot4I8:
		ok = in.Type == ir.I32 && arg(0, ir.U32, in.Width) && arg(1, ir.U32, in.Width) && arg(2, ir.I32, in.Width)
		subject[i] = ir.U32
	case ir.Dot4U8:
		ok = in.Type == ir.U32 && arg(0, ir.U32, in.Width) && arg(1, ir.U32, in.Width) && arg(2, ir.U32, in.Width)
		subject[i] = ir.U32
	case ir.PackHalf:
		ok = is(ir.U32, 1) && typ(0) == ir.F32 && wid(0) == 2
	case ir.UnpackHalf:
		ok = is(ir.F32, 2) && typ(0) == ir.U32 && wid(0) == 1
	case ir.PackI8:
		ok = is(ir.U32, 1) && typ(0) == ir.I32 && wid(0) == 4
	case ir.UnpackI8:
		ok = is(ir.I32, 4) && typ(0) == ir.U32 && wid(0) == 1
	case ir.UnpackU8:
		ok = is(ir.U32, 4) && typ(0) == ir.U32 && wid(0) == 1
	case ir.SubgroupOp, ir.SubgroupScan, ir.SubgroupShuffle, ir.SubgroupXor, ir.SubgroupFirst:
		ok = is(typ(0), wid(0))
		switch in.Code {
		case ir.SubgroupOp:
			_, found := reduction(in)
			ok = ok && found
		case ir.SubgroupScan:
			ok = ok && in.Flag == ir.ReduceAdd && in.Type != ir.Bool
		case ir.SubgroupShuffle:
			ok = ok && index(1)
		case ir.SubgroupXor:
			ok = ok && in.Imm != 0 && in.Imm&(in.Imm-1) == 0
		}
	case ir.Barrier, ir.Else, ir.Loop, ir.End, ir.Break, ir.Continue, ir.Return:
		ok = in.Type == ir.Invalid
	case ir.If:
		ok = in.Type == ir.Invalid && typ(0) == ir.Bool && wid(0) == 1
	case ir.For:
		ok = in.Type.Integer() && in.Width == 1
		for k := range args {
			ok = ok && typ(k) == in.Type && wid(k) == 1
		}
	case ir.Convert:
		ok = in.Type != ir.Invalid && (wid(0) == in.Width || wid(0) == 1)
	case ir.Bitcast:
		ok = scalar32(in.Type) && scalar32(typ(0)) && (wid(0) == in.Width || wid(0) == 1)
	default:
		if len(args) == 0 {
			return fmt.Sprintf("%v is not known", in.Code)
		}
		t := typ(0)
		if in.Code == ir.Select {
			t = in.Type
			ok = arg(0, ir.Bool, in.Width) && arg(1, t, in.Width) && arg(2, t, in.Width)
			subject[i] = ir.U32
			break
		}
		shift := in.Code == ir.Shl || in.Code == ir.Shr
		for k := range args {
			ok = ok && (typ(k) == t || shift && typ(k).Integer()) && (wid(k) == in.Width || wid(k) == 1)
		}
		switch in.Code {
		case ir.Eq, ir.Ne, ir.Lt, ir.Le:
			ok = ok && in.Type == ir.Bool
		default:
			ok = ok && in.Type == t
		}
		subject[i] = t
		if t == ir.F16 {
			subject[i] = ir.F32
		}
		if elementwise[in.Code][subject[i]].lane == nil {
			return fmt.Sprintf("%v of %v is not known", in.Code, t)
		}
	}
	if !ok {
		return mismatch
	}
	return ""
}

func scalar32(t ir.Type) bool { return t == ir.F32 || t.Integer() }

func atomicFits(in *ir.Instr, t ir.Type, args []ir.Value, typ func(int) ir.Type, wid func(int) uint8) bool {
	ok := in.Flag <= ir.AtomicCompareExchange
	if in.Flag == ir.AtomicStore {
		// A builder may give it no value.
		ok = ok && (in.Type == ir.Invalid || in.Type == t && in.Width == 1)
	} else {
		ok = ok && in.Type == t && in.Width == 1
	}
	for k := 1; k < len(args); k++ {
		ok = ok && typ(k) == t && wid(k) == 1
	}
	return ok
}

// reduction returns the code that a SubgroupOp combines lanes with.
func reduction(in *ir.Instr) (ir.Code, bool) {
	num := in.Type != ir.Bool
	bit := in.Type.Integer() || in.Type == ir.Bool
	switch in.Flag {
	case ir.ReduceAdd:
		return ir.Add, num
	case ir.ReduceMin:
		return ir.Min, num
	case ir.ReduceMax:
		return ir.Max, num
	case ir.ReduceAnd:
		return ir.And, bit
	case ir.ReduceOr:
		return ir.Or, bit
	}
	return 0, false
}
