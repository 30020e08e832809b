package ptx

// Elect returns whether this thread is the elected thread of its warp. All threads of the warp must
// execute it. It needs sm_90.
func (k *Kernel) Elect() Pred {
	k = k.owner()
	if descs[opElect].target > k.target && !k.admit(opElect) {
		return Pred{k: k, c: k.age}
	}
	d, all := k.fresh(classP), k.use(handle(AllLanes), kU32)
	k.startList()
	k.listVals(all)
	k.put(opElect, 1, d, k.endList(), 0, 0)
	return Pred{k, d, k.age}
}

// Clock returns the cycles that the multiprocessor has counted.
func (k *Kernel) Clock() U64 { return U64(k.owner().result(opClock, 0, 0, 0)) }

// GlobalTimer returns nanoseconds, counted in steps of about a microsecond.
func (k *Kernel) GlobalTimer() U64 { return U64(k.owner().result(opGlobalTimer, 0, 0, 0)) }

// Sleep lets the thread rest for about so many nanoseconds, at most a
// millisecond.
func (k *Kernel) Sleep(ns U32) {
	k = k.owner()
	k.put(opSleepU32, 0, 0, k.use(handle(ns), kU32), 0, 0)
}

// Trap ends the grid with an error.
func (k *Kernel) Trap() { k.owner().put(opTrap, 0, 0, 0, 0, 0) }

// Insert returns y with its n bits from bit at on replaced by the low ones of x.
func (x U32) Insert(y, at, n U32) U32 {
	var k *Kernel
	for _, h := range []U32{x, y, at, n} {
		if k == nil {
			k = h.k
		}
	}
	if k == nil {
		k = unfolded
	}
	var v [4]val
	for i, h := range []U32{x, y, at, n} {
		v[i] = k.use(handle(h), kU32)
	}
	if k.target == 0 {
		k.ready()
		return U32{k: k, c: k.age}
	}
	k.startList()
	k.listVals(v[:]...)
	d := k.fresh(classR)
	k.put(opInsert, 4, d, k.endList(), 0, 0)
	return U32{k, d, k.age}
}
