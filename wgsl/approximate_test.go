package wgsl

import (
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestApproximateTexts evaluates the functions of targets with Approximate for numbers of all
// exponents. It simulates a device that flushes subnormal numbers and whose exp2 and quotients have
// random errors of up to two thirds of the allowed errors.
func TestApproximateTexts(t *testing.T) {
	rng := testutil.Rand(t)
	d := device{flushes: true, near: func(v, units float64) float64 {
		if frac, exp := math.Frexp(v); frac != 0.5 && v-v == 0 {
			return v + (2*rng.Float64()-1)*math.Ldexp(units, exp-24)
		}
		return v
	}}
	inf := math.Inf(1)
	all := routines(t, fnIsNaN, fnMin, fnMinWith, fnMax, fnMaxWith, fnClip)
	for _, c := range composedCodes() {
		if ir.ApproxUnits(c) == 0 {
			continue
		}
		for mode, k := range nearCompositions.of(c) {
			name := reductionName(c, mode)
			addRoutine(t, all, name, k.text[0])
			within, tol := ir.Anything(), op.Tolerance{ULP: ir.ApproxUnits(c)}
			if mode > 0 {
				r := ir.Narrows(c)[mode-1]
				within, tol.ULP = r.Operand, tol.ULP+r.More
			}
			n, err := ir.New(c, ir.NewArg(0, ir.F32))
			if err != nil {
				t.Fatal(err)
			}
			e := ir.NewEvaluator(n)
			in := []float64{0, math.Copysign(0, -1), 1, -1, inf, -inf, math.NaN(), math.MaxFloat32, -math.MaxFloat32, 88.72, 90, -87, -110, 14.5, -14.5}
			for exp := -126; exp <= 127; exp++ {
				for range 60 {
					v := math.Ldexp(1+rng.Float64(), exp)
					in = append(in, float64(float32(v)), float64(float32(-v)))
				}
			}
			for _, x := range in {
				x = float64(float32(x))
				if !within.Contains(x) || math.IsInf(x, 0) && mode > 0 {
					continue
				}
				got, want := float64(d.call(all, name, float32(x)).(float32)), e.Eval([]float64{x}, nil)
				if math.Abs(want) < 0x1p-126 && math.Abs(got) <= 0x1p-126 {
					continue
				}
				if err := tol.Check(got, want, 0, op.F32); err != nil {
					t.Errorf("%s(%v): %v", name, x, err)
				}
			}
		}
	}
}

// TestNarrow checks that separate functions are used for operands that are known to be small.
func TestNarrow(t *testing.T) {
	c := func(v float64) *ir.Node { return ir.NewConst(v, ir.F32) }
	of := func(c ir.Code, args ...*ir.Node) *ir.Node {
		n, err := ir.New(c, args...)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	x := ir.NewArg(0, ir.F32)
	clip := func(lo, hi float64) *ir.Node { return of(ir.Min, of(ir.Max, x, c(lo)), c(hi)) }
	for _, v := range []struct {
		root *ir.Node
		name string
	}{
		{of(ir.Exp, x), "exp_f"},
		{of(ir.Exp, clip(0, 1)), "exp_unit_f"},
		{of(ir.Exp, clip(-0.5, 1)), "exp_moderate_f"},
		{of(ir.Exp, clip(0, 2)), "exp_moderate_f"},
		{of(ir.Exp, clip(0, 21)), "exp_f"},
		{of(ir.Exp, of(ir.Min, x, c(2))), "exp_f"},
		{of(ir.Sigmoid, clip(-4, 4)), "sigmoid_moderate_f"},
		{of(ir.Sigmoid, clip(-40, 4)), "sigmoid_f"},
		{of(ir.Exp, of(ir.Sigmoid, x)), "exp_unit_f"},
		{of(ir.Exp, of(ir.Fma, of(ir.Tanh, x), c(0.25), c(0.5))), "exp_unit_f"},
		{of(ir.Tanh, clip(-0.5, 0.5)), "tanh_small_f"},
		{of(ir.Tanh, clip(-0.5, 0.7)), "tanh_f"},
		{of(ir.Sigmoid, of(ir.Abs, x)), "sigmoid_positive_f"},
		{of(ir.Sigmoid, of(ir.Neg, of(ir.Abs, x))), "sigmoid_f"},
		{of(ir.Exp, of(ir.Select, of(ir.Lt, x, c(3)), c(1), c(0.5))), "exp_unit_f"},
	} {
		for near, name := range map[bool]string{true: v.name, false: composedName(v.root.Code)} {
			for _, width := range []uint8{1, 4} {
				list, _ := ir.Flatten(v.root)
				p, _ := listing(list, width)
				p.Bindings = []ir.Binding{{Name: "out", Type: ir.F32, Width: width, Access: ir.WriteOnly}}
				last := ir.Value(len(p.Code) - 1)
				p.Code = append(p.Code, ir.Instr{Code: ir.Const, Type: ir.U32, Width: 1}, ir.Instr{Code: ir.Store, Args: [3]ir.Value{last + 1, last}})
				s, err := printProgram(p, Target{Limits: large, Approximate: near})
				if err != nil {
					t.Fatal(err)
				}
				if want := "fn " + name + widthSuffix[widthIndex(width)] + "("; !strings.Contains(s.Text, want) {
					t.Errorf("%s, near %v: no %s in\n%s", ir.Format(v.root, nil, nil), near, want, s.Text)
				}
			}
		}
	}
}
