package kernel

import (
	"math"
	"sync"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
)

// Float lists the types on which [Apply] computes.
type Float interface{ F32 | Vec2F | Vec4F }

// Apply applies an elementwise operation of package op to args, for example an activation after a
// product. The operation may be built in or a user's own. a holds its float parameters; nil means
// the defaults. Vectors are processed by component.
func Apply[T Float](b *Builder, o *op.Operation, a *op.Attrs, args ...T) T {
	ds := make([]Dynamic, len(args))
	for i, x := range args {
		ds[i] = Dynamic{handle(x), kindFor[T]()}
	}
	return T(b.owner().apply(o, a, kindFor[T](), ds))
}

func (b *Builder) apply(o *op.Operation, a *op.Attrs, k kind, args []Dynamic) handle {
	switch {
	case !b.ready():
		return handle{b: b}
	case o == nil:
		return b.fail("Apply of a nil operation")
	case o.Err() != nil:
		return b.failure(o.Err(), "Apply: %v", o.Err())
	}
	if a == nil {
		d := o.Defaults()
		a = &d
	}
	types := make([]op.DType, len(args))
	for i := range types {
		types[i] = op.F32
	}
	low, high := o.Arity()
	if len(args) < low || len(args) > high {
		return b.fail("Apply of %v has %d operands, expected %d to %d", o, len(args), low, high)
	}
	root, err := irhook.Expression(o, a, types)
	if err != nil {
		return b.failure(err, "Apply: %v", err)
	}
	var params []Dynamic
	for i := range a.F {
		params = append(params, Dynamic{handle{bits: a.F[i]}, kF32})
	}
	return b.inline([]*ir.Node{root}, k.width(), args, params, math.NaN())[0].h
}

// Dynamic is a value whose type is known only while the kernel is built. Expressions of any type
// compute with such values.
type Dynamic struct {
	h handle
	k kind
}

// Dyn returns x as a Dynamic.
func Dyn[T Value](x T) Dynamic { return Dynamic{handle(x), kindFor[T]()} }

// As returns the value that [Dyn] has converted, or that [Inline] has computed. It is an error if
// the value has another type.
func As[T Value](b *Builder, d Dynamic) T {
	if k := kindFor[T](); d.k != k {
		return T(b.owner().fail("a value of type %v is used as %v", d.k, k))
	}
	return T(d.h)
}

// useInline sets the hook when the first builder is made, so that pages without kernels do not load it.
var useInline sync.Once

func setInline() {
	irhook.Inline = func(b any, roots []*ir.Node, args, params any, size float64) any {
		return inline(b.(*Builder), roots, args.([]Dynamic), params.([]F32), size)
	}
}

// inline computes expressions: see [irhook.Inline].
func inline(b *Builder, roots []*ir.Node, args []Dynamic, params []F32, size float64) []Dynamic {
	b = b.owner()
	width := uint8(1)
	for i, a := range args {
		if i == 0 {
			width = a.k.width()
		} else if a.k.width() != width {
			b.fail("Inline with operands of %d and %d components", width, a.k.width())
		}
	}
	ps := make([]Dynamic, len(params))
	for i, p := range params {
		ps[i] = Dyn(p)
	}
	return b.inline(roots, width, args, ps, size)
}

func (b *Builder) inline(roots []*ir.Node, width uint8, args, params []Dynamic, size float64) []Dynamic {
	out := make([]Dynamic, len(roots))
	for i := range out {
		out[i] = Dynamic{h: handle{b: b}}
	}
	if !b.ready() {
		return out
	}
	if width == 0 {
		b.fail("operand was not made by Dyn")
		return out
	}
	for _, r := range roots {
		if r == nil || r.Type == ir.Invalid {
			b.fail("no valid expression")
			return out
		}
	}
	list, at := ir.Flatten(roots...)
	values := make(map[*ir.Node]handle, len(list))
	var sound map[*ir.Node]bool
	if size == size {
		sound = ir.Sound(list, size)
	}
	for _, n := range list {
		k := kindOf(n.Type, width)
		switch n.Code {
		case ir.Const:
			values[n] = handle{bits: n.Bits()}
		case ir.Arg, ir.Param:
			from, what := args, "operand"
			if n.Code == ir.Param {
				from, what = params, "parameter"
			}
			if n.Index < 0 || n.Index >= len(from) || from[n.Index].k.with(ir.Invalid) != kindOf(ir.Invalid, width) &&
				n.Code == ir.Arg || from[n.Index].k.typ() != n.Type {
				b.fail("%s %d of an expression is missing, or its type is not %v", what, n.Index, n.Type)
				return out
			}
			if values[n] = from[n.Index].h; n.Code == ir.Param && width > 1 {
				values[n] = splat(k, from[n.Index].h)
			}
		default:
			flag := uint8(0)
			if sound[n] {
				flag = ir.Loose
			}
			values[n] = b.node(n, flag, k, values)
		}
	}
	for i, p := range at {
		n := list[p]
		out[i] = Dynamic{values[n], kindOf(n.Type, width)}
	}
	return out
}

// node computes one node, with the given flag, from the values of its operands.
func (b *Builder) node(n *ir.Node, flag uint8, k kind, values map[*ir.Node]handle) handle {
	x, y, z := values[n.Args[0]], values[n.Args[1]], values[n.Args[2]]
	from := k.with(n.Args[0].Type)
	switch {
	case n.Code == ir.Select:
		return choose(k, x, from, y, z)
	case n.Code.Arity() == 1:
		return unary(n.Code, k, from, x)
	case n.Code.Arity() == 2:
		return flagged(n.Code, flag, k, from, x, y)
	}
	return ternary(n.Code, flag, k, x, y, z)
}
