package wgsl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/interp"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// biasGeluScale is gelu of a sum with a bias, times a parameter: a typical chain of fused
// operations, with four elements for each lane.
func biasGeluScale(t testing.TB) *ir.Program {
	a := assemble("bias_gelu_scale", 256)
	x := a.buffer("x0", ir.F32, 4, ir.ReadOnly)
	bias := a.buffer("x1", ir.F32, 4, ir.ReadOnly)
	y := a.buffer("y0", ir.F32, 4, ir.WriteOnly)
	n, extent, scale := a.param("n", ir.U32), a.param("extent1", ir.U32), a.param("p0", ir.F32)
	group := a.add(a.mul(a.builtIn(ir.BuiltInGroupY), a.builtIn(ir.BuiltInGroupsX)), a.builtIn(ir.BuiltInGroupX))
	at := a.add(a.mul(group, a.u32(256)), a.builtIn(ir.BuiltInLane))
	two := a.u32(2)
	a.iff(a.lt(a.op(ir.Shl, ir.U32, 1, at, two), n))
	period := a.op(ir.Shr, ir.U32, 1, extent, two)
	sum := a.op(ir.Add, ir.F32, 4, a.load(x, at), a.load(bias, a.op(ir.IMod, ir.U32, 1, at, period)))
	gelu := a.op(ir.Mul, ir.F32, 4, sum, a.op(ir.NormCDF, ir.F32, 4, sum))
	a.store(y, at, a.op(ir.Mul, ir.F32, 4, gelu, a.op(ir.Splat, ir.F32, 4, scale)))
	a.end()
	if err := ir.Verify(&a.Program); err != nil {
		t.Fatal(err)
	}
	return &a.Program
}

// TestCatalogue prints every elementwise operation with each variant of the kernel of
// elementwise programs, for every type of operands and every target, and compiles the texts.
func TestCatalogue(t *testing.T) {
	kernels := make(map[string]*kernel.Kernel)
	for _, o := range op.Catalogue() {
		if o.Class() == op.Elementwise {
			before := len(kernels)
			kernelsOf(t, o, kernels)
			if len(kernels) == before {
				t.Errorf("no kernel of %v", o)
			}
		}
	}
	for _, name := range chosen(t) {
		target := targets[name]
		t.Run(name, func(t *testing.T) {
			texts := make(map[string]string)
			for name, k := range kernels {
				s, err := Kernel(k, target)
				if errors.Is(err, op.ErrUnsupported) && !target.has(Half) {
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				texts[name] = s.Text
			}
			if len(texts) < 100 {
				t.Errorf("%d texts", len(texts))
			}
			compileText(t, compiler(target.Consumer), texts)
		})
	}
}

// kernelsOf adds the kernels that compute the operation, for each of its types and each broadcast
// kind of operands.
func kernelsOf(t testing.TB, o *op.Operation, kernels map[string]*kernel.Kernel) {
	types := []op.DType{op.F32, op.F16, op.I32, op.U32, op.Bool}
	arity, _ := o.Arity()
	attrs := []op.Attrs{o.Defaults()}
	if o == op.Cast {
		attrs = nil
		for _, d := range types {
			attrs = append(attrs, op.CastTo(d))
		}
	}
	for _, d := range types {
		for i := range attrs {
			in := make([]op.DType, arity)
			for k := range in {
				in[k] = d
			}
			if o == op.Where {
				in[0] = op.Bool
			}
			out, err := o.Types(&attrs[i], in)
			if err != nil {
				continue
			}
			x, err := irhook.Expression(o, &attrs[i], in)
			if err != nil {
				t.Errorf("%v of %v: %v", o, d, err)
				continue
			}
			params := make([]*ir.Node, len(attrs[i].F))
			for k := range params {
				params[k] = ir.NewConst(float64(attrs[i].Float(k)), ir.F32)
			}
			args := make([]*ir.Node, arity)
			post := &portable.Epilogue{}
			const rows, cols = 6, 8
			for k, d := range in {
				spread := op.BroadcastKind((k + int(d)) % 4)
				n := map[op.BroadcastKind]int{op.Full: rows * cols, op.Scalar: 1, op.Tiled: cols, op.Repeated: rows}[spread]
				post.In = append(post.In, portable.Operand{Type: d, Broadcast: spread, N: n})
				args[k] = ir.NewArg(k, irhook.Register(uint8(d)))
			}
			post.Exprs = []*ir.Node{ir.Substitute(x, args, params)}
			for _, variant := range portable.Variants(nil) {
				r := &portable.Request{Post: post, Out: []portable.Array{{Type: out[0], Shape: op.Shape{rows, cols}}}, Variant: variant, Target: portable.Target{F16: true}}
				p, err := portable.For(r)
				if strings.HasPrefix(variant, "tile") && errors.Is(err, op.ErrUnsupported) {
					continue // no operand is strided
				}
				if err != nil {
					t.Errorf("%v of %v: %v", o, d, err)
					continue
				}
				kernels[fmt.Sprintf("%s_%v_%v_%s", o.Name(), d, out[0], variant)] = p.Stages[0].Kernel
			}
		}
	}
}

// compute runs a program of one expression over n elements in the checking interpreter, and returns
// the results.
func compute(t *testing.T, x *ir.Node, n int, out op.DType, buffers ...[]byte) []byte {
	t.Helper()
	r := &portable.Request{Post: &portable.Epilogue{Exprs: []*ir.Node{x}}, Out: []portable.Array{{Type: out, Shape: op.Shape{n}}}, Target: portable.Target{F16: true}}
	for range buffers {
		r.Post.In = append(r.Post.In, portable.Operand{Type: op.F32, N: n})
	}
	p, err := portable.For(r)
	if err != nil {
		t.Fatal(err)
	}
	s := &p.Stages[0]
	program, err := s.Kernel.Program()
	if err != nil {
		t.Fatal(err)
	}
	k, err := interp.Compile(program, interp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	y := optest.Poisoned(int64(n * out.Size()))
	found, err := k.Check(context.Background(), interp.Launch{Grid: s.Grid, Buffers: append(buffers, y), Params: s.Params}, interp.Checks{})
	for _, f := range found {
		t.Error(f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// TestRounding checks that half floats are rounded to nearest even, and that NaN is kept.
func TestRounding(t *testing.T) {
	const n = 4096
	rng := testutil.Rand(t)
	x := optest.Poisoned(4 * n)
	for i := range n {
		bits := rng.Uint32()
		if i%3 == 0 {
			bits = 0x3f800000 + bits&0xfffff
		}
		op.F32.PutFloat64(x, i, float64(math.Float32frombits(bits)))
	}
	for i, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), math.MaxFloat32, 65519, 65520} {
		op.F32.PutFloat64(x, i, v)
	}
	y := compute(t, ir.NewArg(0, ir.F32), n, op.F16, x)
	for i := range n {
		v := op.F32.Float64(x, i)
		got, want := op.F16.Float64(y, i), op.F16.Round(v)
		if got != want && !(got != got && want != want) || math.Signbit(got) != math.Signbit(want) && got == got {
			t.Fatalf("%v is %v, not %v", v, got, want)
		}
	}
}

// TestRoundingExpansions rounds every number of a type of 16 bits, and the midpoints of neighbours
// with the numbers next to them.
func TestRoundingExpansions(t *testing.T) {
	for code, half := range map[ir.Code]op.DType{ir.RoundF16: op.F16, ir.RoundBF16: op.BF16} {
		value := func(bits uint16) float32 {
			if half == op.F16 {
				return op.F16ToFloat32(bits)
			}
			return op.BF16ToFloat32(bits)
		}
		var x []byte
		put := func(bits uint32) { x = binary.NativeEndian.AppendUint32(x, bits) }
		for h := range uint32(1 << 16) {
			low, high := math.Float32bits(value(uint16(h))), math.Float32bits(value(uint16(h+1)))
			middle := low/2 + high/2 + low&high&1
			put(low)
			put(middle - 1)
			put(middle)
			put(middle + 1)
		}
		n := len(x) / 4
		y := compute(t, expansion(code, &Target{}), n, op.F32, x)
		for i := range n {
			v := op.F32.Float64(x, i)
			got, want := op.F32.Float64(y, i), half.Round(v)
			if got != want && !(got != got && want != want) || math.Signbit(got) != math.Signbit(want) && got == got {
				t.Fatalf("%v of %v is %v, not %v", code, v, got, want)
			}
		}
	}
}

// TestExpansions runs the functions that are added to texts, without rounding by the addition of a
// large number, and compares with the reference: for devices whose fma rounds once, and for others.
func TestExpansions(t *testing.T) {
	// Units in the last place: the errors that Lower states, plus one more rounding if an integer
	// is chosen differently.
	bounds := map[ir.Code]float64{ir.Exp: 1, ir.Exp2: 1, ir.Expm1: 1.5, ir.Log: 1.5, ir.Log2: 2, ir.Log1p: 1.5, ir.Tanh: 2, ir.Sigmoid: 2.5,
		ir.Erf: 2.5, ir.Erfc: 8, ir.NormCDF: 8, ir.Sin: 2, ir.Cos: 2, ir.Atan: 2, ir.Pow: 1.5, ir.CopySign: 0.5, ir.Ldexp: 0.5,
		ir.RoundF16: 0.5, ir.RoundBF16: 0.5}
	unfused := maps.Clone(bounds)
	unfused[ir.Exp2], unfused[ir.Expm1] = 1.1, 1.7
	rng := testutil.Rand(t)
	for _, c := range composedCodes() {
		if _, ok := bounds[c]; !ok {
			t.Errorf("no bound for %v", c)
			continue
		}
		testExpansion(t, rng, c, expansion(c, &Target{}), bounds[c])
		testExpansion(t, rng, c, splitFma(expansion(c, &Target{Unfused: true})), unfused[c])
	}
}

// testExpansion computes an expansion x of code c, whose results may be off by bound units in the last place.
func testExpansion(t *testing.T, rng *rand.Rand, c ir.Code, x *ir.Node, bound float64) {
	t.Helper()
	list, _ := ir.Flatten(x)
	for _, n := range list {
		if n.Code == ir.Const && n.Type == ir.F32 && n.Value == ir.ExpansionConstants().Magic {
			t.Errorf("%v adds %v", c, n.Value)
		}
	}
	const n = 1 << 14
	var buffers [][]byte
	for range c.Arity() {
		buffers = append(buffers, optest.Poisoned(4*n))
	}
	for i := range n {
		for k, b := range buffers {
			op.F32.PutFloat64(b, i, argument(rng, c, k, i))
		}
	}
	y := compute(t, x, n, op.F32, buffers...)
	in := []*ir.Node{ir.NewArg(0, ir.F32), ir.NewArg(1, ir.F32)}[:c.Arity()]
	reference, err := ir.New(c, in...)
	if err != nil {
		t.Fatal(err)
	}
	e, args := ir.NewEvaluator(reference), make([]float64, c.Arity())
	for i := range n {
		for k := range args {
			args[k] = op.F32.Float64(buffers[k], i)
		}
		got, want := op.F32.Float64(y, i), e.Eval(args, nil)
		tol := op.Tolerance{ULP: bound}
		if err := tol.Check(got, want, 0, op.F32); err != nil {
			t.Fatalf("%v of %v: %v", c, args, err)
		}
	}
}

// splitFma replaces each Fma by the arithmetic of the function fma_split.
func splitFma(n *ir.Node) *ir.Node {
	node := func(c ir.Code, typ ir.Type, args ...*ir.Node) *ir.Node {
		n := &ir.Node{Code: c, Type: typ}
		copy(n.Args[:], args)
		return n
	}
	bits := func(x *ir.Node, mask float64) *ir.Node {
		return node(ir.And, ir.U32, node(ir.Bitcast, ir.U32, x), ir.NewConst(mask, ir.U32))
	}
	high := func(x *ir.Node) *ir.Node { return node(ir.Bitcast, ir.F32, bits(x, 0xfffff000)) }
	add := func(x, y *ir.Node) *ir.Node { return node(ir.Add, ir.F32, x, y) }
	sub := func(x, y *ir.Node) *ir.Node { return node(ir.Sub, ir.F32, x, y) }
	mul := func(x, y *ir.Node) *ir.Node { return node(ir.Mul, ir.F32, x, y) }
	return ir.Map(n, func(n *ir.Node) *ir.Node {
		if n.Code != ir.Fma {
			return n
		}
		x, y, z := n.Args[0], n.Args[1], n.Args[2]
		xh, yh := high(x), high(y)
		xl, yl := sub(x, xh), sub(y, yh)
		p := mul(x, y)
		rest := add(add(add(sub(mul(xh, yh), p), mul(xh, yl)), mul(xl, yh)), mul(xl, yl))
		s := add(p, z)
		b := sub(s, p)
		lost := add(sub(p, sub(s, b)), sub(z, b))
		exact := add(s, add(lost, rest))
		finite := node(ir.Lt, ir.Bool, bits(exact, 0x7fffffff), ir.NewConst(0x7f800000, ir.U32))
		return node(ir.Select, ir.F32, finite, exact, s)
	})
}

// argument returns operand k of case i for a code: special values first.
func argument(rng *rand.Rand, c ir.Code, k, i int) float64 {
	special := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 0.5, 2, 1e-30, -1e-30, 88, -88, 100, -100, 1e30}
	if c == ir.Ldexp && k == 1 {
		return float64(i%601 - 300)
	}
	if (c == ir.Sin || c == ir.Cos) && i >= 12 {
		return float64(float32((rng.Float64()*2 - 1) * 1000))
	}
	if i < 16*16 {
		if k == 1 {
			i /= 16
		}
		return float64(float32(special[i%16]))
	}
	switch i % 3 {
	case 0:
		return float64(float32(rng.NormFloat64()))
	case 1:
		return float64(float32(rng.NormFloat64() * 30))
	}
	return float64(float32(math.Ldexp(rng.NormFloat64(), rng.IntN(60)-30)))
}
