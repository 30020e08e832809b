package op

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestCheck(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	next := func(v float32, steps int32) float64 {
		return float64(math.Float32frombits(math.Float32bits(v) + uint32(steps)))
	}
	exact, two, sum := Tolerance{}, Tolerance{ULP: 2}, Tolerance{ULP: 1, Mag: 1}
	for _, c := range []struct {
		name      string
		tol       Tolerance
		d         DType
		got, want float64
		mag       float64
		ok        bool
	}{
		{"equal", exact, F32, 1, 1, 0, true},
		{"NaN", exact, F32, nan, nan, 0, true},
		{"NaN for a number", two, F32, nan, 1, 0, false},
		{"a number for NaN", two, F32, 1, nan, 0, false},
		{"NaN for infinity", two, F32, nan, inf, 0, false},
		{"infinity for NaN", two, F32, inf, nan, 0, false},
		{"zeros", exact, F32, math.Copysign(0, -1), 0, 0, true},
		{"wrong infinity", two, F32, -inf, inf, 0, false},
		{"finite for infinity", two, F32, math.MaxFloat32, inf, 0, false},
		{"infinity for finite", two, F32, inf, 1e30, 0, false},
		{"overflow", exact, F32, inf, 0x1p128, 0, true},
		{"overflow of the wrong sign", exact, F32, -inf, 0x1p128, 0, false},
		{"just below overflow", exact, F32, math.MaxFloat32, 0x1p128 - 0x1p103, 0, true},
		{"correctly rounded", exact, F32, 1, 1 + 0x1p-24, 0, true},
		{"not correctly rounded", exact, F32, 1, 1 + 0x1.2p-24, 0, false},
		{"two units", two, F32, next(3, 2), 3, 0, true},
		{"three units", two, F32, next(3, 3), 3, 0, false},
		{"subnormal, two units", two, F32, 3 * 0x1p-149, 0x1p-149, 0, true},
		{"subnormal, three units", two, F32, 4 * 0x1p-149, 0x1p-149, 0, false},
		{"flushed to zero", two, F32, 0, 0x1p-140, 0, false},
		{"sum within its magnitude", sum, F32, 1e-5, 0, 100, true},
		{"sum beyond its magnitude", sum, F32, 2e-5, 0, 100, false},
		{"undefined", sum, F32, nan, 3, inf, true},
		{"f16 rounded", exact, F16, 1, 1 + 0x1p-11, 0, true},
		{"f16 not rounded", exact, F16, 1, 1 + 0x1.1p-11, 0, false},
		{"f16 overflow", exact, F16, inf, 65520, 0, true},
		{"f16 no overflow", exact, F16, inf, 65500, 0, false},
		{"f16 overflow within a wide bound", sum, F16, inf, -1, 1e14, true},
		{"f16 overflow beyond the bound", sum, F16, inf, -1, 1e6, false},
		{"bf16 rounded", exact, BF16, 1, 1 + 0x1p-8, 0, true},
		{"bf16 not rounded", exact, BF16, 1, 1 + 0x1.1p-8, 0, false},
		{"integers", two, I32, 5, 5, 100, true},
		{"integers off by one", two, I32, 6, 5, 1e9, false},
	} {
		if err := c.tol.Check(c.got, c.want, c.mag, c.d); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestTolerancesTellRightFromWrong checks that sums in float32 in blocks are within the tolerances, and
// that sums with a missing term or by a formula that cancels are not.
func TestTolerancesTellRightFromWrong(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{3, 64, 1000, 3000} {
		x := make([]float64, n)
		for i := range x {
			x[i] = float64(float32(1 + rng.Float64()))
		}
		in := []*Array{{Shape: Shape{n}, Data: x}}
		blockedSum := func(f func(float32) float32) float64 {
			total := 0.0
			for i := 0; i < n; i += 1024 {
				s := float32(0)
				for _, v := range x[i:min(n, i+1024)] {
					s += f(float32(v))
				}
				total += float64(s)
			}
			return float64(float32(total))
		}
		check := func(o *Operation, got float64, ok bool, what string) {
			t.Helper()
			y, err := o.Reference(&Attrs{}, in, []DType{F32})
			if err != nil {
				t.Fatal(err)
			}
			if err := o.Check(got, y[0].Data[0], y[0].Mag[0], F32); (err == nil) != ok {
				t.Errorf("%s of %d, %s: %v", o, n, what, err)
			}
		}
		s := blockedSum(func(v float32) float32 { return v })
		check(Sum, s, true, "in blocks")
		check(Sum, s-x[n/2], false, "one element lost")
		mean := float32(s / float64(n))
		check(Mean, float64(mean), true, "in blocks")
		v := blockedSum(func(v float32) float32 { return (v - mean) * (v - mean) }) / float64(n)
		check(Var, float64(float32(v)), true, "in two passes")
		check(Var, v*1.001, false, "off by a thousandth")

		for i := range x {
			x[i] = float64(float32(x[i] + 4096))
		}
		s = blockedSum(func(v float32) float32 { return v })
		mean = float32(s / float64(n))
		v = blockedSum(func(v float32) float32 { return (v - mean) * (v - mean) }) / float64(n)
		check(Var, float64(float32(v)), true, "far from 0, in two passes")
		squares := blockedSum(func(v float32) float32 { return v * v })
		check(Var, float64(float32(squares)/float32(n)-mean*mean), false, "far from 0, by the squares")
	}
}

// TestActivationCarriesTheBound checks that a float32 product with an activation is within the tolerance,
// and that a product without the activation is not.
func TestActivationCarriesTheBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	const m, k, n = 3, 40, 5
	fill := func(s ...int) *Array {
		a := NewArray(s)
		for i := range a.Data {
			a.Data[i] = float64(float32(rng.NormFloat64()))
		}
		return a
	}
	in := []*Array{fill(m, k), fill(k, n), fill(n)}
	types := []DType{F32, F32, F32}
	for _, act := range []*Operation{nil, Relu, Gelu, Tanh, LeakyRelu, Scale} {
		o := MatMulOpts{Act: act}
		if act == Scale {
			o.ActParams = Floats(1000)
		}
		a := o.Attrs()
		y, err := MatMul.Reference(&a, in, types)
		if err != nil {
			t.Fatal(err)
		}
		wrong := 0
		for i, want := range y[0].Data {
			s := float32(0)
			for j := range k {
				s += float32(in[0].Data[i/n*k+j]) * float32(in[1].Data[j*n+i%n])
			}
			s += float32(in[2].Data[i%n])
			v := float64(s)
			if act != nil {
				_, attrs := a.Activation()
				r, err := act.Reference(&attrs, []*Array{{Shape: Shape{}, Data: []float64{v}}}, []DType{F32})
				if err != nil {
					t.Fatal(err)
				}
				v = float64(float32(r[0].Data[0]))
			}
			if err := MatMul.Check(v, want, y[0].Mag[i], F32); err != nil {
				t.Errorf("%v: %v", act, err)
			}
			if MatMul.Check(float64(s), want, y[0].Mag[i], F32) != nil {
				wrong++
			}
		}
		if act != nil && wrong < m*n/4 {
			t.Errorf("%v: only %d elements of the product without the activation are outside of the tolerance", act, wrong)
		}
	}
	for _, act := range []*Operation{Add, Sum, Cast, Clip.named("nothing"), Unary("broken", nil)} {
		a := MatMulOpts{Act: act}.Attrs()
		_, err := MatMul.Types(&a, []DType{F32, F32})
		if ok := act.Name() == "nothing"; (err == nil) != ok {
			t.Errorf("activation %s: %v", act, err)
		}
	}
}

// named returns a copy under another name.
func (o *Operation) named(name string) *Operation {
	c := *o.def()
	c.name = name
	return operationOf(&c)
}
