package kernel

import "github.com/rayo-go/rayo/internal/ir"

// Var is a variable of a lane. It can be used in the block that declares it and in nested blocks.
type Var[T Value] struct {
	b    *Builder
	slot uint32
	init ir.Value // the store that declares it
	kind kind
}

// NewVar declares a variable with an initial value. The name is for listings and need not be
// unique.
func NewVar[T Value](b *Builder, name string, v T) Var[T] {
	k := kindFor[T]()
	b = b.owner()
	slot, init := b.declare(name, k, handle(v))
	return Var[T]{b, slot, init, k}
}

// NewVars declares n variables: a private array that is indexed while the kernel is built. An index
// out of range is an error in the kernel.
func NewVars[T Value](b *Builder, name string, n int, v T) []Var[T] {
	if n < 0 || n > maxVars {
		b.owner().failure(ErrLimit, "%d variables: at most %d are supported", n, maxVars)
		return nil
	}
	vs := make([]Var[T], n)
	for i := range vs {
		vs[i] = NewVar(b, name, v)
	}
	return vs
}

// Get returns the current value of the variable.
func (x Var[T]) Get() T { return T(x.b.owner().loadVar(x.slot, x.init, x.kind)) }

// Set sets the variable to v.
func (x Var[T]) Set(v T) { x.b.owner().storeVar(x.slot, x.init, x.kind, handle(v)) }

func (b *Builder) declare(name string, k kind, v handle) (slot uint32, init ir.Value) {
	if !b.ready() {
		return 0, 0
	}
	if name != "" && !identifier(name) {
		b.fail("%q is not a valid name: use letters, digits and underscores", name)
		return 0, 0
	}
	if len(b.vars) == maxVars {
		b.failure(ErrLimit, "the kernel has more than %d variables", maxVars)
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
		b.fail("a variable is used outside the block that declares it")
	}
}
