package op

import (
	"errors"
	"math"
	"testing"
)

// TestOptionsSurviveAttrs checks that reading the Attrs of an option struct returns the same options.
func TestOptionsSurviveAttrs(t *testing.T) {
	check := func(what string, got, want any) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	for _, o := range []MatMulOpts{{}, {TransA: true}, {TF32: true}, {TransB: true, Act: Relu}, {Act: LeakyRelu, ActParams: Floats(0.3)}, {Act: Clip, ActParams: Floats(-1, 1)}} {
		a := o.Attrs()
		check("matmul", MatMulOptsOf(&a), o)
	}
	for _, o := range []MatMulQOpts{{}, {Int8: true}, {Int8: true, Act: Relu}, {Act: LeakyRelu, ActParams: Floats(0.3)}} {
		a := o.Attrs()
		check("matmul_q", MatMulQOptsOf(&a), o)
	}
	for _, o := range []MatMulExpertsOpts{{}, {Int8: true}} {
		a := o.Attrs()
		check("matmul_experts", MatMulExpertsOptsOf(&a), o)
	}
	a := MatMulOpts{Act: LeakyRelu}.Attrs()
	check("the activation's default", MatMulOptsOf(&a).ActParams, LeakyRelu.Defaults())

	for _, o := range []Conv2DOpts{
		{Stride: [2]int{1, 2}, Pad: [2]int{3, 4}, Dilation: [2]int{5, 6}, Groups: 7},
		{Stride: [2]int{2, 1}, Dilation: [2]int{1, 1}, Groups: 1, Act: Gelu},
	} {
		a := o.Attrs()
		check("conv2d", Conv2DOptsOf(&a), o)
	}
	ones := Conv2DOpts{Stride: [2]int{1, 1}, Dilation: [2]int{1, 1}, Groups: 1}
	check("conv2d of nothing", Conv2DOptsOf(new(Attrs)), ones)
	check("conv2d of zeros", Conv2DOpts{}.Attrs(), ones.Attrs())

	for _, o := range []AttentionOpts{{}, {Causal: true, Scale: 0.5}, {Scale: Zero}} {
		a := o.Attrs()
		check("attention", AttentionOptsOf(&a), o)
	}
	for _, o := range []RopeOpts{{Theta: 10000}, {Start: -4, Theta: 3, Interleaved: true}} {
		a := o.Attrs()
		check("rope", RopeOptsOf(&a), o)
	}
	check("rope of nothing", RopeOptsOf(new(Attrs)), RopeOpts{Theta: 10000})
	for _, o := range []VarOpts{{}, {DDOF: 1}} {
		a := o.Attrs().Rows()
		check("var", VarOptsOf(&a), o)
		check("rows", a.I[0], AlongRows)
	}
	a = NormOpts{}.Attrs()
	check("norm", NormOptsOf(&a), NormOpts{Eps: 1e-5})
	a = TopKOpts{K: 5}.Attrs()
	check("topk", TopKOptsOf(&a), TopKOpts{K: 5})
	a = SortOpts{Descending: true}.Attrs()
	check("sort", SortOptsOf(&a), SortOpts{Descending: true})
	a = MatVecOpts{Trans: true}.Attrs()
	check("matvec", MatVecOptsOf(&a), MatVecOpts{Trans: true})
}

// TestZero checks that op.Zero is the number 0 and not the default, also in options of an activation.
func TestZero(t *testing.T) {
	for name, c := range map[string]struct {
		o *Operation
		a Attrs
	}{
		"slope": {LeakyRelu, LeakyReluOpts{Slope: Zero}.Attrs()}, "alpha": {Elu, EluOpts{Alpha: Zero}.Attrs()},
	} {
		x := &Array{Shape: Shape{1, 2}, Data: []float64{-3, 5}}
		y, err := c.o.Reference(&c.a, []*Array{x}, []DType{F32})
		if err != nil || y[0].Data[0] != 0 || y[0].Data[1] != 5 {
			t.Errorf("%s 0: %v, %v", name, y, err)
		}
		a := MatMulOpts{Act: c.o, ActParams: c.a}.Attrs()
		one := &Array{Shape: Shape{1, 1}, Data: []float64{1}}
		y, err = MatMul.Reference(&a, []*Array{one, x}, []DType{F32, F32})
		if err != nil || y[0].Data[0] != 0 || y[0].Data[1] != 5 {
			t.Errorf("activation of %s 0: %v, %v", name, y, err)
		}
	}
	norm, rope, attention := NormOpts{Eps: Zero}.Attrs(), RopeOpts{Theta: Zero}.Attrs(), AttentionOpts{Scale: Zero}.Attrs()
	if eps := NormOptsOf(&norm).Eps; eps != 0 {
		t.Errorf("eps %v", eps)
	}
	if theta := RopeOptsOf(&rope).Theta; theta != 0 {
		t.Errorf("theta %v", theta)
	}
	s, err := AttentionOf(&attention, []Shape{{1, 2, 4}, {1, 2, 4}, {1, 2, 4}})
	if err != nil || s.Scale != 0 {
		t.Errorf("scale %v, %v", s.Scale, err)
	}
}

// TestOneOptionStruct checks that operations report an error for several option structs.
func TestOneOptionStruct(t *testing.T) {
	if a := AttrsOf[EluOpts](nil); a != (EluOpts{}).Attrs() || a.Err() != nil {
		t.Errorf("none: %v, %v", a, a.Err())
	}
	if a := AttrsOf([]EluOpts{{Alpha: 2}}); a != (EluOpts{Alpha: 2}).Attrs() || a.Err() != nil {
		t.Errorf("one: %v, %v", a, a.Err())
	}
	a := AttrsOf([]EluOpts{{Alpha: 2}, {Alpha: 2}})
	if _, err := Elu.Types(&a, []DType{F32}); !errors.Is(err, ErrShape) || !errors.Is(a.Err(), ErrShape) {
		t.Errorf("two: %v", err)
	}
	if _, err := OptionOf([]EluOpts{{}, {}}); !errors.Is(err, ErrShape) {
		t.Errorf("two: %v", err)
	}
}

// TestAttrsCompare checks that Attrs of equal parameters are equal, also for NaN and -0.
func TestAttrsCompare(t *testing.T) {
	nan := float32(math.NaN())
	if a, b := Floats(nan), Floats(nan); a != b {
		t.Error("NaN differs from itself")
	}
	if Floats(float32(math.Copysign(0, -1))) == Floats(0) {
		t.Error("-0 equals 0")
	}
}
