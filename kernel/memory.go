package kernel

import "github.com/rayo-go/rayo/internal/ir"

// Buffer is a storage buffer: an array of T that is bound at launch.
type Buffer[T Element] struct {
	b    *Builder
	slot uint32
	kind kind
}

// Input declares a buffer that the kernel only reads.
func Input[T Element](b *Builder, name string) Buffer[T] {
	return bind[T](b, name, ir.ReadOnly)
}

// Output declares a buffer that the kernel only writes. What it does not write
// keeps its value.
func Output[T Element](b *Builder, name string) Buffer[T] {
	return bind[T](b, name, ir.WriteOnly)
}

// InOut declares a buffer that the kernel reads and writes.
func InOut[T Element](b *Builder, name string) Buffer[T] {
	return bind[T](b, name, ir.ReadWrite)
}

func bind[T Element](b *Builder, name string, access ir.Access) Buffer[T] {
	k := kindFor[T]()
	b = b.owner()
	return Buffer[T]{b, b.bind(name, k, access), k}
}

// At returns element i.
func (x Buffer[T]) At(i U32) T { return T(x.b.owner().load(x.slot, x.kind, handle(i))) }

// Set writes element i.
func (x Buffer[T]) Set(i U32, v T) { x.b.owner().store(x.slot, x.kind, handle(i), handle(v)) }

// Len returns the number of elements that are bound.
func (x Buffer[T]) Len() U32 { return U32(x.b.owner().length(x.slot)) }

// Array is memory that the lanes of a workgroup share. It is undefined until
// written, and written values are visible to the other lanes after a
// [Builder.Barrier].
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

// Uniform returns element i, where i is the same in every lane, and tells that
// the value is: so that a condition made from it may stand around a Barrier. It
// must be after one barrier and before another, in uniform control flow.
func (x Array[T]) Uniform(i U32) T {
	return T(x.b.owner().loadShared(ir.UniformLoad, x.slot, x.kind, handle(i)))
}

// Len returns the number of elements.
func (x Array[T]) Len() int { return x.b.owner().sharedLen(x.slot) }

// Atomics is memory for atomic operations, a buffer or an array of a workgroup.
// The operations are relaxed: they order nothing but themselves.
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

// Add adds v to element i and returns the value before, as the operations
// below do.
func (x Atomics[T]) Add(i U32, v T) T { return x.op(ir.AtomicAdd, i, handle(v), handle{}) }

// Sub subtracts v.
func (x Atomics[T]) Sub(i U32, v T) T { return x.op(ir.AtomicSub, i, handle(v), handle{}) }

// Min keeps the lesser of the element and v.
func (x Atomics[T]) Min(i U32, v T) T { return x.op(ir.AtomicMin, i, handle(v), handle{}) }

// Max keeps the greater of the element and v.
func (x Atomics[T]) Max(i U32, v T) T { return x.op(ir.AtomicMax, i, handle(v), handle{}) }

// And keeps the bits that are also in v.
func (x Atomics[T]) And(i U32, v T) T { return x.op(ir.AtomicAnd, i, handle(v), handle{}) }

// Or sets the bits of v.
func (x Atomics[T]) Or(i U32, v T) T { return x.op(ir.AtomicOr, i, handle(v), handle{}) }

// Xor flips the bits of v.
func (x Atomics[T]) Xor(i U32, v T) T { return x.op(ir.AtomicXor, i, handle(v), handle{}) }

// Exchange writes v.
func (x Atomics[T]) Exchange(i U32, v T) T { return x.op(ir.AtomicExchange, i, handle(v), handle{}) }

// CompareExchange writes v if the element equals old.
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

// Var is a variable of a lane. It may be used in the block that declares it and
// those within.
type Var[T Value] struct {
	b    *Builder
	slot uint32
	init ir.Value // the store that declares it
	kind kind
}

// NewVar declares a variable with a first value. The name is for listings and
// need not be unique.
func NewVar[T Value](b *Builder, name string, v T) Var[T] {
	k := kindFor[T]()
	b = b.owner()
	slot, init := b.declare(name, k, handle(v))
	return Var[T]{b, slot, init, k}
}

// NewVars declares n variables: a private array that is indexed while the
// kernel is built. An index out of range is a mistake like any other.
func NewVars[T Value](b *Builder, name string, n int, v T) []Var[T] {
	if n < 0 || n > maxVars {
		b.owner().failure(ErrLimit, "%d variables; the most is %d", n, maxVars)
		return nil
	}
	vs := make([]Var[T], n)
	for i := range vs {
		vs[i] = NewVar(b, name, v)
	}
	return vs
}

// Get returns the value of the variable now.
func (x Var[T]) Get() T { return T(x.b.owner().loadVar(x.slot, x.init, x.kind)) }

// Set gives the variable a value.
func (x Var[T]) Set(v T) { x.b.owner().storeVar(x.slot, x.init, x.kind, handle(v)) }

// The methods below are those of the types above without their type
// parameters.

func (b *Builder) bind(name string, k kind, access ir.Access) uint32 {
	if !b.ready() || !b.checkName(name) {
		return 0
	}
	if len(b.bindings) == MaxBuffers {
		b.failure(ErrLimit, "more than %d buffers", MaxBuffers)
		return 0
	}
	b.bindings = append(b.bindings, ir.Binding{Name: name, Type: k.typ(), Width: k.width(), Access: access})
	return uint32(len(b.bindings) - 1)
}

// checkName reports whether name can name a buffer or an array: a printer has
// to write it, and a message to tell it from others.
func (b *Builder) checkName(name string) bool {
	if !identifier(name) {
		b.fail("%q is no name: letters, digits and underscores", name)
		return false
	}
	for i := range b.bindings {
		if b.bindings[i].Name == name {
			b.fail("a second buffer %s", name)
			return false
		}
	}
	for i := range b.shared {
		if b.shared[i].Name == name {
			b.fail("a second array %s", name)
			return false
		}
	}
	return true
}

func identifier(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_':
		case '0' <= c && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func (b *Builder) load(slot uint32, k kind, i handle) handle {
	if b.err != nil {
		return handle{b: b}
	}
	bind := &b.bindings[slot]
	if bind.Access == ir.WriteOnly {
		return b.fail("read of buffer %s, an Output: declare it InOut", bind.Name)
	}
	h, p := head(ir.Load, k, 0), b.use(i, kU32)
	if b.err == nil && bind.Access == ir.ReadOnly {
		return handle{b: b, id: b.pure(h, p, 0, 0, slot)}
	}
	return handle{b: b, id: b.push(h, p, 0, 0, slot)}
}

func (b *Builder) store(slot uint32, k kind, i, v handle) {
	if b.err != nil {
		b.stray(i, v)
		return
	}
	if bind := &b.bindings[slot]; bind.Access == ir.ReadOnly {
		b.fail("write to buffer %s, an Input: declare it Output or InOut", bind.Name)
		return
	}
	p := b.use(i, kU32)
	b.push(head(ir.Store, 0, 0), p, b.use(v, k), 0, slot)
}

// stray tells the builder of an operand that memory is used which is not its
// own: such memory knows no builder that goes on.
func (b *Builder) stray(i, v handle) {
	switch at := firstBuilder(i, v, handle{}); {
	case at == nil || at == b:
	case b.name == "":
		at.fail("use of %s", b.err.Msg)
	default:
		at.fail("use of memory of kernel %s", b.name)
	}
}

func (b *Builder) length(slot uint32) handle {
	return handle{b: b, id: b.pure(head(ir.Len, kU32, 0), 0, 0, 0, slot)}
}

func (b *Builder) share(name string, k kind, n int, atomic bool) uint32 {
	if !b.ready() || !b.checkName(name) {
		return 0
	}
	if n <= 0 {
		b.fail("workgroup array %s of %d elements", name, n)
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

func (b *Builder) declare(name string, k kind, v handle) (slot uint32, init ir.Value) {
	if !b.ready() {
		return 0, 0
	}
	if name != "" && !identifier(name) {
		b.fail("%q is no name: letters, digits and underscores", name)
		return 0, 0
	}
	if len(b.vars) == maxVars {
		b.failure(ErrLimit, "more than %d variables", maxVars)
		return 0, 0
	}
	slot = uint32(len(b.vars))
	b.vars = append(b.vars, ir.Var{Name: name, Type: k.typ(), Width: k.width()})
	return slot, b.push(head(ir.StoreVar, 0, 0), b.use(v, k), 0, 0, slot)
}

func (b *Builder) loadVar(slot uint32, init ir.Value, k kind) handle {
	b.visible(init)
	return handle{b: b, id: b.push(head(ir.LoadVar, k, 0), 0, 0, 0, slot)}
}

func (b *Builder) storeVar(slot uint32, init ir.Value, k kind, v handle) {
	if b.err != nil {
		b.stray(v, v)
		return
	}
	b.visible(init)
	b.push(head(ir.StoreVar, 0, 0), b.use(v, k), 0, 0, slot)
}

func (b *Builder) visible(init ir.Value) {
	if b.err == nil && b.code[init].state&live == 0 {
		b.fail("use of a variable outside the block that declares it")
	}
}
