package ptx

// LoadMatrix loads an 8 by 8 matrix of elements of 16 bits for a warp. Lane i of the first 8 gives
// the address of row i, a multiple of 16 bytes; lane i gets two elements of row i/4. With transpose
// it gets two elements of column i/4. It needs sm_75 and PTX 6.5.
func LoadMatrix[T F16x2 | BF16x2 | B32](row Shared[T], transpose bool) T {
	return T(address(row).matrix(opLoadMatrix1, opLoadMatrixTrans1, transpose, 1))
}

// LoadMatrix2 loads two matrices as [LoadMatrix] does. The first 16 lanes give the addresses.
func LoadMatrix2[T F16x2 | BF16x2 | B32](row Shared[T], transpose bool) [2]T {
	h := address(row).matrix(opLoadMatrix2, opLoadMatrixTrans2, transpose, 2)
	return [2]T{T(h), T(h.next(1))}
}

// LoadMatrix4 loads four matrices as [LoadMatrix] does. All lanes give the addresses.
func LoadMatrix4[T F16x2 | BF16x2 | B32](row Shared[T], transpose bool) [4]T {
	h := address(row).matrix(opLoadMatrix4, opLoadMatrixTrans4, transpose, 4)
	return [4]T{T(h), T(h.next(1)), T(h.next(2)), T(h.next(3))}
}

func (p address) matrix(plain, trans code, transpose bool, n int) handle {
	k, o := p.live(), plain
	if transpose {
		o = trans
	}
	switch {
	case descs[o].target > k.target && !k.admit(o):
		return handle{k: k, c: k.age}
	case p.off%16 != 0:
		k.fail("the offset %d of a matrix is not a multiple of 16", p.off)
		return handle{k: k, c: k.age}
	}
	d := k.fresh(classR)
	k.regs[classR] += uint32(n - 1)
	k.put(o, uint16(n), d, p.v, val(p.off), 0)
	return handle{k, d, k.age}
}

// StoreMatrix stores an 8 by 8 matrix of elements of 16 bits as [LoadMatrix]
// loads one. It needs sm_90.
func StoreMatrix[T F16x2 | BF16x2 | B32](row Shared[T], v T, transpose bool) {
	address(row).storeMatrix(opStoreMatrix1, opStoreMatrixTrans1, transpose, handle(v))
}

// StoreMatrix2 stores two matrices: see [LoadMatrix2].
func StoreMatrix2[T F16x2 | BF16x2 | B32](row Shared[T], v [2]T, transpose bool) {
	address(row).storeMatrix(opStoreMatrix2, opStoreMatrixTrans2, transpose, handle(v[0]), handle(v[1]))
}

// StoreMatrix4 stores four matrices: see [LoadMatrix4].
func StoreMatrix4[T F16x2 | BF16x2 | B32](row Shared[T], v [4]T, transpose bool) {
	address(row).storeMatrix(opStoreMatrix4, opStoreMatrixTrans4, transpose, handle(v[0]), handle(v[1]), handle(v[2]), handle(v[3]))
}

func (p address) storeMatrix(plain, trans code, transpose bool, v ...handle) {
	k, o := p.live(), plain
	if transpose {
		o = trans
	}
	switch {
	case descs[o].target > k.target && !k.admit(o):
		return
	case p.off%16 != 0:
		k.fail("the offset %d of a matrix is not a multiple of 16", p.off)
		return
	}
	var x [4]val
	for i := range v {
		x[i] = k.reg(v[i], kB32)
	}
	k.startList()
	k.listAddress(&p)
	k.listVals(x[:len(v)]...)
	k.put(o, uint16(2+len(v)), 0, k.endList(), 0, 0)
}

// mma appends a product with the given operands.
func (k *Kernel) mma(o code, nd, na, nb int) {
	k.put(o, uint16(nd|na<<4|nb<<8), 0, k.endList(), 0, 0)
}

// listVar appends a variable to the list.
func (k *Kernel) listVar(x handle, kd kind) {
	if x.k == nil {
		x = handle{k: nowhere} // a constant cannot be set
	}
	k.list(x, kd)
}

// CopyAsync starts to copy 4, 8 or 16 bytes from global to shared memory; both addresses must be
// multiples of this number. [Kernel.CopyWait] waits for the copies. Copies of 16 bytes bypass L1.
// It needs sm_80 and PTX 7.0.
func CopyAsync[T Element](dst Shared[T], src Global[T], bytes int) {
	copyAsync(address(dst), address(src), bytes, handle{}, false)
}

// CopyAsyncZero is [CopyAsync], but copies only the first n of the bytes and sets the others to 0.
func CopyAsyncZero[T Element](dst Shared[T], src Global[T], bytes int, n U32) {
	copyAsync(address(dst), address(src), bytes, handle(n), true)
}

func copyAsync(dst, src address, bytes int, n handle, some bool) {
	k, o := dst.live(), opCopyAsync
	if bytes == 16 {
		o = opCopyAsyncL2
	}
	switch {
	case k.target == 0:
		k.ready()
		return
	case src.k != k || src.c != k.age:
		k.misuse(handle{src.k.owner(), src.v, src.c})
		return
	case bytes != 4 && bytes != 8 && bytes != 16:
		k.fail("a copy of %d bytes is not possible: use 4, 8 or 16 bytes", bytes)
		return
	case int(dst.off)%bytes != 0 || int(src.off)%bytes != 0:
		k.fail("a copy of %d bytes from offset %d to offset %d: both offsets must be multiples of its size", bytes, src.off, dst.off)
		return
	}
	var size val
	if some {
		size = k.use(n, kU32)
	}
	k.startList()
	k.lists = append(k.lists, val(dst.off), val(src.off))
	k.put(o, uint16(bytes), dst.v, src.v, size, k.endList())
}

// CopyCommit makes a group of the copies since the last CopyCommit.
func (k *Kernel) CopyCommit() { k.owner().put(opCopyCommit, 0, 0, 0, 0, 0) }

// CopyWait waits until at most n of this thread's groups of copies are incomplete. A [Kernel.Sync]
// then makes the copied bytes visible to the other threads.
func (k *Kernel) CopyWait(n int) {
	k.groups(opCopyWait, n)
}

// CopyWaitAll waits for all copies of this thread.
func (k *Kernel) CopyWaitAll() { k.owner().put(opCopyWaitAll, 0, 0, 0, 0, 0) }
