package ir

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestEnclose: values of each code at operands from intervals lie in the
// interval of the results, and a certain interval gives a certain result.
func TestEnclose(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	some := []float64{0, 1, -1, 0.5, 2, -2.5, math.Pi / 2, 10, -30, 1e20, -1e20, 1e-30, math.Inf(1), math.Inf(-1), math.NaN()}
	number := func() float64 {
		if rng.IntN(3) == 0 {
			return some[rng.IntN(len(some))]
		}
		return rng.NormFloat64() * math.Ldexp(1, rng.IntN(12)-6)
	}
	// around returns an interval and values in it.
	around := func(b bool) (Interval, []float64) {
		if b {
			v := float64(rng.IntN(2))
			switch rng.IntN(6) {
			case 0:
				return Anything(), []float64{0, 1}
			case 1:
				return Interval{0, 1, false}, []float64{0, 1}
			}
			return Point(v), []float64{v}
		}
		v := number()
		width := math.Abs(rng.NormFloat64()) * math.Ldexp(1, -rng.IntN(30))
		if v-v != 0 || rng.IntN(4) == 0 {
			return Point(v), []float64{v}
		}
		x := Interval{v - width, v + width, rng.IntN(20) == 0}
		in := []float64{x.Lo, x.Hi, v}
		for range 6 {
			in = append(in, x.Lo+(x.Hi-x.Lo)*rng.Float64())
		}
		if x.zero() {
			in = append(in, 0, math.Copysign(0, -1))
		}
		if x.NaN {
			in = append(in, math.NaN())
		}
		return x, in
	}
	tries := 3000
	if testing.Short() {
		tries = 600
	}
	for _, c := range Codes() {
		types := make([]Type, c.Arity())
		for i := range types {
			types[i] = F32
		}
		switch c {
		case And, Or, Xor, Not:
			for i := range types {
				types[i] = Bool
			}
		case Shl, Shr, Bitcast, Convert:
			continue
		case Select:
			types[0] = Bool
		}
		args := make([]*Node, len(types))
		for i, d := range types {
			args[i] = NewArg(i, d)
		}
		n, err := New(c, args...)
		if err != nil {
			t.Fatal(err)
		}
		ev, en := NewEvaluator(n), NewEncloser(n, nil)
		wide := 0
		for range tries {
			in, values := make([]Interval, len(types)), make([][]float64, len(types))
			for i, d := range types {
				in[i], values[i] = around(d == Bool)
				if c == Ldexp && i == 1 {
					in[i], values[i] = Point(3), []float64{3}
				}
			}
			r := en.Enclose(in, nil)
			if !r.Certain() && r.Hi-r.Lo > 1e3 {
				wide++
			}
			at := make([]float64, len(types))
			for range 40 {
				for i, v := range values {
					at[i] = v[rng.IntN(len(v))]
				}
				v := ev.Eval(at, nil)
				slack := 1e-12 * math.Abs(v)
				if !r.Contains(v) && !(v >= r.Lo-slack && v <= r.Hi+slack) {
					t.Fatalf("%v of %v is %v; of %v it was to be in %v", c, at, v, in, r)
				}
			}
		}
		if wide > tries*2/3 {
			t.Errorf("%v: %d of %d intervals are wide", c, wide, tries)
		}
	}
}

// TestEncloseBits: of a zero the sign is not known, of a NaN nothing, and a subnormal
// number may have become 0, so that their bits are not known either.
func TestEncloseBits(t *testing.T) {
	for _, c := range []struct {
		x     float64
		known bool
	}{{0, false}, {math.Copysign(0, -1), false}, {math.NaN(), false}, {0x1p-127, false}, {-0x1p-149, false},
		{0x1p-126, true}, {-0x1p-126, true}, {1, true}, {math.Inf(-1), true}} {
		e := NewEncloser(NewBitcast(NewArg(0, F32), U32), nil)
		r := e.Enclose([]Interval{Point(c.x)}, nil)
		if want := float64(math.Float32bits(float32(c.x))); r.Certain() != c.known || !r.Contains(want) {
			t.Errorf("the bits of %v, %v, are in %+v; certain should be %v", c.x, want, r, c.known)
		}
	}
	if r := NewEncloser(NewBitcast(NewArg(0, U32), F32), nil).Enclose([]Interval{Point(1 << 23)}, nil); !r.Certain() || r.Lo != 0x1p-126 {
		t.Errorf("the float of bit 23 is in %+v", r)
	}
}
