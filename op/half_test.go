package op

import (
	"math"
	"testing"
)

// TestHalfFloatsRoundToNearestEven compares both conversions with the
// definition: the nearest value, and the even one of two that are equally near.
func TestHalfFloatsRoundToNearestEven(t *testing.T) {
	for _, c := range []struct {
		d    DType
		to   func(float32) uint16
		from func(uint16) float32
		inf  uint16
	}{
		{F16, F16FromFloat32, F16ToFloat32, 0x7c00},
		{BF16, BF16FromFloat32, BF16ToFloat32, 0x7f80},
	} {
		for b := uint16(0); b < c.inf; b++ {
			v, up := float64(c.from(b)), float64(c.from(b+1))
			if b+1 == c.inf {
				up = v + (v - float64(c.from(b-1)))
			}
			mid := (v + up) / 2 // exact in float32, because it needs only one bit more than v
			even := b + b&1
			for _, x := range []struct {
				v    float32
				want uint16
			}{
				{float32(v), b}, {float32(mid), even},
				{math.Nextafter32(float32(mid), 0), b}, {math.Nextafter32(float32(mid), math.MaxFloat32), b + 1},
			} {
				if float64(x.v) > math.MaxFloat32 {
					continue
				}
				if got := c.to(x.v); got != x.want {
					t.Fatalf("%v(%v) = %#x, want %#x", c.d, x.v, got, x.want)
				}
				if got := c.to(-x.v); got != x.want|0x8000 {
					t.Fatalf("%v(%v) = %#x, want %#x", c.d, -x.v, got, x.want|0x8000)
				}
			}
			if u := ulpOf(v, c.d); b > 0 && u != up-v {
				t.Fatalf("ulp of %v in %v is %v, want %v", v, c.d, u, up-v)
			}
		}
		if got := c.to(float32(math.Inf(-1))); got != c.inf|0x8000 {
			t.Errorf("%v(-Inf) = %#x", c.d, got)
		}
		for _, bits := range []uint32{0x7fc00000, 0x7f800001, 0xff800001, 0xffffffff} {
			nan := math.Float32frombits(bits)
			if v := c.from(c.to(nan)); v == v {
				t.Errorf("%v of the NaN %#x = %v", c.d, bits, v)
			}
		}
		if v := infinityOf(c.d); !math.IsInf(c.d.Round(v), 1) || math.IsInf(c.d.Round(math.Nextafter(v, 0)*(1-0x1p-20)), 1) {
			t.Errorf("%v: %v is not the least number that becomes infinite", c.d, v)
		}
	}
}

func TestRoundAndMemory(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		d       DType
		v, want float64
	}{
		{F32, 0.1, float64(float32(0.1))}, {F32, 1e300, inf}, {F32, nan, nan},
		{F16, 65519, 65504}, {F16, 65520, inf}, {F16, 0x1p-25, 0}, {F16, 0x1.8p-25, 0x1p-24},
		{BF16, 1 + 0x1p-8, 1}, {BF16, -3.4e38, -inf}, {BF16, -3.38e38, -0x1.fcp127},
		{I32, -2.9, -2}, {I32, 1e20, math.MaxInt32}, {I32, -inf, math.MinInt32}, {I32, nan, 0},
		{U32, -1, 0}, {U32, inf, math.MaxUint32}, {U32, 3.7, 3},
		{Bool, 0, 0}, {Bool, -3, 1}, {Bool, nan, 1},
	} {
		memory := make([]byte, 3*c.d.Size())
		c.d.PutFloat64(memory, 1, c.v)
		for what, got := range map[string]float64{"Round": c.d.Round(c.v), "memory": c.d.Float64(memory, 1)} {
			if got != c.want && (got == got || c.want == c.want) {
				t.Errorf("%s of %v as %v = %v, want %v", what, c.v, c.d, got, c.want)
			}
		}
		if c.d.Float64(memory, 0) != 0 || c.d.Float64(memory, 2) != 0 {
			t.Errorf("%v: storing %v changed neighbouring elements", c.d, c.v)
		}
	}
}

// TestRounds checks that operations that only select elements or change their signs need no rounding,
// because their results are numbers of the type, and that other operations do.
func TestRounds(t *testing.T) {
	for _, c := range []struct {
		o    *Operation
		a    Attrs
		in   []DType
		out  DType
		want bool
	}{
		{Neg, Attrs{}, []DType{F16}, F16, false},
		{Abs, Attrs{}, []DType{BF16}, BF16, false},
		{Relu, Attrs{}, []DType{F16}, F16, false},
		{Sign, Attrs{}, []DType{F16}, F16, false},
		{Floor, Attrs{}, []DType{BF16}, BF16, false},
		{Minimum, Attrs{}, []DType{F16, F16}, F16, false},
		{Where, Attrs{}, []DType{Bool, F16, F16}, F16, false},
		{Clip, Floats(-1, 6), []DType{F16}, F16, false},
		{Clip, Floats(-1, 0.1), []DType{F16}, F16, true},
		{Clip, Floats(-1, 2049), []DType{F16}, F16, true},
		{Add, Attrs{}, []DType{F16, F16}, F16, true},
		{Add, Attrs{}, []DType{F32, F32}, F32, false},
		{Exp, Attrs{}, []DType{BF16}, BF16, true},
		{Cast, CastTo(F16), []DType{F32}, F16, true},
		{Cast, CastTo(F16), []DType{BF16}, F16, true},
		{Cast, CastTo(F16), []DType{I32}, F16, true},
		{Cast, CastTo(F16), []DType{Bool}, F16, false},
		{Cast, CastTo(F16), []DType{F16}, F16, false},
		{Cast, CastTo(F32), []DType{F16}, F32, false},
		{Relu, Attrs{}, []DType{F32}, F16, true}, // its operand may be a sum in f32, which f16 does not hold exactly
	} {
		got, err := c.o.Rounds(&c.a, c.in, c.out)
		if err != nil || got != c.want {
			t.Errorf("%v of %v to %v: %v, %v, want %v", c.o, c.in, c.out, got, err, c.want)
		}
	}
}
