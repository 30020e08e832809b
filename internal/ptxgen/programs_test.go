package ptxgen

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
)

// source builds a program that applies one code to numbers from memory, with all valid combinations
// of operands, and stores the results as words.
type source struct {
	ir.Program
	in   map[ir.Type]uint32 // buffers
	out  uint32
	lane ir.Value
	kept uint32 // number of results; each has an element for every lane
}

const sourceLanes = 64

func newSource(name string) *source {
	s := &source{Program: ir.Program{Name: name, Local: [3]uint32{sourceLanes, 1, 1}, Budget: 1000, Code: make([]ir.Instr, 1)}, in: make(map[ir.Type]uint32)}
	s.out = s.buffer("out", ir.U32, ir.WriteOnly)
	s.lane = s.push(ir.Instr{Code: ir.BuiltIn, Type: ir.U32, Width: 1, Flag: ir.BuiltInLane})
	return s
}

func (s *source) buffer(name string, t ir.Type, a ir.Access) uint32 {
	s.Bindings = append(s.Bindings, ir.Binding{Name: name, Type: t, Width: 1, Access: a})
	return uint32(len(s.Bindings) - 1)
}

func (s *source) push(in ir.Instr) ir.Value {
	s.Code = append(s.Code, in)
	return ir.Value(len(s.Code) - 1)
}

func (s *source) op(c ir.Code, t ir.Type, width uint8, args ...ir.Value) ir.Value {
	in := ir.Instr{Code: c, Type: t, Width: width}
	copy(in.Args[:], args)
	return s.push(in)
}

func (s *source) u32(v uint32) ir.Value {
	return s.push(ir.Instr{Code: ir.Const, Type: ir.U32, Width: 1, Imm: v})
}

// number returns a number from memory. It depends on k, the index of the operand in the
// instruction, and on the component c.
func (s *source) number(t ir.Type, k, c int) ir.Value {
	from := t
	if t == ir.Bool {
		from = ir.U32
	}
	b, ok := s.in[from]
	if !ok {
		b = s.buffer("in_"+from.String(), from, ir.ReadOnly)
		s.in[from] = b
	}
	at := s.op(ir.Add, ir.U32, 1, s.lane, s.u32(uint32(sourceLanes*(4*k+c))))
	v := s.push(ir.Instr{Code: ir.Load, Type: from, Width: 1, Imm: b, Args: [3]ir.Value{at}})
	if t == ir.Bool {
		v = s.op(ir.Ne, ir.Bool, 1, s.op(ir.And, ir.U32, 1, v, s.u32(1)), s.u32(0))
	}
	return v
}

func (s *source) operand(t ir.Type, width uint8, k int) ir.Value {
	if width == 1 {
		return s.number(t, k, 0)
	}
	var a [4]ir.Value
	for c := range width {
		a[c] = s.number(t, k, int(c))
	}
	return s.push(ir.Instr{Code: ir.Compose, Type: t, Width: width, Args: [3]ir.Value{a[0], a[1], a[2]}, Imm: uint32(a[3])})
}

// keep stores the components of a value.
func (s *source) keep(v ir.Value) {
	in := s.Code[v]
	for c := range in.Width {
		x := v
		if in.Width > 1 {
			x = s.push(ir.Instr{Code: ir.Extract, Type: in.Type, Width: 1, Flag: c, Args: [3]ir.Value{v}})
		}
		switch in.Type {
		case ir.F16:
			x = s.op(ir.Bitcast, ir.U32, 1, s.op(ir.Convert, ir.F32, 1, x))
		case ir.F32, ir.I32:
			x = s.op(ir.Bitcast, ir.U32, 1, x)
		case ir.Bool:
			x = s.op(ir.Convert, ir.U32, 1, x)
		}
		at := s.op(ir.Add, ir.U32, 1, s.lane, s.u32(sourceLanes*s.kept))
		s.push(ir.Instr{Code: ir.Store, Imm: s.out, Args: [3]ir.Value{at, x}})
		s.kept++
	}
}

// try applies an instruction to operands of the types, and reports whether this is valid.
func (s *source) try(in ir.Instr, types [4]ir.Type, widths [4]uint8) bool {
	_, n := in.Operands()
	if n == 0 {
		return false
	}
	code, bindings := len(s.Code), len(s.Bindings)
	for k := range n {
		v := s.operand(types[k], widths[k], k)
		if k == 3 {
			in.Imm = uint32(v)
		} else {
			in.Args[k] = v
		}
	}
	if in.Code == ir.SubgroupShuffle {
		in.Args[1] = s.op(ir.And, ir.U32, 1, in.Args[1], s.u32(31))
	}
	v := s.push(in)
	if ir.Verify(&s.Program) != nil || in.Type == ir.Invalid {
		s.Code, s.Bindings = s.Code[:code], s.Bindings[:bindings]
		for t, b := range s.in {
			if int(b) >= bindings {
				delete(s.in, t)
			}
		}
		return false
	}
	s.keep(v)
	return true
}

// everyCode returns a program for each code with a result and each type of its operands.
func everyCode() map[string]*ir.Program {
	all := []ir.Type{ir.F32, ir.I32, ir.U32, ir.Bool, ir.F16}
	m := make(map[string]*ir.Program)
	for c := ir.Add; c != 0; c++ {
		switch c {
		case ir.Load, ir.LoadShared, ir.LoadVar, ir.UniformLoad, ir.AtomicOp, ir.AtomicOpShared, ir.Param32, ir.Len, ir.BuiltIn, ir.Const, ir.For:
			continue // tested in separate kernels
		}
		if strings.HasPrefix(c.String(), "Code(") {
			continue
		}
		for _, from := range all {
			s := newSource(fmt.Sprintf("%v_%v", c, from))
			some := false
			for _, width := range []uint8{1, 2, 4} {
				types, widths := [4]ir.Type{from, from, from, from}, [4]uint8{width, width, width, width}
				switch c {
				case ir.Select:
					types[0] = ir.Bool
				case ir.SubgroupShuffle:
					types[1], widths[1] = ir.U32, 1
				case ir.Dot4I8:
					types[2] = ir.I32
				case ir.Splat, ir.Compose:
					widths = [4]uint8{1, 1, 1, 1}
				}
				flags := uint8(1)
				switch c {
				case ir.Extract:
					flags = width
				case ir.SubgroupOp:
					flags = 5
				}
				for flag := range flags {
					for _, to := range all {
						for _, out := range []uint8{1, 2, 4} {
							if (c == ir.Splat || c == ir.Compose) && out != width {
								continue
							}
							if s.try(ir.Instr{Code: c, Type: to, Width: out, Flag: flag, Imm: 4}, types, widths) {
								some = true
							}
						}
					}
				}
			}
			if some {
				m[s.Name] = &s.Program
			}
		}
	}
	return m
}

type sizes struct {
	N    uint32
	I    int32
	F    float32
	Step uint32
}

// local is the shape of workgroups: some have whole warps, some do not.
type local [3]int

var locals = []local{{64, 1, 1}, {8, 4, 2}, {40, 1, 1}, {5, 3, 1}}

// kernels returns kernels that cover all codes other than expressions.
func kernels(l local) []*kernel.Kernel {
	lanes := l[0] * l[1] * l[2]
	n := func(v int) kernel.U32 { return kernel.N(v) }
	size := fmt.Sprintf("_%dx%dx%d", l[0], l[1], l[2])
	var ks []*kernel.Kernel
	add := func(name string, build func(b *kernel.Builder, p *sizes)) {
		ks = append(ks, kernel.New(name+size, func(b *kernel.Builder, p *sizes) {
			b.LocalSize(l[0], l[1], l[2])
			build(b, p)
		}))
	}
	add("places", func(b *kernel.Builder, p *sizes) {
		y := kernel.Output[kernel.U32](b, "y")
		at := b.Group().Mul(n(lanes)).Add(b.Lane()).Mul(n(16))
		for i, v := range []kernel.U32{b.LocalX(), b.LocalY(), b.LocalZ(), b.GroupX(), b.GroupY(), b.GroupZ(), b.GroupsX(), b.GroupsY(), b.GroupsZ(),
			b.Lane(), b.SubgroupSize(), b.SubgroupLane(), b.Subgroup(), y.Len(), b.U32(&p.N), b.I32(&p.I).U32().Add(b.F32(&p.F).U32())} {
			y.Set(at.Add(n(i)), v)
		}
	})
	add("shared", func(b *kernel.Builder, p *sizes) {
		x := kernel.Input[kernel.Vec4F](b, "x")
		y := kernel.InOut[kernel.Vec4F](b, "y")
		t := kernel.Shared[kernel.Vec4F](b, "t", lanes)
		u := kernel.Shared[kernel.U32](b, "u", lanes)
		h := kernel.Shared[kernel.F16](b, "h", lanes)
		v := kernel.Shared[kernel.Vec2I](b, "v", lanes)
		at := b.Group().Mul(n(lanes)).Add(b.Lane())
		e := x.At(at)
		t.Set(b.Lane(), e)
		u.Set(b.Lane(), e.X().Lt(e.Y()).U32())
		h.Set(b.Lane(), e.Z().F16())
		v.Set(b.Lane(), b.Vec2I(b.Lane().I32(), b.Lane().I32().Neg()))
		b.Barrier()
		other := n(lanes - 1).Sub(b.Lane())
		f := t.At(other)
		q := v.At(other)
		sum := kernel.Select(u.At(other).Eq(kernel.U(1)), f.X(), f.Y()).Add(h.At(other).F32()).Add(q.Y().F32())
		first := t.Uniform(kernel.U(0))
		y.Set(at, b.Vec4F(sum, f.W().Add(y.At(at).X()), first.X(), f.Dot(e)))
	})
	add("loops", func(b *kernel.Builder, p *sizes) {
		y := kernel.Output[kernel.U32](b, "y")
		at := b.Group().Mul(n(lanes)).Add(b.Lane())
		sum := kernel.NewVar(b, "sum", kernel.U(1))
		mix := func(v kernel.U32) { sum.Set(sum.Get().Mul(kernel.U(31)).Add(v)) }
		b.For(kernel.U(0), b.U32(&p.N), func(i kernel.U32) {
			b.If(i.Mod(kernel.U(3)).Eq(b.Lane().Mod(kernel.U(3))), b.Continue)
			b.If(i.Gt(b.Lane()), b.Break)
			b.For(kernel.U(0), i, mix)
		})
		b.ForStep(b.Lane(), b.U32(&p.N), b.U32(&p.Step), mix)
		b.ForStep(kernel.U(math.MaxUint32-20), kernel.U(math.MaxUint32), b.U32(&p.Step), mix)
		b.ForStep(kernel.U(3), kernel.U(17), kernel.U(4), mix)
		left := kernel.NewVar(b, "left", b.Lane().Add(kernel.U(2)))
		b.Loop(func() {
			b.If(left.Get().Eq(kernel.U(0)), b.Break).Else(func() { mix(left.Get()) })
			left.Set(left.Get().Sub(kernel.U(1)))
		})
		b.If(b.Lane().Mod(kernel.U(5)).Eq(kernel.U(4)), func() {
			y.Set(at, kernel.U(99))
			b.Return()
		})
		y.Set(at, sum.Get())
	})
	add("atomics", func(b *kernel.Builder, p *sizes) {
		a, s := kernel.Atomic[kernel.U32](b, "a"), kernel.Atomic[kernel.I32](b, "s")
		y := kernel.Output[kernel.U32](b, "y")
		t := kernel.SharedAtomic[kernel.U32](b, "t", 16)
		b.If(b.Lane().Lt(kernel.U(16)), func() { t.Store(b.Lane(), kernel.U(0)) })
		b.Barrier()
		i := b.Lane()
		at := b.Group().Mul(n(lanes)).Add(i)
		t.Add(kernel.U(0), i)
		t.Sub(kernel.U(1), kernel.U(1))
		t.Max(kernel.U(2), i)
		t.Or(kernel.U(3), kernel.U(1).Shl(i.And(kernel.U(31))))
		t.Xor(kernel.U(4), i)
		y.Set(at, t.Exchange(kernel.U(5).Add(kernel.U(0)), kernel.U(7)).Mul(kernel.U(0)))
		b.Barrier()
		b.If(i.Lt(kernel.U(8)), func() { a.Add(i, t.Load(i)) })
		s.Min(kernel.U(0), i.I32().Neg())
		s.Max(kernel.U(1), i.I32().Neg())
		s.Min(kernel.U(2), i.I32())
		a.Min(kernel.U(9), i)
		a.And(kernel.U(10), i.Not())
		a.Max(kernel.U(11), i)
		// Each lane takes its turn.
		b.Loop(func() {
			old := a.CompareExchange(kernel.U(12), at, at.Add(kernel.U(1)))
			b.If(old.Ge(at), b.Break)
		})
	})
	add("subgroups", func(b *kernel.Builder, _ *sizes) { subgroups(b, lanes) })
	add("vectors", func(b *kernel.Builder, p *sizes) {
		h, u := kernel.InOut[kernel.Vec4H](b, "h"), kernel.InOut[kernel.Vec2U](b, "u")
		at := b.Group().Mul(n(lanes)).Add(b.Lane())
		v := kernel.NewVar(b, "v", h.At(at).Vec4F())
		b.For(kernel.U(0), kernel.U(3), func(i kernel.U32) { v.Set(v.Get().Mul(v.Get())) })
		h.Set(at, v.Get().Vec4H())
		w := u.At(at)
		u.Set(at, b.Vec2U(w.Y(), w.X().Add(at)))
	})
	return ks
}

// subgroups uses every operation of subgroups in workgroups of the given number of lanes.
func subgroups(b *kernel.Builder, lanes int) {
	x, y := kernel.Input[kernel.F32](b, "x"), kernel.Output[kernel.U32](b, "y")
	at := b.Group().Mul(kernel.N(lanes)).Add(b.Lane())
	f := x.At(at).Floor() // sums of integers are exact in any order
	i := f.I32()
	k := 0
	put := func(v kernel.U32) {
		y.Set(at.Mul(kernel.U(24)).Add(kernel.N(k)), v)
		k++
	}
	put(kernel.SubgroupAdd(b, f).AsU32())
	put(kernel.SubgroupMin(b, f).AsU32())
	put(kernel.SubgroupMax(b, f).AsU32())
	put(kernel.SubgroupAdd(b, i).U32())
	put(kernel.SubgroupMin(b, i).U32())
	put(kernel.SubgroupMax(b, i).U32())
	put(kernel.SubgroupMin(b, i.U32()))
	put(kernel.SubgroupMax(b, i.U32()))
	put(kernel.SubgroupAnd(b, i).U32())
	put(kernel.SubgroupOr(b, i.U32()))
	put(kernel.SubgroupAnd(b, f.Lt(kernel.F(100))).U32())
	put(kernel.SubgroupOr(b, f.Gt(kernel.F(2))).U32())
	put(kernel.SubgroupScanAdd(b, f).AsU32())
	put(kernel.SubgroupScanAdd(b, i).U32())
	put(kernel.SubgroupFirst(b, f).AsU32())
	put(kernel.SubgroupShuffle(b, f, b.SubgroupLane().Xor(kernel.U(1)).Min(kernel.U(4))).AsU32())
	for m := 1; m < 64; m *= 2 {
		put(kernel.SubgroupXor(b, i, m).U32())
	}
}

// built returns the programs of all kernels.
func built(t testing.TB) map[string]*ir.Program {
	t.Helper()
	m := make(map[string]*ir.Program)
	for _, l := range locals {
		for _, k := range kernels(l) {
			p, err := k.Program()
			if err != nil {
				t.Fatal(err)
			}
			m[p.Name] = p
		}
	}
	return m
}
