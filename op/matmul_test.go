package op

import (
	"math"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestUnderflow sums subnormal products, each rounded before it is added. The sums must be within the
// tolerance of the exact sum, and some must exceed a tolerance that ignores underflow.
func TestUnderflow(t *testing.T) {
	const k = 64
	rng := testutil.Rand(t)
	array := func(data []float64, s ...int) *Array { return &Array{Shape: s, Data: data} }
	cell := func(s ...int) *Array { return array(make([]float64, 1), s...) }
	beyond := map[*Operation]int{}
	check := func(o *Operation, got float32, y *Array, lost float64) {
		if err := o.Check(float64(got), y.Data[0], y.Mag[0], F32); err != nil {
			t.Fatalf("%v: %v", o, err)
		}
		if o.Check(float64(got), y.Data[0], y.Mag[0]-lost, F32) != nil {
			beyond[o]++
		}
	}
	for range 1000 {
		x, y := make([]float64, k), make([]float64, k)
		sum, lost := float32(0), 0.0
		for i := range k {
			a, b := 0x1p-70*(1+rng.Float32()), 0x1p-72*(1+rng.Float32())
			x[i], y[i] = float64(a), float64(b)
			sum += float32(a * b) // the conversion rounds the product, so that no processor fuses it with the addition
			lost += underflow(x[i] * y[i])
		}
		dots := cell(1)
		dots.Mag = make([]float64, 1)
		dots.Data[0], dots.Mag[0] = reduceDot(nil, x, y)
		check(Dot, sum, dots, lost)
		for _, c := range []struct {
			o         *Operation
			reference func(a *Attrs, in, out []*Array)
			x, y, to  *Array
		}{
			{MatMul, matMulReference, array(x, 1, k), array(y, k, 1), cell(1, 1)},
			{MatMulQ, matMulQReference, array(x, 1, k), array(y, 1, k), cell(1, 1)},
			{Conv2D, conv2DReference, array(x, 1, k, 1, 1), array(y, 1, k, 1, 1), cell(1, 1, 1, 1)},
		} {
			attrs := c.o.Defaults()
			c.reference(&attrs, []*Array{c.x, c.y, nil}, []*Array{c.to})
			check(c.o, sum, c.to, lost)
		}

		// Attention multiplies values near the least number by weights between 0 and 1.
		keys, values := make([]float64, k), make([]float64, k)
		all := 0.0
		for i := range k {
			keys[i], values[i] = float64(rng.Float32()), float64(0x1p-140*(1+rng.Float32()))
			all += math.Exp(keys[i])
		}
		sum, lost = 0, 0
		for i := range k {
			weight := math.Exp(keys[i]) / all
			sum += float32(weight * values[i])
			lost += 2 * underflow(weight*values[i])
		}
		to, attrs := cell(1, 1, 1), Attention.Defaults()
		attentionReference(&attrs, []*Array{array([]float64{1}, 1, 1, 1), array(keys, 1, k, 1), array(values, 1, k, 1), nil}, []*Array{to})
		check(Attention, sum, to, lost)
	}
	for _, o := range []*Operation{Dot, MatMul, MatMulQ, Conv2D, Attention} {
		if beyond[o] == 0 {
			t.Errorf("%v: no sum needed the part of the tolerance for underflow", o)
		}
	}
}

// TestTF32Slack checks that rounding either factor of a product to either of the neighbouring TF32
// numbers changes the product by at most tf32Slack.
func TestTF32Slack(t *testing.T) {
	beside := func(x float32) [2]float64 {
		low := math.Float32bits(x) &^ (1<<13 - 1)
		return [2]float64{float64(math.Float32frombits(low)), float64(math.Float32frombits(low + 1<<13))}
	}
	rng := testutil.Rand(t)
	random := func() float32 {
		for {
			x := math.Float32frombits(rng.Uint32())
			if x-x == 0 {
				return x
			}
		}
	}
	for range 1 << 18 {
		x, y := random(), random()
		if rng.IntN(4) == 0 {
			x = math.Float32frombits(math.Float32bits(x) &^ (0xff << 23)) // subnormal
		}
		slack := tf32Slack(float64(x), float64(y)) * epsilon
		for _, a := range beside(x) {
			for _, b := range beside(y) {
				if d := math.Abs(a*b - float64(x)*float64(y)); !(d <= slack) {
					t.Fatalf("%g times %g: off by %g, %g allowed", x, y, d, slack)
				}
			}
		}
	}
	for _, x := range []float64{math.Inf(1), math.Inf(-1)} {
		if s := tf32Slack(x, 1) + tf32Slack(1, x); s != 0 {
			t.Errorf("tf32Slack of infinities is %g, want 0: TF32 does not change them", s)
		}
	}
	if s := tf32Slack(math.MaxFloat32, 1e-30); !math.IsInf(s, 1) {
		t.Errorf("tf32Slack of the largest number is %g, want +Inf: TF32 may round it to an infinity", s)
	}
	one := &Array{Shape: Shape{1, 1}, Data: []float64{1 + epsilon}}
	for _, tf32 := range []bool{false, true} {
		a, y := MatMulOpts{TF32: tf32}.Attrs(), &Array{Shape: Shape{1, 1}, Data: make([]float64, 1)}
		matMulReference(&a, []*Array{one, one, nil}, []*Array{y})
		if wide := y.Mag[0] > 100; wide != tf32 {
			t.Errorf("TF32 %v: magnitude %g", tf32, y.Mag[0])
		}
	}
}
