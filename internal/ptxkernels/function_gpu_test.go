package ptxkernels

import (
	"encoding/binary"
	"math"
	"testing"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/ptxgen"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// These tests compare the functions of elementwise programs, at every float32, with float64 on the
// same GPU.

// exact computes in float64, for an x that is not NaN.
type exact struct{ k *ptx.Kernel }

// exp returns e**x.
func (e exact) exp(x ptx.F64) ptx.F64 {
	x = x.Max(ptx.D(-700)).Min(ptx.D(700))
	n := x.Mul(ptx.D(math.Log2E)).Round()
	r := n.Fma(ptx.D(-6.93147180369123816490e-01), x)
	return e.power(n, n.Fma(ptx.D(-1.90821492927058770002e-10), r))
}

// exp2 returns 2**x.
func (e exact) exp2(x ptx.F64) ptx.F64 {
	x = x.Max(ptx.D(-1000)).Min(ptx.D(1000))
	n := x.Round()
	return e.power(n, x.Sub(n).Mul(ptx.D(math.Ln2)))
}

// power returns 2**n·e**r for a small r.
func (e exact) power(n, r ptx.F64) ptx.F64 {
	y := ptx.Reg(e.k, ptx.D(0))
	for i := 14; i >= 0; i-- {
		y = y.Fma(r, ptx.D(1/math.Gamma(float64(i+1))))
	}
	return y.Mul(n.TruncS32().Add(ptx.S(1023)).U32().U64().Shl(ptx.U(52)).Float())
}

// log returns the logarithm of a positive finite x.
func (e exact) log(x ptx.F64) ptx.F64 {
	bits := x.Bits()
	n := bits.Sub(ptx.UL(0x3fe6a09e667f3bcd)).S64().Shr(ptx.U(52)) // relative to sqrt(1/2)
	m := bits.Sub(n.Shl(ptx.U(52)).U64()).Float()
	s := m.Sub(ptx.D(1)).Div(m.Add(ptx.D(1)))
	u := s.Mul(s)
	y := ptx.Reg(e.k, ptx.D(0))
	for i := 23; i >= 1; i -= 2 {
		y = y.Fma(u, ptx.D(2/float64(i)))
	}
	return n.F64().Fma(ptx.D(math.Ln2), s.Mul(y))
}

// tanh returns the hyperbolic tangent.
func (e exact) tanh(x ptx.F64) ptx.F64 {
	u := x.Mul(x)
	y := ptx.Reg(e.k, ptx.D(0))
	for i := 15; i >= 1; i -= 2 {
		y = y.Fma(u, ptx.D(1/math.Gamma(float64(i+1))))
	}
	up := e.exp(x)
	down := up.Rcp()
	sinh := ptx.Select(x.Abs().Lt(ptx.D(0.5)), y.Mul(x), up.Sub(down).Mul(ptx.D(0.5)))
	return sinh.Div(up.Add(down).Mul(ptx.D(0.5)))
}

// onGPU is a function and its reference.
type onGPU struct {
	name  string
	units float64 // largest allowed error, in ULP
	f     func(k *ptx.Kernel, x ptx.F32) ptx.F32
	want  func(e exact, x ptx.F64) ptx.F64
	lo    float64 // smallest and largest argument
	hi    float64
}

// compare is a kernel that finds the largest error of f, in units in the last place. The
// result combines the error and the bits of the argument in one number.
func (f *onGPU) compare(k *ptx.Kernel) {
	const threads = 256
	k.Block(threads, 1, 1)
	worst := ptx.GlobalParam[ptx.U64](k, "worst")
	lo, hi := ptx.Param[ptx.F32](k, "lo"), ptx.Param[ptx.F32](k, "hi")
	i := k.Special(ptx.CtaidX).MulAdd(ptx.U(threads), k.Special(ptx.TidX))
	largest := ptx.NewVar(k, ptx.UL(0))
	k.For(ptx.U(0), ptx.U(4096), ptx.U(1), func(turn ptx.U32) {
		bits := turn.MulAdd(ptx.U(1<<20), i)
		x := bits.B32().Float()
		k.If(x.Ge(lo).And(x.Le(hi)), func() {
			got, want := f.f(k, x), f.want(exact{k}, x.F64())
			g := got.F64()
			// An ULP is 2**-23 times the power of 2 at or below |want|, at least 2**-149.
			e := want.Abs().Bits().Shr(ptx.U(52)).U32().Max(ptx.U(1023 - 126)).Sub(ptx.U(23))
			off := g.Sub(want).Abs().Div(e.U64().Shl(ptx.U(52)).Float()).F32()
			off = ptx.Select(got.F64().Eq(want), ptx.F(0), off)
			off = ptx.Select(want.Abs().Ge(ptx.D(0x1p128-0x1p104)).And(got.Abs().Eq(ptx.F(float32(math.Inf(1))))), ptx.F(0), off)
			wrong := got.IsNaN(got).Xor(want.IsNaN(want))
			off = ptx.Select(wrong, ptx.F(1e30), ptx.Select(want.IsNaN(want), ptx.F(0), off))
			both := off.Bits().U32().U64().Shl(ptx.U(32)).Or(bits.U64())
			largest.Set(largest.Get().Max(both))
		})
	})
	ptx.AtomicMax(worst, largest.Get())
}

func (g *gpu) worst(f *onGPU) (units float64, at float32, err error) {
	m := ptx.NewModule(g.desc.Target)
	m.Kernel("k", f.compare)
	text, err := m.AppendPTX(nil)
	if err != nil {
		return 0, 0, err
	}
	mod, err := g.dev.Load(text)
	if err != nil {
		return 0, 0, err
	}
	fn, err := mod.Function("k")
	if err != nil {
		return 0, 0, err
	}
	mem, err := g.stream.Alloc(8)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = mem.Free() }()
	if err := g.stream.Set32(mem.Ptr(), 0, 2); err != nil {
		return 0, 0, err
	}
	var p cu.Params
	p.Ptr(mem.Ptr())
	p.U32(math.Float32bits(float32(f.lo)))
	p.U32(math.Float32bits(float32(f.hi)))
	if err := g.stream.Launch(fn, cu.Config{Grid: cu.Dim{X: 4096}, Block: cu.Dim{X: 256}}, p); err != nil {
		return 0, 0, err
	}
	var out [8]byte
	if err := g.stream.Download(out[:], mem.Ptr()); err != nil {
		return 0, 0, err
	}
	v := binary.NativeEndian.Uint64(out[:])
	return float64(math.Float32frombits(uint32(v >> 32))), math.Float32frombits(uint32(v)), nil
}

// TestGPUFunctions requires that functions are within their tolerances at every float32.
func TestGPUFunctions(t *testing.T) {
	inf := math.Inf(1)
	of := func(o *op.Operation) func(k *ptx.Kernel, x ptx.F32) ptx.F32 {
		e, err := irhook.Expression(o, &op.Attrs{}, []op.DType{op.F32})
		if err != nil {
			t.Fatal(err)
		}
		return inline(e)
	}
	sigmoid := func(e exact, x ptx.F64) ptx.F64 { return e.exp(x.Neg()).Add(ptx.D(1)).Rcp() }
	root := func(_ exact, x ptx.F64) ptx.F64 { return x.Sqrt() }
	holdFunctions(t, []onGPU{
		{"exp", 2, of(op.Exp), exact.exp, -inf, inf},
		{"exp2", 2, of(op.Exp2), exact.exp2, -inf, inf},
		{"tanh", 2, of(op.Tanh), exact.tanh, -inf, inf},
		{"sigmoid", 3, of(op.Sigmoid), sigmoid, -inf, inf},
		{"sqrt", 0.5, of(op.Sqrt), root, -inf, inf},
		{"recip", 1, of(op.Recip), func(_ exact, x ptx.F64) ptx.F64 { return x.Rcp() }, -inf, inf},
		{"rsqrt", 2, of(op.Rsqrt), func(_ exact, x ptx.F64) ptx.F64 { return x.Sqrt().Rcp() }, 0x1p-149, inf},
		{"log", 2, of(op.Log), exact.log, 0x1p-149, math.MaxFloat32},
		// The code for operands with known small bounds.
		{"exp, bounded", 2, within(op.Exp, 0, 1.0078125), exact.exp, 0, 1.0078125},
		{"exp, bounded", 2, within(op.Exp, 0, 86), exact.exp, 0, 86},
		{"sigmoid, bounded", 3, within(op.Sigmoid, 0, inf), sigmoid, 0, inf},
		{"tanh, bounded", 2, within(op.Tanh, -0.5, 0.5), exact.tanh, -0.5, 0.5},
		{"sqrt, bounded", 0.5, within(op.Sqrt, 0x1p-90, 0x1p120), root, 0x1p-90, 0x1p120},
	})
}

// within returns the operation for an operand that is known to be from lo to hi.
func within(o *op.Operation, lo, hi float64) func(k *ptx.Kernel, x ptx.F32) ptx.F32 {
	e, err := irhook.Expression(o, &op.Attrs{}, []op.DType{op.F32})
	if err != nil {
		panic(err)
	}
	x := ir.NewArg(0, ir.F32)
	x, err = ir.New(ir.Max, x, ir.NewConst(lo, ir.F32))
	if err == nil {
		x, err = ir.New(ir.Min, x, ir.NewConst(hi, ir.F32))
	}
	if err != nil {
		panic(err)
	}
	return inline(ir.Substitute(e, []*ir.Node{x}, nil))
}

// inline returns a function that writes the instructions of an expression.
func inline(e *ir.Node) func(k *ptx.Kernel, x ptx.F32) ptx.F32 {
	x := ptxgen.NewExpressions(e)
	return func(k *ptx.Kernel, v ptx.F32) ptx.F32 { return ptx.F32(x.Inline(k, ptx.U32(v))[0]) }
}

// TestGPUInstructions checks the assumed error bounds of the approximate instructions.
func TestGPUInstructions(t *testing.T) {
	ex2 := func(_ *ptx.Kernel, x ptx.F32) ptx.F32 { return x.Ex2ApproxFlush() }
	rcp := func(_ *ptx.Kernel, x ptx.F32) ptx.F32 { return x.RcpApproxFlush() }
	wantRcp := func(_ exact, x ptx.F64) ptx.F64 { return x.Rcp() }
	holdFunctions(t, []onGPU{
		{"ex2", 1.4, ex2, exact.exp2, 0, 128},
		{"ex2", 2.1, ex2, exact.exp2, -126, 0},
		{"rcp", 1, rcp, wantRcp, 0x1p-126, 0x1p126},
		{"rcp", 1, rcp, wantRcp, -0x1p126, -0x1p-126},
	})
}

func holdFunctions(t *testing.T, list []onGPU) {
	g := openGPU(t)
	for _, f := range list {
		units, at, err := g.worst(&f)
		if err != nil {
			t.Fatal(f.name, err)
		}
		t.Logf("%s of [%v, %v]: worst %.3f units, at %v", f.name, f.lo, f.hi, units, at)
		if !(units <= f.units) {
			t.Errorf("%s of [%v, %v]: off by %.3f units at %v", f.name, f.lo, f.hi, units, at)
		}
	}
}
