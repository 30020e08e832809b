package ptx

// CheckBarriers finds barriers that not all threads of the block or cluster reach, and warp
// instructions that not all lanes of the warp reach: those under a condition, or after a branch,
// that differs among the threads.
//
// If the analysis cannot decide, it is optimistic: it takes the number of a thread divided by 32 or
// shifted by 5 as uniform in a warp, and a load from one address as the same in all threads.
var CheckBarriers = Pass{"barriers", checkBarriers}

// variation is the largest group of threads in which a value is uniform.
type variation uint8

const (
	sameBlock variation = iota // the value is the same in all threads of a block
	sameWarp                   // the value is the same in the lanes of a warp
	differs
)

// divergence has the set of threads between which values and control flow may differ.
type divergence struct {
	b      *body
	reg    []variation // of registers
	block  []variation // of basic blocks: the threads that reach them
	cause  []int32     // the branch that causes the difference
	marked []variation // the analysis of the branch at the end of a block is done
}

func (b *body) divergence() *divergence {
	g, f, k := b.graph(), b.registers(), b.k
	d := &divergence{b, make([]variation, len(f.writes)), make([]variation, len(g.blocks)), make([]int32, len(g.blocks)), make([]variation, len(g.blocks))}
	var a access
	for i := range k.prologue {
		in := &k.prologue[i]
		if in.op == opSpecial {
			d.reg[f.number(in.d)] = k.variationOf(Special(in.a.n()))
		}
	}
	for changed := true; changed; {
		changed = false
		for _, n := range g.order {
			bl := &g.blocks[n]
			for i := bl.begin; i < bl.end; i++ {
				in := &k.code[i]
				a.of(k, in)
				s := d.result(in, &a)
				for _, v := range a.writes {
					m := f.number(v)
					t := s
					if f.writes[m] > 1 || in.guard != 0 {
						// Some threads keep the old value.
						t = max(t, d.block[n], d.guard(in))
					}
					if t > d.reg[m] {
						d.reg[m], changed = t, true
					}
				}
			}
			last := &k.code[bl.end-1]
			if s := d.guard(last); s > d.marked[n] && (last.op == opBranch || last.op == opReturn) {
				d.marked[n], changed = s, true
				g.region(n, func(m int32) {
					if s > d.block[m] {
						d.block[m], d.cause[m] = s, int32(bl.end-1)
					}
				})
			}
		}
	}
	return d
}

func (k *Kernel) variationOf(s Special) variation {
	switch s {
	case TidX:
		if k.threads[0] == 1 {
			return sameBlock
		}
		return differs
	case TidY, TidZ:
		switch {
		case k.threads[s-TidX] == 1:
			return sameBlock
		case k.threads[0]%32 == 0: // or the size is unknown
			return sameWarp
		}
		return differs
	case LaneID, LaneMaskLt, LaneMaskLe, LaneMaskEq, LaneMaskGe, LaneMaskGt:
		return differs
	}
	return sameBlock
}

func (d *divergence) guard(in *instr) variation {
	if in.guard == 0 {
		return sameBlock
	}
	return d.reg[d.b.registerUse.number(classP.reg(uint32(in.guard&^guarded)>>1))]
}

// result returns how the result of the instruction may differ between threads.
func (d *divergence) result(in *instr, a *access) variation {
	s := sameBlock
	for _, v := range a.reads {
		s = max(s, d.reg[d.b.registerUse.number(v)])
	}
	small, isSmall := uint32(0), in.b.tag() == tagSmall
	if isSmall {
		small = in.b.n()
	}
	desc := &descs[in.op]
	switch {
	case in.op == opActiveMask, in.op == opElect, in.op == opClock, in.op == opGlobalTimer, in.op == opMBarrierTest, in.op == opMBarrierTry,
		in.op == opLoadGlobalVolatile, in.op == opLoadSharedVolatile, in.op == opLoadGlobalOrdered,
		desc.layout == layoutMatrix, desc.layout == layoutMma, desc.layout == layoutWgmma, desc.layout == layoutRaw,
		desc.layout == layoutAtomic, desc.layout == layoutExchange:
		return differs
	case in.op == opShuffleIndexU32, in.op == opShuffleIndexF32:
		if i := in.b; i.tag() == tagSmall || d.reg[d.b.registerUse.number(i)] < differs {
			return min(s, sameWarp)
		}
	case desc.layout == layoutShuffle:
	case in.collective() && in.op != opMatchAnyU32 && in.op != opMatchAnyB32: // votes and reductions
		return min(s, sameWarp)
	case (in.op == opShrU32 || in.op == opShrB32 || in.op == opShrS32) && isSmall && small >= 5,
		in.op == opDivU32 && isSmall && small >= 32,
		in.op == opAndU32 && isSmall && small%32 == 0:
		return min(s, sameWarp)
	}
	return s
}

func checkBarriers(b *body) {
	d := b.divergence()
	g, k := b.g, b.k
	for _, n := range g.order {
		bl := &g.blocks[n]
		for i := bl.begin; i < bl.end; i++ {
			in := &k.code[i]
			whom, limit := "", sameBlock
			switch {
			case in.op == opBarrierU32 || in.op == opClusterArrive || in.op == opClusterArriveRelaxed || in.op == opClusterWait:
				whom = "the block"
			case in.op == opBarrierCountU32 || in.op == opBarrierArriveU32:
				whom, limit = "the warp", sameWarp
			case in.collective():
				if m := in.members(); m != 0 && !(m.tag() == tagSigned && k.consts[m.n()] == 1<<32-1) {
					continue // the mask may be the set of the participating threads
				}
				whom, limit = "the warp", sameWarp
			default:
				continue
			}
			switch {
			case d.guard(in) > limit:
				b.report(i, "not all threads of %s reach this instruction, because its condition differs among them", whom)
			case d.block[n] > limit:
				where := b.text(int(d.cause[n]))
				if p := b.position(int(d.cause[n])); p.File != "" {
					where = p.String()
				}
				b.report(i, "not all threads of %s reach this instruction, because the condition of %s differs among them", whom, where)
			}
		}
	}
}
