package ptx

// TensorMap is a parameter of 128 bytes that describes an array of 1 to 5
// dimensions in the memory of the device, and the tile of it that one copy moves.
// The driver encodes it (cuTensorMapEncodeTiled). It needs sm_90.
type TensorMap struct{ at U64 }

// The size and the alignment of a parameter that is a tensor map.
const (
	tensorMapBytes = 128
	tensorMapAlign = 64
)

// TensorMapParam declares the next parameter of the kernel: a tensor map.
func TensorMapParam(k *Kernel, name string) TensorMap {
	k = k.owner()
	k.param(name, kNone)
	t := TensorMap{U64{k: k, c: k.age}}
	if k.needs("a tensor map", 80, SM90) {
		symbol := k.fresh(classD)
		k.first(opSymbolParam, 0, symbol, tagged(tagParam, len(k.params)-1))
		t.at.v = k.fresh(classD)
		k.first(opToGlobalParamU64, 0, t.at.v, symbol)
	}
	return t
}

// Prefetch loads the map into the cache.
func (t TensorMap) Prefetch() {
	k := t.at.k.owner()
	k.tensor(opPrefetchTensorMap, nil, t, nil, nil, TensorHint{})
}

// TensorHint has options of a tensor copy. The zero value is the default.
type TensorHint struct {
	// Blocks has a bit for each block of the cluster that receives the tile, at the same offset,
	// and whose barrier at the same offset counts its bytes. The constant 0 means only this block.
	Blocks U32
	// Policy is the L2 policy of the tile: see [Kernel.EvictFirst]. The constant 0 means no policy.
	Policy U64
}

// TensorLoad starts to copy the tile at these coordinates, the innermost first, to shared memory,
// at a multiple of 128 bytes. Elements outside the array are copied as zeros. bar counts the bytes.
// One thread calls it. It needs sm_90.
func TensorLoad[T Element](dst Shared[T], t TensorMap, bar MBarrier, at ...S32) {
	TensorLoadHint(TensorHint{}, dst, t, bar, at...)
}

// TensorLoadHint is [TensorLoad] with a hint.
func TensorLoadHint[T Element](h TensorHint, dst Shared[T], t TensorMap, bar MBarrier, at ...S32) {
	a := address(dst)
	o := opTensorLoad1
	multicast, policy := h.Blocks != U32{}, h.Policy != U64{}
	switch {
	case multicast && policy:
		o = opTensorLoadMulticastPolicy1
	case multicast:
		o = opTensorLoadMulticast1
	case policy:
		o = opTensorLoadPolicy1
	}
	k := a.live()
	k.tensor(o, &a, t, &bar.at, at, h)
}

// TensorPrefetch starts to load the tile at these coordinates into L2.
func TensorPrefetch(t TensorMap, at ...S32) {
	t.at.k.owner().tensor(opTensorPrefetch1, nil, t, nil, at, TensorHint{})
}

// TensorStore starts to copy a tile from shared memory to these coordinates. Elements outside the
// array are not stored. For the copy to see earlier writes of threads, call [Kernel.FenceAsync] and
// a barrier before it. Wait for it with [Kernel.BulkCommit] and [Kernel.BulkWait]. It needs sm_90.
func TensorStore[T Element](t TensorMap, src Shared[T], at ...S32) {
	a := address(src)
	a.live().tensor(opTensorStore1, &a, t, nil, at, TensorHint{})
}

// TensorAdd is [TensorStore], but adds to the old elements.
func TensorAdd[T Element](t TensorMap, src Shared[T], at ...S32) {
	a := address(src)
	a.live().tensor(opTensorAdd1, &a, t, nil, at, TensorHint{})
}

// tensorForms is the number of instructions for each number of dimensions.
const tensorForms = opTensorLoad2 - opTensorLoad1

// tensor appends an instruction on a tensor; o is its variant for one dimension. The shared address
// comes first in loads, and last in stores.
func (k *Kernel) tensor(o code, shared *address, t TensorMap, bar *address, at []S32, h TensorHint) {
	if !k.open() {
		return
	}
	if t.at.k == nil {
		k.fail("the tensor map is not a parameter of a kernel: no kernel has declared it")
		return
	}
	tile := o != opPrefetchTensorMap
	if tile {
		if len(at) < 1 || len(at) > 5 {
			k.fail("there are %d coordinates, expected 1 to 5", len(at))
			return
		}
		o += code(len(at)-1) * tensorForms
	}
	if descs[o].target > k.target && !k.admit(o) {
		return
	}
	var v [16]val
	n := 0
	add := func(x ...val) { n += copy(v[n:], x) }
	place := func(p *address, multiple int32) {
		if p.live() != k {
			k.misuse(handle{p.k.owner(), p.v, p.c})
			return
		}
		if p.off%multiple != 0 {
			k.fail("the offset %d is not a multiple of %d", p.off, multiple)
		}
		add(p.v, k.integer(uint64(int64(p.off))))
	}
	if bar != nil {
		place(shared, 128)
	}
	add(k.use(handle(t.at), kU64))
	for _, x := range at {
		add(k.use(handle(x), kS32))
	}
	if bar != nil {
		place(bar, 8)
	} else if shared != nil {
		place(shared, 128)
	}
	if h.Blocks != (U32{}) {
		blocks := handle(h.Blocks)
		if blocks.k != nil {
			blocks = handle(h.Blocks.HalfBits())
		}
		add(k.use(blocks, kF16))
	}
	if h.Policy != (U64{}) {
		add(k.use(handle(h.Policy), kU64))
	}
	k.startList()
	k.listVals(v[:n]...)
	k.put(o, uint16(n), 0, k.endList(), 0, 0)
}

// BulkLoad starts to copy bytes from global to shared memory. The number of bytes and both
// addresses must be multiples of 16. bar counts the bytes. One thread calls it. It needs sm_90.
func BulkLoad[T Element](dst Shared[T], src Global[T], bytes U32, bar MBarrier) {
	BulkLoadHint(U64{}, dst, src, bytes, bar)
}

// BulkLoadHint is [BulkLoad] with an L2 policy for the bytes: see [Kernel.EvictFirst]. The constant
// 0 means no policy.
func BulkLoadHint[T Element](policy U64, dst Shared[T], src Global[T], bytes U32, bar MBarrier) {
	d, s := address(dst), address(src)
	o := opBulkLoad
	if policy != (U64{}) {
		o = opBulkLoadPolicy
	}
	d.bulk(o, &d, &s, bytes, &bar.at, policy)
}

// BulkStore starts to copy bytes, a multiple of 16, from shared to global memory: see
// [TensorStore].
func BulkStore[T Element](dst Global[T], src Shared[T], bytes U32) {
	d, s := address(dst), address(src)
	s.bulk(opBulkStore, &d, &s, bytes, nil, U64{})
}

func (p *address) bulk(o code, dst, src *address, bytes U32, bar *address, policy U64) {
	k := p.live()
	if descs[o].target > k.target && !k.admit(o) {
		return
	}
	for _, a := range []*address{dst, src, bar} {
		switch {
		case a == nil:
		case a.live() != k:
			k.misuse(handle{a.k.owner(), a.v, a.c})
			return
		case a != bar && a.off%16 != 0:
			k.fail("the offset %d of a copy is not a multiple of 16", a.off)
			return
		}
	}
	if bytes.k == nil && bytes.c%16 != 0 {
		k.fail("the size of a copy, %d bytes, is not a multiple of 16", bytes.c)
		return
	}
	n, l2 := k.use(handle(bytes), kU32), val(0)
	if o == opBulkLoadPolicy {
		l2 = k.use(handle(policy), kU64)
	}
	k.startList()
	k.listAddress(dst)
	k.listAddress(src)
	k.listVals(n)
	if bar != nil {
		k.listAddress(bar)
	}
	if o == opBulkLoadPolicy {
		k.listVals(l2)
	}
	k.put(o, uint16(len(k.lists)-k.listed), 0, k.endList(), 0, 0)
}

// BulkCommit makes a group of this thread's copies to global memory since the last BulkCommit. It
// needs sm_90.
func (k *Kernel) BulkCommit() { k.owner().put(opBulkCommit, 0, 0, 0, 0, 0) }

// BulkWait waits until at most n of this thread's groups are incomplete.
func (k *Kernel) BulkWait(n int) { k.groups(opBulkWait, n) }

// BulkWaitRead waits until at most n of this thread's groups still have to read shared memory. The
// shared memory of the other groups may then be written.
func (k *Kernel) BulkWaitRead(n int) { k.groups(opBulkWaitRead, n) }

// groups appends a wait for groups of copies.
func (k *Kernel) groups(o code, n int) {
	k = k.owner()
	if n < 0 || n > 255 {
		if k.ready() {
			k.failure(ErrLimit, "cannot wait for %d groups of copies: the number must be from 0 to 255", n)
		}
		return
	}
	k.put(o, uint16(n), 0, 0, 0, 0)
}

// EvictFirst returns the L2 policy for data that are used once. It needs sm_80.
func (k *Kernel) EvictFirst() U64 { return U64(k.owner().result(opPolicyEvictFirst, 0, 0, 0)) }

// EvictLast returns the L2 policy for data that many blocks use. It needs sm_80.
func (k *Kernel) EvictLast() U64 { return U64(k.owner().result(opPolicyEvictLast, 0, 0, 0)) }

// Prefetch loads the data at p into L2.
func Prefetch[T Element](p Global[T]) {
	a := address(p)
	k := a.live()
	k.startList()
	k.listAddress(&a)
	k.put(opPrefetch, 2, 0, k.endList(), 0, 0)
}
