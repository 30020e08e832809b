package interp

import "github.com/rayo-go/rayo/internal/ir"

// uniformity says what is the same in all lanes that run.
type uniformity struct {
	value []bool // by instruction: all active lanes have the same value
	vars  []bool // by variable
	// divergent marks instructions that some lanes may pass by while they are
	// still running: in an If of which lanes disagree, or in a loop that some
	// leave before others. Lanes that returned count for nothing.
	divergent []bool
}

// analyse finds what is uniform. It begins with the belief that every variable
// is and takes back what is refuted until nothing changes.
func analyse(p *ir.Program, s *shape) *uniformity {
	u := &uniformity{make([]bool, len(p.Code)), make([]bool, len(p.Vars)), make([]bool, len(p.Code))}
	for i := range u.vars {
		u.vars[i] = true
	}
	ragged := make([]bool, len(p.Code)) // loops that lanes leave, or turn, at different times
	for changed := true; changed; {
		changed = false
		refute := func(b *bool) {
			if *b {
				*b, changed = false, true
			}
		}
		var around []bool // divergence of each open block
		var heads []ir.Value
		for i := 1; i < len(p.Code); i++ {
			in := &p.Code[i]
			div := len(around) > 0 && around[len(around)-1]
			u.divergent[i] = div
			args, n := operands(in)
			same := true
			for _, a := range args[:n] {
				same = same && u.value[a]
			}
			switch in.Code {
			case ir.BuiltIn:
				same = in.Flag >= ir.BuiltInGroupX && in.Flag <= ir.BuiltInGroupsZ || in.Flag == ir.BuiltInSubgroupSize
			case ir.LoadVar:
				same = u.vars[in.Imm]
			case ir.UniformLoad:
				same = true
			case ir.AtomicOp, ir.AtomicOpShared, ir.SubgroupOp, ir.SubgroupScan, ir.SubgroupShuffle, ir.SubgroupXor, ir.SubgroupFirst:
				same = false
			case ir.StoreVar:
				if div || !same {
					refute(&u.vars[in.Imm])
				}
			case ir.If:
				around, heads = append(around, div || !same), append(heads, ir.Value(i))
			case ir.For:
				around, heads = append(around, div || !same || ragged[i]), append(heads, ir.Value(i))
			case ir.Loop:
				around, heads = append(around, div || ragged[i]), append(heads, ir.Value(i))
			case ir.End:
				around, heads = around[:len(around)-1], heads[:len(heads)-1]
			case ir.Break, ir.Continue:
				// Divergent within the loop: some block in it is.
				l := ir.Value(in.Imm)
				for k := len(heads) - 1; heads[k] != l; k-- {
					if p.Code[heads[k]].Code == ir.If && !u.value[p.Code[heads[k]].Args[0]] && !ragged[l] {
						ragged[l], changed = true, true
					}
				}
			}
			u.value[i] = same
		}
	}
	return u
}
