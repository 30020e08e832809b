package wgsl

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
)

// The corpus is the set of programs that the tests print.

// exhaustive returns programs with every code on every type and width that it accepts: one program
// for each code and each type of its first operand.
func exhaustive(t testing.TB) map[string]*ir.Program {
	m := make(map[string]*ir.Program)
	for c := ir.Add; c != 0; c++ {
		if strings.HasPrefix(c.String(), "Code(") {
			continue
		}
		for _, from := range []ir.Type{ir.F32, ir.I32, ir.U32, ir.Bool, ir.F16} {
			// Conversions to half floats are in a separate program, because few targets support
			// them.
			for _, half := range []bool{false, true} {
				a := newSource()
				if from == ir.F16 && half || !a.everyShape(c, from, half) {
					continue
				}
				name := fmt.Sprintf("%v_%v", c, from)
				if half {
					name += "_half"
				}
				m[name] = a.finish(t)
			}
		}
	}
	return m
}

// source assembles programs that apply codes to numbers from buffers.
type source struct {
	*assembler
	in  map[ir.Type]uint32
	out uint32
	at  ir.Value
	// kept has the types of the stored values: kept[i] is stored at 64·i plus the lane.
	kept []ir.Type
}

func newSource() *source {
	s := &source{assembler: assemble("codes"), in: make(map[ir.Type]uint32)}
	s.out = s.buffer("out", ir.U32, 1, ir.ReadWrite)
	s.at = s.builtIn(ir.BuiltInLane)
	return s
}

// operand returns a number of the type, loaded from memory.
func (s *source) operand(t ir.Type, width uint8) ir.Value {
	from := t
	if t == ir.Bool {
		from = ir.U32
	}
	if _, ok := s.in[from]; !ok {
		s.in[from] = s.buffer("in_"+from.String(), from, 1, ir.ReadOnly)
	}
	v := s.load(s.in[from], s.at)
	if t == ir.Bool {
		v = s.op(ir.Ne, ir.Bool, 1, v, s.u32(3))
	}
	if width > 1 {
		v = s.op(ir.Splat, t, width, v)
	}
	return v
}

// keep stores a value, so that it is printed. Each value has its own place, and floats are stored
// as bits.
func (s *source) keep(v ir.Value) {
	in := s.Code[v]
	if in.Type == ir.Invalid {
		return
	}
	if in.Width > 1 {
		v = s.op(ir.Extract, in.Type, 1, v)
	}
	switch in.Type {
	case ir.F16:
		v = s.op(ir.Bitcast, ir.U32, 1, s.op(ir.Convert, ir.F32, 1, v))
	case ir.F32, ir.I32:
		v = s.op(ir.Bitcast, ir.U32, 1, v)
	case ir.Bool:
		v = s.op(ir.Convert, ir.U32, 1, v)
	}
	s.store(s.out, s.add(s.at, s.u32(64*uint32(len(s.kept)))), v)
	s.kept = append(s.kept, in.Type)
}

func (s *source) finish(t testing.TB) *ir.Program {
	if err := ir.Verify(&s.Program); err != nil {
		t.Fatal(err)
	}
	return &s.Program
}

// everyShape appends the code on operands of a type and of each width, with each valid flag and
// result type. It reports whether there is any.
func (s *source) everyShape(c ir.Code, from ir.Type, half bool) bool {
	some := false
	for _, width := range []uint8{1, 2, 4} {
		operands := [][]ir.Type{{from, from, from, from}}
		switch c {
		case ir.Select:
			operands = [][]ir.Type{{ir.Bool, from, from}}
		case ir.SubgroupShuffle:
			operands = [][]ir.Type{{from, ir.U32}}
		case ir.Dot4I8:
			operands = [][]ir.Type{{ir.U32, ir.U32, ir.I32}}
		}
		for _, o := range operands {
			for flag := range uint8(5) {
				results := []ir.Type{ir.F32, ir.I32, ir.U32, ir.Bool}
				if half || from == ir.F16 {
					results = []ir.Type{ir.F16}
				}
				if from == ir.F16 {
					results = append(results, ir.F32, ir.I32, ir.U32, ir.Bool)
				}
				for _, to := range results {
					for _, out := range []uint8{1, 2, 4} {
						in := ir.Instr{Code: c, Type: to, Width: out, Flag: flag, Imm: 4}
						if s.try(in, o, width, flag) {
							some = true
						}
					}
				}
			}
		}
	}
	return some
}

// try appends an instruction on operands of the types, if that is valid.
func (s *source) try(in ir.Instr, types []ir.Type, width, flag uint8) bool {
	probe := in
	_, n := probe.Operands()
	switch in.Code {
	case ir.Load, ir.LoadShared, ir.LoadVar, ir.UniformLoad, ir.AtomicOp, ir.AtomicOpShared, ir.Param32, ir.Len, ir.For, ir.BuiltIn, ir.Const:
		return false // these are in separate programs
	case ir.Extract:
		if flag >= width {
			return false
		}
	case ir.SubgroupOp:
	default:
		if flag != 0 {
			return false
		}
	}
	if n == 0 {
		return false
	}
	code, bindings := len(s.Code), len(s.Bindings)
	for k := range n {
		w := width
		if in.Code == ir.Compose || in.Code == ir.Splat || in.Code == ir.SubgroupShuffle && k == 1 {
			w = 1
		}
		if (in.Code == ir.Splat || in.Code == ir.Compose) && width != 1 {
			return false
		}
		v := s.operand(types[k], w)
		if k == 3 {
			in.Imm = uint32(v)
		} else {
			in.Args[k] = v
		}
	}
	v := s.push(in)
	if ir.Verify(&s.Program) != nil {
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

// structures returns programs with everything except expressions.
func structures(t testing.TB) map[string]*ir.Program {
	sources := []*source{builtInSource(), memorySource(), halfMemorySource(), loopSource(), constantSource(), nestingSource(), nameSource()}
	for _, typ := range []ir.Type{ir.I32, ir.U32} {
		sources = append(sources, atomicSource(typ, false), atomicSource(typ, true))
	}
	m := make(map[string]*ir.Program)
	for _, s := range sources {
		if m[s.Name] != nil {
			t.Fatalf("a second %s", s.Name)
		}
		m[s.Name] = s.finish(t)
	}
	return m
}

// builtInSource uses every built-in value.
func builtInSource() *source {
	s := newSource()
	s.Name = "built_ins"
	for flag := range ir.BuiltInNames {
		s.keep(s.builtIn(uint8(flag)))
	}
	s.keep(s.add(s.builtIn(ir.BuiltInSubgroup), s.builtIn(ir.BuiltInSubgroup)))
	s.keep(s.sub(s.builtIn(ir.BuiltInSubgroupLane), s.builtIn(ir.BuiltInSubgroupSize)))
	s.keep(s.same(ir.IDiv, s.at, s.builtIn(ir.BuiltInSubgroupLane)))
	return s
}

// memorySource uses variables, workgroup arrays and parameters.
func memorySource() *source {
	s := newSource()
	s.Name = "memory"
	for _, typ := range []ir.Type{ir.F32, ir.I32, ir.U32} {
		for _, w := range []uint8{1, 2, 4} {
			name := fmt.Sprintf("%v_%d", typ, w)
			b := s.array("shared_"+name, typ, w, 64, false)
			v := s.variable("var", typ, w)
			x := s.operand(typ, w)
			s.set(v, x)
			s.storeShared(b, s.at, s.get(v))
			s.barrier()
			s.keep(s.loadShared(b, s.u32(63)))
			s.barrier()
			u := s.op(ir.UniformLoad, typ, w, s.u32(3))
			s.Code[u].Imm = b
			s.keep(u)
			s.barrier()
		}
	}
	n := s.push(ir.Instr{Code: ir.Len, Type: ir.U32, Width: 1, Imm: s.out})
	s.keep(n)
	s.keep(s.param("count", ir.U32))
	s.keep(s.param("offset", ir.I32))
	s.Uniforms = append(s.Uniforms, ir.Uniform{Name: "after a gap", Type: ir.F32, Offset: 40})
	f := s.push(ir.Instr{Code: ir.Param32, Type: ir.F32, Width: 1, Imm: 2})
	s.keep(f)
	flags := s.array("truth", ir.Bool, 1, 4, false)
	s.storeShared(flags, s.u32(1), s.lt(s.at, n))
	s.keep(s.loadShared(flags, s.u32(1)))
	return s
}

// halfMemorySource uses half floats in buffers, variables and workgroup arrays.
func halfMemorySource() *source {
	s := newSource()
	s.Name = "half_memory"
	for _, w := range []uint8{1, 2, 4} {
		b := s.buffer(fmt.Sprintf("h%d", w), ir.F16, w, ir.ReadWrite)
		tile := s.array(fmt.Sprintf("tile%d", w), ir.F16, w, 7, false)
		v := s.variable("h", ir.F16, w)
		s.set(v, s.load(b, s.at))
		s.storeShared(tile, s.u32(1), s.get(v))
		s.barrier()
		s.store(b, s.at, s.mul(s.loadShared(tile, s.u32(2)), s.constant(ir.F16, w, math.Float32bits(1.5))))
	}
	return s
}

// atomicSource uses every atomic operation on one type.
func atomicSource(typ ir.Type, shared bool) *source {
	s := newSource()
	s.Name = fmt.Sprintf("atomics_%v_%v", typ, shared)
	code, slot := ir.AtomicOp, uint32(0)
	if shared {
		code, slot = ir.AtomicOpShared, s.array("counts", typ, 1, 5, true)
	} else {
		slot = s.buffer("counts", typ, 1, ir.Atomic)
	}
	x := s.operand(typ, 1)
	for flag := ir.AtomicLoad; flag <= ir.AtomicCompareExchange; flag++ {
		for _, used := range []bool{false, true} {
			in := ir.Instr{Code: code, Type: typ, Width: 1, Flag: flag, Imm: slot, Args: [3]ir.Value{s.u32(1), x, x}}
			if flag == ir.AtomicStore {
				in.Type, in.Width = ir.Invalid, 0
			}
			if v := s.push(in); used && flag != ir.AtomicStore {
				s.keep(v)
			}
		}
	}
	return s
}

// loopSource uses loops of every form.
func loopSource() *source {
	s := newSource()
	s.Name = "loops"
	total := s.variable("total", ir.U32, 1)
	late := s.variable("late", ir.U32, 1)
	s.set(total, s.u32(0))
	count := s.param("n", ir.U32)
	signed := s.param("m", ir.I32)
	for _, flag := range []uint8{0, ir.Bounded} {
		for _, b := range [][3]ir.Value{
			{s.u32(0), s.u32(10), s.u32(1)},
			{s.u32(0), s.u32(10), s.u32(3)},
			{s.u32(0), s.u32(math.MaxUint32), s.u32(3)},
			{s.u32(1), count, s.u32(64)},
			{s.at, count, s.add(s.at, count)},
			{s.i32(-3), signed, s.i32(1)},
			{s.i32(math.MinInt32), signed, s.i32(7)},
			{s.i32(5), signed, s.i32(-1)},
			{s.i32(5), s.add(signed, signed), signed},
			{s.u32(0), s.same(ir.Shr, count, s.u32(4)), s.u32(16)},
		} {
			i := s.forr(flag, b[0], b[1], b[2])
			j := s.forr(ir.Bounded, s.u32(0), s.u32(4), s.u32(1))
			x := s.op(ir.Bitcast, ir.U32, 1, i)
			if s.Code[i].Type == ir.U32 {
				x = i
			}
			s.set(total, s.add(s.get(total), s.add(x, j)))
			s.end()
			s.iff(s.lt(s.get(total), s.u32(7)))
			s.leave(ir.Continue)
			s.els()
			s.set(late, s.get(total))
			s.leave(ir.Break)
			s.end()
			s.end()
		}
		s.loop(flag)
		s.set(total, s.add(s.get(total), s.u32(1)))
		s.iff(s.lt(s.u32(100), s.get(total)))
		s.leave(ir.Break)
		s.end()
		s.end()
	}
	s.loop(0)
	s.end()
	s.store(s.out, s.at, s.add(s.get(total), s.get(late)))
	s.leave(ir.Return)
	return s
}

// constantSource uses constants at the limits of their types.
func constantSource() *source {
	s := newSource()
	s.Name = "constants"
	for _, v := range []float64{0, math.Copysign(0, -1), 1, -1, 0.1, -0.1, 1e-40, -1e-45, math.MaxFloat32, 1e10, 16777216, 3e-7,
		math.Inf(1), math.Inf(-1), math.NaN(), 1.0 / 3} {
		x := s.f32(float32(v))
		s.keep(x)
		s.keep(s.same(ir.Sqrt, s.add(x, x)))
		s.keep(s.same(ir.Div, x, s.f32(0)))
		s.keep(s.op(ir.Bitcast, ir.U32, 1, s.same(ir.Neg, x)))
		s.keep(s.same(ir.Neg, s.same(ir.Neg, x)))
		s.keep(s.op(ir.Convert, ir.I32, 1, x))
	}
	for _, v := range []int32{0, 1, -1, math.MinInt32, math.MaxInt32, 70000, -70000} {
		x := s.i32(v)
		s.keep(x)
		s.keep(s.mul(x, x))
		s.keep(s.same(ir.IDiv, x, s.i32(0)))
		s.keep(s.same(ir.IDiv, s.i32(math.MinInt32), s.i32(-1)))
		s.keep(s.same(ir.IMod, x, s.i32(-1)))
		s.keep(s.same(ir.Neg, x))
		s.keep(s.same(ir.Shl, x, s.i32(31)))
		s.keep(s.same(ir.Abs, x))
	}
	for _, v := range []uint32{0, 1, 31, 32, 33, math.MaxUint32, 1 << 31} {
		x := s.u32(v)
		s.keep(x)
		s.keep(s.sub(s.u32(0), x))
		s.keep(s.same(ir.Shl, s.at, x))
		s.keep(s.same(ir.Shr, s.u32(3), x))
		s.keep(s.same(ir.IDiv, s.at, x))
		s.keep(s.same(ir.IMod, s.at, x))
		s.keep(s.same(ir.Neg, s.at))
	}
	s.keep(s.op(ir.Not, ir.Bool, 1, s.constant(ir.Bool, 1, 1)))
	wide := s.constant(ir.F32, 4, math.Float32bits(2))
	s.keep(s.mul(wide, wide))
	s.keep(s.mul(wide, s.operand(ir.F32, 4)))
	s.keep(s.sub(s.operand(ir.F32, 4), wide))
	return s
}

// nestingSource uses expressions that need parentheses, and loads that must not be moved past a
// store.
func nestingSource() *source {
	s := newSource()
	s.Name = "nesting"
	x, y := s.operand(ir.U32, 1), s.operand(ir.I32, 1)
	g := s.operand(ir.F32, 1)
	codes := []ir.Code{ir.Add, ir.Sub, ir.Mul, ir.IDiv, ir.IMod, ir.And, ir.Or, ir.Xor, ir.Shl, ir.Shr}
	for _, outer := range codes {
		for _, inner := range append([]ir.Code{ir.Neg, ir.Not}, codes...) {
			for _, v := range []ir.Value{x, y} {
				left, right := s.op(inner, s.Code[v].Type, 1, v, v), s.op(inner, s.Code[v].Type, 1, v, v)
				s.keep(s.same(outer, left, v))
				s.keep(s.same(outer, v, right))
			}
		}
	}
	for _, outer := range []ir.Code{ir.Eq, ir.Ne, ir.Lt, ir.Le} {
		for _, inner := range codes {
			s.keep(s.op(outer, ir.Bool, 1, s.same(inner, x, x), s.same(inner, x, x)))
		}
		p := s.op(outer, ir.Bool, 1, x, s.u32(5))
		q := s.op(outer, ir.Bool, 1, s.u32(5), x)
		for _, logical := range []ir.Code{ir.And, ir.Or, ir.Xor} {
			for _, second := range []ir.Code{ir.And, ir.Or, ir.Xor} {
				s.keep(s.same(second, s.same(logical, p, q), s.same(ir.Not, q)))
				s.keep(s.same(second, q, s.same(ir.Not, s.same(logical, p, q))))
			}
		}
		s.keep(s.op(ir.Select, ir.U32, 1, s.op(outer, ir.Bool, 1, x, s.u32(9)), s.same(ir.Shr, x, s.u32(3)), x))
		s.keep(s.op(outer, ir.Bool, 1, g, g))
	}
	deep := g
	for range 300 {
		deep = s.add(s.f32(1), s.mul(deep, deep))
		deep = s.op(ir.Fma, ir.F32, 1, deep, g, g)
	}
	s.keep(deep)
	swap := s.variable("swap", ir.U32, 1)
	s.set(swap, x)
	before, stored := s.get(swap), s.load(s.out, s.at)
	s.set(swap, s.u32(1))
	s.store(s.out, s.at, s.u32(2))
	s.store(s.out, s.at, s.sub(before, stored))
	inside := s.get(swap)
	s.iff(s.lt(x, s.u32(4)))
	s.set(swap, s.u32(5))
	s.keep(inside)
	s.end()
	return s
}

// nameSource uses names that have another meaning in WGSL.
func nameSource() *source {
	s := newSource()
	s.Name = "fn"
	for i, name := range []string{"x", "max", "v12", "local", "", "x", "params", "i", "turns3", "target", "9lives", "über", "__a", "min_nan", "exp_f", "Params", "fn"} {
		v := s.variable(name, ir.U32, 1)
		s.set(v, s.u32(uint32(i)))
		s.keep(s.get(v))
		s.store(s.out, s.get(v), s.same(ir.Max, s.get(v), s.u32(1)))
	}
	s.keep(s.op(ir.Exp, ir.F32, 1, s.same(ir.Min, s.operand(ir.F32, 1), s.operand(ir.F32, 1))))
	for _, name := range []string{"params", "lane", "buffer"} {
		s.store(s.buffer(name, ir.U32, 1, ir.WriteOnly), s.at, s.at)
	}
	return s
}

type tiles struct{ M, N, K uint32 }

// matmul multiplies matrices by tiles in workgroup memory. Each lane has 4×4 sums.
var matmul = kernel.New("matmul", buildMatmul)

func buildMatmul(b *kernel.Builder, p *tiles) {
	const side, per, depth = 64, 4, 16
	b.LocalSize(side/per, side/per, 1)
	x := kernel.Input[kernel.F32](b, "a")
	y := kernel.Input[kernel.F32](b, "b")
	z := kernel.Output[kernel.F32](b, "c")
	xs := kernel.Shared[kernel.F32](b, "a_tile", side*depth)
	ys := kernel.Shared[kernel.F32](b, "b_tile", side*depth)
	m, n, k := b.U32(&p.M), b.U32(&p.N), b.U32(&p.K)
	lx, ly := b.LocalX(), b.LocalY()
	lane := ly.Mul(kernel.U(side / per)).Add(lx)
	row, col := b.GroupY().Mul(kernel.U(side)), b.GroupX().Mul(kernel.U(side))
	sums := kernel.NewVars(b, "sum", per*per, kernel.F(0))
	b.ForStep(kernel.U(0), k, kernel.U(depth), func(at kernel.U32) {
		for i := range side * depth / 256 {
			e := lane.Add(kernel.U(uint32(i * 256)))
			r, c := e.Div(kernel.U(depth)), e.Mod(kernel.U(depth))
			in := row.Add(r).Lt(m).And(at.Add(c).Lt(k))
			xs.Set(e, kernel.Select(in, x.At(kernel.Select(in, row.Add(r).Mul(k).Add(at).Add(c), kernel.U(0))), kernel.F(0)))
			r, c = e.Div(kernel.U(side)), e.Mod(kernel.U(side))
			in = at.Add(r).Lt(k).And(col.Add(c).Lt(n))
			ys.Set(e, kernel.Select(in, y.At(kernel.Select(in, at.Add(r).Mul(n).Add(col).Add(c), kernel.U(0))), kernel.F(0)))
		}
		b.Barrier()
		b.For(kernel.U(0), kernel.U(depth), func(d kernel.U32) {
			var u, v [per]kernel.F32
			for i := range per {
				u[i] = xs.At(ly.Mul(kernel.U(per)).Add(kernel.U(uint32(i))).Mul(kernel.U(depth)).Add(d))
				v[i] = ys.At(d.Mul(kernel.U(side)).Add(lx.Mul(kernel.U(per))).Add(kernel.U(uint32(i))))
			}
			for i := range per {
				for j := range per {
					s := sums[i*per+j]
					s.Set(u[i].MulAdd(v[j], s.Get()))
				}
			}
		})
		b.Barrier()
	})
	for i := range per {
		for j := range per {
			r := row.Add(ly.Mul(kernel.U(per))).Add(kernel.U(uint32(i)))
			c := col.Add(lx.Mul(kernel.U(per))).Add(kernel.U(uint32(j)))
			b.If(r.Lt(m).And(c.Lt(n)), func() { z.Set(r.Mul(n).Add(c), sums[i*per+j].Get()) })
		}
	}
}

type length struct{ N uint32 }

// histogram counts bytes, first in each workgroup and then in total.
var histogram = kernel.New("histogram", func(b *kernel.Builder, p *length) {
	b.LocalSize(256, 1, 1)
	x := kernel.Input[kernel.U32](b, "words")
	bins := kernel.Atomic[kernel.U32](b, "bins")
	local := kernel.SharedAtomic[kernel.U32](b, "local", 256)
	lane, i := b.LocalX(), b.Index()
	local.Store(lane, kernel.U(0))
	b.Barrier()
	b.If(i.Lt(b.U32(&p.N)), func() {
		w := x.At(i)
		for range 4 {
			local.Add(w.And(kernel.U(255)), kernel.U(1))
			w = w.Shr(kernel.U(8))
		}
	})
	b.Barrier()
	bins.Add(lane, local.Load(lane))
})

// maximum computes the greatest number of each row of N, with subgroups.
var maximum = kernel.New("maximum", func(b *kernel.Builder, p *length) {
	b.LocalSize(128, 1, 1)
	x := kernel.Input[kernel.F32](b, "x")
	y := kernel.Output[kernel.F32](b, "y")
	part := kernel.Shared[kernel.F32](b, "part", 128)
	n, row, lane := b.U32(&p.N), b.Group(), b.LocalX()
	best := kernel.NewVar(b, "best", kernel.F(float32(math.Inf(-1))))
	b.ForStep(lane, n, kernel.U(128), func(i kernel.U32) {
		best.Set(best.Get().Max(x.At(row.Mul(n).Add(i))))
	})
	part.Set(b.Subgroup(), kernel.SubgroupMax(b, best.Get()))
	b.Barrier()
	b.If(lane.Eq(kernel.U(0)), func() {
		best.Set(part.At(kernel.U(0)))
		b.For(kernel.U(1), kernel.U(uint32(b.Lanes())).Div(b.SubgroupSize()), func(i kernel.U32) {
			best.Set(best.Get().Max(part.At(i)))
		})
		y.Set(row, best.Get())
	})
})

// rowSums adds the exponentials of each row of n numbers, by a tree in workgroup memory.
func rowSums(t testing.TB) *ir.Program {
	a := assemble("row_sums", 128)
	x := a.buffer("x", ir.F32, 1, ir.ReadOnly)
	y := a.buffer("y", ir.F32, 1, ir.WriteOnly)
	part := a.array("part", ir.F32, 1, 128, false)
	sum := a.variable("sum", ir.F32, 1)
	n := a.param("n", ir.U32)
	row, lane := a.builtIn(ir.BuiltInGroupX), a.builtIn(ir.BuiltInLane)
	base := a.mul(row, n)
	a.set(sum, a.f32(0))
	i := a.forr(ir.Bounded, lane, n, a.u32(128))
	a.set(sum, a.add(a.get(sum), a.op(ir.Exp, ir.F32, 1, a.load(x, a.add(base, i)))))
	a.end()
	a.storeShared(part, lane, a.get(sum))
	a.barrier()
	for half := uint32(64); half > 0; half /= 2 {
		a.iff(a.lt(lane, a.u32(half)))
		a.storeShared(part, lane, a.add(a.loadShared(part, lane), a.loadShared(part, a.add(lane, a.u32(half)))))
		a.end()
		a.barrier()
	}
	a.iff(a.op(ir.Eq, ir.Bool, 1, lane, a.u32(0)))
	a.store(y, row, a.loadShared(part, a.u32(0)))
	a.end()
	if err := ir.Verify(&a.Program); err != nil {
		t.Fatal(err)
	}
	return &a.Program
}

// built returns programs built by package kernel.
func built(t testing.TB) map[string]*ir.Program {
	m := make(map[string]*ir.Program)
	for _, k := range []*kernel.Kernel{matmul, histogram, maximum} {
		p, err := k.Program()
		if err != nil {
			t.Fatal(err)
		}
		m[k.Name()] = p
	}
	return m
}

// corpus returns all programs.
func corpus(t testing.TB) map[string]*ir.Program {
	all := make(map[string]*ir.Program)
	for _, m := range []map[string]*ir.Program{exhaustive(t), structures(t), built(t)} {
		for name, p := range m {
			all[name] = p
		}
	}
	return all
}
