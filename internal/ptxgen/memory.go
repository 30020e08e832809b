package ptxgen

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/ptx"
)

// binding declares the address of buffer i, as an address of words. Accesses cast it to the type of
// the elements.
func (g *lowering) binding(i int) ptx.Global[ptx.U32] {
	p := ptx.GlobalParam[ptx.U32](g.k, name("b", i))
	if g.p.Bindings[i].Access == ir.ReadOnly && !g.Coherent {
		p = p.Hint(ptx.ReadOnly)
	}
	return p
}

// arrays declares the workgroup memory.
func (g *lowering) arrays() {
	bytes := 0
	for _, a := range g.p.Shared {
		bytes += (int(a.Len)*int(a.Width)*4 + 15) &^ 15
	}
	for i, a := range g.p.Shared {
		n := int(a.Len) * int(a.Width)
		if a.Type == ir.F16 {
			n = (n + 1) / 2
		}
		if bytes <= ptx.MaxStaticShared {
			g.shared = append(g.shared, ptx.SharedArray[ptx.U32](g.k, name("s", i), n))
		} else {
			g.shared = append(g.shared, ptx.DynamicShared[ptx.U32](g.k, n))
		}
	}
}

// memory has the methods of addresses of global and of shared memory.
type memory[T ptx.Element, P any] interface {
	At(i ptx.U32) P
	Load() T
	Load2() [2]T
	Load4() [4]T
	Store(v T)
	Store2(v [2]T)
	Store4(v [4]T)
	Offset(n int) P
}

// read loads width components of element i.
func read[T ptx.Element, P memory[T, P]](base P, i ptx.U32, width int, scalar bool, out *value) {
	at := base.At(i.Mul(ptx.U(uint32(width))))
	switch {
	case width == 1:
		out[0] = ptx.U32(at.Load())
	case scalar:
		for c := range width {
			out[c] = ptx.U32(at.Offset(c).Load())
		}
	case width == 2:
		for c, x := range at.Load2() {
			out[c] = ptx.U32(x)
		}
	default:
		for c, x := range at.Load4() {
			out[c] = ptx.U32(x)
		}
	}
}

// write stores width components as element i.
func write[T ptx.Element, P memory[T, P]](base P, i ptx.U32, width int, scalar bool, x *value) {
	at := base.At(i.Mul(ptx.U(uint32(width))))
	switch {
	case width == 1:
		at.Store(T(x[0]))
	case scalar:
		for c := range width {
			at.Offset(c).Store(T(x[c]))
		}
	case width == 2:
		at.Store2([2]T{T(x[0]), T(x[1])})
	default:
		at.Store4([4]T{T(x[0]), T(x[1]), T(x[2]), T(x[3])})
	}
}

func (g *lowering) load(v ir.Value, in *ir.Instr, out *value) {
	b, base := &g.p.Bindings[in.Imm], g.bindings[in.Imm]
	i, width := g.comp(in.Args[0], 0), int(in.Width)
	g.guarded(v, i, g.lens[in.Imm], b.Type, width, out, func(out *value) {
		switch b.Type {
		case ir.F32:
			read[ptx.F32](ptx.Cast[ptx.F32](base), i, width, g.Scalar, out)
		case ir.F16:
			read[ptx.F16](ptx.Cast[ptx.F16](base), i, width, g.Scalar, out)
		default:
			if b.Type != ir.U32 || !g.readSmall(base, i, width, out) {
				read[ptx.U32](base, i, width, g.Scalar, out)
			}
		}
	})
}

// readSmall loads width components of element i from elements of 1 or 2 bytes. It reports whether elements of buffers
// of U32 have this size.
func (g *lowering) readSmall(base ptx.Global[ptx.U32], i ptx.U32, width int, out *value) bool {
	for c := range width {
		at := i.MulAdd(ptx.U(uint32(width)), ptx.U(uint32(c)))
		switch g.ElementBytes {
		case 1:
			out[c] = ptx.Cast[ptx.U8](base).At(at).Load().U32()
		case 2:
			out[c] = ptx.Cast[ptx.U16](base).At(at).Load().U32()
		}
	}
	return g.ElementBytes != 0
}

// writeSmall is readSmall for stores.
func (g *lowering) writeSmall(base ptx.Global[ptx.U32], i ptx.U32, width int, x *value) bool {
	for c := range width {
		at := i.MulAdd(ptx.U(uint32(width)), ptx.U(uint32(c)))
		switch g.ElementBytes {
		case 1:
			ptx.Cast[ptx.U8](base).At(at).Store(x[c].U8())
		case 2:
			ptx.Cast[ptx.U16](base).At(at).Store(x[c].U16())
		}
	}
	return g.ElementBytes != 0
}

func (g *lowering) store(v ir.Value, in *ir.Instr) {
	b, base := &g.p.Bindings[in.Imm], g.bindings[in.Imm]
	i, width, x := g.comp(in.Args[0], 0), int(b.Width), &g.values[in.Args[1]]
	g.guard(v, i, g.lens[in.Imm], func() {
		switch b.Type {
		case ir.F32:
			write(ptx.Cast[ptx.F32](base), i, width, g.Scalar, x)
		case ir.F16:
			write(ptx.Cast[ptx.F16](base), i, width, g.Scalar, x)
		default:
			if b.Type != ir.U32 || !g.writeSmall(base, i, width, x) {
				write(base, i, width, g.Scalar, x)
			}
		}
	})
}

func (g *lowering) loadShared(v ir.Value, in *ir.Instr, out *value) {
	b, base := &g.p.Shared[in.Imm], g.shared[in.Imm]
	i, width := g.comp(in.Args[0], 0), int(in.Width)
	g.guarded(v, i, ptx.U(b.Len), b.Type, width, out, func(out *value) {
		switch b.Type {
		case ir.F32:
			read[ptx.F32](ptx.CastShared[ptx.F32](base), i, width, false, out)
		case ir.F16:
			read[ptx.F16](ptx.CastShared[ptx.F16](base), i, width, false, out)
		default:
			read[ptx.U32](base, i, width, false, out)
			if b.Type == ir.Bool {
				for c := range width {
					out[c] = ptx.U32(out[c].Ne(ptx.U(0)))
				}
			}
		}
	})
}

func (g *lowering) storeShared(v ir.Value, in *ir.Instr) {
	b, base := &g.p.Shared[in.Imm], g.shared[in.Imm]
	i, width, x := g.comp(in.Args[0], 0), int(b.Width), g.values[in.Args[1]]
	if b.Type == ir.Bool {
		for c := range width {
			x[c] = g.convert(ir.Bool, ir.U32, x[c])
		}
	}
	g.guard(v, i, ptx.U(b.Len), func() {
		switch b.Type {
		case ir.F32:
			write(ptx.CastShared[ptx.F32](base), i, width, false, &x)
		case ir.F16:
			write(ptx.CastShared[ptx.F16](base), i, width, false, &x)
		default:
			write(base, i, width, false, &x)
		}
	})
}

// guarded runs access if i is below n, and otherwise sets the components of out to 0. access sets
// the components of a value of type t.
func (g *lowering) guarded(v ir.Value, i, n ptx.U32, t ir.Type, width int, out *value, access func(out *value)) {
	if !g.Checked {
		access(out)
		return
	}
	x := newVariable(g, t, width)
	g.guard(v, i, n, func() {
		var got value
		access(&got)
		for c := range width {
			x.set(c, got[c])
		}
	})
	for c := range width {
		out[c] = x.get(c)
	}
}

// guard runs access if i is below n.
func (g *lowering) guard(v ir.Value, i, n ptx.U32, access func()) {
	if !g.Checked {
		access()
		return
	}
	g.k.IfElse(register[ptx.U32](g, i).Lt(n), access, func() { g.note(v, i, n) })
}

// note records the first fault of a lane.
func (g *lowering) note(v ir.Value, i, n ptx.U32) {
	at := g.faultAt.Get()
	first := at.Eq(ptx.U(0))
	g.faultIndex.Set(ptx.Select(first, i, g.faultIndex.Get()))
	g.faultLen.Set(ptx.Select(first, n, g.faultLen.Get()))
	g.faultAt.Set(ptx.Select(first, ptx.U(uint32(g.p.Pos[v])), at))
}

// report records the fault of a lane, if it is the first of the launch.
func (g *lowering) report() {
	at := g.faultAt.Get()
	g.k.If(at.Ne(ptx.U(0)), func() {
		old := ptx.AtomicCompareExchange(g.fault, ptx.U(0), at)
		g.k.If(old.Eq(ptx.U(0)), func() {
			g.fault.Offset(1).Store(g.faultIndex.Get())
			g.fault.Offset(2).Store(g.faultLen.Get())
		})
	})
}

// atomic lowers an atomic operation and returns the old value.
func (g *lowering) atomic(v ir.Value, in *ir.Instr) ptx.U32 {
	i, x, y := g.comp(in.Args[0], 0), g.comp(in.Args[1], 0), g.comp(in.Args[2], 0)
	if in.Flag == ir.AtomicLoad {
		x, y = ptx.U(0), ptx.U(0)
	}
	used := g.uses[v] > 0
	if in.Code == ir.AtomicOpShared {
		a := &g.p.Shared[in.Imm]
		var out value
		g.guarded(v, i, ptx.U(a.Len), a.Type, 1, &out, func(out *value) {
			at := g.shared[in.Imm].At(i)
			out[0] = atomic(in.Flag, a.Type, used, at, ptx.CastShared[ptx.S32](at), ptx.CastShared[ptx.B32](at), at.Hint(ptx.Volatile), x, y)
		})
		return out[0]
	}
	a := &g.p.Bindings[in.Imm]
	var out value
	g.guarded(v, i, g.lens[in.Imm], a.Type, 1, &out, func(out *value) {
		at := g.bindings[in.Imm].At(i)
		out[0] = atomic(in.Flag, a.Type, used, at, ptx.Cast[ptx.S32](at), ptx.Cast[ptx.B32](at), at.Hint(ptx.Volatile), x, y)
	})
	return out[0]
}

// pointer is an address in global or shared memory.
type pointer[T ptx.Element] interface {
	ptx.Global[T] | ptx.Shared[T]
}

// cell is the element of an atomic operation that is loaded or stored.
type cell interface {
	Load() ptx.U32
	Store(v ptx.U32)
}

func atomic[U pointer[ptx.U32], S pointer[ptx.S32], B pointer[ptx.B32], C cell](flag uint8, t ir.Type, used bool, u U, s S, b B, c C, x, y ptx.U32) ptx.U32 {
	signed := t == ir.I32
	switch flag {
	case ir.AtomicLoad:
		return c.Load()
	case ir.AtomicStore:
		c.Store(x)
		return ptx.U(0)
	case ir.AtomicSub:
		x = x.S32().Neg().U32()
		fallthrough
	case ir.AtomicAdd:
		if !used {
			ptx.ReduceAdd(u, x)
			return ptx.U(0)
		}
		return ptx.AtomicAdd(u, x)
	case ir.AtomicMin:
		switch {
		case signed && used:
			return ptx.AtomicMin(s, x.S32()).U32()
		case signed:
			ptx.ReduceMin(s, x.S32())
		case used:
			return ptx.AtomicMin(u, x)
		default:
			ptx.ReduceMin(u, x)
		}
	case ir.AtomicMax:
		switch {
		case signed && used:
			return ptx.AtomicMax(s, x.S32()).U32()
		case signed:
			ptx.ReduceMax(s, x.S32())
		case used:
			return ptx.AtomicMax(u, x)
		default:
			ptx.ReduceMax(u, x)
		}
	case ir.AtomicAnd:
		return ptx.AtomicAnd(u, x)
	case ir.AtomicOr:
		return ptx.AtomicOr(u, x)
	case ir.AtomicXor:
		return ptx.AtomicXor(u, x)
	case ir.AtomicExchange:
		return ptx.AtomicExchange(u, x)
	default:
		return ptx.AtomicCompareExchange(u, x, y)
	}
	return ptx.U(0)
}
