package ptx

// MBarrier is a barrier in shared memory: 8 bytes that count the arrivals of threads and the bytes
// that copies bring. A phase is complete after the initial number of arrivals and all announced
// bytes. A wait names the parity of the phase, which is 0 for the first phase and then alternates.
// It needs sm_80.
type MBarrier struct{ at address }

// MBarrierAt returns the barrier at p.
func MBarrierAt(p Shared[U64]) MBarrier { return MBarrier{address(p)} }

// At returns barrier i of an array.
func (m MBarrier) At(i U32) MBarrier { return MBarrier{m.at.at(handle(i))} }

// form appends an instruction whose text has placeholders for the address and the operands.
func (p *address) form(o code, operands ...handle) {
	k := p.live()
	if descs[o].target > k.target && !k.admit(o) {
		return
	}
	list := [6]val{}
	for i, x := range operands {
		list[i] = k.use(x, kU32)
	}
	k.startList()
	k.listAddress(p)
	k.listVals(list[:len(operands)]...)
	k.put(o, uint16(2+len(operands)), 0, k.endList(), 0, 0)
}

// listAddress appends a register and an offset to the list.
func (k *Kernel) listAddress(p *address) {
	if k.target != 0 {
		k.lists = append(k.lists, p.v, k.integer(uint64(int64(p.off))))
	}
}

// listVals appends operands to the list.
func (k *Kernel) listVals(v ...val) {
	if k.target != 0 {
		k.lists = append(k.lists, v...)
	}
}

// Init initialises the barrier for count arrivals in each phase. One thread calls it.
// [Kernel.FenceMBarrierInit] and a barrier of the block or cluster must follow.
func (m MBarrier) Init(count U32) { m.at.form(opMBarrierInit, handle(count)) }

// Invalidate ends the use of the barrier. Its memory may then be used for something else.
func (m MBarrier) Invalidate() { m.at.form(opMBarrierInvalidate) }

// Arrive arrives at the barrier and releases this thread's earlier writes.
func (m MBarrier) Arrive() { m.at.form(opMBarrierArrive) }

// ArriveCopies arrives at the barrier when all copies that this thread started by [CopyAsync] are
// complete. Init must count this arrival.
func (m MBarrier) ArriveCopies() { m.at.form(opMBarrierArriveCopy) }

// Expect announces the number of bytes that copies bring in this phase. It needs sm_90.
func (m MBarrier) Expect(bytes U32) { m.at.form(opMBarrierExpect, handle(bytes)) }

// ArriveExpect arrives at the barrier and announces bytes. It needs sm_90.
func (m MBarrier) ArriveExpect(bytes U32) { m.at.form(opMBarrierArriveExpect, handle(bytes)) }

// ArriveAt arrives at the barrier at the same offset in block rank of the cluster and releases this
// thread's earlier writes, which costs a device-wide fence. It needs sm_90.
func (m MBarrier) ArriveAt(rank U32) { m.arriveAt(opMBarrierArriveRemote, rank) }

// ArriveNear is [MBarrier.ArriveAt], but does not make this thread's writes visible to the other
// block. Use it to report that data have been read. It needs sm_90.
func (m MBarrier) ArriveNear(rank U32) { m.arriveAt(opMBarrierArriveNear, rank) }

func (m MBarrier) arriveAt(o code, rank U32) {
	k := m.at.live()
	a := op2(opMapSharedU32, m.at.pointer(), handle(rank))
	if descs[o].target > k.target && !k.admit(o) {
		return
	}
	k.startList()
	k.listVals(k.use(a, kU32))
	k.put(o, 1, 0, k.endList(), 0, 0)
}

// pointer returns the address as a number.
func (p *address) pointer() handle {
	k := p.live()
	return op2(opAddU32, handle{k, p.v, p.c}, handle(U(uint32(p.off))))
}

// Test reports whether the phase with this parity is complete.
func (m MBarrier) Test(parity U32) Pred { return m.wait(opMBarrierTest, parity) }

// Try is [MBarrier.Test], but may wait for a limited time first. It needs sm_90.
func (m MBarrier) Try(parity U32) Pred { return m.wait(opMBarrierTry, parity) }

func (m MBarrier) wait(o code, parity U32) Pred {
	k := m.at.live()
	if descs[o].target > k.target && !k.admit(o) {
		return Pred{k: k, c: k.age}
	}
	n := k.use(handle(parity), kU32)
	d := k.fresh(classP)
	k.startList()
	k.listAddress(&m.at)
	k.listVals(n)
	k.put(o, 3, d, k.endList(), 0, 0)
	return Pred{k, d, k.age}
}

// Wait waits until the phase of this parity is complete. Writes before the arrivals, and the
// announced bytes, are then visible.
func (m MBarrier) Wait(parity U32) {
	k := m.at.live()
	if !k.open() {
		return
	}
	if parity.k != nil {
		k.use(handle(parity), kU32)
	}
	try := m.Test
	if k.target >= descs[opMBarrierTry].target {
		try = m.Try
	}
	again := k.label()
	k.place(again)
	k.branchIf(k.use(handle(try(parity)), kPred), true, again)
}

// FenceMBarrierInit makes the barriers that this thread has initialised visible to copies and to
// the cluster. It needs sm_90.
func (k *Kernel) FenceMBarrierInit() { k.owner().put(opFenceMBarrierInit, 0, 0, 0, 0, 0) }

// FenceAsync orders this thread's earlier accesses before later bulk copies and products of
// warpgroups. It needs sm_90.
func (k *Kernel) FenceAsync() { k.owner().put(opFenceAsync, 0, 0, 0, 0, 0) }

// FenceAsyncShared is [Kernel.FenceAsync] for shared memory alone.
func (k *Kernel) FenceAsyncShared() { k.owner().put(opFenceAsyncShared, 0, 0, 0, 0, 0) }
