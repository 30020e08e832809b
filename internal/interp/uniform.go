package interp

import (
	"slices"

	"github.com/rayo-go/rayo/internal/ir"
)

// uniformity describes which values are the same in all running lanes.
type uniformity struct {
	value []bool // by instruction: all active lanes have the same value
	vars  []bool // by variable
	// partial marks stores that some lanes may skip although they see the variable later: in an If
	// whose condition differs between lanes, or in a loop that some lanes leave early, if the
	// variable's block continues. Lanes that returned are ignored.
	partial []bool
	home    []home // by variable
}

// home is the block of a variable's first use, if this use is a store and all other uses are in the
// same block or in blocks within it. A variable without a home may be read before it is written.
type home struct {
	block ir.Value // 0 is the kernel's
	ok    bool
}

// analyse finds what is uniform. It starts with the assumption that every variable is uniform, and
// removes refuted assumptions until nothing changes. In a gang, several workgroups along x run as
// one.
func analyse(p *ir.Program, gang bool) *uniformity {
	n := len(p.Code)
	u := &uniformity{make([]bool, n), make([]bool, len(p.Vars)), make([]bool, n), homes(p)}
	for i := range u.vars {
		u.vars[i] = true
	}
	ragged := make([]bool, n) // loops that lanes leave, or turn, at different times
	for changed := true; changed; {
		changed = false
		var open []ir.Value // blocks around, Else for the second of an If
		split := []bool{}   // whether lanes disagree about running each of open
		for i := 1; i < n; i++ {
			in := &p.Code[i]
			args, k := in.Operands()
			same := true
			for _, a := range args[:k] {
				same = same && u.value[a]
			}
			switch in.Code {
			case ir.BuiltIn:
				same = in.Flag >= ir.BuiltInGroupX && in.Flag <= ir.BuiltInGroupsZ || in.Flag == ir.BuiltInSubgroupSize
				same = same && !(gang && in.Flag == ir.BuiltInGroupX)
			case ir.LoadVar:
				same = u.vars[in.Imm]
			case ir.UniformLoad:
				same = true
			case ir.AtomicOp, ir.AtomicOpShared, ir.SubgroupOp, ir.SubgroupScan, ir.SubgroupShuffle, ir.SubgroupXor, ir.SubgroupFirst:
				same = false
			case ir.StoreVar:
				within := 0 // blocks that are not within the variable's
				if h := u.home[in.Imm]; h.ok {
					within = slices.Index(open, h.block) + 1
				}
				u.partial[i] = slices.Contains(split[within:], true)
				if u.vars[in.Imm] && (u.partial[i] || !same) {
					u.vars[in.Imm], changed = false, true
				}
			case ir.If, ir.For, ir.Loop:
				open, split = append(open, ir.Value(i)), append(split, !same || ragged[i])
			case ir.Else:
				open[len(open)-1] = ir.Value(i)
			case ir.End:
				open, split = open[:len(open)-1], split[:len(split)-1]
			case ir.Break, ir.Continue:
				l := ir.Value(in.Imm)
				for k := len(open) - 1; open[k] != l; k-- {
					if split[k] && !ragged[l] {
						ragged[l], changed = true, true
					}
				}
			}
			u.value[i] = same
		}
	}
	return u
}

// homes finds the home of each variable.
func homes(p *ir.Program) []home {
	hs := make([]home, len(p.Vars))
	seen := make([]bool, len(p.Vars))
	open := []ir.Value{0}
	for i := range p.Code {
		in := &p.Code[i]
		switch in.Code {
		case ir.LoadVar, ir.StoreVar:
			h := &hs[in.Imm]
			switch {
			case !seen[in.Imm]:
				seen[in.Imm] = true
				*h = home{open[len(open)-1], in.Code == ir.StoreVar}
			case h.ok && !slices.Contains(open, h.block):
				h.ok = false
			}
		case ir.If, ir.For, ir.Loop:
			open = append(open, ir.Value(i))
		case ir.Else:
			open[len(open)-1] = ir.Value(i)
		case ir.End:
			open = open[:len(open)-1]
		}
	}
	return hs
}
