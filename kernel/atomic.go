package kernel

import "github.com/rayo-go/rayo/internal/ir"

// Atomics is memory for atomic operations: a buffer or a workgroup array. The operations are
// relaxed, which means that they do not order other memory accesses.
type Atomics[T Integer] struct {
	b    *Builder
	slot uint32
	kind kind
	code ir.Code
}

// Atomic declares a buffer for atomic operations.
func Atomic[T Integer](b *Builder, name string) Atomics[T] {
	k := kindFor[T]()
	b = b.owner()
	return Atomics[T]{b, b.bind(name, k, ir.Atomic), k, ir.AtomicOp}
}

// SharedAtomic declares an array of n elements in workgroup memory for atomic
// operations.
func SharedAtomic[T Integer](b *Builder, name string, n int) Atomics[T] {
	k := kindFor[T]()
	b = b.owner()
	return Atomics[T]{b, b.share(name, k, n, true), k, ir.AtomicOpShared}
}

func (x Atomics[T]) op(flag uint8, i U32, v, w handle) T {
	return T(x.b.owner().atomic(x.code, flag, x.slot, x.kind, handle(i), v, w))
}

// Load returns element i.
func (x Atomics[T]) Load(i U32) T { return x.op(ir.AtomicLoad, i, handle{}, handle{}) }

// Store writes element i.
func (x Atomics[T]) Store(i U32, v T) { x.op(ir.AtomicStore, i, handle(v), handle{}) }

// Add adds v to element i and returns the old value. The operations below also return the old
// value.
func (x Atomics[T]) Add(i U32, v T) T { return x.op(ir.AtomicAdd, i, handle(v), handle{}) }

// Sub subtracts v from element i.
func (x Atomics[T]) Sub(i U32, v T) T { return x.op(ir.AtomicSub, i, handle(v), handle{}) }

// Min sets element i to the lesser of the element and v.
func (x Atomics[T]) Min(i U32, v T) T { return x.op(ir.AtomicMin, i, handle(v), handle{}) }

// Max sets element i to the greater of the element and v.
func (x Atomics[T]) Max(i U32, v T) T { return x.op(ir.AtomicMax, i, handle(v), handle{}) }

// And clears the bits of element i that are not set in v.
func (x Atomics[T]) And(i U32, v T) T { return x.op(ir.AtomicAnd, i, handle(v), handle{}) }

// Or sets the bits of element i that are set in v.
func (x Atomics[T]) Or(i U32, v T) T { return x.op(ir.AtomicOr, i, handle(v), handle{}) }

// Xor flips the bits of element i that are set in v.
func (x Atomics[T]) Xor(i U32, v T) T { return x.op(ir.AtomicXor, i, handle(v), handle{}) }

// Exchange sets element i to v.
func (x Atomics[T]) Exchange(i U32, v T) T { return x.op(ir.AtomicExchange, i, handle(v), handle{}) }

// CompareExchange sets element i to v if the element equals old.
func (x Atomics[T]) CompareExchange(i U32, old, v T) T {
	return x.op(ir.AtomicCompareExchange, i, handle(old), handle(v))
}

// Len returns the number of elements.
func (x Atomics[T]) Len() U32 {
	if x.code == ir.AtomicOp {
		return U32(x.b.owner().length(x.slot))
	}
	return U(uint32(x.b.owner().sharedLen(x.slot)))
}

func (b *Builder) atomic(c ir.Code, flag uint8, slot uint32, k kind, i, v, w handle) handle {
	if b.err != nil {
		b.stray(i, v)
		return handle{b: b}
	}
	if c == ir.AtomicOpShared {
		b.within(slot, i)
	}
	p := b.use(i, kU32)
	var q, r ir.Value
	if flag != ir.AtomicLoad {
		q = b.use(v, k)
	}
	switch flag {
	case ir.AtomicStore:
		k = 0
	case ir.AtomicCompareExchange:
		r = b.use(w, k)
	}
	return handle{b: b, id: b.push(head(c, k, flag), p, q, r, slot)}
}
