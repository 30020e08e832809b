package ir

// Divergence is an instruction that all lanes of a workgroup must come to
// together, in a place where they may not.
type Divergence struct {
	At Value // a Barrier, a UniformLoad or an operation of subgroups
	// Cause is the If, For or Loop that lanes may take in different ways, or the
	// Return, Break or Continue that some of them took before.
	Cause Value
}

// Divergent finds the first instruction that requires uniform control flow and that the
// lanes may not reach together, or returns the zero Divergence. It follows the rules of WGSL:
// values that depend on the index of a lane, on an atomic operation, on memory that the
// kernel writes, or on subgroups may differ between lanes. A variable is
// uniform if everything ever stored to it is, in uniform control flow. The
// program must be well formed.
func Divergent(p *Program) Divergence {
	needed := false
	for i := range p.Code {
		needed = needed || together(p.Code[i].Code)
	}
	if !needed {
		return Divergence{}
	}
	u := uniformity{p: p, differs: make([]bool, len(p.Code)), vars: make([]bool, len(p.Vars)), ragged: make([]Value, len(p.Code))}
	for u.changed = true; u.changed; {
		u.changed, u.found = false, Divergence{}
		u.pass()
	}
	return u.found
}

// together reports whether all lanes must reach an instruction together.
func together(c Code) bool {
	return c == Barrier || c == UniformLoad || c >= SubgroupOp && c <= SubgroupFirst
}

// uniformity finds the values that differ between lanes. It starts with the assumption that no value
// differs, and repeats passes over the program until nothing changes.
type uniformity struct {
	p       *Program
	differs []bool // by value
	vars    []bool // by variable: differs
	// ragged is, for each For and Loop, the jump with which lanes leave an iteration at different
	// times, or 0.
	ragged  []Value
	changed bool
	found   Divergence
}

// enclosing is an open block around an instruction, and the reason why lanes may have diverged after it.
type enclosing struct{ head, after Value }

// jump records a jump of some lanes. The other lanes are alone up to the end of the loop and in its
// next iterations, and after a Return everywhere.
func (u *uniformity) jump(around []enclosing, at Value) {
	for k := len(around) - 1; k >= 0; k-- {
		b := &around[k]
		loop := u.p.Code[b.head].Code != If
		if loop && u.ragged[b.head] == 0 {
			u.ragged[b.head], u.changed = at, true
		}
		if loop && u.p.Code[at].Code != Return {
			return
		}
		if b.after == 0 {
			b.after = at
		}
	}
}

func (u *uniformity) pass() {
	var cause Value // the reason why lanes may have diverged here, or 0
	var around []enclosing
	p := u.p
	for i := 1; i < len(p.Code); i++ {
		in, at := &p.Code[i], Value(i)
		args, n := in.Operands()
		differs := false
		for _, a := range args[:n] {
			differs = differs || u.differs[a]
		}
		if together(in.Code) && cause != 0 && u.found.At == 0 {
			u.found = Divergence{at, cause}
		}
		switch in.Code {
		case BuiltIn:
			differs = in.Flag < BuiltInGroupX || in.Flag > BuiltInGroupsZ && in.Flag != BuiltInSubgroupSize
		case Load:
			differs = differs || p.Bindings[in.Imm].Access != ReadOnly
		case LoadShared, AtomicOp, AtomicOpShared, SubgroupOp, SubgroupScan, SubgroupShuffle, SubgroupXor, SubgroupFirst:
			differs = true
		case UniformLoad:
			differs = false
		case LoadVar:
			differs = u.vars[in.Imm]
		case StoreVar:
			if (differs || cause != 0) && !u.vars[in.Imm] {
				u.vars[in.Imm], u.changed = true, true
			}
		case If, For, Loop:
			around = append(around, enclosing{at, cause})
			if cause == 0 && in.Code != Loop && differs {
				cause = at
			}
			if cause == 0 && in.Code != If {
				cause = u.ragged[at]
			}
			if in.Code == For {
				differs = differs || cause != 0
			}
		case Else, End:
			b := &around[len(around)-1]
			if in.Code == End {
				cause = b.after
				around = around[:len(around)-1]
				break
			}
			cause = b.after
			if cause == 0 && u.differs[p.Code[b.head].Args[0]] {
				cause = b.head
			}
		case Break, Continue, Return:
			if cause != 0 {
				u.jump(around, at)
			}
		}
		u.differs[i] = differs
	}
}
