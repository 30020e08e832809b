package kernel

import "github.com/rayo-go/rayo/internal/ir"

// Buffer is a storage buffer: an array of T that a launch binds.
type Buffer[T Element] struct {
	b    *Builder
	slot uint32
	kind kind
}

// Input declares a buffer that the kernel only reads.
//
//go:noinline
func Input[T Element](b *Builder, name string) Buffer[T] {
	return bind[T](b, name, ir.ReadOnly)
}

// Output declares a buffer that the kernel only writes. Elements that the kernel does not write
// keep their values.
//
//go:noinline
func Output[T Element](b *Builder, name string) Buffer[T] {
	return bind[T](b, name, ir.WriteOnly)
}

// InOut declares a buffer that the kernel reads and writes.
//
//go:noinline
func InOut[T Element](b *Builder, name string) Buffer[T] {
	return bind[T](b, name, ir.ReadWrite)
}

func bind[T Element](b *Builder, name string, access ir.Access) Buffer[T] {
	k := kindFor[T]()
	b = b.owner()
	return Buffer[T]{b, b.bind(name, k, access), k}
}

// At returns element i.
//
//go:noinline
func (x Buffer[T]) At(i U32) T { return T(x.b.owner().load(x.slot, x.kind, handle(i))) }

// Set writes element i.
//
//go:noinline
func (x Buffer[T]) Set(i U32, v T) { x.b.owner().store(x.slot, x.kind, handle(i), handle(v)) }

// Len returns the number of elements of the bound array.
//
//go:noinline
func (x Buffer[T]) Len() U32 { return U32(x.b.owner().length(x.slot)) }

func (b *Builder) bind(name string, k kind, access ir.Access) uint32 {
	if !b.ready() || !b.checkName(name) {
		return 0
	}
	if len(b.bindings) == MaxBuffers {
		b.failure(ErrLimit, "the kernel has more than %d buffers", MaxBuffers)
		return 0
	}
	b.bindings = append(b.bindings, ir.Binding{Name: name, Type: k.typ(), Width: k.width(), Access: access})
	return uint32(len(b.bindings) - 1)
}

// checkName reports whether name is valid for a buffer or an array: printers use the name, and
// messages distinguish buffers by it.
func (b *Builder) checkName(name string) bool {
	if !identifier(name) {
		b.fail("%q is not a valid name: use letters, digits and underscores", name)
		return false
	}
	for i := range b.bindings {
		if b.bindings[i].Name == name {
			b.fail("buffer %s is declared twice", name)
			return false
		}
	}
	for i := range b.shared {
		if b.shared[i].Name == name {
			b.fail("array %s is declared twice", name)
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
		return b.fail("buffer %s is an Output and cannot be read: declare it InOut", bind.Name)
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
		b.fail("buffer %s is an Input and cannot be written: declare it Output or InOut", bind.Name)
		return
	}
	p := b.use(i, kU32)
	b.push(head(ir.Store, 0, 0), p, b.use(v, k), 0, slot)
}

// stray reports an error to the builder of an operand: the memory belongs to another builder, or to
// none, which cannot report it.
func (b *Builder) stray(i, v handle) {
	switch at := firstBuilder(i, v, handle{}); {
	case at == nil || at == b:
	case b.name == "":
		at.fail("use of %s", b.err.Msg)
	default:
		at.fail("memory of kernel %s is used in another kernel", b.name)
	}
}

func (b *Builder) length(slot uint32) handle {
	return handle{b: b, id: b.pure(head(ir.Len, kU32, 0), 0, 0, 0, slot)}
}
