package op

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestUnderflow: products that are subnormal, each rounded before it is added, are within
// the tolerance of the exact sum, and would not be if only their size counted.
func TestUnderflow(t *testing.T) {
	const k = 64
	array := func(s ...int) *Array { return &Array{Shape: s, Data: make([]float64, int(elements(s)))} }
	beyond := 0
	for range 1000 {
		x, y := array(k), array(k)
		sum := float32(0)
		for i := range k {
			a, b := 0x1p-70*(1+rand.Float32()), 0x1p-72*(1+rand.Float32())
			x.Data[i], y.Data[i] = float64(a), float64(b)
			sum += float32(a * b) // rounded, on processors that would fuse the two as well
		}
		row, column, dots, cells := *x, *y, array(1), array(1, 1)
		row.Shape, column.Shape = Shape{1, k}, Shape{k, 1}
		dots.Mag = make([]float64, 1)
		dots.Data[0], dots.Mag[0] = reduceDot(nil, x.Data, y.Data)
		var none Attrs
		matMulReference(&none, []*Array{&row, &column, nil}, []*Array{cells})
		for _, c := range []struct {
			o    *Operation
			want *Array
		}{{Dot, dots}, {MatMul, cells}} {
			if err := c.o.Check(float64(sum), c.want.Data[0], c.want.Mag[0], F32); err != nil {
				t.Fatalf("%v: %v", c.o, err)
			}
			mag := math.Abs(c.want.Data[0]) * Depth(k)
			if c.o.Check(float64(sum), c.want.Data[0], mag, F32) != nil {
				beyond++
			}
		}
	}
	if beyond == 0 {
		t.Error("nothing was lost")
	}
}

// TestTF32Slack: both numbers of TF32 beside a float32, in either operand, are within
// what the tolerance of a product grows by.
func TestTF32Slack(t *testing.T) {
	beside := func(x float32) [2]float64 {
		low := math.Float32bits(x) &^ (1<<13 - 1)
		return [2]float64{float64(math.Float32frombits(low)), float64(math.Float32frombits(low + 1<<13))}
	}
	random := func() float32 {
		for {
			x := math.Float32frombits(rand.Uint32())
			if x-x == 0 {
				return x
			}
		}
	}
	for range 1 << 18 {
		x, y := random(), random()
		if rand.IntN(4) == 0 {
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
			t.Errorf("an infinity may change: %g", s)
		}
	}
	if s := tf32Slack(math.MaxFloat32, 1e-30); !math.IsInf(s, 1) {
		t.Errorf("the largest number may not become infinite: %g", s)
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
