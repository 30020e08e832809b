package ptx

// access lists the registers that an instruction reads and writes. Its slices are reused.
type access struct{ reads, writes []val }

// appendReg appends v to list if it is a register.
func appendReg(list []val, v val) []val {
	if _, ok := v.class(); ok {
		return append(list, v)
	}
	return list
}

// of sets a to the registers that the instruction reads, including its condition, and writes.
func (a *access) of(k *Kernel, in *instr) {
	r, w := a.reads[:0], a.writes[:0]
	if in.guard != 0 {
		r = append(r, classP.reg(uint32(in.guard&^guarded)>>1))
	}
	list := func(from val, n int) {
		for _, v := range k.lists[from : int(from)+n] {
			r = appendReg(r, v)
		}
	}
	run := func(from val, n int) {
		for i := range val(n) {
			w = append(w, from+i)
		}
	}
	switch descs[in.op].layout {
	case layoutPlain, layoutName, layoutAux, layoutShuffle, layoutPack, layoutParam:
		w = appendReg(w, in.d)
		r = appendReg(appendReg(appendReg(r, in.a), in.b), in.c)
	case layoutUnpack:
		w = appendReg(appendReg(w, in.d), in.a)
		r = appendReg(r, in.b)
	case layoutLoad:
		run(in.d, int(in.aux>>8))
		r = appendReg(r, in.a)
	case layoutStore:
		r = appendReg(r, in.a)
		if n := int(in.aux >> 8); n > 1 {
			list(in.c, n)
		} else {
			r = appendReg(r, in.c)
		}
	case layoutAtomic, layoutReduction:
		w = appendReg(w, in.d)
		r = appendReg(appendReg(r, in.a), in.c)
	case layoutExchange:
		w = appendReg(w, in.d)
		r = appendReg(r, in.a)
		list(in.c, 2)
	case layoutCopy:
		r = appendReg(appendReg(appendReg(r, in.d), in.a), in.b)
	case layoutMatrix:
		run(in.d, int(in.aux))
		r = appendReg(r, in.a)
	case layoutMma:
		n := int(in.aux & 15)
		list(in.a, n+int(in.aux>>4&15)+int(in.aux>>8&15))
		w = append(w, k.lists[in.a:int(in.a)+n]...)
	case layoutWgmma:
		n := int(in.c)
		list(in.a, n+wgmmaInputs(in))
		r = appendReg(r, in.b)
		w = append(w, k.lists[in.a:int(in.a)+n]...)
	case layoutForm, layoutRaw:
		list(in.a, int(in.aux))
		w = appendReg(w, in.d)
	}
	a.reads, a.writes = r, w
}

// wgmmaInputs returns the number of registers of A and B of a product.
func wgmmaInputs(in *instr) int {
	if in.aux&wgmmaRegisters != 0 {
		return 5
	}
	return 2
}

// replaceReads replaces each register v that the instruction reads by by(v), except conditions and
// registers that are also written.
func (k *Kernel) replaceReads(in *instr, by func(v val) val) {
	change := func(v *val) {
		if _, ok := v.class(); ok {
			*v = by(*v)
		}
	}
	list := func(from val, n int) {
		for i := range k.lists[from : int(from)+n] {
			change(&k.lists[int(from)+i])
		}
	}
	switch descs[in.op].layout {
	case layoutPlain, layoutName, layoutAux, layoutShuffle, layoutPack, layoutParam:
		change(&in.a)
		change(&in.b)
		change(&in.c)
	case layoutUnpack:
		change(&in.b)
	case layoutLoad, layoutMatrix:
		change(&in.a)
	case layoutStore:
		change(&in.a)
		if n := int(in.aux >> 8); n > 1 {
			list(in.c, n)
		} else {
			change(&in.c)
		}
	case layoutAtomic, layoutReduction:
		change(&in.a)
		change(&in.c)
	case layoutExchange:
		change(&in.a)
		list(in.c, 2)
	case layoutCopy:
		change(&in.d)
		change(&in.a)
		change(&in.b)
	case layoutMma:
		n := int(in.aux & 15)
		list(in.a+val(n), int(in.aux>>4&15)+int(in.aux>>8&15))
	case layoutWgmma:
		list(in.a+in.c, wgmmaInputs(in))
		change(&in.b)
	case layoutForm, layoutRaw:
		list(in.a, int(in.aux))
	}
}

// pure reports whether the instruction has no side effects and always computes the same result from
// the same operands.
func (in *instr) pure() bool {
	d := &descs[in.op]
	switch d.layout {
	case layoutPlain, layoutAux:
		return d.kinds[0] != kNone && in.op != opActiveMask && !in.collective()
	case layoutName, layoutPack, layoutUnpack, layoutParam:
		return true
	case layoutForm:
		return in.op == opInsert || in.op == opPolicyEvictFirst || in.op == opPolicyEvictLast
	}
	return false
}

// droppable reports whether the instruction may be removed if its result is unused.
func (in *instr) droppable() bool {
	if in.pure() {
		return true
	}
	switch in.op {
	case opLoadGlobal, opLoadGlobalReadOnly, opLoadGlobalStream, opLoadGlobalL2, opLoadGlobalOnce, opLoadGlobalAhead,
		opLoadShared, opLoadCluster, opClock, opGlobalTimer:
		return true
	}
	return false
}

// collective reports whether the lanes of a warp execute the instruction together.
func (in *instr) collective() bool {
	switch descs[in.op].layout {
	case layoutShuffle, layoutMatrix, layoutMma, layoutWgmma:
		return true
	}
	switch in.op {
	case opAnyPred, opAllPred, opUniformPred, opBallotPred, opMatchAnyU32, opMatchAnyB32, opReduceAddU32, opReduceAddS32,
		opReduceMinU32, opReduceMinS32, opReduceMaxU32, opReduceMaxS32, opReduceAndB32, opReduceOrB32, opReduceXorB32,
		opStoreMatrix1, opStoreMatrix2, opStoreMatrix4, opStoreMatrixTrans1, opStoreMatrixTrans2, opStoreMatrixTrans4,
		opWarpBarrierU32, opElect, opWgmmaFence, opWgmmaCommit, opWgmmaWait, opRaiseRegisters, opDropRegisters:
		return true
	}
	return false
}

// members returns the operand with the participating lanes, or 0 if all lanes participate.
func (in *instr) members() val {
	switch {
	case descs[in.op].layout == layoutShuffle:
		return in.c
	case in.op == opWarpBarrierU32:
		return in.a
	case descs[in.op].layout == layoutPlain:
		return in.b
	}
	return 0
}
