package kernel_test

import (
	"math"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// TestApply computes every elementwise operation of numbers in a kernel, on
// scalars and on vectors, and compares with its expression in float64.
func TestApply(t *testing.T) {
	r := testutil.Rand(t)
	tested := 0
	for _, o := range op.Catalogue() {
		low, _ := o.Arity()
		types := make([]op.DType, low)
		for i := range types {
			types[i] = op.F32
		}
		a := o.Defaults()
		root, err := irhook.Expression(o, &a, types)
		if err != nil || root.Type != ir.F32 {
			continue
		}
		tested++
		const lanes, width = 16, 4
		k := kernel.New("apply", func(b *kernel.Builder, _ *struct{}) {
			b.LocalSize(lanes, 1, 1)
			x := kernel.Input[kernel.F32](b, "x")
			scalar, vector := kernel.Output[kernel.F32](b, "scalar"), kernel.Output[kernel.F32](b, "vector")
			at := func(operand int, i kernel.U32) kernel.F32 {
				return x.At(i.Add(kernel.N(operand * lanes * width)))
			}
			first := b.Lane().Mul(kernel.U(width))
			var vs []kernel.Vec4F
			for j := range low {
				var c [width]kernel.F32
				for i := range c {
					c[i] = at(j, first.Add(kernel.N(i)))
				}
				vs = append(vs, b.Vec4F(c[0], c[1], c[2], c[3]))
			}
			v := kernel.Apply(b, o, nil, vs...)
			for i := range width {
				var xs []kernel.F32
				for j := range low {
					xs = append(xs, at(j, first.Add(kernel.N(i))))
				}
				scalar.Set(first.Add(kernel.N(i)), kernel.Apply(b, o, &a, xs...))
				vector.Set(first.Add(kernel.N(i)), v.At(i))
			}
		})
		p, err := k.Program()
		if err != nil {
			t.Errorf("%v: %v", o, err)
			continue
		}
		n := lanes * width
		x, scalar, vector := make([]uint32, low*n), make([]uint32, n), make([]uint32, n)
		for i := range x {
			x[i] = math.Float32bits(float32(r.NormFloat64()))
		}
		for i := range scalar {
			scalar[i], vector[i] = 0x7fc00001, 0x7fc00001
		}
		execute(t, ir.ExpandMath(p, nil), x, scalar, vector)
		e := ir.NewEvaluator(root)
		var params []float64
		for i := range a.F {
			params = append(params, float64(a.Float(i)))
		}
		for i := range scalar {
			args, size := make([]float64, low), 0.0
			for j := range args {
				args[j] = float64(math.Float32frombits(x[j*n+i]))
				size += math.Abs(args[j])
			}
			want := e.Eval(args, params)
			got := float64(math.Float32frombits(scalar[i]))
			bound := 64 * 0x1p-23 * (math.Abs(want) + size + 1)
			if !(math.Abs(got-want) <= bound || got != got && want != want || float64(float32(want)) == got) {
				t.Errorf("%v%v = %v, want %v", o, args, got, want)
			}
			if scalar[i] != vector[i] && got == got {
				t.Errorf("%v%v = %#x as a vector, %#x alone", o, args, vector[i], scalar[i])
			}
		}
	}
	if tested < 30 {
		t.Errorf("only %d operations", tested)
	}
}

// TestInlineOfOtherTypes computes an expression with a condition, an integer
// and a parameter, and a constant.
func TestInlineOfOtherTypes(t *testing.T) {
	cond, err := ir.New(ir.Lt, ir.NewArg(0, ir.I32), ir.NewArg(1, ir.I32))
	if err != nil {
		t.Fatal(err)
	}
	sel, err := ir.New(ir.Select, cond, ir.NewParam(0), ir.NewConst(2.5, ir.F32))
	if err != nil {
		t.Fatal(err)
	}
	k := kernel.New("inline", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(1, 1, 1)
		x, y := kernel.Input[kernel.I32](b, "x"), kernel.Output[kernel.F32](b, "y")
		args := []kernel.Dynamic{kernel.Dyn(x.At(kernel.U(0))), kernel.Dyn(x.At(kernel.U(1)))}
		out := inline(b, []*ir.Node{sel, cond, ir.NewConst(7, ir.F32), sel}, args, []kernel.F32{kernel.F(0.5)})
		y.Set(kernel.U(0), kernel.As[kernel.F32](b, out[0]))
		y.Set(kernel.U(1), kernel.As[kernel.Bool](b, out[1]).F32())
		y.Set(kernel.U(2), kernel.As[kernel.F32](b, out[2]))
		y.Set(kernel.U(3), kernel.As[kernel.F32](b, out[3]))
	})
	p, err := k.Program()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		x    []uint32
		want [4]float32
	}{
		{[]uint32{1, 2}, [4]float32{0.5, 1, 7, 0.5}},
		{[]uint32{2, 0xffffffff}, [4]float32{2.5, 0, 7, 2.5}},
	} {
		y := make([]uint32, 4)
		execute(t, p, c.x, y)
		for i, w := range c.want {
			if math.Float32frombits(y[i]) != w {
				t.Errorf("%v: result %d is %v, want %v", c.x, i, math.Float32frombits(y[i]), w)
			}
		}
	}
}

// TestInlineMistakes checks that missing operands and operands of another type are mistakes.
func TestInlineMistakes(t *testing.T) {
	x := kernel.Dyn(kernel.F(1))
	for name, f := range map[string]func(b *kernel.Builder){
		"missing operand":   func(b *kernel.Builder) { inline(b, []*ir.Node{ir.NewArg(1, ir.F32)}, []kernel.Dynamic{x}, nil) },
		"missing parameter": func(b *kernel.Builder) { inline(b, []*ir.Node{ir.NewParam(0)}, nil, nil) },
		"negative operand":  func(b *kernel.Builder) { inline(b, []*ir.Node{ir.NewArg(-1, ir.F32)}, []kernel.Dynamic{x}, nil) },
		"other type":        func(b *kernel.Builder) { inline(b, []*ir.Node{ir.NewArg(0, ir.U32)}, []kernel.Dynamic{x}, nil) },
		"other widths": func(b *kernel.Builder) {
			inline(b, []*ir.Node{ir.NewArg(0, ir.F32)}, []kernel.Dynamic{x, kernel.Dyn(kernel.Vec4F{})}, nil)
		},
		"nil":     func(b *kernel.Builder) { inline(b, []*ir.Node{nil}, nil, nil) },
		"invalid": func(b *kernel.Builder) { inline(b, []*ir.Node{{}}, nil, nil) },
		"zero dynamic": func(b *kernel.Builder) {
			inline(b, []*ir.Node{ir.NewArg(0, ir.F32)}, make([]kernel.Dynamic, 1), nil)
		},
		"broken operation": func(b *kernel.Builder) {
			kernel.Apply(b, op.Unary("broken", nil), nil, kernel.F(1))
		},
	} {
		k := kernel.New("wrong", func(b *kernel.Builder, _ *struct{}) { b.LocalSize(1, 1, 1); f(b) })
		if k.Err() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// inline computes expressions as the packages of this module do.
func inline(b *kernel.Builder, roots []*ir.Node, args []kernel.Dynamic, params []kernel.F32) []kernel.Dynamic {
	return irhook.Inline(b, roots, args, params, math.NaN()).([]kernel.Dynamic)
}
