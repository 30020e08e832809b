package interp

import "github.com/rayo-go/rayo/internal/ir"

// liveness has the last use of each value.
type liveness struct {
	end  []ir.Value // the instruction of the last use; 0 if unused
	uses []int32    // by instructions that are not dead themselves
	// fused has, for a product, the sum that also computes the product, because it is the product's
	// only user; product is the reverse. The steps round as separate steps do.
	fused, product []ir.Value
	// stores lists the places of the stores to each variable, loads of the loads.
	stores, loads [][]ir.Value
}

// effect reports whether an instruction does more than compute a value.
func effect(c ir.Code) bool {
	switch c {
	case ir.Store, ir.StoreShared, ir.StoreVar, ir.AtomicOp, ir.AtomicOpShared, ir.UniformLoad, ir.Barrier,
		ir.If, ir.Else, ir.For, ir.Loop, ir.End, ir.Break, ir.Continue, ir.Return:
		return true
	}
	return false
}

// accesses finds the stores and loads of each variable. It returns the innermost loop around each
// instruction; the loop around a For or Loop does not include the loop itself.
func (l *liveness) accesses(p *ir.Program) []ir.Value {
	n := len(p.Code)
	around := make([]ir.Value, n)
	var loops []ir.Value
	for i := 1; i < n; i++ {
		if len(loops) > 0 {
			around[i] = loops[len(loops)-1]
		}
		switch in := &p.Code[i]; in.Code {
		case ir.For, ir.Loop:
			loops = append(loops, ir.Value(i))
		case ir.End:
			if c := p.Code[in.Imm].Code; c == ir.For || c == ir.Loop {
				loops = loops[:len(loops)-1]
			}
		case ir.StoreVar:
			l.stores[in.Imm] = append(l.stores[in.Imm], ir.Value(i))
		case ir.LoadVar:
			l.loads[in.Imm] = append(l.loads[in.Imm], ir.Value(i))
		}
	}
	return around
}

func live(p *ir.Program, u *uniformity) *liveness {
	n := len(p.Code)
	l := &liveness{make([]ir.Value, n), make([]int32, n), make([]ir.Value, n), make([]ir.Value, n),
		make([][]ir.Value, len(p.Vars)), make([][]ir.Value, len(p.Vars))}
	user := make([]ir.Value, n) // one of the users of a value
	around := l.accesses(p)
	// Backwards, so that the users of a value come first.
	for i := n - 1; i > 0; i-- {
		in := &p.Code[i]
		if !effect(in.Code) && l.uses[i] == 0 {
			continue
		}
		use := ir.Value(i)
		if j := user[i]; in.Code == ir.Mul && l.uses[i] == 1 && fuses(p, in, &p.Code[j]) && l.product[j] == 0 &&
			around[i] == around[j] && !u.value[i] {
			l.fused[i], l.product[j] = j, ir.Value(i)
		}
		switch {
		case l.fused[i] != 0:
			use = l.fused[i]
		case in.Code == ir.For:
			use = ir.Value(in.Imm) // limit and step are needed in each iteration
		case renames(p, in):
			use = l.end[i] // the operand is the value
		}
		args, k := in.Operands()
		for _, a := range args[:k] {
			l.uses[a]++
			user[a] = ir.Value(i)
			last := use
			// A value from outside of a loop is needed until the last iteration ends.
			for loop := around[use]; loop >= a && loop != 0; loop = around[loop] {
				last = max(last, ir.Value(p.Code[loop].Imm))
			}
			l.end[a] = max(l.end[a], last)
		}
		if in.Code == ir.For {
			l.end[i] = max(l.end[i], ir.Value(in.Imm))
		}
	}
	return l
}

// fuses reports whether a sum can compute one of its operands, a product, too.
func fuses(p *ir.Program, product, sum *ir.Instr) bool {
	return sum.Code == ir.Add && product.Width == sum.Width && product.Type == sum.Type && product.Type != ir.F16
}

// renames reports whether the components of an instruction's value are the components of its
// operands, bit for bit.
func renames(p *ir.Program, in *ir.Instr) bool {
	switch in.Code {
	case ir.Splat, ir.Compose, ir.Extract, ir.Bitcast:
		return true
	case ir.Convert:
		_, same := conversion(p.Code[in.Args[0]].Type, in.Type)
		return same
	case ir.Abs:
		return in.Type == ir.U32
	}
	return false
}

// within reports whether one of the places lies between from and to, both
// excluded.
func within(places []ir.Value, from, to ir.Value) bool {
	for _, q := range places {
		if q > from && q < to {
			return true
		}
	}
	return false
}
