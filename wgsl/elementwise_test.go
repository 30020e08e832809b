package wgsl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/interp"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

func expression(o *op.Operation, types ...op.DType) (*ir.Node, error) {
	a := o.Defaults()
	return o.Expression(&a, types)
}

// chain is gelu of a sum with a bias, times a parameter.
func chain() *Elementwise {
	gelu, err := expression(op.Gelu, op.F32)
	if err != nil {
		panic(err)
	}
	sum, _ := ir.New(ir.Add, ir.NewArg(0, ir.F32), ir.NewArg(1, ir.F32))
	gelu = ir.Substitute(gelu, []*ir.Node{sum}, nil)
	scaled, _ := ir.New(ir.Mul, gelu, ir.NewParam(0))
	return &Elementwise{
		Name: "bias_gelu_scale", Exprs: []*ir.Node{scaled}, Vector: true,
		In:  []Operand{{Type: op.F32}, {Type: op.F32, Spread: op.Periodic, Even: true}},
		Out: []op.DType{op.F32},
	}
}

// TestCatalogue has every elementwise operation printed for every type that it
// takes and every target, and judged.
func TestCatalogue(t *testing.T) {
	found := 0
	for name, target := range targets {
		t.Run(name, func(t *testing.T) {
			texts := make(map[string]string)
			for _, o := range op.Catalogue() {
				if o.Class() != op.Elementwise {
					continue
				}
				for _, e := range kernelsOf(t, o) {
					s, err := e.Print(target)
					if err != nil {
						t.Errorf("%s: %v", e.Name, err)
						continue
					}
					texts[e.Name] = s.Text
				}
			}
			found += len(texts)
			testutil.Judge(t, compiler(target.Consumer), texts)
		})
	}
	if found < 100*len(targets) {
		t.Errorf("%d texts for %d targets", found, len(targets))
	}
}

// kernelsOf returns kernels that compute the operation, for each type that it
// takes.
func kernelsOf(t testing.TB, o *op.Operation) []*Elementwise {
	var kernels []*Elementwise
	types := []op.DType{op.F32, op.F16, op.BF16, op.I32, op.U32, op.Bool}
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
			x, err := o.Expression(&attrs[i], in)
			if err != nil {
				t.Errorf("%v of %v: %v", o, d, err)
				continue
			}
			e := &Elementwise{Name: fmt.Sprintf("%s_%v_%v", o.Name(), d, out[0]), Exprs: []*ir.Node{x}, Out: out[:1], Vector: true}
			for k, d := range in {
				// Every spread occurs.
				e.In = append(e.In, Operand{Type: d, Spread: op.Spread((k + int(d)) % 4), Even: (k+i)%2 == 0})
			}
			kernels = append(kernels, e)
			if out[0].Size() != 2 {
				single := *e
				single.Name += "_single"
				single.Vector = false
				kernels = append(kernels, &single)
			}
		}
	}
	if len(kernels) == 0 {
		t.Errorf("no kernel of %v", o)
	}
	return kernels
}

// array is memory for n elements, with room for a multiple of four, that is NaN
// or absurd where nothing was written.
func array4(d op.DType, n int) []byte {
	b := make([]byte, (n+3)/4*4*d.Size())
	for i := range b {
		b[i] = 0xfe
	}
	return b
}

// launch runs an elementwise kernel in the checking interpreter.
func launch(t *testing.T, e *Elementwise, target Target, n int, extents []int, params []float32, buffers [][]byte) {
	t.Helper()
	p, err := e.Program(target)
	if err != nil {
		t.Fatal(err)
	}
	k, err := interp.Compile(p, interp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	block, err := e.AppendParams(nil, n, extents, params)
	if err != nil {
		t.Fatal(err)
	}
	grid := e.Grid(n)
	if grid.Err() != nil {
		t.Fatal(grid.Err())
	}
	found, err := k.Check(context.Background(), interp.Launch{Grid: grid.Groups(), Buffers: buffers, Params: block}, interp.Checks{})
	for _, f := range found {
		t.Errorf("%s: %v", e.Name, f)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestElementwise runs kernels on operands of every type and spread and compares
// with the sum that they compute.
func TestElementwise(t *testing.T) {
	rng := rand.New(rand.NewPCG(rand.Uint64(), 1))
	types := []op.DType{op.F32, op.F16, op.BF16, op.I32, op.U32, op.Bool}
	seen := make(map[Operand]bool)
	for trial := range 400 {
		rows, cols := 1+rng.IntN(9), 1+rng.IntN(40)
		if trial%2 == 0 {
			cols = (cols + 3) / 4 * 4
		}
		if trial == 1 {
			rows, cols = 3, 1001
		}
		n := rows * cols
		target := Target{}
		if trial%3 == 0 {
			target.Features = Half
		}
		e := &Elementwise{Name: "sum", Vector: trial%5 != 0}
		out := types[rng.IntN(len(types))]
		if !e.Vector && out.Size() == 2 {
			out = op.F32
		}
		var sum *ir.Node
		var extents []int
		var buffers [][]byte
		var lens []int
		for i := range 1 + rng.IntN(4) {
			o := Operand{Type: types[rng.IntN(len(types))], Spread: op.Spread(rng.IntN(4))}
			size := map[op.Spread]int{op.Full: n, op.Scalar: 1, op.Periodic: cols, op.Stretched: rows}[o.Spread]
			o.Even = o.extended() && cols%4 == 0
			if o.extended() {
				extents = append(extents, cols)
			}
			seen[o] = true
			// Exactly as many elements as there are where the kernel does not read
			// by four: what is beyond is a finding.
			b := array4(o.Type, size)
			if !e.Vector || o.Spread == op.Scalar || o.extended() && !(o.Spread == op.Periodic && o.Even) {
				b = b[:(size*o.Type.Size()+3)/4*4]
			}
			values := 8
			if o.Type == op.Bool {
				values = 2
			}
			for k := range size {
				o.Type.PutFloat64(b, k, float64(rng.IntN(values)))
			}
			e.In, buffers, lens = append(e.In, o), append(buffers, b), append(lens, size)
			x := ir.NewConvert(ir.NewArg(i, op.Register(o.Type)), ir.F32)
			if sum == nil {
				sum = x
			} else {
				sum, _ = ir.New(ir.Add, sum, x)
			}
		}
		sum, _ = ir.New(ir.Add, sum, ir.NewParam(0))
		e.Exprs, e.Out = []*ir.Node{ir.NewConvert(sum, op.Register(out))}, []op.DType{out}
		result := array4(out, n)
		buffers = append(buffers, result)
		launch(t, e, target, n, extents, []float32{3}, buffers)
		for k := range n {
			want := 3.0
			for i, o := range e.In {
				at := map[op.Spread]int{op.Full: k, op.Scalar: 0, op.Periodic: k % cols, op.Stretched: k / cols}[o.Spread]
				want += o.Type.Float64(buffers[i], at)
			}
			if out == op.Bool {
				want = 1
			}
			if got := out.Float64(result, k); got != want {
				t.Fatalf("%+v of %d×%d: element %d is %v, not %v (lengths %v)", e, rows, cols, k, got, want, lens)
			}
		}
	}
	if len(seen) < 30 {
		t.Errorf("%d operands seen", len(seen))
	}
}

// TestRounding has results of two bytes rounded to nearest even, and NaN kept.
func TestRounding(t *testing.T) {
	const n = 4096
	for _, d := range []op.DType{op.F16, op.BF16} {
		for _, features := range []Feature{0, Half} {
			x, y := array4(op.F32, n), array4(d, n)
			for i := range n {
				bits := rand.Uint32()
				if i%3 == 0 {
					bits = 0x3f800000 + bits&0xfffff
				}
				op.F32.PutFloat64(x, i, float64(math.Float32frombits(bits)))
			}
			for i, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), math.MaxFloat32, 65519, 65520} {
				op.F32.PutFloat64(x, i, v)
			}
			e := &Elementwise{Name: "round", Exprs: []*ir.Node{ir.NewArg(0, ir.F32)}, In: []Operand{{Type: op.F32}}, Out: []op.DType{d}, Vector: true}
			launch(t, e, Target{Features: features}, n, nil, nil, [][]byte{x, y})
			for i := range n {
				v := op.F32.Float64(x, i)
				got, want := d.Float64(y, i), d.Round(v)
				if got != want && !(got != got && want != want) || math.Signbit(got) != math.Signbit(want) && got == got {
					t.Fatalf("%v of %v is %v, not %v", d, v, got, want)
				}
			}
		}
	}
}

// TestExpansions runs the functions that texts bring with them, without the
// trick of adding a large number, and compares with the reference.
func TestExpansions(t *testing.T) {
	// Units in the last place: those that Lower promises, and a rounding more
	// where an integer is chosen differently.
	bounds := map[ir.Code]float64{ir.Exp: 1, ir.Exp2: 1, ir.Expm1: 1.5, ir.Log: 1.5, ir.Log2: 2, ir.Log1p: 1.5, ir.Tanh: 2, ir.Sigmoid: 2.5,
		ir.Erf: 2.5, ir.Erfc: 8, ir.NormCDF: 8, ir.Sin: 2, ir.Cos: 2, ir.Pow: 1.5, ir.CopySign: 0.5, ir.Ldexp: 0.5}
	for _, c := range composedCodes() {
		bound, ok := bounds[c]
		if !ok {
			t.Errorf("no bound for %v", c)
			continue
		}
		x := expansion(c)
		list, _ := ir.Flatten(x)
		for _, n := range list {
			if n.Code == ir.Const && n.Type == ir.F32 && n.Value == ir.ExpansionConstants().Magic {
				t.Errorf("%v adds %v", c, n.Value)
			}
		}
		const n = 1 << 14
		e := &Elementwise{Name: c.String(), Exprs: []*ir.Node{x}, Out: []op.DType{op.F32}, Vector: true}
		var buffers [][]byte
		for range c.Arity() {
			e.In = append(e.In, Operand{Type: op.F32})
			buffers = append(buffers, array4(op.F32, n))
		}
		for i := range n {
			for k, b := range buffers {
				op.F32.PutFloat64(b, i, argument(c, k, i))
			}
		}
		y := array4(op.F32, n)
		launch(t, e, Target{}, n, nil, nil, append(buffers, y))
		for i := range n {
			args := make([]float64, c.Arity())
			in := make([]*ir.Node, len(args))
			for k := range args {
				args[k] = op.F32.Float64(buffers[k], i)
				in[k] = ir.NewArg(k, ir.F32)
			}
			ref, err := ir.New(c, in...)
			if err != nil {
				t.Fatal(err)
			}
			got, want := op.F32.Float64(y, i), ir.NewEvaluator(ref).Eval(args, nil)
			tol := op.Tolerance{ULP: bound}
			if err := tol.Check(got, want, 0, op.F32); err != nil {
				t.Fatalf("%v of %v: %v", c, args, err)
			}
		}
	}
}

// argument returns operand k of case i for a code: special values first.
func argument(c ir.Code, k, i int) float64 {
	special := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 0.5, 2, 1e-30, -1e-30, 88, -88, 100, -100, 1e30}
	if c == ir.Ldexp && k == 1 {
		return float64(i%601 - 300)
	}
	if (c == ir.Sin || c == ir.Cos) && i >= 12 {
		return float64(float32((rand.Float64()*2 - 1) * 1000))
	}
	if i < 16*16 {
		if k == 1 {
			i /= 16
		}
		return float64(float32(special[i%16]))
	}
	switch i % 3 {
	case 0:
		return float64(float32(rand.NormFloat64()))
	case 1:
		return float64(float32(rand.NormFloat64() * 30))
	}
	return float64(float32(math.Ldexp(rand.NormFloat64(), rand.IntN(60)-30)))
}

// TestElementwiseErrors has kernels refused that make no sense.
func TestElementwiseErrors(t *testing.T) {
	for name, edit := range map[string]func(e *Elementwise){
		"no expression":    func(e *Elementwise) { e.Exprs, e.Out = nil, nil },
		"nil expression":   func(e *Elementwise) { e.Exprs[0] = nil },
		"results":          func(e *Elementwise) { e.Out = append(e.Out, op.F32) },
		"result type":      func(e *Elementwise) { e.Out[0] = op.I32 },
		"operand type":     func(e *Elementwise) { e.In[0].Type = op.InvalidType },
		"operand of i32":   func(e *Elementwise) { e.In[0].Type = op.I32 },
		"operands":         func(e *Elementwise) { e.In = e.In[:1] },
		"spread":           func(e *Elementwise) { e.In[0].Spread = 9 },
		"bytes one by one": func(e *Elementwise) { e.Out[0], e.Vector = op.BF16, false },
	} {
		e := chain()
		edit(e)
		if s, err := e.Print(Target{}); err == nil || s.Text != "" {
			t.Errorf("%s is accepted", name)
		}
	}
	e := chain()
	for i := range 9 {
		e.In = append(e.In, Operand{Type: op.F32})
		e.Exprs[0], _ = ir.New(ir.Add, e.Exprs[0], ir.NewArg(i+2, ir.F32))
	}
	if _, err := e.Print(Target{}); !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("too many buffers: %v", err)
	}
	e = chain()
	if _, err := e.AppendParams(nil, 4, []int{4}, nil); err == nil {
		t.Error("a parameter less is accepted")
	}
	if _, err := e.AppendParams(nil, 4, []int{0}, []float32{1}); err == nil {
		t.Error("an extent of 0 is accepted")
	}
	if e.Grid(0).Err() == nil || e.Grid(-4).Err() == nil {
		t.Error("a grid of nothing is accepted")
	}
}
