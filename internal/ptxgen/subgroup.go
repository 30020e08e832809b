package ptxgen

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/ptx"
)

// warp is the number of lanes in a subgroup.
const warp = 32

// exchange lowers a subgroup operation. All lanes must execute it.
func (g *lowering) exchange(in *ir.Instr, out *value) {
	for c := range int(in.Width) {
		x := g.comp(in.Args[0], c)
		switch in.Code {
		case ir.SubgroupOp:
			out[c] = g.reduce(in.Flag, in.Type, x)
		case ir.SubgroupScan:
			out[c] = g.scan(in.Type, x)
		case ir.SubgroupShuffle:
			from := g.comp(in.Args[1], 0)
			out[c] = g.fetch(in.Type, x, from, func(x ptx.U32) ptx.U32 { return ptx.ShuffleIndex(x, from) })
		case ir.SubgroupXor:
			if in.Imm >= warp {
				out[c] = x
				continue
			}
			out[c] = g.fetch(in.Type, x, g.subLane().Xor(ptx.U(in.Imm)), func(x ptx.U32) ptx.U32 { return ptx.ShuffleXor(x, ptx.U(in.Imm)) })
		case ir.SubgroupFirst:
			out[c] = g.asWord(in.Type, x, func(x ptx.U32) ptx.U32 { return ptx.ShuffleIndex(x, ptx.U(0)) })
		}
	}
}

func (g *lowering) subLane() ptx.U32 { return g.lane.And(ptx.U(warp - 1)) }

// whole reports whether all warps have all their lanes.
func (g *lowering) whole() bool { return g.lanes%warp == 0 }

// present returns the number of lanes in the warp.
func (g *lowering) present() ptx.U32 {
	return ptx.U(g.lanes).Sub(g.lane.And(ptx.U(^uint32(warp - 1)))).Min(ptx.U(warp))
}

// asWord exchanges a value of any type as a word.
func (g *lowering) asWord(t ir.Type, x ptx.U32, f func(x ptx.U32) ptx.U32) ptx.U32 {
	switch t {
	case ir.F32:
		return bitcast(ir.U32, ir.F32, f(bitcast(ir.F32, ir.U32, ptx.U32(register[ptx.F32](g, x)))))
	case ir.F16:
		return ptx.U32(f(register[ptx.F16](g, x).Bits()).HalfBits())
	case ir.Bool:
		return ptx.U32(f(g.convert(ir.Bool, ir.U32, x)).Ne(ptx.U(0)))
	}
	return f(register[ptx.U32](g, x))
}

// fetch is asWord for a value from another lane: if that lane does not exist, the lane keeps its
// own value.
func (g *lowering) fetch(t ir.Type, x, from ptx.U32, f func(x ptx.U32) ptx.U32) ptx.U32 {
	y := g.asWord(t, x, f)
	if g.whole() {
		return y
	}
	return g.choose(t, ptx.U32(from.Lt(g.present())), y, x)
}

// reduce returns the reduction of x over all lanes of the subgroup, in each lane.
func (g *lowering) reduce(flag uint8, t ir.Type, x ptx.U32) ptx.U32 {
	if y, ok := g.reduceAtOnce(flag, t, x); ok {
		return y
	}
	wide := t
	if t == ir.F16 {
		wide = ir.F32
	}
	x = g.wide(t, x)
	f := operations([...]ir.Code{ir.ReduceAdd: ir.Add, ir.ReduceMin: ir.Min, ir.ReduceMax: ir.Max, ir.ReduceAnd: ir.And, ir.ReduceOr: ir.Or}[flag], wide)
	for n := uint32(warp / 2); n > 0; n /= 2 {
		y := g.asWord(wide, x, func(x ptx.U32) ptx.U32 { return ptx.ShuffleXor(x, ptx.U(n)) })
		y = f(g, x, y, ptx.U(0))
		if !g.whole() {
			y = g.choose(wide, ptx.U32(g.subLane().Xor(ptx.U(n)).Lt(g.present())), y, x)
		}
		x = y
	}
	if !g.whole() {
		// In a partial warp only lane 0 is sure to have received the elements of all lanes:
		// broadcast its result.
		x = g.asWord(wide, x, func(x ptx.U32) ptx.U32 { return ptx.ShuffleIndex(x, ptx.U(0)) })
	}
	return g.narrow(t, x)
}

// reduceAtOnce reduces with one instruction, and reports whether the target has it.
func (g *lowering) reduceAtOnce(flag uint8, t ir.Type, x ptx.U32) (ptx.U32, bool) {
	if !g.whole() {
		return x, false
	}
	if t == ir.Bool {
		p := register[ptx.Pred](g, x)
		if flag == ir.ReduceAnd {
			return ptx.U32(p.All(ptx.AllLanes)), true
		}
		return ptx.U32(p.Any(ptx.AllLanes)), true
	}
	if !t.Integer() || g.target < ptx.SM80 {
		return x, false
	}
	u := register[ptx.U32](g, x)
	switch {
	case flag == ir.ReduceAdd:
		return u.ReduceAdd(ptx.AllLanes), true
	case flag == ir.ReduceMin && t == ir.I32:
		return u.S32().ReduceMin(ptx.AllLanes).U32(), true
	case flag == ir.ReduceMin:
		return u.ReduceMin(ptx.AllLanes), true
	case flag == ir.ReduceMax && t == ir.I32:
		return u.S32().ReduceMax(ptx.AllLanes).U32(), true
	case flag == ir.ReduceMax:
		return u.ReduceMax(ptx.AllLanes), true
	case flag == ir.ReduceAnd:
		return u.B32().ReduceAnd(ptx.AllLanes).U32(), true
	}
	return u.B32().ReduceOr(ptx.AllLanes).U32(), true
}

// scan returns the sum of x over the lanes before this lane.
func (g *lowering) scan(t ir.Type, x ptx.U32) ptx.U32 {
	wide := t
	if t == ir.F16 {
		wide = ir.F32
	}
	x = g.wide(t, x)
	add, lane := operations(ir.Add, wide), g.subLane()
	up := func(x ptx.U32, n uint32) ptx.U32 {
		return g.asWord(wide, x, func(x ptx.U32) ptx.U32 { return ptx.ShuffleUp(x, ptx.U(n)) })
	}
	zero := ptx.U(0)
	if wide == ir.F32 {
		zero = ptx.U32(ptx.F(0))
	}
	// The prefix, then the sums of 1, 2, 4 ... lanes up to this one.
	x = g.choose(wide, ptx.U32(lane.Ge(ptx.U(1))), up(x, 1), zero)
	for n := uint32(1); n < warp; n *= 2 {
		x = g.choose(wide, ptx.U32(lane.Ge(ptx.U(n))), add(g, x, up(x, n), zero), x)
	}
	return g.narrow(t, x)
}
