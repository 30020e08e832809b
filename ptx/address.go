package ptx

import (
	"math"
)

// next returns the register n after h.
func (h handle) next(n val) handle { return handle{h.k, h.v + n, h.c} }

// live returns the kernel of the address if it can be used.
func (p *address) live() *Kernel {
	k := p.k.owner()
	if p.c != k.age {
		k.misuse(handle{k, p.v, p.c})
	}
	return k
}

// offset moves the address by n elements.
func (p address) offset(n int) address {
	off := int64(n)*int64(p.how.size()) + int64(p.off)
	if off != int64(int32(off)) || n != int(int32(n)) {
		return p.tooFar(n)
	}
	p.off = int32(off)
	return p
}

// tooFar fails for an offset beyond 32 bits, or for an address that no kernel made.
func (p address) tooFar(n int) address {
	k := p.live()
	if k.ready() {
		k.failure(ErrLimit, "an offset of %d elements does not fit in 32 bits", n)
	}
	return p
}

func (p address) at(i handle) address {
	if i.k == nil {
		// Instructions have offsets of 32 bits.
		if i.c > math.MaxInt32 || p.how.in() == inGlobal && int64(i.c)*int64(p.how.size())+int64(p.off) > math.MaxInt32 {
			return p.at64(constant64(uint64(i.c)))
		}
		return p.offset(int(i.c))
	}
	k := p.live()
	v := i.v
	if i.k != k || i.c != k.age {
		v = k.misuse(i)
	}
	switch size := tagged(tagSmall, int(p.how.size())); {
	case p.how.in() == inGlobal:
		p.v = k.result(opMulAddWideU32, v, size, p.v).v
	case p.how.size() == 1:
		p.v = k.result(opAddU32, v, p.v, 0).v
	default:
		p.v = k.result(opMulAddU32, v, size, p.v).v
	}
	return p
}

func (p address) at64(i handle) address {
	k := p.live()
	if p.how.in() != inGlobal {
		if k.ready() {
			k.failure(ErrLimit, "element %d is beyond the end of shared memory", i.bits())
		}
		return p
	}
	if i.k != nil && i.k != k {
		k.misuse(i)
		return p
	}
	p.v = op3(opMulAddU64, i, constant64(uint64(p.how.size())), handle{k, p.v, p.c}).v
	return p
}

func (p address) hinted(h Hint) address {
	k := p.live()
	if h >= numHints || p.how.in() != inGlobal && h != Cached && (h != Volatile || p.how.in() == inCluster) {
		if k.ready() {
			k.fail("this memory does not support the hint")
		}
		return p
	}
	p.how = newHow(p.how.kind(), p.how.in(), h)
	return p
}

// memoryAux packs the kind and the number of elements of an access.
func memoryAux(kd kind, n int) uint16 { return uint16(kd) | uint16(n)<<8 }

func (p *address) loadCode() code {
	if p.how.in() == inCluster {
		return opLoadCluster
	}
	if p.how.in() == inShared {
		if p.how.hint() == Volatile {
			return opLoadSharedVolatile
		}
		return opLoadShared
	}
	return opLoadGlobal + code(p.how.hint())
}

func (p *address) storeCode() code {
	if p.how.in() == inCluster {
		return opStoreCluster
	}
	if p.how.in() == inShared {
		if p.how.hint() == Volatile {
			return opStoreSharedVolatile
		}
		return opStoreShared
	}
	return opStoreGlobal + code(p.how.hint())
}

// vector checks an access of n elements.
func (p *address) vector(k *Kernel, n int) bool {
	size := n * int(p.how.size())
	switch {
	case k.target == 0:
		return k.ready()
	case size > 16:
		k.fail("an access has %d bytes; at most 16 are possible", size)
	case int(p.off)%size != 0:
		k.fail("the offset %[2]d of an access of %[1]d bytes is not a multiple of its size", size, p.off)
	default:
		return true
	}
	return false
}

func (p address) load1() handle {
	k := p.live()
	if p.off&(p.how.size()-1) != 0 {
		return p.load(1)
	}
	o := opLoadGlobal + code(p.how.hint())
	if p.how.in() != inGlobal {
		o = p.loadCode()
	}
	if descs[o].target > k.target && !k.admit(o) {
		return handle{k: k, c: k.age}
	}
	d := k.fresh(kinds[p.how.kind()].class)
	k.put(o, memoryAux(p.how.kind(), 1), d, p.v, val(p.off), 0)
	return handle{k, d, k.age}
}

func (p address) loadTo(v handle) {
	k := p.live()
	if !p.vector(k, 1) {
		return
	}
	d := k.use(v, p.how.kind())
	k.put(p.loadCode(), memoryAux(p.how.kind(), 1), d, p.v, val(p.off), 0)
}

func (p address) load(n int) handle {
	k := p.live()
	if !p.vector(k, n) {
		return handle{k: k, c: k.age}
	}
	o := p.loadCode()
	if descs[o].target > k.target && !k.admit(o) {
		return handle{k: k, c: k.age}
	}
	c := kinds[p.how.kind()].class
	d := k.fresh(c)
	k.regs[c] += uint32(n - 1)
	k.put(o, memoryAux(p.how.kind(), n), d, p.v, val(p.off), 0)
	return handle{k, d, k.age}
}

func (p *address) readOnly() bool { return p.how.hint() == ReadOnly || p.how.hint() == Ahead }

func (p address) store1(v handle) {
	k := p.live()
	if p.readOnly() || p.off&(p.how.size()-1) != 0 {
		if p.beginStore(1) != nil {
			k.list(v, p.how.kind())
			p.endStore(k, 1)
		}
		return
	}
	x := k.use(v, p.how.kind())
	k.put(p.storeCode(), memoryAux(p.how.kind(), 1), 0, p.v, val(p.off), x)
}

// beginStore begins a store of n elements, which are appended next. It returns nil if the store is
// invalid.
func (p address) beginStore(n int) *Kernel {
	k := p.live()
	if !p.vector(k, n) {
		return nil
	}
	if p.readOnly() {
		k.fail("the hint is only for loads; this is a store")
		return nil
	}
	k.startList()
	return k
}

func (p address) endStore(k *Kernel, n int) {
	c := k.endList()
	if n == 1 && int(c) < len(k.lists) {
		c = k.lists[c]
	}
	k.put(p.storeCode(), memoryAux(p.how.kind(), n), 0, p.v, val(p.off), c)
}

// store2 stores two elements in one access.
func (p address) store2(v0, v1 handle) {
	if k := p.beginStore(2); k != nil {
		k.list(v0, p.how.kind())
		k.list(v1, p.how.kind())
		p.endStore(k, 2)
	}
}

// store4 stores four elements in one access.
func (p address) store4(v0, v1, v2, v3 handle) {
	if k := p.beginStore(4); k != nil {
		k.list(v0, p.how.kind())
		k.list(v1, p.how.kind())
		k.list(v2, p.how.kind())
		k.list(v3, p.how.kind())
		p.endStore(k, 4)
	}
}

// startList begins a list of operands.
func (k *Kernel) startList() {
	if k.target != 0 {
		k.listed = len(k.lists)
	}
}

// list appends a value to the list, in a register.
func (k *Kernel) list(x handle, kd kind) {
	v := x.v
	if x.k != k || x.c != k.age {
		v = k.reg(x, kd)
	}
	if k.target != 0 {
		k.lists = append(k.lists, v)
	}
}

func (k *Kernel) endList() val { return val(k.listed) }

// atomic appends the instruction that the tables give for the address.
func (p address) atomic(global, shared *[numKinds]code, v handle) handle {
	k := p.live()
	o := global[p.how.kind()]
	if p.how.in() == inShared {
		o = shared[p.how.kind()]
	}
	if !p.vector(k, 1) || descs[o].target > k.target && !k.admit(o) {
		return handle{k: k, c: k.age}
	}
	x := k.use(v, p.how.kind())
	d := k.fresh(kinds[p.how.kind()].class)
	k.put(o, 0, d, p.v, val(p.off), x)
	return handle{k, d, k.age}
}

func (p address) reduce(global, shared *[numKinds]code, v handle) {
	k := p.live()
	o := global[p.how.kind()]
	if p.how.in() == inShared {
		o = shared[p.how.kind()]
	}
	if p.vector(k, 1) {
		k.put(o, 0, 0, p.v, val(p.off), k.use(v, p.how.kind()))
	}
}

// AtomicCompareExchange atomically stores v at p if the old value equals expect, and returns the
// old value.
func AtomicCompareExchange[T U32 | U64, P Global[T] | Shared[T]](p P, expect, v T) T {
	return T(address(p).compareExchange(handle(expect), handle(v)))
}

func (p address) compareExchange(expect, v handle) handle {
	k := p.live()
	o := opAtomicGlobalCompareExchangeU32
	switch {
	case p.how.in() == inShared && p.how.kind() == kU64:
		o = opAtomicSharedCompareExchangeU64
	case p.how.in() == inShared:
		o = opAtomicSharedCompareExchangeU32
	case p.how.kind() == kU64:
		o = opAtomicGlobalCompareExchangeU64
	}
	if !p.vector(k, 1) {
		return handle{k: k, c: k.age}
	}
	k.startList()
	k.list(expect, p.how.kind())
	k.list(v, p.how.kind())
	d := k.fresh(kinds[p.how.kind()].class)
	k.put(o, 0, d, p.v, val(p.off), k.endList())
	return handle{k, d, k.age}
}
