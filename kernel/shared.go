package kernel

import "github.com/rayo-go/rayo/internal/ir"

// Array is memory that the lanes of a workgroup share. Its elements are undefined until they are
// written. Other lanes can read a written value after a [Builder.Barrier].
type Array[T Element] struct {
	b    *Builder
	slot uint32
	kind kind
}

// Shared declares an array of n elements in workgroup memory.
func Shared[T Element](b *Builder, name string, n int) Array[T] {
	k := kindFor[T]()
	b = b.owner()
	return Array[T]{b, b.share(name, k, n, false), k}
}

// At returns element i.
func (x Array[T]) At(i U32) T {
	return T(x.b.owner().loadShared(ir.LoadShared, x.slot, x.kind, handle(i)))
}

// Set writes element i.
func (x Array[T]) Set(i U32, v T) { x.b.owner().storeShared(x.slot, x.kind, handle(i), handle(v)) }

// Uniform returns element i, which must be the same element in every lane, and marks the value as
// uniform, so that a Barrier may be under a condition that depends on it. Call Uniform after one
// barrier and before another, in uniform control flow.
func (x Array[T]) Uniform(i U32) T {
	return T(x.b.owner().loadShared(ir.UniformLoad, x.slot, x.kind, handle(i)))
}

// Len returns the number of elements.
func (x Array[T]) Len() int { return x.b.owner().sharedLen(x.slot) }

func (b *Builder) share(name string, k kind, n int, atomic bool) uint32 {
	if !b.ready() || !b.checkName(name) {
		return 0
	}
	if len(b.shared) == maxShared {
		b.failure(ErrLimit, "more than %d workgroup arrays", maxShared)
		return 0
	}
	if n <= 0 {
		b.fail("workgroup array %s of %d elements: expected 1 or more", name, n)
		return 0
	}
	size := uint64(k.width()) * 4
	if k.typ() == ir.F16 {
		size /= 2
	}
	if uint64(n) > MaxSharedBytes/size || b.bytes+uint64(n)*size > MaxSharedBytes {
		b.failure(ErrLimit, "workgroup array %s of %d elements of %v: workgroup arrays may have %d bytes together",
			name, n, k, MaxSharedBytes)
		return 0
	}
	b.bytes += uint64(n) * size
	b.shared = append(b.shared, ir.Array{Name: name, Type: k.typ(), Width: k.width(), Len: uint32(n), Atomic: atomic})
	return uint32(len(b.shared) - 1)
}

func (b *Builder) sharedLen(slot uint32) int {
	if b.err != nil {
		return 0
	}
	return int(b.shared[slot].Len)
}

// within checks a constant index of a workgroup array.
func (b *Builder) within(slot uint32, i handle) {
	if a := &b.shared[slot]; i.b == nil && i.bits >= a.Len {
		b.fail("index %d of workgroup array %s, which has %d elements", i.bits, a.Name, a.Len)
	}
}

func (b *Builder) loadShared(c ir.Code, slot uint32, k kind, i handle) handle {
	if b.err != nil {
		return handle{b: b}
	}
	b.within(slot, i)
	if c == ir.UniformLoad {
		b.together()
	}
	id := b.push(head(c, k, 0), b.use(i, kU32), 0, 0, slot)
	if b.err == nil && c == ir.UniformLoad {
		b.code[id].state = live
	}
	return handle{b: b, id: id}
}

func (b *Builder) storeShared(slot uint32, k kind, i, v handle) {
	if b.err != nil {
		b.stray(i, v)
		return
	}
	b.within(slot, i)
	p := b.use(i, kU32)
	b.push(head(ir.StoreShared, 0, 0), p, b.use(v, k), 0, slot)
}
