package ptxgen

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/ptx"
)

// variable is a variable of a lane: a register for each component. The type decides which field is
// used.
type variable struct {
	typ   ir.Type
	words [4]ptx.Var[ptx.U32]
	reals [4]ptx.Var[ptx.F32]
	halfs [4]ptx.Var[ptx.F16]
	flags [4]ptx.Var[ptx.Pred]
}

func newVariable(g *lowering, t ir.Type, width int) variable {
	x := variable{typ: t}
	for c := range width {
		switch t {
		case ir.F32:
			x.reals[c] = ptx.NewVar(g.k, ptx.F(0))
		case ir.F16:
			x.halfs[c] = ptx.NewVar(g.k, ptx.H(0))
		case ir.Bool:
			x.flags[c] = ptx.NewVar(g.k, ptx.Is(false))
		default:
			x.words[c] = ptx.NewVar(g.k, ptx.U(0))
		}
	}
	return x
}

func (x *variable) get(c int) ptx.U32 {
	switch x.typ {
	case ir.F32:
		return ptx.U32(x.reals[c].Get())
	case ir.F16:
		return ptx.U32(x.halfs[c].Get())
	case ir.Bool:
		return ptx.U32(x.flags[c].Get())
	}
	return x.words[c].Get()
}

func (x *variable) set(c int, v ptx.U32) {
	switch x.typ {
	case ir.F32:
		x.reals[c].Set(ptx.F32(v))
	case ir.F16:
		x.halfs[c].Set(ptx.F16(v))
	case ir.Bool:
		x.flags[c].Set(ptx.Pred(v))
	default:
		x.words[c].Set(v)
	}
}

// variables declares the variables of a lane. They are initialised to 0, so that reading an unset
// variable is deterministic.
func (g *lowering) variables() {
	for _, v := range g.p.Vars {
		g.vars = append(g.vars, newVariable(g, v.Type, int(v.Width)))
	}
}

// builtIns computes the index of a lane in its workgroup, if the program uses it.
func (g *lowering) builtIns() {
	p := g.p
	for i := range 3 {
		if p.Local[i] > 1 {
			g.linear[i] = g.k.Special(ptx.TidX + ptx.Special(i))
		}
	}
	g.lane = g.linear[0]
	for i, n := 1, p.Local[0]; i < 3; i++ {
		if p.Local[i] > 1 {
			g.lane = g.linear[i].MulAdd(ptx.U(n), g.lane)
		}
		n *= p.Local[i]
	}
}

func (g *lowering) builtIn(flag uint8) ptx.U32 {
	switch {
	case flag <= ir.BuiltInLocalZ:
		return g.linear[flag-ir.BuiltInLocalX]
	case flag <= ir.BuiltInGroupZ:
		return g.k.Special(ptx.CtaidX + ptx.Special(flag-ir.BuiltInGroupX))
	case flag <= ir.BuiltInGroupsZ:
		return g.k.Special(ptx.NctaidX + ptx.Special(flag-ir.BuiltInGroupsX))
	}
	switch flag {
	case ir.BuiltInLane:
		return g.lane
	case ir.BuiltInSubgroupSize:
		return ptx.U(warp)
	case ir.BuiltInSubgroupLane:
		return g.lane.And(ptx.U(warp - 1))
	}
	return g.lane.Shr(ptx.U(5))
}
