package ir_test

import (
	"context"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/interp"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
)

// chain applies functions to the elements that a kernel loads. The positions of its control flow all
// change when the functions are expanded.
func chain[T kernel.Value](name string, load func(b *kernel.Builder, i kernel.U32) T, store func(b *kernel.Builder, i kernel.U32, x T), f func(x T) T) *kernel.Kernel {
	return kernel.New(name, func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(32, 1, 1)
		i := b.Index()
		v := kernel.NewVar(b, "v", load(b, i))
		b.For(kernel.U(0), kernel.U(3), func(k kernel.U32) {
			b.If(k.Eq(kernel.U(1)), func() { v.Set(f(v.Get())) }).Else(func() {
				b.If(k.Eq(kernel.U(2)), b.Break)
				b.Continue()
			})
		})
		store(b, i, v.Get())
	})
}

var functions = map[ir.Code]struct {
	scalar func(x kernel.F32) kernel.F32
	vector func(x kernel.Vec4F) kernel.Vec4F
}{
	ir.Exp:     {kernel.F32.Exp, kernel.Vec4F.Exp},
	ir.Exp2:    {kernel.F32.Exp2, kernel.Vec4F.Exp2},
	ir.Expm1:   {kernel.F32.Expm1, kernel.Vec4F.Expm1},
	ir.Log:     {kernel.F32.Log, kernel.Vec4F.Log},
	ir.Log2:    {kernel.F32.Log2, kernel.Vec4F.Log2},
	ir.Log1p:   {kernel.F32.Log1p, kernel.Vec4F.Log1p},
	ir.Tanh:    {kernel.F32.Tanh, kernel.Vec4F.Tanh},
	ir.Sigmoid: {kernel.F32.Sigmoid, kernel.Vec4F.Sigmoid},
	ir.Erf:     {kernel.F32.Erf, kernel.Vec4F.Erf},
	ir.Erfc:    {kernel.F32.Erfc, kernel.Vec4F.Erfc},
	ir.NormCDF: {kernel.F32.NormCDF, kernel.Vec4F.NormCDF},
	ir.Sin:     {kernel.F32.Sin, kernel.Vec4F.Sin},
	ir.Cos:     {kernel.F32.Cos, kernel.Vec4F.Cos},
	ir.Atan:    {kernel.F32.Atan, kernel.Vec4F.Atan},
	ir.Recip:   {kernel.F32.Recip, kernel.Vec4F.Recip},
	ir.Rsqrt:   {kernel.F32.Rsqrt, kernel.Vec4F.Rsqrt},
	ir.Round:   {kernel.F32.Round, kernel.Vec4F.Round},
}

// TestExpandMath compares programs whose functions were expanded with the
// float64 reference of each function, on scalars and on vectors, and checks
// that nothing is left to expand and positions stay.
func TestExpandMath(t *testing.T) {
	r := testutil.Rand(t)
	for _, code := range ir.Codes() {
		f, ok := functions[code]
		if !ok {
			if code.Composite() && code.Arity() == 1 {
				t.Errorf("%v is not tested", code)
			}
			continue
		}
		scalar := chain("scalar", func(b *kernel.Builder, i kernel.U32) kernel.F32 { return kernel.Input[kernel.F32](b, "x").At(i) },
			func(b *kernel.Builder, i kernel.U32, x kernel.F32) { kernel.Output[kernel.F32](b, "y").Set(i, x) }, f.scalar)
		vector := chain("vector", func(b *kernel.Builder, i kernel.U32) kernel.Vec4F { return kernel.Input[kernel.Vec4F](b, "x").At(i) },
			func(b *kernel.Builder, i kernel.U32, x kernel.Vec4F) { kernel.Output[kernel.Vec4F](b, "y").Set(i, x) }, f.vector)
		e := ir.NewEvaluator(must(ir.New(code, ir.NewArg(0, ir.F32))))
		for _, k := range []*kernel.Kernel{scalar, vector} {
			p, err := k.Positions()
			if err != nil {
				t.Fatal(err)
			}
			q := ir.ExpandMath(p, nil)
			if err := ir.Verify(q); err != nil {
				t.Fatal(err)
			}
			if ir.ExpandMath(q, nil) != q {
				t.Errorf("%v: something is left to expand", code)
			}
			if ir.ExpandMath(p, func(ir.Code) bool { return true }) != p {
				t.Errorf("%v: expanded though native", code)
			}
			for v := range q.Code[1:] {
				if file, _ := ir.Position(q.Pos, ir.Value(v+1)); !strings.HasSuffix(file, "program_test.go") {
					t.Fatalf("%v: position %s", code, file)
				}
			}
			n := 32 * int(p.Bindings[0].Width)
			x := make([]float32, n)
			for i := range x {
				switch x[i] = float32(r.NormFloat64() * 3); r.IntN(10) {
				case 0:
					x[i] = []float32{0, 1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 80, -80, 1e-39}[r.IntN(8)]
				}
				if (code == ir.Sin || code == ir.Cos) && !(math.Abs(float64(x[i])) < 100) {
					x[i] = 1
				}
			}
			for i, got := range run(t, q, x, n) {
				want := e.Eval([]float64{float64(x[i])}, nil)
				bound := 10 * math.Max(math.Abs(want)*0x1p-23, 0x1p-149)
				nearest := float64(float32(want))
				if g := float64(got); !(g == nearest || g != g && want != want || math.Abs(g-want) <= bound) {
					t.Errorf("%v(%v) = %v, want %v", code, x[i], got, want)
				}
			}
		}
	}
}

func must(n *ir.Node, err error) *ir.Node {
	if err != nil {
		panic(err)
	}
	return n
}

// run runs a program in one workgroup and returns what it writes to binding 1.
func run(t *testing.T, p *ir.Program, x []float32, n int) []float32 {
	t.Helper()
	k, err := interp.Compile(p, interp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	in, out := make([]byte, 0, 4*len(x)), make([]byte, 4*n)
	for _, v := range x {
		in = binary.NativeEndian.AppendUint32(in, math.Float32bits(v))
	}
	for i := range out {
		out[i] = 0xff // NaN
	}
	if err := k.Run(context.Background(), interp.Launch{Grid: [3]uint32{1, 1, 1}, Buffers: [][]byte{in, out}}); err != nil {
		t.Fatal(err)
	}
	y := make([]float32, n)
	for i := range y {
		y[i] = math.Float32frombits(binary.NativeEndian.Uint32(out[4*i:]))
	}
	return y
}

// TestExpandMathOfHalves: half floats are expanded in float32.
func TestExpandMathOfHalves(t *testing.T) {
	p := &ir.Program{Name: "half", Local: [3]uint32{1, 1, 1}, Budget: 1,
		Bindings: []ir.Binding{{Name: "x", Type: ir.F32, Width: 1, Access: ir.ReadOnly}, {Name: "y", Type: ir.F32, Width: 1, Access: ir.WriteOnly}},
		Code: []ir.Instr{{},
			{Code: ir.Const, Type: ir.U32, Width: 1},
			{Code: ir.Load, Type: ir.F32, Width: 1, Args: [3]ir.Value{1}},
			{Code: ir.Convert, Type: ir.F16, Width: 1, Args: [3]ir.Value{2}},
			{Code: ir.Exp, Type: ir.F16, Width: 1, Args: [3]ir.Value{3}},
			{Code: ir.Convert, Type: ir.F32, Width: 1, Args: [3]ir.Value{4}},
			{Code: ir.Store, Args: [3]ir.Value{1, 5}, Imm: 1},
		}}
	q := ir.ExpandMath(p, nil)
	if err := ir.Verify(q); err != nil {
		t.Fatal(err)
	}
	if got, want := run(t, q, []float32{1.5}, 1)[0], ir.NearestHalf(math.Exp(1.5)); got != want {
		t.Errorf("exp(1.5) = %v, want %v", got, want)
	}
}

// seeds are programs that the fuzzer begins with.
func seeds(t testing.TB) []*ir.Program {
	var ps []*ir.Program
	for _, k := range []*kernel.Kernel{
		kernel.New("flow", func(b *kernel.Builder, p *struct{ N, M uint32 }) {
			b.LocalSize(8, 2, 1)
			x, y := kernel.Input[kernel.Vec4F](b, "x"), kernel.InOut[kernel.F32](b, "y")
			s, a := kernel.Shared[kernel.F32](b, "s", 16), kernel.Atomic[kernel.U32](b, "a")
			i, v := b.Index(), kernel.NewVar(b, "v", kernel.F(0))
			b.For(kernel.U(0), b.U32(&p.N), func(k kernel.U32) {
				q := x.At(k)
				b.If(q.X().Lt(q.Y()), b.Break).Else(func() { v.Set(v.Get().Add(q.Dot(b.Vec4F(q.X(), q.Y(), q.Z(), q.X())))) })
				b.If(q.Z().Lt(q.Y()), b.Continue)
				a.CompareExchange(k, a.Add(k, i), b.U32(&p.M))
			})
			s.Set(b.Lane(), kernel.SubgroupAdd(b, v.Get().Exp()))
			b.Barrier()
			u := s.Uniform(kernel.U(0))
			b.Loop(func() { b.If(i.Gt(kernel.U(3)), b.Return); b.Break() })
			y.Set(i, kernel.Select(i.Eq(kernel.U(0)), u, s.At(b.LocalX()).Pow(y.At(i))))
		}),
	} {
		p, err := k.Program()
		if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	return ps
}

// FuzzVerify changes programs: whatever comes out is refused, or can be
// listed, hashed, checked, expanded and compiled.
func FuzzVerify(f *testing.F) {
	ps := seeds(f)
	for i := range ps {
		f.Add(uint8(i), []byte{})
		f.Add(uint8(i), []byte{20, 0, 0, 3, 30, 0, 4, 2})
	}
	f.Fuzz(func(t *testing.T, which uint8, changes []byte) {
		p := *ps[int(which)%len(ps)]
		p.Code = append([]ir.Instr(nil), p.Code...)
		for ; len(changes) >= 4; changes = changes[4:] {
			at := (int(changes[0]) | int(changes[1])<<8) % len(p.Code)
			in, v := &p.Code[at], changes[3]
			switch changes[2] % 9 {
			case 0:
				in.Code = ir.Code(v)
			case 1:
				in.Type = ir.Type(v)
			case 2:
				in.Width = v
			case 3:
				in.Flag = v
			case 4, 5, 6:
				in.Args[changes[2]%9-4] = ir.Value(v)
			case 7:
				in.Imm = uint32(v)
			case 8: // exchange with another
				o := int(v) % len(p.Code)
				p.Code[at], p.Code[o] = p.Code[o], p.Code[at]
			}
		}
		if ir.Verify(&p) != nil {
			return
		}
		_ = p.Listing()
		_ = p.Hash()
		_ = ir.Divergent(&p)
		if q := ir.ExpandMath(&p, nil); ir.Verify(q) != nil {
			t.Errorf("expanded: %v", ir.Verify(q))
		}
		_, _ = interp.Compile(&p, interp.Limits{})
	})
}

// TestVerifyFindsEveryKindOfDefect: each change to a program is refused.
func TestVerifyFindsEveryKindOfDefect(t *testing.T) {
	find := func(p *ir.Program, c ir.Code) *ir.Instr {
		for i := range p.Code {
			if p.Code[i].Code == c {
				return &p.Code[i]
			}
		}
		t.Fatalf("no %v", c)
		return nil
	}
	for name, spoil := range map[string]func(p *ir.Program){
		"local size":           func(p *ir.Program) { p.Local[1] = 0 },
		"huge local size":      func(p *ir.Program) { p.Local = [3]uint32{1 << 31, 1 << 31, 4} },
		"no code":              func(p *ir.Program) { p.Code = nil },
		"positions":            func(p *ir.Program) { p.Pos = make([]uintptr, 3) },
		"binding type":         func(p *ir.Program) { p.Bindings[0].Type = ir.Bool },
		"binding width":        func(p *ir.Program) { p.Bindings[0].Width = 3 },
		"binding access":       func(p *ir.Program) { p.Bindings[0].Access = 0 },
		"uniform offset":       func(p *ir.Program) { p.Uniforms[1].Offset = 2 },
		"uniforms overlap":     func(p *ir.Program) { p.Uniforms[1].Offset = 0 },
		"array length":         func(p *ir.Program) { p.Shared[0].Len = 0 },
		"huge array":           func(p *ir.Program) { p.Shared[0].Len = math.MaxUint32 },
		"variable":             func(p *ir.Program) { p.Vars[0].Type = ir.Invalid },
		"code":                 func(p *ir.Program) { find(p, ir.Add).Code = 255 },
		"arg":                  func(p *ir.Program) { find(p, ir.Add).Code = ir.Arg },
		"type":                 func(p *ir.Program) { find(p, ir.Add).Type = ir.Bool },
		"width":                func(p *ir.Program) { find(p, ir.Add).Width = 2 },
		"operand":              func(p *ir.Program) { find(p, ir.Add).Args[0] = 0 },
		"operand after":        func(p *ir.Program) { find(p, ir.Add).Args[0] = ir.Value(len(p.Code)) },
		"statement as operand": func(p *ir.Program) { find(p, ir.Add).Args[0] = 1 << 30 },
		"end":                  func(p *ir.Program) { find(p, ir.End).Imm++ },
		"if":                   func(p *ir.Program) { find(p, ir.If).Imm++ },
		"else":                 func(p *ir.Program) { find(p, ir.Else).Imm = 0 },
		"loop":                 func(p *ir.Program) { find(p, ir.Loop).Imm = 1 << 31 },
		"break":                func(p *ir.Program) { find(p, ir.Break).Imm++ },
		"open block":           func(p *ir.Program) { p.Code = p.Code[:len(p.Code)/2] },
		"buffer":               func(p *ir.Program) { find(p, ir.Load).Imm = 9 },
		"array":                func(p *ir.Program) { find(p, ir.StoreShared).Imm = 9 },
		"slot":                 func(p *ir.Program) { find(p, ir.LoadVar).Imm = 9 },
		"parameter":            func(p *ir.Program) { find(p, ir.Param32).Imm = 9 },
		"read of an atomic":    func(p *ir.Program) { find(p, ir.Load).Imm = 2 },
		"component":            func(p *ir.Program) { find(p, ir.Extract).Flag = 4 },
		"atomic":               func(p *ir.Program) { find(p, ir.AtomicOp).Flag = 77 },
		"reduction":            func(p *ir.Program) { find(p, ir.SubgroupOp).Flag = ir.ReduceAnd },
		"built-in":             func(p *ir.Program) { find(p, ir.BuiltIn).Flag = 99 },
		"statement with type":  func(p *ir.Program) { in := find(p, ir.Barrier); in.Type, in.Width = ir.F32, 1 },
		"after a jump": func(p *ir.Program) {
			for i := range p.Code {
				if p.Code[i].Code == ir.Break {
					p.Code = append(p.Code[:i+1], append([]ir.Instr{{Code: ir.Barrier}}, p.Code[i+1:]...)...)
					return
				}
			}
		},
	} {
		p := *seeds(t)[0]
		p.Code = append([]ir.Instr(nil), p.Code...)
		p.Bindings, p.Uniforms = append([]ir.Binding(nil), p.Bindings...), append([]ir.Uniform(nil), p.Uniforms...)
		p.Shared, p.Vars = append([]ir.Array(nil), p.Shared...), append([]ir.Var(nil), p.Vars...)
		if err := ir.Verify(&p); err != nil {
			t.Fatal(err)
		}
		before := p.Hash()
		spoil(&p)
		if ir.Verify(&p) == nil {
			t.Errorf("%s: not found", name)
		}
		if name != "positions" && p.Hash() == before {
			t.Errorf("%s: the hash is the same", name)
		}
	}
	if ir.Verify(nil) == nil {
		t.Error("nil is a program")
	}
}

func TestFoldFmaRoundsOnce(t *testing.T) {
	f := math.Float32bits
	// The product ends half way between two float32; c, far below, decides.
	x := f(1 + 0x1p-12)
	for _, c := range []float32{0x1p-80, -0x1p-80} {
		want := float32(1 + 0x1p-11)
		if c > 0 {
			want += 0x1p-23
		}
		if got, _ := ir.Fold(ir.Fma, ir.F32, ir.F32, x, x, f(c)); got != f(want) {
			t.Errorf("with %g: %v, want %v", c, math.Float32frombits(got), want)
		}
	}
}
