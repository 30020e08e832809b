package emu

// Generic addresses have the space in their upper bits. Generic addresses of global memory are unchanged.
const (
	windowShift    = 40
	windowFunction = 0x7b
	windowShared   = 0x7c
	windowLocal    = 0x7d
	windowParam    = 0x7e

	sharedWindow = windowShared << windowShift
	localBase    = windowLocal << windowShift // addresses in local memory are always generic addresses
	paramBase    = windowParam << windowShift
)

// spaceOf returns the space of a generic address.
func spaceOf(addr uint64) space {
	switch addr >> windowShift {
	case windowShared:
		return spaceShared
	case windowLocal:
		return spaceLocal
	case windowParam:
		return spaceParam
	}
	return spaceGlobal
}

// spaces adds the conversions to generic addresses, and the instructions that test their space.
func (t table) spaces() {
	same := func(d, a, _, _ *plane) { *d = *a }
	for _, s := range []string{"global", "local", "const", "param"} {
		t.add("cvta."+s+".u64", same, 8, 8)
		t.add("cvta.to."+s+".u64", same, 8, 8)
	}
	t.add("cvta.shared.u64", lanes1(func(a uint64) uint64 { return sharedWindow | uint64(uint32(a)) }), 8, 8)
	t.add("cvta.to.shared.u64", lanes1(func(a uint64) uint64 {
		if spaceOf(a) != spaceShared {
			return ^uint64(0) // no memory is there
		}
		return uint64(uint32(a))
	}), 8, 8)
	for name, s := range map[string]space{"global": spaceGlobal, "shared": spaceShared, "local": spaceLocal, "param": spaceParam} {
		t["isspacep."+name] = operation{bytes: [4]uint8{predicate, 8}, test: func(a, _ *plane) (m uint32) {
			for i := range a {
				if spaceOf(a[i]) == s {
					m |= 1 << i
				}
			}
			return m
		}}
	}
}

// generic runs an access of generic addresses, space by space.
func generic(runs map[space]runFunc) runFunc {
	return func(w *warp, in *inst, mask uint32) bool {
		w.need(in, in.a, mask, "the address was not computed in this thread")
		var masks [spaces]uint32
		for m := mask; m != 0; m &= m - 1 {
			masks[spaceOf(w.regs[in.a][lowest(m)])] |= m & -m
		}
		for s, m := range masks {
			if m == 0 {
				continue
			}
			run := runs[space(s)]
			if run == nil {
				w.stop(BadOperand, w.pcOf(in), lowest(m), "the address is in the parameters, where only loads are allowed")
				return false
			}
			run(w, in, m)
		}
		return true
	}
}
